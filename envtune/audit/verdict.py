"""What findings amount to: whether the host is ready, in one word, and the exit status of `envtune check`.

Ready is said on evidence: at least one check passed, and none of at least medium severity failed or is unknown. An
error in envtune tells nothing about the host. Text, JSON and exit status take it from here.
"""

from __future__ import annotations

import enum
from typing import Iterable, Sequence

from envtune.model import Finding, Outcome, Severity

_UNKNOWN = (Outcome.UNKNOWN, Outcome.ERROR)
_KNOWN = (Outcome.PASS, Outcome.FIXED)


class Verdict(enum.Enum):
    """The word of the last line of a report; `verdict` of envtune.report/1."""

    READY = "ready"
    ADVICE = "ready_with_advice"  # what failed is of low severity
    NOT_READY = "not_ready"
    NOT_SURE = "not_sure"  # something that matters is unknown, or nothing passed
    NOTHING_CHECKED = "nothing_checked"  # no check applies to this host


def nothing_applies(findings: Iterable[Finding]) -> bool:
    """Return whether no check concerned this host, so that nothing is known about it."""
    return all(finding.outcome is Outcome.NOTAPPLICABLE for finding in findings)


def verdict(findings: Sequence[Finding]) -> Verdict:
    """Return what the findings say of the host."""
    if nothing_applies(findings):
        return Verdict.NOTHING_CHECKED
    matter = {finding.outcome for finding in findings if finding.severity.rank >= Severity.MEDIUM.rank}
    if Outcome.FAIL in matter:
        return Verdict.NOT_READY
    outcomes = {finding.outcome for finding in findings}
    if matter.intersection(_UNKNOWN) or not outcomes.intersection(_KNOWN):
        return Verdict.NOT_SURE
    return Verdict.ADVICE if outcomes.intersection((Outcome.FAIL, Outcome.ERROR)) else Verdict.READY


def exit_code(findings: Sequence[Finding], fail_on: Severity, strict: bool = False) -> int:
    """Return 1 for findings at or above `fail_on`, 3 where something there is unknown or nothing could be told, else 0.

    What is unknown only for want of a privilege counts with `strict`.
    """
    serious = [finding for finding in findings if finding.severity.rank >= fail_on.rank]
    if any(finding.outcome is Outcome.FAIL for finding in serious):
        return 1
    known = any(finding.outcome in (*_KNOWN, Outcome.FAIL) for finding in findings)
    return 3 if not known or any(_is_unknown(finding, strict) for finding in serious) else 0


def _is_unknown(finding: Finding, strict: bool) -> bool:
    if finding.outcome is Outcome.UNKNOWN:
        return strict or not finding.needs_privilege
    return finding.outcome is Outcome.ERROR
