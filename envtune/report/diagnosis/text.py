"""Render a diagnosis report as text for a terminal: the likeliest error, its proof and cause, this host, the remedy."""

from __future__ import annotations

from typing import Iterable, Iterator, Optional, Sequence

from envtune.diagnose.diagnosis import Diagnosis, DiagnosisReport
from envtune.diagnose.proof import PROVED, RULED_OUT
from envtune.messages import Joined, Text, clauses
from envtune.report.diagnosis.content import (
    ALL_WAITED,
    FIRST_ERROR,
    HEADINGS,
    LOW_CONFIDENCE,
    NO_ERROR_LINE,
    UNDECIDED_ORDER,
    code_line,
    codes,
    file_line,
    heading_of,
    here,
    labelled,
    mentions,
    next_step,
    nothing_known,
    others,
    proof,
    says_something,
    split_consequences,
    statements,
    states,
    to_send,
    todo,
    where,
    who_waited,
    why_not_checked,
)
from envtune.report.diagnosis.job import about
from envtune.report.diagnosis.placeholders import fill, labelled_values
from envtune.report.layout import Paint, display_width, indent, pad, printable, wrap

_LABEL = 6  # columns of the labels
_INDENT = _LABEL + 4
MAX_LINE = 2000  # characters of the first error that are shown


def render_text(report: DiagnosisReport, lang: str, *, width: int = 100, colour: bool = False) -> str:
    """Return the report for a terminal, at most `width` columns wide where words allow it."""
    renderer = _Renderer(lang, max(width, 50), Paint(colour))
    lines = list(renderer.report(report))
    while lines and not lines[-1]:
        lines.pop()
    return "\n".join(line.rstrip() for line in lines)


