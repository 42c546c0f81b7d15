"""What a page about a diagnosis is made from: the same content as the text and the Markdown, as plain text."""

from __future__ import annotations

from typing import Iterator, Optional, Sequence

from envtune.diagnose.diagnosis import Diagnosis, DiagnosisReport
from envtune.messages import Joined, Literal, Text, clauses, enumerated
from envtune.records import NamedTuple
from envtune.report.diagnosis.content import (
    FIRST_ERROR,
    HEADINGS,
    LOW_CONFIDENCE,
    UNDECIDED_ORDER,
    code_line,
    codes,
    file_line,
    heading_of,
    here,
    labelled,
    mentions,
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
from envtune.report.layout import printable
from envtune.version import __version__

MAX_LINE = 2000  # characters of the first error that are shown


class Excerpt(NamedTuple):
    """A line of a log with its neighbors."""

    place: str
    before: tuple[str, ...]
    line: str
    after: tuple[str, ...]


class Item(NamedTuple):
    """A label with a text, the lines below it, and a command to paste; each may be empty."""

    label: str
    text: str
    lines: tuple[str, ...] = ()
    command: str = ""


class List(NamedTuple):
    """A heading and the lines below it."""

    heading: str
    lines: tuple[str, ...]


class DiagnosisView(NamedTuple):
    """What `envtune diagnose` found, in one language."""

    lang: str
    version: str
    headline: str
    remarks: tuple[str, ...]
    excerpt: Optional[Excerpt]
    rows: tuple[Item, ...]
    lists: tuple[List, ...]


def diagnosis_view(report: DiagnosisReport, lang: str) -> DiagnosisView:
    """Return a diagnosis as a page shows it."""
    return _Builder(report, lang).view()


class _Builder:
    """Makes the parts of the view."""

    def __init__(self, report: DiagnosisReport, lang: str) -> None:
        self.report, self.lang = report, lang

    def _to(self, text: Optional[Text]) -> str:
        return "" if text is None else printable(text.to(self.lang))

    def _texts(self, *texts: Optional[Text]) -> tuple[str, ...]:
        return tuple(self._to(text) for text in texts if text is not None)

    def view(self) -> DiagnosisView:
        """Return the whole view."""
        report, first = self.report, next(iter(self.report.diagnoses), None)
        order = (UNDECIDED_ORDER,) if report.undecided_order else ()
        if first is None:
            headline, remarks = self._to(nothing_known(report)), order
            excerpt = self._first_error()
            text, command = to_send(report)
            items = [Item(self._to(text), "", (), command)] if excerpt is not None else []
        else:
            entry = first.candidate.entry
            headline = f"{entry.id} {self._to(entry.title)}"
            remarks = (where(first.candidate), None if first.candidate.confident else LOW_CONFIDENCE, *order)
            excerpt, items = self._proof(first), list(self._items(first))
        lists = tuple(one for one in self._lists() if one.lines)
        return DiagnosisView(self.lang, __version__, headline, self._texts(*remarks), excerpt, tuple(items), lists)

    def _first_error(self) -> Optional[Excerpt]:
        report = self.report
        if report.first_error is None:
            return None
        file, line = report.first_error
        place = labelled(FIRST_ERROR, file_line(file.path, line.number))
        before, after = tuple(map(printable, report.before)), tuple(map(printable, report.after))
        return Excerpt(self._to(place), before, printable(line.text[:MAX_LINE]), after)

    def _proof(self, diagnosis: Diagnosis) -> Excerpt:
        shown = proof(diagnosis.candidate)
        return Excerpt(self._to(shown.place), shown.before, shown.line, shown.after)

    def _items(self, diagnosis: Diagnosis) -> Iterator[Item]:
        candidate = diagnosis.candidate
        values = [f"{self._to(label)} {value}" for label, value in labelled_values(candidate.groups)]
        if values:
            yield Item(self._to(HEADINGS["says"]), self._to(enumerated(values)))
        yield Item(self._to(HEADINGS["cause"]), self._to(fill(candidate.entry.cause, candidate.groups)))
        elsewhere = why_not_checked(diagnosis)
        if elsewhere is not None:
            yield Item(self._to(HEADINGS["here"]), self._to(elsewhere))
        elif says_something(diagnosis):
            lines = self._texts(*statements(diagnosis))
            yield Item(self._to(HEADINGS["here"]), self._to(here(diagnosis)), lines)
        remedy = todo(diagnosis, self.report)
        explanation = self._texts(remedy.explanation)
        text = "" if diagnosis.history == "fixed" else self._to(remedy.text)
        yield Item(self._to(remedy.label), text, explanation, printable(remedy.command))

    def _lists(self) -> Iterator[List]:
        report = self.report
        for heading, lines in about(report.job):
            yield List(self._to(heading), self._texts(*lines))
        yield self._list("codes", [code_line(one) for one in codes(report)])
        yield self._list("states", states(report))
        also = [labelled(Joined((id_, title), " "), place) for id_, title, place in others(report.diagnoses[1:])]
        yield self._list("also", also)
        waiting, consequences = split_consequences(report)
        for key, rows in (("waited", waiting), ("consequences", consequences)):
            yield self._list(key, [_line(one) for one in rows])
        yield self._list("harmless", [_line(one) for one in report.harmless])
        yield self._list("hints", [_line(one) for one in report.hints])
        said = [Joined((id_, title, place, why), "  ") for id_, title, place, why in mentions(report)]
        yield self._list("mentions", said)

    def _list(self, key: str, lines: Sequence[Text]) -> List:
        return List(self._to(heading_of(key, self.report)), self._texts(*lines))


def _line(diagnosis: Diagnosis) -> Text:
    entry, hit, who = diagnosis.candidate.entry, diagnosis.candidate.first, who_waited(diagnosis.candidate)
    error = Joined((Literal(entry.id), entry.title, file_line(hit.file.path, hit.line.number)), "  ")
    return clauses([error]) if who is None else labelled(who, error)
