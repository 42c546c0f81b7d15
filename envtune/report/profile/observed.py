"""Render an observed job: the likely verdict and its causes, a line and a sparkline for each rank; as text and data."""

from __future__ import annotations

from typing import Any, Iterator, Optional, Sequence

from envtune.messages import Message, Text
from envtune.observe.judge import Judgement
from envtune.observe.sampling import Observation, Usage
from envtune.profile.explain import Explanation
from envtune.profile.verdict import Bound
from envtune.report.layout import Paint, display_width, indent, pad, printable, shown, wrap
from envtune.report.profile.host import host_data, host_lines
from envtune.report.profile.schema import HOST
from envtune.report.profile.words import COLOURS, MEANINGS, percent, verdict_text
from envtune.report.redaction import redacted
from envtune.schema.types import AnyOf, Bool, Const, Field, ListOf, Null, Number, Record, Str, Type, optional
from envtune.trust.characters import json_text
from envtune.version import __version__

SCHEMA = "envtune.observation/1"
_BARS = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"  # an eighth to eight eighths


def sparkline(series: Sequence[float]) -> str:
    """Return shares as a row of bars."""
    return "".join(_BARS[min(int(max(share, 0.0) * len(_BARS)), len(_BARS) - 1)] for share in series)


def render(
    found: Observation,
    judged: Judgement,
    explanation: Optional[Explanation],
    lang: str,
    *,
    width: int = 100,
    colour: bool = False,
) -> str:
    """Return the report in `lang`, at most `width` columns wide but for lines to paste."""
    paint = Paint(colour)
    lines: list[str] = []
    lines += [paint(line, "bold", COLOURS[judged.bound]) for line in wrap(shown(headline(judged), lang), width)]
    for cause in judged.causes:
        lines += indent(shown(cause.text, lang), width, "  ", "    ")
    lines += _table(found, lang, paint)
    if explanation is not None:
        lines += host_lines(explanation, judged.bound, lang, width, paint)
    for note in (*judged.notes, _about(found)):
        lines += indent(shown(note, lang), width, "- ", "  ")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def headline(judged: Judgement) -> Text:
    """Return the verdict in a sentence."""
    if judged.bound is Bound.BALANCED:
        return Message("nothing on the host stands out")
    return Message("no verdict") if judged.bound is Bound.UNKNOWN else verdict_text(judged.bound, True)


def _about(found: Observation) -> Message:
    return Message(
        "Observed for {seconds} s with {samples} samples, using {cost} of one CPU.",
        seconds=f"{found.seconds:.0f}",
        samples=found.samples,
        cost=f"{found.cost:.1%}",
    )


def _table(found: Observation, lang: str, paint: Paint) -> list[str]:
    rows = [_cells(usage, found.usages) for usage in found.usages if usage.is_main]
    if not rows:
        return []
    heading = [
        Message("rank").to(lang),
        Message("process").to(lang),
        Message("main thread").to(lang),
        "CPU",
        Message("waits for CPU").to(lang),
        Message("storage").to(lang),
        Message("all threads").to(lang),
        Message("workers").to(lang),
    ]
    widths = [max(display_width(row[at]) for row in (heading, *rows)) for at in range(len(heading))]
    lines = ["  ".join(pad(cell, size) for cell, size in zip(row, widths)) for row in (heading, *rows)]
    return [paint(lines[0], "bold"), *lines[1:]]


def _cells(usage: Usage, usages: Sequence[Usage]) -> list[str]:
    workers = [one for one in usages if one.rank == usage.rank and not one.is_main]
    used = sum(one.whole for one in workers)
    return [
        printable(usage.rank),
        f"{usage.pid} {printable(usage.name)}",
        sparkline(usage.series),
        percent(usage.cpu),
        percent(usage.waiting),
        percent(usage.disk),
        percent(usage.whole),
        f"{len(workers)} ({percent(used)})" if workers else "0",
    ]


