"""Render a report as a person wants it first: the verdict, the host, and two or three lines for each problem.

A report that would not fit a screen says less of each problem, and never leaves one out: `-v` shows everything.
"""

from __future__ import annotations

import re
import sys
from shlex import quote
from typing import Iterator, Mapping, NamedTuple, Optional, Sequence

from envtune.audit.subjects import is_plain, subject_text
from envtune.audit.verdict import Verdict, count_checks, verdict
from envtune.commandline import with_catalogs
from envtune.messages import Joined, Literal, Message, Text, clauses, enumerated, in_context, listed
from envtune.model import Finding, Outcome, Report, Severity
from envtune.report.host_texts import host_texts
from envtune.report.layout import (
    Paint,
    beginnings,
    clip,
    continued,
    display_width,
    first_sentence,
    fits,
    pad,
    printable,
    short_paths,
    spelled,
    without_remarks,
    wrap,
)
from envtune.report.policy_text import count_waived, policy_lines
from envtune.report.problems import Problem, Statement, adds_nothing, fixable, notes, problems, says_title, statements
from envtune.report.words import NOTE, OUTCOMES, SEVERITIES, also_text, problems_text, verdict_line

SCREEN = 25  # lines of 80 columns: a small terminal
PHRASE = 4  # words of what was found that say without a title what is wrong
MAX_COMMANDS = 2  # of one problem
MAX_ROWS = 3  # of one command
MAX_SUBJECTS = 3  # of which the same was found
_FACT = "system.fact"  # the probe of golden values: what differs is the name of a fact
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+")
_COLOURS: Mapping[Severity, tuple[str, ...]] = {
    Severity.CRITICAL: ("bold", "red"),
    Severity.HIGH: ("red",),
    Severity.MEDIUM: ("yellow",),
    Severity.LOW: ("cyan",),
    Severity.INFO: ("cyan",),
}
_COUNTED: Mapping[Outcome, Text] = {
    Outcome.PASS: Message("passed"),
    Outcome.UNKNOWN: in_context("outcome", "unknown"),
    Outcome.WAIVED: Message("waived"),
    Outcome.FIXED: Message("fixed"),
    Outcome.NOTAPPLICABLE: Message("not applicable"),
}
_FIX, _LOOK, _DO = Message("fix:"), Message("look:"), Message("do:")


def render(report: Report, lang: str, *, width: int = 80, colour: bool = False) -> str:
    """Return the report in `lang`, at most `width` columns wide but for lines to paste."""
    page = _Page(report, lang, max(width, 60), Paint(colour))
    made = (page.lines(room) for room in _rooms(len(page.found)))
    screen = SCREEN * 80 // min(page.width, 80)
    lines = next((lines for lines in made if len(lines) <= screen), None) or page.lines(page.too_long)
    return "\n".join(line.rstrip(" ") for line in lines)


class _Room(NamedTuple):
    """How many lines say what is wrong, and whether the remedy of what is of low severity may take more than one.

    `fixable` is for what `envtune fix` does, which needs no line for a remedy; after `first` problems it is one line.
    """

    critical: int
    fixable: int
    other: int
    unknown: int
    minor: bool
    reasons: int  # of what is unknown that are shown one by one
    first: int = sys.maxsize


# the first with which a report fits is taken
_ROOMS = (
    _Room(3, 3, 3, 3, True, 8),
    _Room(3, 3, 3, 2, True, 3),
    _Room(2, 2, 2, 2, True, 3),
    _Room(2, 2, 1, 2, False, 3),
)
_TOO_LONG = _Room(3, 3, 2, 2, True, 3)
_NARROW = _Room(2, 1, 1, 1, False, 3)  # of less than 80 columns: a line more for each


def _rooms(count: int) -> Iterator[_Room]:
    yield from _ROOMS
    yield from (_Room(2, 2, 1, 1, False, 3, first) for first in range(count, -1, -1))


class _Wordings(NamedTuple):
    """What may be said of a problem, the longest first."""

    exact: Sequence[str]  # with all its remarks only: they say what is expected
    whole: Sequence[str]
    parts: Sequence[str]  # which leave something out


