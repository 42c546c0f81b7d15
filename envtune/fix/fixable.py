"""Which findings `envtune fix` would fix on this host, for a report that says so."""

from __future__ import annotations

from typing import Iterable, Sequence

from envtune.context import Context
from envtune.fix.plan import fixed_checks, make_plan
from envtune.model import Finding, Playbook


def fixable_checks(playbooks: Iterable[Playbook], context: Context, findings: Sequence[Finding]) -> tuple[str, ...]:
    """Return the ids of the checks that a plan has a change for. What a person has to do is none of them."""
    plan = make_plan([finding for finding in findings if not finding.check.note], playbooks, context)
    changes = (change for change in plan.changes if change.safety != "manual")
    return tuple(dict.fromkeys(check for change in changes for check in fixed_checks(change)))
