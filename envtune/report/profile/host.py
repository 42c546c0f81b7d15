"""Render what the host says to a verdict: which failing checks can explain it, which do not, and what is unknown."""

from __future__ import annotations

from typing import Iterator, Mapping, Optional

from envtune.audit.subjects import subject_text
from envtune.messages import Joined, Literal, Message, Text, enumerated
from envtune.model import Outcome
from envtune.profile.explain import Explanation
from envtune.profile.verdict import Bound
from envtune.report.layout import Paint, indent, printable, shown
from envtune.report.problems import Problem, fixable, problems, statements
from envtune.report.profile.words import BOUNDS
from envtune.report.words import SEVERITIES

MAX_COMMANDS = 3  # of one problem


def split(explanation: Explanation) -> tuple[list[Problem], list[Problem]]:
    """Return the problems that can explain the verdict, and the others."""
    found = problems(explanation.report.findings)
    fits = [problem for problem in found if explanation.fitting & set(problem.ids)]
    return fits, [problem for problem in found if problem not in fits]


def unknown_ids(explanation: Explanation) -> tuple[str, ...]:
    """Return the checks that could explain the verdict and are unknown."""
    unknown = (Outcome.UNKNOWN, Outcome.ERROR)
    found = (finding.id for finding in explanation.report.findings if finding.outcome in unknown)
    return tuple(dict.fromkeys(id_ for id_ in found if id_ in explanation.fitting))


def host_lines(explanation: Explanation, bound: Bound, lang: str, width: int, paint: Paint) -> Iterator[str]:
    """Yield the part of the report that is about the host."""
    fits, others = split(explanation)
    yield paint(shown(_heading(explanation, fits, bound), lang), "bold")
    for problem in fits:
        yield from _problem(problem, explanation, lang, width)
    if others:
        ids = enumerated([problem.check.id for problem in others])
        text = Message("Other failing checks, unrelated to it: {checks}", checks=ids)
        yield from indent(shown(text, lang), width, "  ", "    ")
    unknown = unknown_ids(explanation)
    if unknown:
        text = Message("Might explain it, but unknown: {checks}", checks=enumerated(unknown))
        yield from indent(shown(text, lang), width, "  ", "    ")
    for line in _fix_line(explanation, fits):
        yield "  $ " + printable(line)


def _heading(explanation: Explanation, fits: list[Problem], bound: Bound) -> Text:
    host, word = explanation.report.host, BOUNDS[bound]
    if not fits:
        return Message("{host}: no failing check explains a {verdict} job", host=host, verdict=word)
    if explanation.job:
        return Message(
            "{host}: possible causes of a {verdict} job (variables from {path})",
            host=host,
            verdict=word,
            path=explanation.job,
        )
    return Message("{host}: possible causes of a {verdict} job", host=host, verdict=word)


def _problem(problem: Problem, explanation: Explanation, lang: str, width: int) -> Iterator[str]:
    names = Joined((SEVERITIES[problem.severity], enumerated(problem.ids)), " ")
    first = "  " + Message("{subject}: {text}", subject=names, text="").to(lang)
    yield from indent(printable(problem.check.title.to(lang)), width, first, "    ")
    for row in statements(problem.findings, lang):
        found: Text = Literal(printable(row.actual))
        if row.subject:
            found = Message("{subject}: {text}", subject=subject_text(printable(row.subject)), text=found)
        if row.expected:
            found = Message("{actual} (expected {expected})", actual=found, expected=printable(row.expected))
        yield from indent(found.to(lang), width, "    ", "    ")
    if not fixable(problem, explanation.report):
        yield from ("    $ " + printable(line) for line in problem.fixes[:MAX_COMMANDS])
        for text in problem.instructions[:1]:
            yield from indent(printable(text.to(lang)), width, "    ", "    ")


def _fix_line(explanation: Explanation, fits: list[Problem]) -> Iterator[str]:
    known = explanation.report.fixable or ()
    first = [next((id_ for id_ in problem.ids if id_ in known), None) for problem in fits]
    ids = [id_ for id_ in first if id_ is not None]
    if ids:
        yield f"envtune fix {' '.join(ids)} --apply"


def host_data(explanation: Optional[Explanation], lang: str) -> Optional[Mapping[str, object]]:
    """Return the host's part as plain data; None where nothing was checked."""
    if explanation is None:
        return None
    from envtune.report.check_json import finding_data_2

    fits, others = split(explanation)
    chosen = {id_ for problem in fits for id_ in problem.ids}
    return {
        "host": explanation.report.host,
        "variables": explanation.job or None,
        "explains": [list(problem.ids) for problem in fits],
        "does_not_explain": [problem.check.id for problem in others],
        "unknown": list(unknown_ids(explanation)),
        "fix": next(iter(_fix_line(explanation, fits)), None),
        "findings": [finding_data_2(finding, lang) for finding in explanation.report.findings if finding.id in chosen],
    }
