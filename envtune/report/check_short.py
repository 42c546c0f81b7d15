"""Render a report as a person wants it first: the verdict, the host, and two or three lines for each problem.

A report that would not fit a screen says less of each problem, and never leaves one out: `-v` shows everything.
"""

from __future__ import annotations

from functools import partial
from shlex import quote
from typing import Any, Callable, Iterable, Iterator, Mapping, Optional, Sequence, TypeVar

from envtune.audit.verdict import count_checks
from envtune.commandline import with_words
from envtune.errors import is_not_recorded
from envtune.messages import LANGUAGES, N_, Literal, Message, Text, clauses, enumerated, in_context, listed
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
from envtune.report.problems import Problem, fixable, is_fixable, notes, planned, problems
from envtune.report.short.room import FULL, Room, Share, Unknown, share_out
from envtune.report.short.statement import FACT, TITLE, versions, wordings
from envtune.report.words import NOTE, OUTCOMES, SEVERITIES, also_text, some, verdict_colour, verdict_lines

T = TypeVar("T")

SCREEN = 25  # lines of 80 columns: a small terminal
MAX_COMMANDS = 2  # of one problem
MAX_ROWS = 3  # of one command
MAX_BRIEF = 2  # rows of a remedy where there is little room
MAX_UNKNOWN = range(6, 2, -1)  # checks whose reason is left to -v that are named, the most that a line holds
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
    width = max(width, 60)
    screen = SCREEN * 80 // min(width, 80)
    both = _Both(report, width)
    room = share_out(both.pages[0].found, screen, both.height)
    lines = _Page(report, lang, width, Paint(colour)).lines(room, both)
    return "\n".join(line.rstrip(" ") for line in lines)