class _Page:
    """The parts of the report; each yields its lines."""

    def __init__(self, report: Report, lang: str, width: int, paint: Paint) -> None:
        self.report, self.lang, self.width, self.paint = report, lang, width, paint
        self.counts = count_checks(report.findings)
        self.found = problems(report.findings)
        labels = [*SEVERITIES.values(), NOTE, OUTCOMES[Outcome.UNKNOWN]]
        self.label_width = max(display_width(label.to(lang)) for label in labels) + 1
        self.id_width = max((len(problem.check.id) for problem in self.found), default=7) + 1
        self.indent = self.label_width + self.id_width + 2
        self.more = 1 if width < 80 else 0  # lines for each problem where they are narrow
        self.too_long = _NARROW if width < 80 else _TOO_LONG

    def _to(self, text: Optional[Text]) -> str:
        return "" if text is None else printable(text.to(self.lang))

    def _lines(self, text: Text) -> list[str]:
        return wrap(self._to(text), self.width)

    def lines(self, room: _Room) -> list[str]:
        """Return the whole report."""
        body = [*self.problems(room), *self.notes(), *self.unknown(room)]
        policy = policy_lines(self.report, self.lang, self.width)
        return [*self.head(), "", *body, *([""] if body else []), *policy, *self.tail()]

    def head(self) -> Iterator[str]:
        said, colour = verdict_line(self.report)
        for line in self._lines(said):
            yield self.paint(line, "bold", colour)
        if verdict(self.report.findings, self.report.facts) is Verdict.NO_NPU:
            text = Message("Only general checks were run: {problems}", problems=problems_text(self.report.findings))
            yield from self._lines(text)
        yield from self._lines(listed(host_texts(self.report)))

    def problems(self, room: _Room) -> Iterator[str]:
        for number, problem in enumerate(self.found):
            yield from self._problem(problem, room if number < room.first else room._replace(fixable=1))

    def _problem(self, problem: Problem, room: _Room) -> Iterator[str]:
        is_fixable = fixable(problem, self.report)
        lines = room.fixable if is_fixable else room.other
        lines = room.critical if problem.severity is Severity.CRITICAL else lines
        first = pad(self._to(SEVERITIES[problem.severity]), self.label_width)
        mark = "* " if is_fixable else "  "
        rows = self._statement(problem, lines + self.more)
        painted = self.paint(first, *_COLOURS[problem.severity])
        yield painted + pad(problem.check.id, self.id_width) + self.paint(mark, "green") + rows[0]
        yield from (" " * self.indent + row for row in rows[1:])
        if not is_fixable:
            rows = list(self._remedy(problem))
            is_short = room.minor or problem.severity.rank > Severity.LOW.rank or len(rows) == 1
            yield from rows if is_short else self._command(_LOOK, self._details(problem), problem)

    def _statement(self, problem: Problem, lines: int) -> list[str]:
        """Return what is wrong, as much of it as fits: title and what was found, else what says most."""
        room = self.width - self.indent
        end = self._to(also_text(problem.ids[1:]))
        return _fitting(self._wordings(problem), room, lines, end)

    def _wordings(self, problem: Problem) -> _Wordings:
        """Return what says it, the longest first; the title's words are not said twice."""
        title, findings = problem.check.title, problem.findings
        rows = statements(findings, self.lang)
        if problem.check.probe == _FACT:
            rows = tuple(self._with_name(row) for row in rows)
        found = self._found(rows, title)
        if not found or all(adds_nothing(title, finding) for finding in findings):
            return _Wordings((), [self._to(title)], ())
        phrases = [len(row.actual.split()) >= PHRASE for row in statements(findings, "en")]
        exact, whole = [], []
        if not all(phrases):
            exact.append(self._titled(title, self._found(rows, title, expected=True)))
            if all(_VARIABLE.fullmatch(row.subject) and row.expected for row in rows):
                exact.append(self._found(rows, None, expected=True))
        if not all(phrases) or not any(says_title(title, finding) for finding in findings):
            whole.append(self._titled(title, found))
        if all(phrases):
            whole.append(self._found(rows, None))
        return _Wordings(exact, whole, [*self._parts(title, rows, phrases, problem.check.probe == _FACT)])

    def _parts(self, title: Text, rows: Sequence[Statement], phrases: Sequence[bool], is_fact: bool) -> Iterator[str]:
        """Yield what says less and less of what was found."""
        if is_fact:
            yield self._titled(title, self._to(enumerated(subject_text(row.subject) for row in rows)))
        for count in range(len(rows) - 1, 0, -1):
            some = self._found(rows, title, count=count)
            yield some if all(phrases) else self._titled(title, some)
        if not all(phrases) and phrases[0] and len(rows) > 1:
            yield self._found(rows, None, count=1)
        yield self._to(title)

    def _titled(self, title: Text, found: str) -> str:
        return self._to(Message("{title}: {found}", title=title, found=found))

    def _with_name(self, row: Statement) -> Statement:
        """Return what was found with the fact's name before it, which is more than the title says."""
        return row._replace(actual=f"{printable(subject_text(row.subject).to(self.lang))} {row.actual}")

    def _found(
        self, rows: Sequence[Statement], title: Optional[Text], expected: bool = False, count: Optional[int] = None
    ) -> str:
        """Return what was found about each subject, or the first `count`; one that the words name is not named again.

        `title` stands before it, if there is one.
        """
        parts: list[Text] = []
        for row in rows[:count]:
            text: Text = Literal(printable(row.actual))
            if expected and row.expected:
                text = Message("{actual} (expected {expected})", actual=text, expected=printable(row.expected))
            begun = row.beginning
            if begun is not None:
                text = Joined((enumerated(printable(begun).split(", ")), text), "")
            elif not self._is_named(row, title, len(rows) == 1):
                text = Message("{subject}: {found}", subject=_few(row.subject), found=text)
            parts.append(text)
        said: Text = clauses(part for part in parts if part.en)
        if count is not None:
            said = Message("{found}; and {count} more", found=said, count=len(rows) - count)
        return self._to(said)

    def _is_named(self, row: Statement, title: Optional[Text], is_only: bool) -> bool:
        """Return whether the title or what was found names the subject, so that it need not stand before it."""
        if not row.subject or (is_only and (is_plain(row.subject) or row.subject in self._to(title))):
            return True
        name = subject_text(printable(row.subject)).to(self.lang)
        return re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w./-])", row.actual, re.ASCII) is not None

    def _remedy(self, problem: Problem) -> Iterator[str]:
        """Yield the lines to paste that fix it, else what to do in words, else the first line that shows more."""
        for line in problem.fixes[:MAX_COMMANDS]:
            yield from self._command(_FIX, line, problem)
        for text in problem.instructions[:1]:
            yield from self._instruction(text, problem)
        if not problem.fixes and not problem.instructions:
            for line in problem.looks[:1]:
                yield from self._command(_LOOK, line, problem)

    def _command(self, label: Text, line: str, problem: Problem) -> Iterator[str]:
        """Yield a line to paste, in as many as it takes; instead of a very long one the command that shows it."""
        start, text = self._label(label), printable(line)
        room = self.width - self.indent - display_width(start)
        rows = continued(text, room)
        if len(rows) > MAX_ROWS or any(display_width(row) > self.width + room for row in rows):
            label, start, rows = _LOOK, self._label(_LOOK), [self._details(problem)]
        for number, row in enumerate(rows):
            before = self.paint(start, "dim") if number == 0 else " " * display_width(start)
            yield " " * self.indent + before + self.paint(row, "green" if label is _FIX else "cyan")

    def _instruction(self, text: Text, problem: Problem) -> Iterator[str]:
        """Yield the first sentence; where two lines do not hold it, where to read it."""
        start, said = self._label(_DO), first_sentence(self._to(text))
        if fits(start + said, self.width - self.indent, 2):
            rows = wrap(start + said, self.width - self.indent)
            yield " " * self.indent + self.paint(start, "dim") + rows[0][len(start) :]
            yield from (" " * self.indent + row for row in rows[1:])
            return
        yield from self._command(_LOOK, self._details(problem), problem)

    def _details(self, problem: Problem) -> str:
        of_recording = f" --snapshot {quote(self.report.snapshot)}" if self.report.snapshot else ""
        line = f"envtune check -v --select {problem.check.id}{of_recording}"
        return printable(with_catalogs(line, self.report.catalogs))

    def _label(self, label: Text) -> str:
        words = self._to(label)
        return words + (" " if words.isascii() else "")  # a full-width colon brings its own

    def notes(self) -> Iterator[str]:
        for finding in notes(self.report.findings):
            yield from self._row(NOTE, finding.id, self._to(finding.check.title), 2)

    def unknown(self, room: _Room) -> Iterator[str]:
        """Yield why something is unknown, each reason once."""
        reasons = _reasons([f for f in self.report.findings if f.outcome is Outcome.UNKNOWN])
        rows = [(spelled(self._to(reason), self.lang), ids) for reason, ids in reasons]
        if len(rows) > room.reasons:
            rest = tuple(dict.fromkeys(id_ for _, ids in rows[room.reasons - 1 :] for id_ in ids))
            rows = [*rows[: room.reasons - 1], (self._to(Message("check -v shows the reasons")), rest)]
        for reason, ids in rows:
            yield from self._row(
                OUTCOMES[Outcome.UNKNOWN], ids[0], reason, room.unknown + self.more, self._to(also_text(ids[1:]))
            )

    def _row(self, label: Text, name: str, text: str, lines: int, end: str = "") -> Iterator[str]:
        """Yield a row that is no problem."""
        rows = _fitting(_Wordings((), (text,), ()), self.width - self.indent, lines, end)
        yield self.paint(pad(self._to(label), self.label_width), "dim") + pad(name, self.id_width + 2) + rows[0]
        yield from (" " * self.indent + row for row in rows[1:])

    def tail(self) -> Iterator[str]:
        done = sum(1 for problem in self.found if fixable(problem, self.report))
        if done:
            yield from self._lines(self._fixable(done))
        counts = {**self.counts.outcomes, Outcome.WAIVED: count_waived(self.report)}
        parts = [
            Message("{count} {outcome}", count=counts[outcome], outcome=word)
            for outcome, word in _COUNTED.items()
            if counts[outcome]
        ]
        shown = (printable(with_catalogs(verb, self.report.catalogs)) for verb in ("check -v", "explain ID"))
        details = Message("details: {commands}", commands=enumerated(shown))
        yield from self._lines(clauses([*([listed(parts)] if parts else []), details]))

    def _fixable(self, done: int) -> Text:
        """Return what `envtune fix` can do; about a recorded host it can show the changes only."""
        fix = printable(with_catalogs("envtune fix", self.report.catalogs))
        count, all_ = done, len(self.found)
        if not self.report.snapshot:
            return Message(
                "* {count} of {all}: {fix} shows the changes, {fix} --apply makes them",
                count=count,
                all=all_,
                fix=fix,
            )
        return Message(
            "* {count} of {all}: {fix} --snapshot shows the changes, fix --apply on the host makes them",
            count=count,
            all=all_,
            fix=fix.partition(" ")[2],
        )


