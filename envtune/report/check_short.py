"""Render a report as a person wants it first: the verdict, the host, and two or three lines for each problem.

A report that would not fit a screen says less of each problem, and never leaves one out: `-v` shows everything.
"""

from __future__ import annotations

import re
from typing import Iterable, Iterator, Mapping, NamedTuple, Optional, Sequence

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
    display_width,
    fits,
    pad,
    printable,
    short_paths,
    spelled,
    without_remarks,
    wrap,
)
from envtune.report.policy_text import policy_lines
from envtune.report.problems import Problem, Statement, adds_nothing, fixable, notes, problems, says_title, statements
from envtune.report.words import NOTE, OUTCOMES, SEVERITIES, problems_text, verdict_line

SCREEN = 25  # lines of 80 columns: a small terminal
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
_FIX, _LOOK, _DO = Message("fix:"), Message("look:"), Message("do:")


def render(report: Report, lang: str, *, width: int = 80, colour: bool = False) -> str:
    """Return the report in `lang`, at most `width` columns wide but for lines to paste."""
    page = _Page(report, lang, max(width, 60), Paint(colour))
    made = (page.lines(room) for room in _ROOMS)
    screen = SCREEN * 80 // min(page.width, 80)
    lines = next((lines for lines in made if len(lines) <= screen), None) or page.lines(_TOO_LONG)
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
    reasons: int  # of what is unknown that are shown one by one


# the first with which a report fits is taken
_ROOMS = (
    _Room(3, 3, 3, 3, True, 8),
    _Room(3, 3, 3, 2, True, 3),
    _Room(2, 2, 2, 2, True, 3),
    _Room(2, 2, 1, 1, False, 3),
)
_TOO_LONG = _Room(2, 2, 2, 1, False, 3)


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
        for problem in self.found:
            yield from self._problem(problem, room)

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
        if not is_fixable and (room.minor or problem.severity.rank > Severity.LOW.rank):
            yield from self._remedy(problem)

    def _statement(self, problem: Problem, lines: int) -> list[str]:
        """Return what is wrong, as much of it as fits: title and what was found, else what says most."""
        room = self.width - self.indent
        end = self._to(_also(problem.ids))
        said = self._wordings(problem)
        return _fitting(said, room, lines, end)

    def _wordings(self, problem: Problem) -> Iterator[str]:
        """Yield what says it, the longest first; what the title says is not said twice."""
        title, findings = problem.check.title, problem.findings
        rows = statements(findings, self.lang)
        found = self._found(rows, title)
        if not found or all(adds_nothing(title, finding) for finding in findings):
            yield self._to(title)
            return
        phrases = [len(row.actual.split()) >= PHRASE for row in statements(findings, "en")]
        is_phrase = all(phrases)
        if not is_phrase:
            yield self._to(Message("{title}: {found}", title=title, found=self._found(rows, title, expected=True)))
        if not is_phrase or not any(says_title(title, finding) for finding in findings):
            yield self._to(Message("{title}: {found}", title=title, found=found))
        if is_phrase:
            yield self._found(rows, None)
        for count in range(len(rows) - 1, 0, -1):
            some = self._found(rows, title, count=count)
            yield some if is_phrase else self._to(Message("{title}: {found}", title=title, found=some))
        if not is_phrase:
            yield self._found(rows, None, count=1) if phrases[0] and len(rows) > 1 else self._to(title)

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
            begun = _beginning(row)
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
            yield self._command(_FIX, line, problem)
        for text in problem.instructions[:1]:
            yield from self._instruction(text, problem)
        if not problem.fixes and not problem.instructions:
            yield from (self._command(_LOOK, line, problem) for line in problem.looks[:1])

    def _command(self, label: Text, line: str, problem: Problem) -> str:
        start, text = self._label(label), printable(line)
        if self.indent + display_width(start) + display_width(text) > 2 * self.width:  # beyond the next line
            return self._details(problem)
        return " " * self.indent + self.paint(start, "dim") + self.paint(text, "green" if label is _FIX else "cyan")

    def _instruction(self, text: Text, problem: Problem) -> Iterator[str]:
        """Yield as many whole sentences as two lines hold; where they do not hold the first, where to read it."""
        start = self._label(_DO)
        for said in beginnings(self._to(text)):
            said += "" if said[-1] in ".\u3002" else "." if said.isascii() else "\u3002"
            if fits(start + said, self.width - self.indent, 2):
                rows = wrap(start + said, self.width - self.indent)
                yield " " * self.indent + self.paint(start, "dim") + rows[0][len(start) :]
                yield from (" " * self.indent + row for row in rows[1:])
                return
        yield self._details(problem)

    def _details(self, problem: Problem) -> str:
        line = with_catalogs(f"envtune check -v --select {problem.check.id}", self.report.catalogs)
        return " " * self.indent + self.paint(self._label(_LOOK), "dim") + self.paint(line, "cyan")

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
            rows = [*rows[: room.reasons - 1], (self._to(Message("reasons: check -v")), rest)]
        for reason, ids in rows:
            yield from self._row(
                OUTCOMES[Outcome.UNKNOWN], ids[0], reason, room.unknown + self.more, self._to(_also(ids))
            )

    def _row(self, label: Text, name: str, text: str, lines: int, end: str = "") -> Iterator[str]:
        """Yield a row that is no problem."""
        rows = _fitting((text,), self.width - self.indent, lines, end)
        yield self.paint(pad(self._to(label), self.label_width), "dim") + pad(name, self.id_width + 2) + rows[0]
        yield from (" " * self.indent + row for row in rows[1:])

    def tail(self) -> Iterator[str]:
        done = sum(1 for problem in self.found if fixable(problem, self.report))
        if done:
            yield from self._lines(self._fixable(done))
        parts = [
            Message("{count} {outcome}", count=self.counts.outcomes[outcome], outcome=word)
            for outcome, word in _COUNTED.items()
            if self.counts.outcomes[outcome]
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


def _fitting(wordings: Iterable[str], width: int, lines: int, end: str) -> list[str]:
    """Return the first wording that fits with `end` after it, else one without its remarks; of the last what fits."""
    made = [version for text in wordings for version in (text, short_paths(text))]
    plain = tuple(map(without_remarks, made[1::2]))
    made += [*plain, *beginnings(plain[-1])]
    text = next((one for one in made if fits(one + end, width, lines)), plain[-1])
    return clip(text, width, lines, end)


def _also(ids: Sequence[str]) -> Text:
    """Return what names the checks after the first one."""
    if len(ids) < 2:
        return Literal("")
    named = enumerated(ids[1:])
    if len(ids) > MAX_IDS + 1:
        more = Message("{names} and {count} more", names=enumerated(ids[1:MAX_IDS]), count=len(ids) - MAX_IDS)
        return Message(" (also {checks})", checks=more)
    return Message(" (also {checks})", checks=named)


def _few(subject: str) -> Text:
    """Return the subjects, of many the first only."""
    names = printable(subject).split(", ")
    if len(names) <= MAX_SUBJECTS:
        return subject_text(", ".join(names))
    return Message("{names} and {count} more", names=subject_text(names[0]), count=len(names) - 1)


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
