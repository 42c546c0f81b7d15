"""Render a report as Markdown, to paste into an issue or the summary of a CI job.

Nothing that was read on the host can become markup, a mention or a reference there (commonmark.py).
"""

from __future__ import annotations

from typing import Iterator, Sequence

from envtune.messages import clauses
from envtune.report.diagnosis.commonmark import code, fenced, prose
from envtune.report.formats.labels import pair
from envtune.report.formats.view import CheckView, ReportView, Row


def render(report: ReportView) -> str:
    """Return the report: the verdict, a table of the problems, then each of them, then what is unknown."""
    return "\n".join(_lines(report)).rstrip() + "\n"


def _lines(report: ReportView) -> Iterator[str]:
    yield from (f"### {prose(report.headline)}", "", prose(report.host_line), "")
    yield from _table(report)
    for check in report.problems:
        yield from _problem(check, report)
    for name, heading in (("note", "notes"), ("unknown", "unknown"), ("waived", "waived")):
        checks = report.by_outcome(name)
        if checks:
            items = (_item(check, report.lang) for check in checks)
            yield from (f"#### {prose(report.labels[heading])}", "", *items, "")
    yield f"<sub>envtune {report.version} check, {report.started}</sub>"


def _table(report: ReportView) -> Iterator[str]:
    if report.problems:
        yield "| " + " | ".join(prose(report.labels[name]) for name in ("severity", "check", "problem")) + " |"
        yield "| --- | --- | --- |"
        for check in report.problems:
            ids = ", ".join([f"**{check.id}**", *check.covers])
            yield f"| {prose(check.severity_word)} | {ids} | {prose(check.title)} |"
        yield ""


def _problem(check: CheckView, report: ReportView) -> Iterator[str]:
    label = report.labels
    yield from (f"#### {check.id} {prose(check.title)}", "")
    for row in check.rows:
        yield f"- {_found(row, report.lang)}"
        if row.expected:
            yield "  - " + pair(report.lang, prose(label["expected"]), prose(row.expected))
    for name, text in (("waiver", check.waiver), ("why", check.why), ("do", check.remedy)):
        if text:
            yield f"- **{prose(label[name])}** {prose(text)}"
    yield ""
    yield from _commands(check, report)


def _commands(check: CheckView, report: ReportView) -> Iterator[str]:
    for kind in ("fix", "look"):
        lines = [command.line for command in check.commands if command.kind == kind and command.line]
        if lines:
            yield from (pair(report.lang, prose(report.labels[kind]), "").rstrip(), "", *_block(lines))


def _block(lines: Sequence[str]) -> Iterator[str]:
    first, *rest = fenced(lines)
    yield first.replace("text", "sh")
    yield from rest


def _item(check: CheckView, lang: str) -> str:
    text = prose(check.waiver) or clauses(_found(row, lang) for row in check.rows).to(lang)
    head = f"- **{check.id}** {prose(check.title)}"
    return pair(lang, head, text) if text else head


def _found(row: Row, lang: str) -> str:
    return pair(lang, code(row.subject) if row.subject else "", prose(row.found))