def _fitting(wordings: _Wordings, width: int, lines: int, end: str) -> list[str]:
    """Return the first wording that fits with `end` after it; where nothing fits, what fits of the last one."""
    made = [version for text in wordings.exact for version in (text, short_paths(text))]
    for group in (wordings.whole, wordings.parts):
        short = [version for text in group for version in (text, short_paths(text))]
        made += [*short, *map(without_remarks, short[1::2])]
    made += beginnings(made[-1])
    text = next((one for one in made if fits(one + end, width, lines)), made[-1])
    return clip(text, width, lines, end)


def _few(subject: str) -> Text:
    """Return the subjects, of many the first only."""
    names = printable(subject).split(", ")
    if len(names) <= MAX_SUBJECTS:
        return subject_text(", ".join(names))
    return Message("{names} and {count} more", names=subject_text(names[0]), count=len(names) - 1)


def _reasons(findings: Sequence[Finding]) -> list[tuple[Text, tuple[str, ...]]]:
    """Return each reason with the ids of the checks, that of a missing privilege first and once."""
    privileged = tuple(dict.fromkeys(f.id for f in findings if f.needs_privilege))
    made: dict[Text, list[str]] = {}
    for finding in findings:
        if not finding.needs_privilege:
            reason = finding.reason or Literal("?")
            made.setdefault(reason, []).append(finding.id)
    rows = [(reason, tuple(dict.fromkeys(ids))) for reason, ids in made.items()]
    rows.sort(key=lambda row: -len(row[1]))
    return [(Message("needs root"), privileged), *rows] if privileged else rows
