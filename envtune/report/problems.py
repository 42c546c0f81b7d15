"""What a report says is wrong, in the order in which a person should read it: one problem for each cause.

The order is: severity, what it does to a job, id. A check that another one covers (`covers` in the catalog) is named
beside that one. Texts and documents of every format are made from this.
"""

from __future__ import annotations

import re
from typing import Iterable, Mapping, Optional, Sequence

from envtune.audit.remedies import is_refusal
from envtune.messages import Text
from envtune.model import Check, Command, Finding, Outcome, Report, Severity
from envtune.ranges import join_subjects, single_subjects
from envtune.records import NamedTuple, expression
from envtune.report.layout import CHOICE, spelled

IMPACTS = ("stops", "degrades", "none")  # on a job, the worst first
_NUMBERED = expression(r"([a-z_]+)(0|[1-9]\d{0,5})")
_IS_WRONG = (Outcome.FAIL, Outcome.ERROR)


class Problem(NamedTuple):
    """One cause: the check that tells most of it, its failed findings, and the checks that found the same."""

    check: Check
    severity: Severity
    findings: tuple[Finding, ...]
    covered: tuple[Problem, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all its checks, the one that tells most first."""
        return (self.check.id, *(problem.check.id for problem in self.covered))

    @property
    def fixes(self) -> tuple[str, ...]:
        """The lines to paste that fix it."""
        return tuple(c.line for c in self.commands if c.kind == "fix" and isinstance(c.line, str))

    @property
    def looks(self) -> tuple[str, ...]:
        """The lines to paste that show more of it."""
        return tuple(c.line for c in self.commands if c.kind == "look" and isinstance(c.line, str))

    @property
    def instructions(self) -> tuple[Text, ...]:
        """What a person has to do where no line to paste fixes it; none where a line shows more."""
        if self.fixes:
            return ()
        made = tuple(
            c.line for c in self.commands if c.kind == "fix" and isinstance(c.line, Text) and not is_refusal(c.line)
        )
        return made or (() if self.looks or self.check.remedy is None else (self.check.remedy,))

    @property
    def commands(self) -> tuple[Command, ...]:
        """What to type: of the check itself or, where that repairs nothing, what repairs it of a covered one."""
        own = _commands(self.findings)
        if any(command.kind == "fix" for command in own):
            return own
        found = (command for problem in self.covered for command in _commands(problem.findings))
        return (*(command for command in found if command.kind == "fix"), *own)


def problems(findings: Iterable[Finding]) -> tuple[Problem, ...]:
    """Return what is wrong, the worst first; notes are not in it."""
    failed: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.outcome in _IS_WRONG and not finding.check.note:
            failed.setdefault(finding.id, []).append(finding)
    made = {id_: _problem(group) for id_, group in failed.items()}
    for problem in list(made.values()):
        covered = [made[id_] for id_ in _covered(problem, made)]
        if problem.check.id in made and covered:
            for other in covered:
                del made[other.check.id]
            rank = max((problem, *covered), key=lambda one: one.severity.rank).severity
            more = tuple(inner for one in covered for inner in (one._replace(covered=()), *one.covered))
            made[problem.check.id] = problem._replace(severity=rank, covered=(*problem.covered, *more))
    return tuple(sorted(made.values(), key=_order))


def notes(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return what is worth knowing about the host and no problem: it is a container, the user is not root."""
    return tuple(finding for finding in findings if finding.outcome is Outcome.FAIL and finding.check.note)


def fixable(problem: Problem, report: Report) -> bool:
    """Return whether `envtune fix` would fix the problem; where nobody asked it is False.

    It may have to be run as root, or on the host itself.
    """
    return any(is_fixable(id_, report) for id_ in problem.ids)


def is_fixable(check: str, report: Report) -> bool:
    """Return whether `envtune fix` would fix what the check found; False where nobody asked."""
    return check in (report.fixable or ()) or check in report.elsewhere


def planned(problem: Problem, report: Report) -> bool:
    """Return whether `envtune fix`, run as this report was made, would show the changes."""
    return any(id_ in (report.fixable or ()) for id_ in problem.ids)


def _problem(group: Sequence[Finding]) -> Problem:
    worst = max(group, key=lambda finding: finding.severity.rank)
    return Problem(group[0].check, worst.severity, tuple(sorted(group, key=lambda one: not _is_taken(one.subject))))


def _is_taken(subject: str) -> bool:
    """Return whether it is a port, which somebody uses now: that comes before what may happen."""
    return subject.startswith("port ")


def _covered(problem: Problem, others: Mapping[str, Problem]) -> list[str]:
    """Return the ids of the other problems that have the same cause."""
    own = _subjects(problem)
    found = []
    for row in problem.check.covers:
        other = others.get(row.check)
        if other is not None and (row.subject in own if row.subject else _subjects(other) <= own):
            found.append(row.check)
    return found


def _subjects(problem: Problem) -> set[str]:
    return {name for finding in problem.findings for name in single_subjects(finding.subject)}


def impact(problem: Problem) -> str:
    """Return what the problem does to a job: stops, degrades or none."""
    return min((one.check.impact for one in (problem, *problem.covered)), key=IMPACTS.index)


def _order(problem: Problem) -> tuple[int, int, str]:
    return -problem.severity.rank, IMPACTS.index(impact(problem)), problem.check.id


def _commands(findings: Iterable[Finding]) -> tuple[Command, ...]:
    made = dict.fromkeys(command for finding in findings for command in finding.commands)
    return tuple(sorted(made, key=lambda command: command.kind != "fix"))


class Statement(NamedTuple):
    """What was found about one or several subjects, in the language of the report."""

    subject: str
    actual: str
    expected: str

    @property
    def beginning(self) -> Optional[str]:
        """What of the subject stands before what was found, where that begins with the rest of it; else None.

        `HCCL 60000-60015` and `60000-60015 not reserved` need the `HCCL ` only.
        """
        words = self.subject.split(" ")
        for number in range(len(words)):
            rest = " ".join(words[number:])
            if rest and re.match(re.escape(rest) + r"(?![\w./-])", self.actual):
                return self.subject[: len(self.subject) - len(rest)]
        return None


_SAYS_LITTLE = expression(r"an?|and|are|at|does|in|is|its?|no|none|not|of|on|or|that|the|to|was|which|with")


def adds_nothing(title: Text, finding: Finding) -> bool:
    """Return whether what was found is in the title already, as `not installed` where that says the same of a name."""
    return finding.actual is not None and not _words(finding.actual.en) - _words(title.en)


def _words(text: str) -> set[str]:
    words = (word.strip(".") for word in re.findall(r"[\w./-]+", text.lower()))
    return {word for word in words if not _SAYS_LITTLE.fullmatch(word)}


def statements(findings: Iterable[Finding], lang: str) -> tuple[Statement, ...]:
    """Return what was found, once for subjects that differ in a number only.

    `npu2: /dev/davinci2 is there` and the same of npu3 become `npu2-3: /dev/davinci2-3 is there`.
    """
    return merged(_statement(finding, lang) for finding in findings)


def merged(rows: Iterable[Statement]) -> tuple[Statement, ...]:
    """Return the statements, those together whose subjects differ in a number only."""
    groups: dict[tuple[str, str, str], list[Statement]] = {}
    for row in rows:
        numbered = _NUMBERED.fullmatch(row.subject)
        stem, actual = row.subject, row.actual
        if numbered is not None:
            stem, actual = numbered[1], re.sub(rf"(?<!\d){numbered[2]}(?![\d.])", "\0", row.actual)
        groups.setdefault((stem, actual, row.expected), []).append(row)
    return tuple(_merged(group, key[1]) for key, group in groups.items())


def _merged(group: Sequence[Statement], template: str) -> Statement:
    first = group[0]
    if len(group) == 1:
        return first
    subject = join_subjects(row.subject for row in group)
    numbers = re.sub(r"[a-z_]+(?=\d)", "", subject).replace(" ", "")
    return Statement(subject, template.replace("\0", numbers), first.expected)


def _statement(finding: Finding, lang: str) -> Statement:
    found = finding.reason if finding.outcome is Outcome.ERROR else finding.actual
    actual, expected = _to(found, lang), _to(finding.expected, lang)
    for choice in CHOICE.findall(expected):  # of what was found the same only: a pipe in a command stays one
        actual = actual.replace(choice, spelled(choice, lang))
    return Statement(finding.subject, actual, spelled(expected, lang))


def _to(text: Optional[Text], lang: str) -> str:
    return "" if text is None else text.to(lang)
