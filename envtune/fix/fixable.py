"""What `envtune fix` would fix on this host, and why it would not fix the rest, for reports."""

from __future__ import annotations

from typing import Iterable, Sequence

from envtune.context import Context
from envtune.fix.plan import fixed_checks, make_plan
from envtune.messages import Text
from envtune.model import Finding, Fixes, FixOptions, Playbook


def find_fixes(playbooks: Iterable[Playbook], context: Context, findings: Sequence[Finding]) -> Fixes:
    """Return the checks that a plan has a change for, and why it has none for others covered by a playbook.

    What a person has to do is not a change. What can be planned only on the host itself, or as root, is in `elsewhere`.
    """
    judged = [finding for finding in findings if not finding.check.note]
    target = context.target.options
    options = FixOptions(target.peers, env_file=target.env_file, pid=target.pid)  # as `envtune fix` with these options
    plan = make_plan(judged, playbooks, context, options, is_saved=False)
    planned = dict.fromkeys(check for change in plan.changes for check in fixed_checks(change))
    open_ = {skipped.finding for skipped in plan.skipped if skipped.elsewhere or skipped.steps}
    refused: dict[str, Text] = {}
    for skipped in plan.skipped:
        if skipped.finding not in planned and skipped.finding not in open_:
            refused.setdefault(skipped.finding, skipped.reason)
    changes = (change for change in plan.changes if change.safety != "manual")
    done = tuple(dict.fromkeys(check for change in changes for check in fixed_checks(change)))
    elsewhere = (skipped.finding for skipped in plan.skipped if skipped.elsewhere)
    return Fixes(done, refused, tuple(dict.fromkeys(elsewhere)))