def observation_data(
    found: Observation, judged: Judgement, explanation: Optional[Explanation], lang: str
) -> dict[str, Any]:
    """Return the report as plain data, its sentences in `lang`."""
    machine = found.machine
    return {
        "schema": SCHEMA,
        "envtune": __version__,
        "verdict": judged.bound.value,
        "likely": True,
        "meaning": MEANINGS[judged.bound].to(lang),
        "causes": [{"id": cause.name, "text": redacted(cause.text.to(lang))} for cause in judged.causes],
        "notes": [redacted(note.to(lang)) for note in judged.notes],
        "seconds": round(found.seconds, 3),
        "samples": found.samples,
        "cost": round(found.cost, 5),
        "ended": found.ended,
        "processes": [_process(usage) for usage in found.usages],
        "machine": {name: _rounded(value) for name, value in machine._asdict().items()},
        "npu": [{"name": name, "use": list(series)} for name, series in found.npu],
        "host": host_data(explanation, lang),
    }


def _rounded(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value


def _process(usage: Usage) -> dict[str, Any]:
    data = {name: _rounded(value) for name, value in usage._asdict().items()}
    series = [round(share, 3) for share in usage.series]
    return {**data, "name": redacted(usage.name), "rank": redacted(usage.rank), "series": series}


def render_json(found: Observation, judged: Judgement, explanation: Optional[Explanation], lang: str) -> str:
    """Return the report as one JSON document."""
    return json_text(observation_data(found, judged, explanation, lang), 1)


# ---------------------------------------------------------------------- its form


def _field(name: str, type_: Type, doc: str = "") -> Field:
    return Field(name, type_, doc, required=True)


_TEXT, _NUMBER, _COUNT = Str(), Number(0), Number(0, whole=True)
_PROCESS = Record(
    _field("pid", _COUNT),
    _field("name", _TEXT),
    _field("rank", _TEXT),
    _field("is_main", Bool(), "true: the process of the rank itself; false: one that it started."),
    _field("seconds", _NUMBER, "How long it was observed."),
    _field("cpu", _NUMBER, "Of its main thread, as share of the time; so are the next four."),
    _field("waiting", _NUMBER, "Its main thread was ready and had no CPU."),
    _field("disk", _NUMBER, "Its main thread waited for storage."),
    _field("whole", _NUMBER, "CPU of all its threads; may be more than 1."),
    _field("busiest_thread", _NUMBER, "The busiest other thread ran, as share of the time in which it had a CPU."),
    _field("major_faults", _NUMBER, "A second."),
    _field("children", _NUMBER, "CPU of the processes that it started and that ended meanwhile; may be more than 1."),
    _field("writes", Bool(), "It wrote more to storage than it read."),
    _field("series", ListOf(_NUMBER), "CPU of the main thread over the time."),
)
_MACHINE = Record(
    _field("cpus", _COUNT),
    _field("allowed", optional(_COUNT), "CPUs that the job may run on."),
    *(
        _field(name, optional(_NUMBER))
        for name in ("throttled", "io_pressure", "cpu_pressure", "swapped_in", "frequency", "remote")
    ),
)
OBSERVATION = Record(
    _field("schema", Const(SCHEMA)),
    _field("envtune", _TEXT, "Version of envtune."),
    _field("verdict", Str(choices=tuple(bound.value for bound in Bound)), "balanced: nothing on the host stands out."),
    _field("likely", Bool(), "Always true: what is seen from outside proves nothing."),
    _field("meaning", _TEXT),
    _field("causes", ListOf(Record(_field("id", _TEXT), _field("text", _TEXT)))),
    _field("notes", ListOf(_TEXT)),
    _field("seconds", _NUMBER),
    _field("samples", _COUNT),
    _field("cost", _NUMBER, "CPU time of the sampling as share of one core."),
    _field("ended", Bool(), "The job ended meanwhile."),
    _field("processes", ListOf(_PROCESS)),
    _field("machine", _MACHINE, "Shares of the time; null where unknown."),
    _field("npu", ListOf(Record(_field("name", _TEXT), _field("use", ListOf(_NUMBER), "Percent.")))),
    _field("host", AnyOf(HOST, Null())),
)


def cause_lines(judged: Judgement, lang: str) -> Iterator[str]:
    """Yield the verdict and its causes for a post-mortem: one line, and one for each cause."""
    yield shown(headline(judged), lang)
    for cause in judged.causes:
        yield "  " + shown(cause.text, lang)
