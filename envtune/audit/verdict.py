"""The conclusion from findings: a one-word verdict on the host, the number of checks by outcome, and the exit status.

Ready is said on evidence: at least one check was decided, and none of at least medium severity failed or is unknown. A
check is decided if it passed, failed or is waived, not if it is unknown. An error in envtune says nothing about
the host, and a note is not a problem. Text, JSON and exit status all use it.
"""

from __future__ import annotations

import enum
from typing import Iterable, Mapping, Optional, Sequence

from envtune.model import Fact, Finding, Outcome, Severity
from envtune.records import NamedTuple

_UNKNOWN = (Outcome.UNKNOWN, Outcome.ERROR)
_DECIDED = (Outcome.PASS, Outcome.FIXED, Outcome.FAIL, Outcome.WAIVED)  # the check decided something about the host
_ABOUT_NPUS = ("ascend", "ascend_job")  # facts; a check that needs one of them is about hosts that train
# for a check with several findings: the first of these that occurs
_WORST = (
    Outcome.FAIL,
    Outcome.ERROR,
    Outcome.UNKNOWN,
    Outcome.WAIVED,
    Outcome.FIXED,
    Outcome.PASS,
    Outcome.NOTAPPLICABLE,
)


class Verdict(enum.Enum):
    """The first line of a report; `verdict` in envtune.report/1 and /2."""

    READY = "ready"
    ADVICE = "ready_with_advice"  # what failed is of low severity
    NOT_READY = "not_ready"
    NOT_SURE = "not_sure"  # something that matters is unknown, or everything that applies
    NOTHING_CHECKED = "nothing_checked"  # no check applies to this host
    NO_NPU = "no_npu"  # no trace of Ascend here: only general checks were run


class Counts(NamedTuple):
    """The number of checks by outcome; each counts once, by the worst of its findings."""

    outcomes: Mapping[Outcome, int]
    severities: Mapping[Severity, int]  # of failed checks and of errors in envtune itself; the worst first
    notes: int  # checks that found something worth knowing that is not a problem
    need_root: int  # unknown only because a privilege is missing
    waived: int  # checks with a finding that the site waives, even if their overall outcome is another one

    @property
    def problems(self) -> int:
        """How many checks found something wrong."""
        return sum(self.severities.values())

    @property
    def checks(self) -> int:
        """How many checks there are."""
        return sum(self.outcomes.values()) + self.notes


def count_checks(findings: Iterable[Finding]) -> Counts:
    """Return the number of checks by outcome."""
    by_check: dict[str, list[Finding]] = {}
    for finding in findings:
        by_check.setdefault(finding.id, []).append(finding)
    outcomes = dict.fromkeys(Outcome, 0)
    severities = dict.fromkeys(reversed(Severity), 0)
    notes = need_root = waived = 0
    for group in by_check.values():
        outcome = worst_outcome(group)
        waived += any(finding.outcome is Outcome.WAIVED for finding in group)
        if outcome is Outcome.FAIL and group[0].check.note:
            notes += 1
            continue
        outcomes[outcome] += 1
        deciding = [finding for finding in group if finding.outcome is outcome]
        need_root += outcome is Outcome.UNKNOWN and all(finding.needs_privilege for finding in deciding)
        if outcome in (Outcome.FAIL, Outcome.ERROR):
            severities[max((finding.severity for finding in deciding), key=lambda severity: severity.rank)] += 1
    return Counts(outcomes, severities, notes, need_root, waived)


def worst_outcome(findings: Sequence[Finding]) -> Outcome:
    """Return the overall outcome of one check's findings: the one that matters most."""
    found = {finding.outcome for finding in findings}
    return next(one for one in _WORST if one in found)


def nothing_applies(findings: Iterable[Finding]) -> bool:
    """Return whether no check concerned this host, so that nothing is known about it."""
    return all(finding.outcome is Outcome.NOTAPPLICABLE for finding in findings)


def is_without_npu(findings: Iterable[Finding], facts: Iterable[Fact]) -> bool:
    """Return whether checks about training were asked for on a host that has no NPU, no driver and no CANN."""
    values = {fact.name: fact.value for fact in facts if fact.name in _ABOUT_NPUS}
    return set(values.values()) == {"false"} and any(
        finding.check.applies.get(name) is True for finding in findings for name in _ABOUT_NPUS
    )


def verdict(findings: Sequence[Finding], facts: Iterable[Fact] = ()) -> Verdict:
    """Return the verdict on a host with these findings and facts."""
    if nothing_applies(findings):
        return Verdict.NOTHING_CHECKED
    counting = [finding for finding in findings if not (finding.check.note and finding.outcome is Outcome.FAIL)]
    matter = {finding.outcome for finding in counting if finding.severity.rank >= Severity.MEDIUM.rank}
    if is_without_npu(findings, facts):
        return Verdict.NO_NPU
    if Outcome.FAIL in matter:
        return Verdict.NOT_READY
    if matter.intersection(_UNKNOWN) or not is_decided(findings):
        return Verdict.NOT_SURE
    outcomes = {finding.outcome for finding in counting}
    return Verdict.ADVICE if outcomes.intersection((Outcome.FAIL, Outcome.ERROR)) else Verdict.READY


def is_decided(findings: Iterable[Finding]) -> bool:
    """Return whether a check decided something about the host; what is waived was decided by the site."""
    return any(finding.outcome in _DECIDED for finding in findings)


def exit_code(
    findings: Sequence[Finding], fail_on: Optional[Severity], strict: bool = False, facts: Iterable[Fact] = ()
) -> int:
    """Return 1 for findings at or above `fail_on`, 3 if some of those are unknown or no check was decided, else 0.

    What is unknown only because a privilege is missing counts only with `strict`. A host without any NPU gets 3: the
    general checks do not answer the question whether it can train. If `fail_on` is None it is always 0.
    """
    if fail_on is None:
        return 0
    serious = [f for f in findings if f.severity.rank >= fail_on.rank and not f.check.note]
    if any(finding.outcome is Outcome.FAIL for finding in serious):
        return 1
    unanswered = not is_decided(findings) or is_without_npu(findings, facts)
    return 3 if unanswered or any(_is_unknown(finding, strict) for finding in serious) else 0


def _is_unknown(finding: Finding, strict: bool) -> bool:
    if finding.outcome is Outcome.UNKNOWN:
        return strict or not finding.needs_privilege
    return finding.outcome is Outcome.ERROR
