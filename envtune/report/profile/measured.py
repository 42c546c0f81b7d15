"""Render what a fix does to the time that work takes, measured without and with it; as text and data."""

from __future__ import annotations

from typing import Any, Iterator, Mapping, Sequence

from envtune.bench.compare import Comparison
from envtune.bench.statistics import ERROR, Estimate, Verdict
from envtune.messages import Joined, Literal, Message, Text, enumerated
from envtune.report.layout import Paint, display_width, indent, pad, shown, wrap
from envtune.report.redaction import redacted_data
from envtune.schema.types import Bool, Const, Field, ListOf, Number, Record, Str, Type
from envtune.trust.characters import json_text
from envtune.version import __version__

SCHEMA = "envtune.bench/1"
MEANINGS: Mapping[Verdict, Text] = {
    Verdict.FASTER: Message("it helps"),
    Verdict.SLOWER: Message("it makes it slower"),
    Verdict.SAME: Message("it makes no difference"),
    Verdict.UNDECIDED: Message("no difference could be shown"),
}
COLOURS: Mapping[Verdict, str] = {
    Verdict.FASTER: "green",
    Verdict.SLOWER: "red",
    Verdict.SAME: "yellow",
    Verdict.UNDECIDED: "yellow",
}
WORK: Mapping[str, Text] = {
    "images": Message("decoding and resizing images"),
    "opencv": Message("decoding and resizing images"),
    "launch": Message("a loop of calls in one thread"),
    "storage": Message("reading the data set"),
}
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "\u00b5s"))


def render(
    compared: Comparison, checks: Sequence[str], measured: str, lang: str, *, width: int = 100, colour: bool = False
) -> str:
    """Return the report in `lang`, at most `width` columns wide."""
    paint, found = Paint(colour), compared.estimate
    heading = Message(
        "{checks}: {verdict}; {measured} takes {ratio} of the time ({low} to {high})",
        checks=enumerated(checks),
        verdict=MEANINGS[compared.verdict],
        measured=WORK.get(measured, Literal(measured)),
        ratio=_ratio(found.ratio),
        low=_ratio(found.low),
        high=_ratio(found.high),
    )
    lines = [paint(line, "bold", COLOURS[compared.verdict]) for line in wrap(shown(heading, lang), width)]
    lines += _table(compared, lang)
    for note in _notes(compared):
        lines += indent(shown(note, lang), width, "- ", "  ")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _notes(compared: Comparison) -> Iterator[Text]:
    names = dict.fromkeys(one.about for one in compared.pairs[0] if one.about)
    if len(names) > 1:
        separator = Message(", then ")
        yield Message("Measured with {names}.", names=Joined(map(Literal, names), separator))
    yield Message(
        "Medians of {pairs} pairs, measured in turn without and with the change; the range is wrong in at most {error} "
        "of such measurements.",
        pairs=compared.estimate.pairs,
        error=f"{ERROR:.0%}",
    )


def _table(compared: Comparison, lang: str) -> list[str]:
    heading = ["", Message("before").to(lang), Message("after").to(lang), Message("ratio").to(lang), ""]
    rows = [heading]
    if len(compared.parts) > 1:
        rows += [_cells(name, part) for name, part in compared.parts.items()]
    rows.append(_cells(Message("total").to(lang), compared.estimate))
    widths = [max(display_width(row[at]) for row in rows) for at in range(len(heading))]
    return ["  " + "  ".join(pad(cell, size) for cell, size in zip(row, widths)) for row in rows]


def _cells(name: str, found: Estimate) -> list[str]:
    about = f"({_ratio(found.low)}\u2013{_ratio(found.high)})"
    return [name, seconds_text(found.before), seconds_text(found.after), _ratio(found.ratio), about]


def _ratio(value: float) -> str:
    return f"{value:.2f}"


def seconds_text(seconds: float) -> str:
    """Return a time with three digits: 17.3 ms."""
    size, unit = next((row for row in _UNITS if seconds >= row[0]), _UNITS[-1])
    return f"{seconds / size:#.3g} {unit}"


def bench_data(
    compared: Comparison, checks: Sequence[str], measured: str, lang: str, *, is_kept: bool
) -> dict[str, Any]:
    """Return the report as data."""
    data = {
        "schema": SCHEMA,
        "envtune": __version__,
        "checks": [*checks],
        "measured": measured,
        "about": [one.about for one in compared.pairs[0]],
        "verdict": compared.verdict.value,
        "meaning": MEANINGS[compared.verdict].to(lang),
        "kept": is_kept,
        "error": ERROR,
        "total": _estimate_data(compared.estimate),
        "parts": [{"name": name, **_estimate_data(part)} for name, part in compared.parts.items()],
        "pairs": [{"before": before.seconds, "after": after.seconds} for before, after in compared.pairs],
    }
    return dict(redacted_data(data))


def _estimate_data(found: Estimate) -> dict[str, float]:
    return {name: round(getattr(found, name), 9) for name in ("before", "after", "ratio", "low", "high")}


def render_json(compared: Comparison, checks: Sequence[str], measured: str, lang: str, *, is_kept: bool) -> str:
    """Return the report as one JSON document."""
    return json_text(bench_data(compared, checks, measured, lang, is_kept=is_kept), indent=2)


def _field(name: str, type_: Type, doc: str = "") -> Field:
    return Field(name, type_, doc, required=True)


_TEXT, _NUMBER = Str(), Number(0)
_ESTIMATE = (
    _field("before", _NUMBER, "Median seconds without the change."),
    _field("after", _NUMBER, "Median seconds with it."),
    _field("ratio", _NUMBER, "Median of after / before of the pairs; below 1: faster."),
    _field("low", _NUMBER, "Of the confidence interval of the ratio."),
    _field("high", _NUMBER),
)
BENCH = Record(
    _field("schema", Const(SCHEMA)),
    _field("envtune", _TEXT, "Version of envtune."),
    _field("checks", ListOf(_TEXT), "The checks whose fixes were measured together."),
    _field("measured", _TEXT, "images, opencv, launch, storage, or the command."),
    _field("about", ListOf(_TEXT), "What was measured, without and with the change; empty for a command."),
    _field("verdict", Str(choices=tuple(verdict.value for verdict in Verdict))),
    _field("meaning", _TEXT),
    _field("kept", Bool(), "false: the changes were undone."),
    _field("error", _NUMBER, "How often such an interval misses the ratio, at most."),
    _field("total", Record(*_ESTIMATE)),
    _field("parts", ListOf(Record(_field("name", _TEXT), *_ESTIMATE))),
    _field("pairs", ListOf(Record(_field("before", _NUMBER), _field("after", _NUMBER)))),
)
