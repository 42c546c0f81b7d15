"""The checks before a command is started, and what they mean for it."""

from __future__ import annotations

from typing import Iterable, NamedTuple, Optional

from envtune.audit import audit
from envtune.context import Context
from envtune.model import Check, Finding, Outcome, Severity


class Preflight(NamedTuple):
    """What keeps the command from being started, and the ids of the checks with lesser findings or unknown."""

    stopping: tuple[Finding, ...]
    minor: tuple[str, ...]
    unknown: tuple[str, ...]


def preflight(context: Context, checks: Iterable[Check], fail_on: Optional[Severity]) -> Preflight:
    """Run the checks; findings at or above `fail_on` stop the command, none if it is None. A note is not a problem."""
    findings = audit(checks, context)
    failed = [finding for finding in findings if finding.outcome is Outcome.FAIL and not finding.check.note]
    stopping = tuple(finding for finding in failed if fail_on and finding.severity.rank >= fail_on.rank)
    minor = {finding.id for finding in failed} - {finding.id for finding in stopping}
    unknown = {finding.id for finding in findings if finding.outcome in (Outcome.UNKNOWN, Outcome.ERROR)}
    return Preflight(stopping, tuple(sorted(minor)), tuple(sorted(unknown)))
