"""Render a report as a person wants it first: the verdict, the host, and two or three lines for each problem.

A report that would not fit a screen says less of each problem, and never leaves one out: `-v` shows everything.
"""

from __future__ import annotations

import re
from typing import Iterator, Mapping, NamedTuple, Optional, Sequence, Union

from envtune.audit.verdict import Verdict, count_checks, verdict
from envtune.messages import Joined, Literal, Message, Text, clauses, in_context, listed
from envtune.model import Finding, Outcome, Report, Severity
from envtune.report.host_texts import host_texts
from envtune.report.layout import Paint, clip, display_width, pad, printable, wrap
from envtune.report.policy_text import policy_lines
from envtune.report.problems import Problem, Statement, fixable, notes, problems, statements
from envtune.report.words import NOTE, OUTCOMES, SEVERITIES, problems_text, verdict_line

SCREEN = 25  # lines: a small terminal
MAX_REASONS = 3  # of what is unknown that are shown one by one
PHRASE = 4  # words of what was found that say without a title what is wrong
MAX_COMMANDS = 2  # of one problem
MAX_SUBJECTS = 3  # of which the same was found
MAX_IDS = 4  # of checks that are unknown for one reason
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
_FIX, _LOOK = Message("fix:"), Message("look:")


def render(report: Report, lang: str, *, width: int = 80, colour: bool = False) -> str:
    """Return the report in `lang`, at most `width` columns wide but for lines to paste."""
    page = _Page(report, lang, max(width, 60), Paint(colour))
    made = (page.lines(room) for room in _ROOMS)
    lines = next((lines for lines in made if len(lines) <= SCREEN), None) or page.lines(_TOO_LONG)
    return "\n".join(line.rstrip(" ") for line in lines)


class _Room(NamedTuple):
    """How many lines say what is wrong, and whether the remedy of what is of low severity is shown, too.

    `fixable` is for what `envtune fix` does, which needs no line for a remedy.
    """

    critical: int
    fixable: int
    other: int
    unknown: int
    minor: bool


