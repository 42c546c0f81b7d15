"""Render a report as a person wants it first: the verdict, the host, and two or three lines for each problem.

A report that would not fit a screen says less of each problem, and never leaves one out: `-v` shows everything.
"""

from __future__ import annotations

import re
from shlex import quote
from typing import Any, Callable, Iterable, Iterator, Mapping, NamedTuple, Optional, Sequence, TypeVar

from envtune.audit.subjects import is_plain, subject_text
from envtune.audit.verdict import count_checks
from envtune.catalog.families import family_title
from envtune.commandline import with_catalogs
from envtune.errors import is_not_recorded
from envtune.messages import N_, Joined, Literal, Message, Text, clauses, enumerated, in_context, listed
from envtune.model import Finding, Outcome, Report, Severity
from envtune.report.host_texts import host_texts
from envtune.report.layout import (
    Paint,
    beginnings,
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
from envtune.report.policy_text import policy_lines
from envtune.report.problems import (
    Problem,
    Statement,
    adds_nothing,
    fixable,
    is_fixable,
    notes,
    planned,
    problems,
    statements,
)
from envtune.report.words import NOTE, OUTCOMES, SEVERITIES, also_text, some, verdict_colour, verdict_lines

T = TypeVar("T")

SCREEN = 25  # lines of 80 columns: a small terminal
PHRASE = 4  # words of what was found that say without a title what is wrong
MAX_COMMANDS = 2  # of one problem
MAX_ROWS = 3  # of one command
MAX_SUBJECTS = 3  # of which the same was found
MAX_UNKNOWN = 6  # checks whose reason is left to -v that are named
_COLOURED = re.compile("\033\\[[0-9;]*m")
_FACT = "system.fact"  # the probe of golden values: what differs is the name of a fact
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
    screen = SCREEN * 80 // min(page.width, 80)
    made = (page.lines(room) for room in _rooms(page, screen))
    lines = next((lines for lines in made if _height(lines, page.width) <= screen), None) or page.lines(_ROOMS[-1])
    return "\n".join(line.rstrip(" ") for line in lines)


def _rooms(page: _Page, screen: int) -> Iterator[_Room]:
    """Yield the room with which the page fits, the lines that it leaves free given to the first problems."""
    room = next((room for room in _ROOMS if _height(page.lines(room), page.width) <= screen), _ROOMS[-1])
    yield from (room._replace(more=more) for more in range(len(page.found), -1, -1))


def _height(lines: Iterable[str], width: int) -> int:
    """Return how many lines of a terminal these take: a word to paste may be longer than one."""
    return sum(max(1, -(-display_width(_COLOURED.sub("", line)) // width)) for line in lines)


class _Room(NamedTuple):
    """How much is said: with less room fewer lines, then fewer remedies, then several problems in one line."""

    serious: int  # lines for what is wrong, of high severity and above
    other: int
    remedy: int  # lines of a remedy; a longer one is left to -v
    looks: bool  # whether what only shows more counts as one
    remedies: Severity  # the least severity that is shown with one
    reasons: int  # of what is unknown that are shown one by one
    unknown: int  # lines of each
    families: Optional[Severity] = None  # up to which the problems of a family share a line
    folded: Optional[Severity] = None  # up to which all problems of a severity do
    more: int = 0  # how many problems have a line more for what is wrong, the first ones


# the first with which a report fits a screen is taken
_ROOMS = (
    _Room(3, 3, 6, True, Severity.INFO, 8, 3),
    _Room(3, 3, 3, True, Severity.INFO, 3, 2),
    _Room(2, 2, 3, True, Severity.INFO, 3, 2),
    _Room(2, 2, 3, False, Severity.INFO, 3, 2),
    _Room(2, 1, 3, False, Severity.MEDIUM, 3, 2),
    _Room(2, 2, 3, False, Severity.MEDIUM, 2, 2, folded=Severity.LOW),
    _Room(2, 1, 3, False, Severity.MEDIUM, 2, 1, folded=Severity.LOW),
    _Room(2, 1, 3, False, Severity.HIGH, 2, 1, folded=Severity.LOW),
    _Room(1, 1, 3, False, Severity.HIGH, 1, 1, folded=Severity.LOW),
    _Room(1, 1, 3, False, Severity.CRITICAL, 1, 1, folded=Severity.LOW),
    _Room(1, 1, 3, False, Severity.HIGH, 1, 1, Severity.MEDIUM, Severity.LOW),
    _Room(1, 1, 3, False, Severity.CRITICAL, 1, 1, Severity.MEDIUM, Severity.LOW),
    _Room(1, 1, 3, False, Severity.CRITICAL, 1, 1, folded=Severity.MEDIUM),
    _Room(1, 1, 1, False, Severity.CRITICAL, 1, 1, Severity.HIGH, Severity.MEDIUM),
    _Room(1, 1, 1, False, Severity.CRITICAL, 1, 1, folded=Severity.HIGH),
    _Room(1, 1, 1, False, Severity.CRITICAL, 1, 1, Severity.CRITICAL, Severity.HIGH),
    _Room(1, 1, 1, False, Severity.CRITICAL, 1, 1, folded=Severity.CRITICAL),
)


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
        self._made: dict[tuple[Any, ...], Any] = {}  # what is the same with more than one room

    def _once(self, key: tuple[Any, ...], make: Callable[[], T]) -> T:
        if key not in self._made:
            self._made[key] = make()
        made: T = self._made[key]
        return made

    def _to(self, text: Optional[Text]) -> str:
        return "" if text is None else printable(text.to(self.lang))

    def _lines(self, text: Text) -> list[str]:
        return wrap(self._to(text), self.width)

    def lines(self, room: _Room) -> list[str]:
        """Return the whole report."""
        head = self._once(("head",), lambda: [*self.head()])
        unknown = self._once((room.reasons, room.unknown), lambda: [*self.notes(), *self.unknown(room)])
        tail = self._once(("tail",), lambda: [*policy_lines(self.report, self.lang, self.width), *self.tail()])
        body = [*self.problems(room), *unknown]
        return [*head, "", *body, *([""] if body else []), *tail]

    def head(self) -> Iterator[str]:
        first, *others = verdict_lines(self.report)
        yield from (self.paint(line, "bold", verdict_colour(self.report)) for line in self._lines(first))
        for text in [*others, listed(host_texts(self.report))]:
            yield from self._lines(text)

    def problems(self, room: _Room) -> Iterator[str]:
        for number, group in enumerate(_grouped(self.found, room)):
            more = 1 if number < room.more else 0
            yield from self._problem(group[0], room, more) if len(group) == 1 else self._folded(group, room)

    def _problem(self, problem: Problem, room: _Room, more: int) -> Iterator[str]:
        lines = more + (room.serious if problem.severity.rank >= Severity.HIGH.rank else room.other)
        mark = "* " if fixable(problem, self.report) else "  "
        rows = self._statement(problem, lines + self.more)
        yield self._severity(problem) + pad(problem.check.id, self.id_width) + self.paint(mark, "green") + rows[0]
        yield from (" " * self.indent + row for row in rows[1:])
        if problem.severity.rank >= room.remedies.rank and not planned(problem, self.report):
            remedy = self._once((problem.check.id, room.looks), lambda: [*self._remedy(problem, room.looks)])
            yield from remedy if len(remedy) <= room.remedy else ()

    def _severity(self, problem: Problem) -> str:
        label = pad(self._to(SEVERITIES[problem.severity]), self.label_width)
        return self.paint(label, *_COLOURS[problem.severity])

    def _folded(self, group: Sequence[Problem], room: _Room) -> Iterator[str]:
        """Yield several problems in a line, by the ids of their checks."""
        names = [f"{id_} *" if is_fixable(id_, self.report) else id_ for problem in group for id_ in problem.ids]
        checks = enumerated(names)
        is_family = room.folded is None or group[0].severity.rank > room.folded.rank
        said: Text = Message("{checks} (check -v shows them)", checks=checks)
        if is_family:
            said = Message("{checks}: {title}", checks=checks, title=family_title(group[0].check.family))
        yield from self._names(self._severity(group[0]), said)

    def _statement(self, problem: Problem, lines: int) -> list[str]:
        """Return what is wrong: the title, and as much of what was found as fits; the title is never cut."""
        made = self._once((problem.check.id,), lambda: [*self._said(problem)])
        return next((rows for rows in made if len(rows) <= lines), made[-1])

    def _said(self, problem: Problem) -> Iterator[list[str]]:
        """Yield what may be said of a problem in lines, the longest first and the title last."""
        room = self.width - self.indent
        end = self._to(also_text(problem.ids[1:]))
        exact, others = self._wordings(problem)
        made = [version for text in exact for version in (text, short_paths(text))]
        for text in (*made, *_versions(others)):
            rows = wrap(text + end, room)
            if all(display_width(row) <= room for row in rows):
                yield rows
        yield wrap(others[-1] + end, room)

    def _wordings(self, problem: Problem) -> tuple[list[str], list[str]]:
        """Return what may be said of a problem, the longest first: with all its remarks only, and without them.

        What is expected is a remark; where what was found says by itself what is wrong, it is not needed.
        """
        title, findings = problem.check.title, problem.findings
        rows = statements(findings, self.lang)
        is_fact = problem.check.probe == _FACT
        if is_fact:
            rows = tuple(self._with_name(row) for row in rows)
        found = self._found(rows, title)
        if not found or all(adds_nothing(title, finding) for finding in findings):
            return [], [self._to(title)]
        says_all = all(len(row.actual.split()) >= PHRASE for row in statements(findings, "en"))
        exact = [] if says_all else [self._titled(title, self._found(rows, title, expected=True))]
        parts = [self._found(rows, title, count=count) for count in range(len(rows) - 1, 0, -1)]
        parts += [
            self._to(Message("{found}; and {count} more", found=one, count=count))
            for count, one in enumerate(beginnings(found))
            if count and len(rows) == 1
        ]
        if is_fact:
            parts.insert(0, self._to(enumerated(subject_text(row.subject) for row in rows)))
        return exact, [*(self._titled(title, part) for part in (found, *parts)), self._to(title)]

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

    def _remedy(self, problem: Problem, looks: bool) -> Iterator[str]:
        """Yield the lines to paste that fix it, else what to do in words, else the first line that shows more.

        In place of what is too long stands the command that shows it.
        """
        rows = [row for line in problem.fixes[:MAX_COMMANDS] for row in self._command(_FIX, line)]
        rows += [row for text in problem.instructions[:1] for row in self._instruction(text)]
        if looks and not problem.fixes and not problem.instructions:
            rows += [row for line in problem.looks[:1] for row in self._command(_LOOK, line)]
        yield from rows or (self._command(_LOOK, self._details(problem)) if looks else ())

    def _command(self, label: Text, line: str) -> Iterator[str]:
        """Yield a line to paste, in as many as it takes; nothing of a very long one."""
        start, text = self._label(label), printable(line)
        room = self.width - self.indent - display_width(start)
        rows = continued(text, room)
        if len(rows) > MAX_ROWS or any(display_width(row) > self.width + room for row in rows):
            return
        for number, row in enumerate(rows):
            before = self.paint(start, "dim") if number == 0 else " " * display_width(start)
            yield " " * self.indent + before + self.paint(row, "green" if label is _FIX else "cyan")

    def _instruction(self, text: Text) -> Iterator[str]:
        """Yield the first sentence; nothing where two lines do not hold it."""
        start, said = self._label(_DO), first_sentence(self._to(text))
        if fits(start + said, self.width - self.indent, 2):
            rows = wrap(start + said, self.width - self.indent)
            yield " " * self.indent + self.paint(start, "dim") + rows[0][len(start) :]
            yield from (" " * self.indent + row for row in rows[1:])

    def _details(self, problem: Problem) -> str:
        of_recording = f" --snapshot {quote(self.report.snapshot)}" if self.report.snapshot else ""
        line = f"envtune check -v --select {problem.check.id}{of_recording}"
        return printable(with_catalogs(line, self.report.catalogs))

    def _label(self, label: Text) -> str:
        words = self._to(label)
        return words + (" " if words.isascii() else "")  # a full-width colon brings its own

    def notes(self) -> Iterator[str]:
        for finding in notes(self.report.findings):
            yield from self._row(NOTE, finding.id, wrap(self._to(finding.check.title), self.width - self.indent))

    def unknown(self, room: _Room) -> Iterator[str]:
        """Yield why something is unknown, each reason once; the checks of which it takes too many lines together."""
        reasons = _reasons([f for f in self.report.findings if f.outcome is Outcome.UNKNOWN])
        most = room.reasons if len(reasons) <= room.reasons else room.reasons - 1
        rest: list[str] = []
        for reason, ids in reasons:
            said, end = spelled(self._to(reason), self.lang), self._to(also_text(ids[1:]))
            rows = _fitting(said, self.width - self.indent, room.unknown + self.more, end) if most else []
            if rows:
                most -= 1
                yield from self._row(OUTCOMES[Outcome.UNKNOWN], ids[0], rows)
            else:
                rest += ids
        if rest:
            label = self.paint(pad(self._to(OUTCOMES[Outcome.UNKNOWN]), self.label_width), "dim")
            checks = some([*dict.fromkeys(rest)], MAX_UNKNOWN)
            yield from self._names(label, Message("{checks} (check -v shows why)", checks=checks))

    def _names(self, label: str, said: Text) -> Iterator[str]:
        """Yield a row that names several checks, the first where that of other rows stands."""
        rows = wrap(self._to(said), self.width - self.label_width)
        yield label + rows[0]
        yield from (" " * self.label_width + row for row in rows[1:])

    def _row(self, label: Text, name: str, rows: Sequence[str]) -> Iterator[str]:
        """Yield a row that is no problem."""
        yield self.paint(pad(self._to(label), self.label_width), "dim") + pad(name, self.id_width + 2) + rows[0]
        yield from (" " * self.indent + row for row in rows[1:])

    def tail(self) -> Iterator[str]:
        if any(fixable(problem, self.report) for problem in self.found):
            yield from self._lines(self._fixable())
        outcomes = {**self.counts.outcomes, Outcome.WAIVED: self.counts.waived}
        parts = [
            Message("{count} {outcome}", count=outcomes[outcome], outcome=word)
            for outcome, word in _COUNTED.items()
            if outcomes[outcome]
        ]
        shown = (printable(with_catalogs(verb, self.report.catalogs)) for verb in ("check -v", "explain ID"))
        details = Message("details: {commands}", commands=enumerated(shown))
        yield from self._lines(clauses([*([listed(parts)] if parts else []), details]))

    def _fixable(self) -> Text:
        """Return what `envtune fix` can do; about a recorded host it can show some of the changes only."""
        fix = printable(with_catalogs("envtune fix", self.report.catalogs))
        ids = [id_ for problem in self.found for id_ in problem.ids]
        done = sum(1 for id_ in ids if is_fixable(id_, self.report))
        here = sum(1 for id_ in ids if id_ in (self.report.fixable or ()))
        template = N_("* {count} of {all}: {fix} shows the changes, {fix} --apply makes them")
        if self.report.snapshot and here == done:
            template = N_("* {count} of {all}: {fix} --snapshot shows the changes, --apply only on the host")
        elif self.report.snapshot:
            template = N_("* {count} of {all}: {fix} --apply on the host; fix --snapshot shows {here} of them")
        return Message(template, count=done, all=len(ids), fix=fix, here=here)


def _grouped(found: Iterable[Problem], room: _Room) -> Iterable[Sequence[Problem]]:
    """Return the problems in their order, those together that share a line."""
    groups: dict[tuple[Severity, str], list[Problem]] = {}
    for problem in found:
        name = problem.check.id
        if room.folded is not None and problem.severity.rank <= room.folded.rank:
            name = ""
        elif room.families is not None and problem.severity.rank <= room.families.rank:
            name = problem.check.family
        groups.setdefault((problem.severity, name), []).append(problem)
    return groups.values()


def _versions(texts: Iterable[str]) -> Iterator[str]:
    """Yield each text, then with long paths shortened, then without remarks."""
    for text in texts:
        short = short_paths(text)
        yield from (text, short, without_remarks(short))


def _fitting(text: str, width: int, lines: int, end: str) -> list[str]:
    """Return the text with `end` after it, or without its last clauses; nothing where that takes too many lines."""
    made = [*_versions([text]), *beginnings(without_remarks(short_paths(text)))]
    said = next((one for one in made if fits(one + end, width, lines)), None)
    return [] if said is None else wrap(said + end, width)


def _few(subject: str) -> Text:
    """Return the subjects, of many the first only."""
    names = printable(subject).split(", ")
    if len(names) <= MAX_SUBJECTS:
        return subject_text(", ".join(names))
    return Message("{names} and {count} more", names=subject_text(names[0]), count=len(names) - 1)


def _reasons(findings: Sequence[Finding]) -> list[tuple[Text, tuple[str, ...]]]:
    """Return each reason with the ids of the checks, that of the most severe check first.

    A missing privilege is one reason, and so is what a snapshot does not hold, where that is more than one thing.
    """
    lacking = {finding.reason for finding in findings if finding.reason and is_not_recorded(finding.reason)}
    made: dict[Text, list[str]] = {}
    for finding in sorted(findings, key=lambda finding: -finding.severity.rank):
        reason = finding.reason or Literal("?")
        if finding.needs_privilege:
            reason = Message("needs root")
        elif reason in lacking and len(lacking) > 1:
            reason = Message("not in the snapshot")
        made.setdefault(reason, []).append(finding.id)
    return [(reason, tuple(dict.fromkeys(ids))) for reason, ids in made.items()]
