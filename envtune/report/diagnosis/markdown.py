"""Render a diagnosis report as Markdown, to paste into an issue.

Nothing of a log can become markup, a mention or a reference there.
"""

from __future__ import annotations

from typing import Iterator, Optional, Sequence

from envtune.diagnose.diagnosis import Diagnosis, DiagnosisReport
from envtune.messages import Joined, Literal, Text, clauses, listed
from envtune.report.diagnosis.commonmark import code, fenced, prose
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
from envtune.version import __version__

MAX_LINE = 2000  # characters of the first error that are shown


def render_markdown(report: DiagnosisReport, lang: str) -> str:
    """Return the report to paste into an issue."""
    return "\n".join(_Renderer(lang).report(report)).rstrip() + "\n"


class _Renderer:
    """The parts of the report; each yields its lines."""

    def __init__(self, lang: str) -> None:
        self.lang = lang

    def _prose(self, text: Text) -> str:
        return prose(text.to(self.lang))

    def report(self, report: DiagnosisReport) -> Iterator[str]:
        if report.diagnoses:
            yield from self._diagnosis(report.diagnoses[0], report)
            yield from self._job(report)
        else:
            yield from self._nothing(report)
        if report.undecided_order:
            yield from (self._prose(UNDECIDED_ORDER), "")
        yield from self._codes(report)
        yield from self._states(report)
        yield from self._also(report)
        waiting, consequences = split_consequences(report)
        yield from self._list("waited", waiting)
        yield from self._list("consequences", consequences)
        yield from self._list("harmless", report.harmless)
        yield from self._list("hints", report.hints)
        yield from self._mentions(report)
        yield f"<sub>envtune {__version__} diagnose</sub>"

    def _diagnosis(self, diagnosis: Diagnosis, report: DiagnosisReport) -> Iterator[str]:
        candidate = diagnosis.candidate
        entry, shown, place = candidate.entry, proof(candidate), where(candidate)
        yield from (f"### {entry.id} {self._prose(entry.title)}", "")
        yield from (self._prose(clauses([shown.place, *([] if place is None else [place])])), "")
        if not candidate.confident:
            yield from (self._prose(LOW_CONFIDENCE), "")
        yield from fenced([*shown.before, shown.line, *shown.after])
        values = [f"{self._prose(label)} {code(value)}" for label, value in labelled_values(candidate.groups)]
        yield from self._item(HEADINGS["says"], listed(values).to(self.lang))
        yield from self._item(HEADINGS["cause"], self._prose(fill(entry.cause, candidate.groups)))
        yield from self._host(diagnosis)
        remedy = todo(diagnosis, report)
        if diagnosis.history != "fixed":
            yield from self._item(remedy.label, self._prose(remedy.text))
        if remedy.command or remedy.explanation is not None:
            explanation = "" if remedy.explanation is None else self._prose(remedy.explanation)
            label = remedy.label if diagnosis.history == "fixed" else None
            yield from self._item(label, f"{explanation} {code(remedy.command) if remedy.command else ''}".rstrip())
        yield ""

    def _host(self, diagnosis: Diagnosis) -> Iterator[str]:
        reason = why_not_checked(diagnosis)
        if reason is not None:
            yield from self._item(HEADINGS["here"], self._prose(reason))
        elif says_something(diagnosis):
            yield from self._item(HEADINGS["here"], f"**{self._prose(here(diagnosis))}**")
            yield from (f"  - {self._prose(statement)}" for statement in statements(diagnosis))

    def _nothing(self, report: DiagnosisReport) -> Iterator[str]:
        yield from (f"**{self._prose(nothing_known(report))}**", "")
        if report.first_error is None:
            return
        yield from self._job(report)
        file, line = report.first_error
        place = code(file_line(file.path, line.number).to(self.lang))
        yield from (labelled(Literal(self._prose(FIRST_ERROR)), Literal(place)).to(self.lang), "")
        yield from fenced([*report.before, line.text[:MAX_LINE], *report.after])
        text, command = to_send(report)
        yield from (f"{self._prose(text)} {code(command) if command else ''}".rstrip(), "")

    def _job(self, report: DiagnosisReport) -> Iterator[str]:
        for heading, lines in about(report.job):
            yield from (self._prose(heading), "", *(f"- {self._prose(line)}" for line in lines), "")

    def _also(self, report: DiagnosisReport) -> Iterator[str]:
        rows = list(others(report.diagnoses[1:]))
        if rows:
            yield from (self._prose(heading_of("also", report)), "")
            yield from (f"- **{id_}** {self._prose(title)}: {self._prose(place)}" for id_, title, place in rows)
            yield ""

    def _codes(self, report: DiagnosisReport) -> Iterator[str]:
        found = codes(report)
        if found:
            yield from (self._prose(heading_of("codes", report)), "")
            yield from (f"- {self._prose(code_line(one))}" for one in found)
            yield ""

    def _states(self, report: DiagnosisReport) -> Iterator[str]:
        if report.states:
            yield from (self._prose(HEADINGS["states"]), "")
            yield from (f"- {self._prose(line)}" for line in states(report))
            yield ""

    def _mentions(self, report: DiagnosisReport) -> Iterator[str]:
        if report.mentions:
            yield from (self._prose(HEADINGS["mentions"]), "")
            for id_, title, place, why in mentions(report):
                error = Joined([id_, self._prose(title), code(place.to(self.lang))], " ")
                yield f"- {labelled(error, Literal(self._prose(why))).to(self.lang)}"
            yield ""

    def _list(self, key: str, diagnoses: Sequence[Diagnosis]) -> Iterator[str]:
        if not diagnoses:
            return
        yield from (self._prose(HEADINGS[key]), "")
        for diagnosis in diagnoses:
            entry, hit, who = diagnosis.candidate.entry, diagnosis.candidate.first, who_waited(diagnosis.candidate)
            place = code(file_line(hit.file.path, hit.line.number).to(self.lang))
            error = Joined([entry.id, self._prose(entry.title), place], " ")
            yield f"- {(error if who is None else labelled(Literal(self._prose(who)), error)).to(self.lang)}"
        yield ""

    def _item(self, label: Optional[Text], text: str) -> Iterator[str]:
        if text.strip():
            yield f"- {text}" if label is None else f"- **{label.to(self.lang)}** {text}"