# the first with which a report fits is taken
_ROOMS = (_Room(3, 3, 3, 2, True), _Room(2, 2, 2, 2, True), _Room(2, 2, 1, 1, False))
_TOO_LONG = _Room(2, 2, 2, 1, False)


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
            text = Message("Only general checks were run: {problems}", problems=problems_text(self.counts))
            yield from self._lines(text)
        yield from self._lines(listed(host_texts(self.report)))

    def problems(self, room: _Room) -> Iterator[str]:
        for problem in self.found:
            yield from self._problem(problem, room)

    def _problem(self, problem: Problem, room: _Room) -> Iterator[str]:
        is_fixable = fixable(problem, self.report)
        lines = room.fixable if is_fixable else room.other
        lines = room.critical if problem.severity is Severity.CRITICAL else lines
        first = pad(self._to(SEVERITIES[problem.severity]), self.label_width)
        mark = "* " if is_fixable else "  "
        rows = self._statement(problem, lines)
        painted = self.paint(first, *_COLOURS[problem.severity])
        yield painted + pad(problem.check.id, self.id_width) + self.paint(mark, "green") + rows[0]
        yield from (" " * self.indent + row for row in rows[1:])
        if not is_fixable and (room.minor or problem.severity.rank > Severity.LOW.rank):
            yield from self._remedy(problem)

    def _statement(self, problem: Problem, lines: int) -> list[str]:
        """Return what is wrong, as much of it as fits: title and what was found, else what says most."""
        room = self.width - self.indent
        end = self._to(_also(problem.ids))
        said = list(self._wordings(problem))
        text = next((one for one in said if len(wrap(one + end, room)) <= lines), said[-1])
        return clip(text, room, lines, end)

    def _wordings(self, problem: Problem) -> Iterator[str]:
        """Yield what says it, the longest first."""
        title = self._to(problem.check.title)
        rows = statements(problem.findings, self.lang)
        is_phrase = all(len(row.actual.split()) >= PHRASE for row in statements(problem.findings, "en"))
        found = self._found(rows, title)
        if not found:
            yield title
            return
        if not is_phrase:
            yield self._to(Message("{title}: {found}", title=title, found=self._found(rows, title, expected=True)))
        yield self._to(Message("{title}: {found}", title=title, found=found))
        if is_phrase:
            yield self._found(rows, "")

    def _found(self, rows: Sequence[Statement], title: str, expected: bool = False) -> str:
        """Return what was found about each subject; one that stands in the words beside it is not named again."""
        parts = []
        for row in rows:
            text: Text = Literal(printable(row.actual))
            if expected and row.expected:
                text = Message("{actual} (expected {expected})", actual=text, expected=printable(row.expected))
            begun = _beginning(row)
            if begun is not None:
                text = Joined((printable(begun), text), "")
            elif row.subject and not (len(rows) == 1 and row.subject in title):
                text = Message("{subject}: {found}", subject=_few(row.subject), found=text)
            parts.append(text)
        return self._to(clauses(part for part in parts if part.en))

    def _remedy(self, problem: Problem) -> Iterator[str]:
        """Yield the lines to paste that fix it, else the first that shows more, else what to do in words."""
        fixes = [command.line for command in problem.commands if command.kind == "fix"]
        looks = [command.line for command in problem.commands if command.kind == "look"]
        remedy = problem.check.remedy
        if fixes or not looks:
            shown = fixes or ([] if remedy is None else [remedy])
            yield from (line for one in shown[:MAX_COMMANDS] for line in self._command(_FIX, one, problem))
        else:
            yield from self._command(_LOOK, looks[0], problem)

    def _command(self, label: Text, line: Union[str, Text], problem: Problem) -> Iterator[str]:
        words = self._to(label)
        words += " " if words.isascii() else ""  # a full-width colon brings its own
        start = " " * self.indent + self.paint(words, "dim")
        room = self.width - self.indent - display_width(words)
        if isinstance(line, Text):
            rows = clip(self._to(line), room, 2)
            yield start + rows[0]
            yield from (" " * self.indent + row for row in rows[1:])
            return
        text = printable(line)
        if display_width(text) > room + self.width:  # more than a terminal's line further
            text = f"envtune check -v --select {problem.check.id}"
        yield start + self.paint(text, "green" if label is _FIX else "cyan")

    def notes(self) -> Iterator[str]:
        for finding in notes(self.report.findings):
            yield from self._row(NOTE, finding.id, self._to(finding.check.title), 2)

    def unknown(self, room: _Room) -> Iterator[str]:
        """Yield why something is unknown, each reason once."""
        reasons = _reasons([f for f in self.report.findings if f.outcome is Outcome.UNKNOWN])
        rows = [(self._to(reason), ids) for reason, ids in reasons]
        if len(rows) > MAX_REASONS:
            rest = tuple(dict.fromkeys(id_ for _, ids in rows[MAX_REASONS - 1 :] for id_ in ids))
            rows = [*rows[: MAX_REASONS - 1], (self._to(Message("other reasons")), rest)]
        for reason, ids in rows:
            yield from self._row(OUTCOMES[Outcome.UNKNOWN], ids[0], reason, room.unknown, self._to(_also(ids)))

    def _row(self, label: Text, name: str, text: str, lines: int, end: str = "") -> Iterator[str]:
        """Yield a row that is no problem."""
        rows = clip(text, self.width - self.indent, lines, end)
        yield self.paint(pad(self._to(label), self.label_width), "dim") + pad(name, self.id_width + 2) + rows[0]
        yield from (" " * self.indent + row for row in rows[1:])

    def tail(self) -> Iterator[str]:
        done = sum(1 for problem in self.found for id_ in problem.ids if id_ in (self.report.fixable or ()))
        if done:
            text = Message(
                "* {count} of {all}: {fix} shows the changes, {fix} --apply makes them",
                count=done,
                all=self.counts.problems,
                fix=fix_command(self.report.catalogs),
            )
            yield from self._lines(text)
        parts = [
            Message("{count} {outcome}", count=self.counts.outcomes[outcome], outcome=word)
            for outcome, word in _COUNTED.items()
            if self.counts.outcomes[outcome]
        ]
        details = Message("details: check -v, explain ID")
        yield from self._lines(clauses([*([listed(parts)] if parts else []), details]))


def fix_command(catalogs: Sequence[str]) -> str:
    """Return the command that fixes with the same catalogue."""
    if not catalogs:
        return "envtune fix"
    from shlex import join

    return printable(join(["envtune", "fix", *(word for directory in catalogs for word in ("--catalog", directory))]))


def _also(ids: Sequence[str]) -> Text:
    """Return what names the checks after the first one."""
    if len(ids) < 2:
        return Literal("")
    named = ", ".join(ids[1:])
    if len(ids) > MAX_IDS + 1:
        more = Message("{names} and {count} more", names=", ".join(ids[1:MAX_IDS]), count=len(ids) - MAX_IDS)
        return Message(" (also {checks})", checks=more)
    return Message(" (also {checks})", checks=named)


def _few(subject: str) -> Text:
    """Return the subjects, of many the first only."""
    names = printable(subject).split(", ")
    if len(names) <= MAX_SUBJECTS:
        return Literal(", ".join(names))
    return Message("{names} and {count} more", names=names[0], count=len(names) - 1)


def _beginning(row: Statement) -> Optional[str]:
    """Return what of the subject stands before what was found, where that begins with the rest of it; else None.

    `HCCL 60000-60015` and `60000-60015 in ip_local_port_range` need the `HCCL ` only.
    """
    words = row.subject.split(" ")
    for number in range(len(words)):
        rest = " ".join(words[number:])
        if rest and re.match(re.escape(rest) + r"(?![\w./-])", row.actual):
            return row.subject[: len(row.subject) - len(rest)]
    return None


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
