"""What a host says about the cause of an FAQ entry: proved, likely, ruled out, not here, or undecided."""

from __future__ import annotations

import re
from fnmatch import translate
from typing import Any, Callable, Container, Iterator, Mapping, NamedTuple, Optional, Protocol, Sequence

from envtune.audit.about import is_about_another
from envtune.model import Criterion, Fact, FaqEntry, Finding, Outcome
from envtune.ranges import single_subjects

PROVED, LIKELY, RULED_OUT = "proved", "likely", "ruled_out"
NOT_HERE, UNCHECKED = "not_here", "could_not_check"
VERDICTS = (PROVED, LIKELY, RULED_OUT, NOT_HERE, UNCHECKED)
_PASSED = (Outcome.PASS, Outcome.FIXED)
_OUTCOMES = {"fail": (Outcome.FAIL,), "pass": _PASSED}
_FIELD = re.compile(r"\{([a-z_]+)\}")


class Host(Protocol):
    """What must be known about a host in addition to the findings."""

    @property
    def numbers_devices(self) -> bool:
        """Whether `device 3` of a log is npu3 of the host."""

    def holds(self, when: Mapping[str, Any]) -> Optional[tuple[Fact, ...]]:
        """Return the facts that `when` refers to, None if it does not hold or one of them is unknown."""


class Ground(NamedTuple):
    """One ground for the verdict. `effect` is proves, favours or rules_out; without a finding it rests on the facts."""

    effect: str
    finding: Optional[Finding] = None
    facts: tuple[Fact, ...] = ()


class Judgement(NamedTuple):
    """The verdict and what it rests on; if nothing decides, `findings` says what was examined."""

    verdict: str
    grounds: tuple[Ground, ...] = ()
    findings: tuple[Finding, ...] = ()


def judge(entry: FaqEntry, groups: Mapping[str, str], findings: Sequence[Finding], host: Host) -> Judgement:
    """Return what the findings of the entry's checks say about it. `groups` is what its signatures captured."""
    named = {name: value for name, value in groups.items() if value}
    everything, findings = findings, _about(findings, named, host)
    found = tuple(_grounds(entry, named, findings, host))
    if _undecided(findings, {criterion.check for criterion in entry.proves}):
        found = tuple(ground for ground in found if ground.effect != "rules_out")
    for effect, verdict in (("proves", PROVED), ("rules_out", RULED_OUT), ("favours", LIKELY)):
        deciding = [ground for ground in found if ground.effect == effect]
        if deciding:
            return Judgement(verdict, _each_once(deciding), tuple(everything))
    complete = bool(everything) and not _undecided(everything, entry.checks)
    return Judgement(NOT_HERE if complete else UNCHECKED, (), tuple(everything))


def _about(findings: Sequence[Finding], named: Mapping[str, str], host: Host) -> Sequence[Finding]:
    """Return the findings without those about a device, port, process etc. other than the one in the log."""
    return tuple(one for one in findings if not is_about_another(one, named, host.numbers_devices))


def _undecided(findings: Sequence[Finding], checks: Container[str]) -> bool:
    undecided = (Outcome.UNKNOWN, Outcome.ERROR, Outcome.WAIVED)
    return any(finding.outcome in undecided and finding.id in checks for finding in findings)


def _each_once(grounds: Sequence[Ground]) -> tuple[Ground, ...]:
    return tuple(ground for number, ground in enumerate(grounds) if ground not in grounds[:number])


def _grounds(entry: FaqEntry, named: Mapping[str, str], findings: Sequence[Finding], host: Host) -> Iterator[Ground]:
    for criterion in (*entry.proves, *entry.favours):
        facts = host.holds(criterion.when)
        if facts is None:
            continue
        # If the log does not name the subject, what fails may be a different one: no proof.
        proof = criterion in entry.proves and _names_subject(criterion, named, host)
        effect = "proves" if proof else "favours"
        if not criterion.check:
            yield Ground(effect, None, facts)
        yield from (Ground(effect, f, facts) for f in _matching(criterion, named, findings) if _says(criterion, f))
    for criterion in entry.rules_out:
        if _names_subject(criterion, named, host):
            yield from _excluding(criterion, named, findings, host.holds(criterion.when))


def _excluding(
    criterion: Criterion, named: Mapping[str, str], findings: Sequence[Finding], facts: Optional[tuple[Fact, ...]]
) -> Iterator[Ground]:
    """Yield what excludes the cause: all relevant findings do so, and none contradicts or is undecided."""
    if facts is None:
        return
    if not criterion.check:
        yield Ground("rules_out", None, facts)
    about = list(_matching(criterion, named, findings))
    if all(_says(criterion, finding) for finding in about):
        yield from (Ground("rules_out", finding, facts) for finding in about)


def _names_subject(criterion: Criterion, named: Mapping[str, str], host: Host) -> bool:
    """Return whether the log names exactly the subject that the findings are about."""
    if "npu{device}" in criterion.subject and not host.numbers_devices:
        return False
    return {*_FIELD.findall(criterion.subject), *_FIELD.findall(criterion.actual)} <= named.keys()


def _says(criterion: Criterion, finding: Finding) -> bool:
    return finding.outcome in _OUTCOMES[criterion.outcome]


def _matching(criterion: Criterion, named: Mapping[str, str], findings: Sequence[Finding]) -> Iterator[Finding]:
    """Yield the findings of its check on its subject; a group that the log does not name matches anything."""
    subject = _filled(criterion.subject, named, _literal_glob, "*")
    actual = _filled(criterion.actual, named, re.escape, ".*")
    for finding in findings:
        if criterion.check == finding.id and _is_about(subject, finding) and _reads(actual, finding):
            yield finding


def _is_about(subject: str, finding: Finding) -> bool:
    if not subject or not finding.subject:  # a finding without a subject applies to everything
        return True
    wanted = re.compile(translate(subject))
    return any(wanted.match(one) for one in single_subjects(finding.subject))


def _reads(actual: str, finding: Finding) -> bool:
    if not actual or finding.outcome not in (Outcome.FAIL, *_PASSED):
        return True
    return finding.actual is not None and re.search(actual, finding.actual.en) is not None


def _literal_glob(value: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", value)


def _filled(template: str, named: Mapping[str, str], escape: Callable[[str], str], anything: str) -> str:
    return _FIELD.sub(lambda m: escape(named[m[1]].strip()) if m[1] in named else anything, template)
