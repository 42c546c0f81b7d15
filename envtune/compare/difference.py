"""Two hosts compared, fact by fact and check by check. What is unknown on one side is unknown, not a difference."""

from __future__ import annotations

from typing import Iterable, Mapping, Optional, Sequence

from envtune.audit.settings import VARIABLE
from envtune.audit.subjects import subject_text
from envtune.compare.facts import fact_names
from envtune.compare.hosts import HostReport, Value, value, without_own
from envtune.messages import Message, Text
from envtune.model import Check, Finding, Outcome, Report, Severity
from envtune.records import NamedTuple

# The overall outcome of a check with several outcomes on a host: the first of these.
_ORDER = (Outcome.FAIL, Outcome.WAIVED, Outcome.UNKNOWN, Outcome.ERROR, Outcome.FIXED, Outcome.PASS)
_UNKNOWN = (Outcome.UNKNOWN, Outcome.ERROR)
_ADDRESS = VARIABLE + "MASTER_ADDR"  # it matters whether it is the host's own address or another's


class FactPair(NamedTuple):
    """A fact of both hosts."""

    name: str
    left: Value
    right: Value


class Side(NamedTuple):
    """The result of a check on one host: its outcome, the subjects with that outcome, and what was found or why not."""

    outcome: Outcome
    subjects: tuple[str, ...]
    texts: tuple[Text, ...]
    needs_privilege: bool  # unknown only because of a missing privilege
    severity: Severity  # on this host


class CheckPair(NamedTuple):
    """The results of a check on both hosts."""

    check: Check
    left: Side
    right: Side

    @property
    def severity(self) -> Severity:
        """That of the host on which it fails; the higher one if it fails on both or neither."""
        sides = (self.left, self.right)
        failed = [side.severity for side in sides if side.outcome is Outcome.FAIL]
        return max(failed or [side.severity for side in sides], key=lambda severity: severity.rank)


class Difference(NamedTuple):
    """Two hosts: what differs, what cannot be compared, and how much is the same."""

    left: HostReport
    right: HostReport
    facts: tuple[FactPair, ...]
    checks: tuple[CheckPair, ...]
    unknown_facts: tuple[FactPair, ...]
    unknown_checks: tuple[CheckPair, ...]
    same_facts: int
    same_checks: int

    @property
    def differs(self) -> bool:
        """Whether anything is known to differ."""
        return bool(self.facts or self.checks)

    def exit_code(self) -> int:
        """Return 1 if something differs, 3 if nothing is known to differ but something is unknown, else 0.

        What only a missing privilege hides does not count.
        """
        unknown = any(not (pair.left.needs_privilege or pair.right.needs_privilege) for pair in self.unknown_checks)
        return 1 if self.differs else 3 if unknown or self.unknown_facts else 0


def difference(left: HostReport, right: HostReport) -> Difference:
    """Return how two hosts differ. A host compared with itself differs in nothing, unknown or not."""
    itself = left.report is right.report
    facts = [FactPair(name, value(left, name), value(right, name)) for name in fact_names((left, right))]
    known = [pair for pair in facts if itself or (pair.left.reason is None and pair.right.reason is None)]
    unlike = [pair for pair in known if _unlike(pair)]
    checks = _pairs(left, right)
    decided = [pair for pair in checks if itself or not {pair.left.outcome, pair.right.outcome} & {*_UNKNOWN}]
    changed = [pair for pair in decided if pair.left[:2] != pair.right[:2]]
    return Difference(
        left,
        right,
        tuple(unlike),
        tuple(sorted(changed, key=lambda pair: -pair.severity.rank)),
        tuple(pair for pair in facts if pair not in known),
        tuple(pair for pair in checks if pair not in decided),
        len(known) - len(unlike),
        len(decided) - len(changed),
    )


def _unlike(pair: FactPair) -> bool:
    """Return whether two known values differ, even without what identifies each host."""
    if pair.left.text == pair.right.text:
        return False
    return pair.name == _ADDRESS or pair.left.own != pair.right.own


def _pairs(left: HostReport, right: HostReport) -> list[CheckPair]:
    both = (_by_check(left.report), _by_check(right.report))
    return [
        CheckPair(findings[0].check, _side(left, findings), _side(right, both[1][identifier]))
        for identifier, findings in both[0].items()
        if identifier in both[1]
    ]


def _by_check(report: Report) -> Mapping[str, list[Finding]]:
    found: dict[str, list[Finding]] = {}
    for finding in report.findings:
        found.setdefault(finding.id, []).append(finding)
    return found


def _side(host: HostReport, findings: Sequence[Finding]) -> Side:
    outcomes = {finding.outcome for finding in findings}
    outcome = next((one for one in _ORDER if one in outcomes), Outcome.NOTAPPLICABLE)
    decisive = [finding for finding in findings if finding.outcome is outcome]
    # Only failing subjects count as a difference: other outcomes are about the host as a whole.
    subjects = {without_own(host, f.subject) for f in decisive} if outcome is Outcome.FAIL else set()
    return Side(
        outcome,
        tuple(sorted(subjects)),
        tuple(_texts(decisive)),
        all(finding.needs_privilege for finding in decisive),
        max((finding.severity for finding in decisive), key=lambda severity: severity.rank),
    )


def _texts(findings: Iterable[Finding]) -> Iterable[Text]:
    for finding in findings:
        failed = finding.outcome is Outcome.FAIL  # its reason is that of an expired waiver
        text: Optional[Text] = finding.actual if failed or finding.reason is None else finding.reason
        if text is not None:
            subject = finding.subject
            yield Message("{subject}: {text}", subject=subject_text(subject), text=text) if subject else text