class _Renderer:
    """The parts of the report; each yields its lines."""

    def __init__(self, lang: str, width: int, paint: Paint) -> None:
        self.lang, self.width, self.paint = lang, width, paint

    def report(self, report: DiagnosisReport) -> Iterator[str]:
        if report.diagnoses:
            all_waited = report.job.root is None and not report.job.candidates
            yield from self._diagnosis(report.diagnoses[0], report, all_waited)
            yield from self._job(report)
        else:
            yield from self._nothing(report)
        yield from self._codes(report)
        yield from self._states(report)
        yield from self._also(report)
        waiting, consequences = split_consequences(report)
        yield from self._list("waited", waiting)
        yield from self._list("consequences", consequences)
        yield from self._list("harmless", report.harmless)
        yield from self._list("hints", report.hints)
        yield from self._mentions(report)

    def _paragraph(self, text: Text, first: str = "", others: str = "") -> list[str]:
        return indent(printable(text.to(self.lang)), self.width, first, others)

    # ---------------------------------------------------------------- the most likely one

    def _diagnosis(self, diagnosis: Diagnosis, report: DiagnosisReport, all_waited: bool) -> Iterator[str]:
        candidate = diagnosis.candidate
        entry = candidate.entry
        yield from (self.paint(line, "bold") for line in self._paragraph(entry.title, f"{entry.id}  ", "     "))
        if not candidate.confident:
            yield from self._paragraph(LOW_CONFIDENCE, "     ", "     ")
        yield ""
        yield from self._proof(diagnosis)
        yield from self._field(HEADINGS["where"], where(candidate))
        if entry.role == "waiting" and len(candidate.ranks) > 1 and all_waited:
            yield from self._field(None, ALL_WAITED)
        values = [Joined([label, value], " ") for label, value in labelled_values(candidate.groups)]
        yield from self._field(HEADINGS["says"], clauses(values))
        yield from self._field(HEADINGS["cause"], fill(entry.cause, candidate.groups))
        yield from self._host(diagnosis)
        yield from self._todo(diagnosis, report)
        yield ""

    def _proof(self, diagnosis: Diagnosis) -> Iterator[str]:
        shown = proof(diagnosis.candidate)
        yield from self._field(HEADINGS["log"], shown.place)
        yield from self._quoted(shown.before, shown.line, shown.after)

    def _quoted(self, before: Iterable[str], line: str, after: Iterable[str]) -> Iterator[str]:
        """Yield the line in full, and its neighbors cut to one row each; each row with a mark, as no row of ours."""
        yield from (self._neighbour(text) for text in before)
        for number, row in enumerate(broken(line, self.width - _INDENT)):
            mark = self.paint("|", "dim") if number else self.paint(">", "red")
            yield " " * (_INDENT - 2) + f"{mark} {row}"
        yield from (self._neighbour(text) for text in after)

    def _neighbour(self, text: str) -> str:
        return " " * (_INDENT - 2) + self.paint(f"| {clipped(printable(text), self.width - _INDENT)}", "dim")

    def _host(self, diagnosis: Diagnosis) -> Iterator[str]:
        reason = why_not_checked(diagnosis)
        if reason is not None:
            yield from self._field(HEADINGS["here"], reason)
        elif says_something(diagnosis):
            yield from self._field(HEADINGS["here"], here(diagnosis), _colour(diagnosis))
            for statement in statements(diagnosis):
                yield from self._paragraph(statement, " " * _INDENT + "- ", " " * _INDENT + "  ")

    def _todo(self, diagnosis: Diagnosis, report: DiagnosisReport) -> Iterator[str]:
        remedy = todo(diagnosis, report)
        if diagnosis.history != "fixed":
            yield from self._field(remedy.label, remedy.text)
        yield from self._field(remedy.label if diagnosis.history == "fixed" else None, remedy.explanation)
        if remedy.command:
            yield " " * _INDENT + self.paint(f"$ {remedy.command}", "cyan")

    # ---------------------------------------------------------------- nothing known

    def _nothing(self, report: DiagnosisReport) -> Iterator[str]:
        yield from (self.paint(line, "bold") for line in self._paragraph(nothing_known(report)))
        if report.first_error is None:
            if report.size:
                yield NO_ERROR_LINE.to(self.lang)
                yield from self._next(report)
            yield ""
            return
        file, line = report.first_error
        yield ""
        yield from self._job(report)
        yield from self._paragraph(labelled(FIRST_ERROR, file_line(file.path, line.number)))
        yield from self._quoted(report.before, printable(line.text[:MAX_LINE]), report.after)
        yield from self._next(report)
        yield ""
        text, command = to_send(report)
        yield from self._paragraph(text)
        if command:
            yield "  " + self.paint(f"$ {command}", "cyan")
        yield ""

    def _next(self, report: DiagnosisReport) -> Iterator[str]:
        text, command = next_step(report)
        yield ""
        yield from self._paragraph(text)
        if command:
            yield "  " + self.paint(f"$ {command}", "cyan")

    # ---------------------------------------------------------------- the others

    def _job(self, report: DiagnosisReport) -> Iterator[str]:
        for heading, lines in about(report.job):
            yield self.paint(heading.to(self.lang), "bold")
            for line in lines:
                yield from self._paragraph(line, "  ", "    ")
            yield ""

    def _also(self, report: DiagnosisReport) -> Iterator[str]:
        rows = list(others(report.diagnoses[1:]))
        if report.undecided_order:
            yield from self._paragraph(UNDECIDED_ORDER)
            yield ""
        if rows:
            yield self.paint(heading_of("also", report).to(self.lang), "bold")
        for number, (id_, title, place) in enumerate(rows, 2):
            yield from self._paragraph(Joined([id_, title], "  "), f"  {number}. ", "     ")
            yield from self._paragraph(place, "     ", "     ")
        if rows:
            yield ""

    def _codes(self, report: DiagnosisReport) -> Iterator[str]:
        found = codes(report)
        if found:
            yield self.paint(heading_of("codes", report).to(self.lang), "bold")
            for one in found:
                yield from self._paragraph(code_line(one), "  ", "    ")
            yield ""

    def _states(self, report: DiagnosisReport) -> Iterator[str]:
        if report.states:
            yield self.paint(HEADINGS["states"].to(self.lang), "bold")
            for line in states(report):
                yield from self._paragraph(line, "  ", "    ")
            yield ""

    def _mentions(self, report: DiagnosisReport) -> Iterator[str]:
        if report.mentions:
            yield self.paint(HEADINGS["mentions"].to(self.lang), "bold")
            for id_, title, place, why in mentions(report):
                yield from self._paragraph(
                    labelled(Joined([id_, "  ", title, "  [", place, "]"], ""), why), "  ", "    "
                )
            yield ""

    def _list(self, key: str, diagnoses: Sequence[Diagnosis]) -> Iterator[str]:
        if not diagnoses:
            return
        yield self.paint(HEADINGS[key].to(self.lang), "bold")
        for diagnosis in diagnoses:
            candidate = diagnosis.candidate
            entry, hit, who = candidate.entry, candidate.first, who_waited(candidate)
            place = file_line(hit.file.path, hit.line.number)
            error = Joined([entry.id, "  ", entry.title, "  [", place, "]"], "")
            yield from self._paragraph(error if who is None else labelled(who, error), "  ", "    ")
        yield ""

    def _field(self, label: Optional[Text], text: Optional[Text], colour: str = "") -> Iterator[str]:
        """Yield a labeled paragraph; nothing where there is no text."""
        content = "" if text is None else printable(text.to(self.lang))
        if not content:
            return
        name = "" if label is None else label.to(self.lang)
        first = "  " + self.paint(pad(name, _LABEL), "dim") + "  "
        for number, line in enumerate(indent(content, self.width, " " * _INDENT, " " * _INDENT)):
            row = line[_INDENT:]
            yield (first if number == 0 else " " * _INDENT) + (self.paint(row, colour) if colour else row)


def _colour(diagnosis: Diagnosis) -> str:
    if diagnosis.history == "fixed":
        return "green"
    return {PROVED: "red", RULED_OUT: "green"}.get(diagnosis.verdict, "yellow")


def broken(text: str, columns: int) -> Iterator[str]:
    """Yield the text in rows of at most `columns` columns; longer words, which log lines contain, are broken, too."""
    for row in wrap(text, columns):
        while display_width(row) > columns:
            head = _fitting(row, columns)
            yield head
            row = row[len(head) :]
        yield row


def _fitting(text: str, columns: int) -> str:
    """Return as much of the text as fits, at least one character."""
    used = 0
    for number, character in enumerate(text):
        used += display_width(character)
        if used > columns:
            return text[: max(number, 1)]
    return text


def clipped(text: str, columns: int) -> str:
    """Return the text in one row of at most `columns` columns, with an ellipsis where it was cut."""
    if display_width(text) <= columns:
        return text
    return _fitting(text, columns - 2).rstrip() + " …"