def _height(lines: Iterable[str], width: int) -> int:
    """Return how many lines of a terminal these take: a word to paste may be longer than one."""
    return sum(max(1, -(-display_width(line) // width)) for line in lines)


class _Both:
    """The page in every language: what is said has to fit in each, so that each reader is shown the same."""

    def __init__(self, report: Report, width: int) -> None:
        self.width = width
        self.pages = [_Page(report, lang, width, Paint(False)) for lang in LANGUAGES]
        self._made: dict[tuple[Any, ...], Any] = {}  # what is the same with more than one room

    def once(self, key: tuple[Any, ...], make: Callable[[], T]) -> T:
        """Return what `make` returned when it was first asked for `key`."""
        if key not in self._made:
            self._made[key] = make()
        made: T = self._made[key]
        return made

    def height(self, room: Room) -> int:
        """Return how many lines the longest page takes."""
        return max(self._height_of(number, page, room) for number, page in enumerate(self.pages))

    def _height_of(self, number: int, page: _Page, room: Room) -> int:
        def of(key: tuple[Any, ...], lines: Callable[[], Iterable[str]]) -> int:
            return self.once((number, *key), lambda: _height(lines(), self.width))

        rows = of((room.unknown,), partial(page.unknown, room.unknown, self))
        rows += sum(
            of((names, share), partial(page.group, group, share, self)) for names, share, group in page.groups(room)
        )
        return of(("frame",), page.frame) + rows + (1 if rows else 0)

    def key(self, problem: Problem, lines: int) -> str:
        """Return which wording fits that many lines."""
        return self.once(("key", problem.check.id, lines), lambda: self._key(problem, lines))

    def _key(self, problem: Problem, lines: int) -> str:
        fitting = [page.fitting(problem, lines) for page in self.pages]
        return next((key for key in fitting[0] if all(key in one for one in fitting)), TITLE)

    def is_short(self, problem: Problem, level: int) -> bool:
        """Return whether the remedy has lines, and no more than this level allows."""
        made = self.once(("remedy", problem.check.id), lambda: [len([*page.remedy(problem)]) for page in self.pages])
        return min(made) > 0 and (level == FULL or max(made) <= MAX_BRIEF)

    def named(self, ids: Sequence[str]) -> int:
        """Return how many of the checks are named whose reason is not shown."""
        return self.once(("named", *ids), lambda: min(page.names_that_fit(ids) for page in self.pages))

    def shown_reasons(self, unknown: Unknown) -> set[int]:
        """Return which reasons for what is unknown have a row of their own."""
        return self.once(
            ("shown_reasons", unknown), lambda: set.intersection(*(page.shown_reasons(unknown) for page in self.pages))
        )


class _Page:
    """The parts of the report in one language; each yields its lines."""

    def __init__(self, report: Report, lang: str, width: int, paint: Paint) -> None:
        self.report, self.lang, self.width, self.paint = report, lang, width, paint
        self.counts = count_checks(report.findings)
        self.found = problems(report.findings)
        self.reasons = _reasons([f for f in report.findings if f.outcome is Outcome.UNKNOWN])
        labels = [*SEVERITIES.values(), NOTE, OUTCOMES[Outcome.UNKNOWN]]
        self.label_width = max(display_width(label.to(lang)) for label in labels) + 1
        self.id_width = max((len(problem.check.id) for problem in self.found), default=7) + 1
        self.indent = self.label_width + self.id_width + 2
        self.more = 1 if width < 80 else 0  # lines for each problem where they are narrow
        self._said: dict[str, list[tuple[str, list[list[str]]]]] = {}

    def _to(self, text: Optional[Text]) -> str:
        return "" if text is None else printable(text.to(self.lang))

    def _lines(self, text: Text) -> list[str]:
        return wrap(self._to(text), self.width)

    def lines(self, room: Room, both: _Both) -> list[str]:
        """Return the whole report."""
        rows = [row for _, share, group in self.groups(room) for row in self.group(group, share, both)]
        body = [*rows, *self.notes(), *self.unknown(room.unknown, both)]
        return [*self.head(), "", *body, *([""] if body else []), *self.tail()]

    def frame(self) -> Iterator[str]:
        """Yield every line but those of problems and of what is unknown."""
        yield from (*self.head(), "", *self.notes(), *self.tail())

    def head(self) -> Iterator[str]:
        first, *others = verdict_lines(self.report)
        yield from (self.paint(line, "bold", verdict_colour(self.report)) for line in self._lines(first))
        for text in [*others, listed(host_texts(self.report))]:
            yield from self._lines(text)

    def groups(self, room: Room) -> Iterator[tuple[tuple[str, ...], Share, list[Problem]]]:
        """Yield the problems that have lines of their own, and of each severity the others together."""
        for severity in dict.fromkeys(problem.severity for problem in self.found):
            rest = []
            for problem, share in zip(self.found, room.shares):
                if problem.severity is severity and share.lines:
                    yield (problem.check.id,), share, [problem]
                elif problem.severity is severity:
                    rest.append(problem)
            if rest:
                yield tuple(problem.check.id for problem in rest), Share(), rest

    def group(self, group: Sequence[Problem], share: Share, both: _Both) -> Iterator[str]:
        """Yield the rows of one problem, or the row that several share."""
        yield from self._problem(group[0], share, both) if share.lines else self._folded(group)

    def _problem(self, problem: Problem, share: Share, both: _Both) -> Iterator[str]:
        mark = "* " if fixable(problem, self.report) else "  "
        rows = self._statement(problem, share.lines + self.more, both)
        yield self._severity(problem) + pad(problem.check.id, self.id_width) + self.paint(mark, "green") + rows[0]
        yield from (" " * self.indent + row for row in rows[1:])
        if share.remedy and not planned(problem, self.report):
            yield from self.remedy(problem) if both.is_short(problem, share.remedy) else self._details(problem)

    def _severity(self, problem: Problem) -> str:
        label = pad(self._to(SEVERITIES[problem.severity]), self.label_width)
        return self.paint(label, *_COLOURS[problem.severity])

    def _folded(self, group: Sequence[Problem]) -> Iterator[str]:
        """Yield several problems in a line, by the ids of their checks."""
        names: list[str] = []
        for problem in group:
            marked = {problem.check.id} if fixable(problem, self.report) else {}
            names += (f"{id_} *" if id_ in marked or is_fixable(id_, self.report) else id_ for id_ in problem.ids)
        said = Message("{checks} ({details})", checks=enumerated(names), details=_details("check -v"))
        yield from self._names(self._severity(group[0]), said)

    def _statement(self, problem: Problem, lines: int, both: _Both) -> list[str]:
        """Return what is wrong: the title, and as much of what was found as fits; the title is never cut."""
        key = both.key(problem, lines)
        made = next(rows for name, rows in self._sayings(problem) if name == key)
        return next((rows for rows in made if len(rows) <= lines), made[-1])

    def fitting(self, problem: Problem, lines: int) -> list[str]:
        """Return the keys of the wordings that fit that many lines, what says most first."""
        sayings = self._sayings(problem)
        return [key for key, made in sayings if any(len(rows) <= lines for rows in made)]

    def _sayings(self, problem: Problem) -> list[tuple[str, list[list[str]]]]:
        """Return what may be said of a problem in rows, by the keys of the wordings."""
        made = self._said.get(problem.check.id)
        if made is None:
            room, end = self.width - self.indent, self._to(also_text(problem.ids[1:]))
            made = []
            for wording in wordings(problem, self.lang):
                wrapped = [wrap(text + end, room) for text in dict.fromkeys(wording.texts)]
                narrow = [rows for rows in wrapped if all(display_width(row) <= room for row in rows)]
                made.append((wording.key, narrow or (wrapped if wording.key == TITLE else [])))
            self._said[problem.check.id] = made
        return made

    def remedy(self, problem: Problem) -> Iterator[str]:
        """Yield the lines to paste that fix it, else what to do in words, else the first line that shows more."""
        for line in problem.fixes[:MAX_COMMANDS]:
            yield from self._command(_FIX, line)
        for text in problem.instructions[:1]:
            yield from self._instruction(text)
        if not problem.fixes and not problem.instructions:
            for line in problem.looks[:1]:
                yield from self._command(_LOOK, line)

    def _command(self, label: Text, line: str) -> Iterator[str]:
        """Yield a line to paste, in as many as it takes; nothing of a very long one."""
        start, text = self._label(label), printable(line)
        room = self.width - self.indent - display_width(start)
        rows = continued(text, room)
        if display_width(rows[0]) > self.width + room:
            return
        if len(rows) > MAX_ROWS or any(display_width(row) > room for row in rows[1:]):
            return
        for number, row in enumerate(rows):
            before = self.paint(start, "dim") if number == 0 else " " * display_width(start)
            yield " " * self.indent + before + self.paint(row, "green" if label is _FIX else "cyan")

    def _instruction(self, text: Text) -> Iterator[str]:
        """Yield the first sentence; nothing where two lines do not hold it."""
        start, said = self._label(_DO), first_sentence(self._to(text))
        if fits(start + said, self.width - self.indent, MAX_BRIEF + self.more):
            rows = wrap(start + said, self.width - self.indent)
            yield " " * self.indent + self.paint(start, "dim") + rows[0][len(start) :]
            yield from (" " * self.indent + row for row in rows[1:])

    def _details(self, problem: Problem) -> Iterator[str]:
        """Yield what shows the remedy that is too long; of a recorded host in words where its name is long, too."""
        of_recording = f" --snapshot {quote(self.report.snapshot)}" if self.report.snapshot else ""
        line = printable(with_words(f"envtune check -v --select {problem.check.id}", self.report.settings))
        start = self._label(_LOOK)
        if display_width(start + line + of_recording) <= self.width - self.indent or not of_recording:
            yield from self._command(_LOOK, line + of_recording)
            return
        said = self._to(_details(line.removeprefix("envtune ")))
        yield from (" " * self.indent + self.paint(row, "dim") for row in wrap(said, self.width - self.indent))

    def _label(self, label: Text) -> str:
        words = self._to(label)
        return words + (" " if words.isascii() else "")  # a full-width colon brings its own

    def notes(self) -> Iterator[str]:
        for finding in notes(self.report.findings):
            yield from self._row(NOTE, finding.id, wrap(self._to(finding.check.title), self.width - self.indent))

    def unknown(self, room: Unknown, both: _Both) -> Iterator[str]:
        """Yield why something is unknown, each reason once; the checks of which it takes too many lines together."""
        shown_reasons = both.shown_reasons(room)
        rest: list[str] = []
        for number, (reason, ids) in enumerate(self.reasons):
            if number in shown_reasons:
                yield from self._row(OUTCOMES[Outcome.UNKNOWN], ids[0], self._reason(reason, ids, room))
            else:
                rest += (id_ for id_ in ids if id_ not in rest)
        if rest:
            label = self.paint(pad(self._to(OUTCOMES[Outcome.UNKNOWN]), self.label_width), "dim")
            yield from self._names(label, _left_to_details(rest, both.named(rest)))

    def names_that_fit(self, ids: Sequence[str]) -> int:
        """Return how many of the checks can be named in a line."""
        width = self.width - self.label_width
        return next(
            (most for most in MAX_UNKNOWN if fits(self._to(_left_to_details(ids, most)), width, 1)), MAX_UNKNOWN[-1]
        )

    def shown_reasons(self, room: Unknown) -> set[int]:
        """Return the numbers of the reasons that have a row of their own."""
        most = room.reasons if len(self.reasons) <= room.reasons else room.reasons - 1
        fitting = [number for number, (reason, ids) in enumerate(self.reasons) if self._reason(reason, ids, room)]
        return {*fitting[:most]}

    def _reason(self, reason: Text, ids: Sequence[str], room: Unknown) -> list[str]:
        said, end = spelled(self._to(reason), self.lang), self._to(also_text(ids[1:]))
        return _fitting(said, self.width - self.indent, room.lines + self.more, end)

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
        yield from policy_lines(self.report, self.lang, self.width, short=True)
        if any(fixable(problem, self.report) for problem in self.found):
            yield from self._lines(self._fixable())
        outcomes = {**self.counts.outcomes, Outcome.WAIVED: self.counts.waived}
        parts = [
            Message("{count} {outcome}", count=outcomes[outcome], outcome=word)
            for outcome, word in _COUNTED.items()
            if outcomes[outcome]
        ]
        report = self.report
        check = with_words("check -v", (*report.selection, *report.settings))
        details = _details(enumerated(map(printable, (check, with_words("explain ID", _of_catalog(report))))))
        yield from self._lines(clauses([*([listed(parts)] if parts else []), details]))

    def _fixable(self) -> Text:
        """Return what `envtune fix` can do."""
        fix = printable(with_words("envtune fix", (*self.report.selection, *self.report.settings)))
        ids = [id_ for problem in self.found for id_ in problem.ids]
        done = sum(1 for id_ in ids if is_fixable(id_, self.report))
        template = N_("* {count} of {all} can be fixed: {fix} shows how, {fix} --apply does it")
        if self.report.snapshot:
            template = N_("* {count} of {all} can be fixed on that host: {fix} --apply")
        return Message(template, count=done, all=len(ids), fix=fix)


def _of_catalog(report: Report) -> list[str]:
    """Return the options with which `explain` finds every entry of the report; a check may be the policy's own."""
    of_policy = any(finding.check.by_policy and finding.check.probe == FACT for finding in report.findings)
    names = {"--catalog", "--policy"} if of_policy else {"--catalog"}
    words = report.settings
    return [word for at, word in enumerate(words) if names & {word, words[at - 1] if at else ""}]


def _left_to_details(ids: Sequence[str], most: int) -> Text:
    return Message("{checks} (check -v shows why)", checks=some(ids, most))


def _details(commands: Text | str) -> Text:
    return Message("details: {commands}", commands=commands)


def _fitting(text: str, width: int, lines: int, end: str) -> list[str]:
    """Return the text with `end` after it, or without its last clauses; nothing where that takes too many lines."""
    made = [*versions([text]), *beginnings(without_remarks(short_paths(text)))]
    said = next((one for one in made if fits(one + end, width, lines)), None)
    return [] if said is None else wrap(said + end, width)


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
