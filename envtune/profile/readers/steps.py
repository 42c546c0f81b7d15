"""Where the time of each step went, from the tables of steps that profilers write; times in microseconds.

Two kinds of tables: those of torch_npu and MindSpore >= 2.4 sum a step's computing, communication and free time; those
of graphs (MindSpore <= 2.2, msprof) divide an iteration into its gap before the first kernel, forward and backward, and
the rest (tail: gradients, parameters).
"""

from __future__ import annotations

import statistics
from typing import Iterable, Iterator, Mapping, Optional, Sequence

from envtune.profile.readers.tables import Header, cell, number
from envtune.records import NamedTuple

UNKNOWN_STAGE = "?"  # the ranks of the stage are not named: no rank can be compared with another
TICK = 0.01  # microseconds: the unit of step_trace_raw (mindspore/profiler/parser/step_trace_parser.py)
START_UP = 1.5  # a first step longer than this times the median of the others is start-up
NOT_OVERLAPPED = ("communication(not overlapped)", "communication not overlapped")
NO_RECEIVE = (
    "communication(not overlapped and exclude receive)",
    "communication not overlapped and exclude receive",
)


class Step(NamedTuple):
    """One step of one rank. `gap` is the iteration's gap, which only tables of graphs contain."""

    rank: str
    step: str
    computing: float
    communication: float  # not overlapped with computing, without `bubble`
    free: float
    bubble: float = 0.0  # non-overlapped communication spent waiting for another pipeline stage
    overlapped: float = 0.0
    preparing: Optional[float] = None  # of `free`, before the first kernel of the step
    tail: float = 0.0
    gap: Optional[float] = None
    stage: str = ""  # ranks of the pipeline stage, if the table names them
    collective: bool = False  # whether the table has columns of collectives

    @property
    def total(self) -> float:
        """The time of the step."""
        return self.computing + self.communication + self.free + self.bubble + self.tail


class RankSteps(NamedTuple):
    """The mean step of one rank, and the number of steps averaged."""

    rank: str
    mean: Step
    number: int
    start_up: int  # steps at the beginning that were left out
    source: str
    whole: float  # the time of all steps, including the start-up

    @property
    def only_start_up(self) -> bool:
        """Whether there is only step 1 of a graph, which compiles and loads it."""
        return self.mean.gap is not None and self.number == 1 and self.mean.step == "1"

    def share(self, *names: str) -> float:
        """Return the share of the step that these parts take, 0 to 1."""
        total = self.mean.total
        return sum(getattr(self.mean, name) or 0.0 for name in names) / total if total > 0 else 0.0


def steps_of(kind: str, header: Header, rows: Iterable[Sequence[str]], rank: str) -> Iterator[Step]:
    """Yield the steps of a table of this kind; rows that are truncated or contain no number are left out."""
    read = {
        "steps": _sums,
        "cluster_steps": _sums,
        "graph_steps": _graph,
        "iterations": _iterations,
        "stage_steps": _stages,
    }[kind]
    for position, row in enumerate(rows):
        step = read(header, row, rank, position)
        if step is not None and step.total > 0:
            yield step


def _numbers(header: Header, row: Sequence[str], names: Mapping[str, Sequence[str]]) -> dict[str, Optional[float]]:
    found = {}
    for key, aliases in names.items():
        value = number(cell(row, header.find(*aliases)))
        found[key] = None if value is None else max(value, 0.0) * header.unit(*aliases)
    return found


_PARTS: Mapping[str, Sequence[str]] = {
    "computing": ("computing",),
    "communication": NOT_OVERLAPPED,
    "free": ("free",),
    "bubble": ("bubble",),
    "overlapped": ("overlapped",),
    "preparing": ("preparing",),
    "exclusive": NO_RECEIVE,
}


def _sums(header: Header, row: Sequence[str], rank: str, position: int) -> Optional[Step]:
    kind = cell(row, header.find("type"))
    if kind not in (None, "", "rank"):
        return None
    values = _numbers(header, row, _PARTS)
    computing, communication, free = values["computing"], values["communication"], values["free"]
    if computing is None or communication is None or free is None:
        return None
    bubble = min(values["bubble"] or 0.0, communication)
    name = cell(row, header.find("index")) if kind == "rank" else None
    return Step(
        rank if name is None else name,
        cell(row, header.find("step")) or "",
        computing,
        communication - bubble,
        free,
        bubble,
        values["overlapped"] or 0.0,
        values["preparing"],
    )


def _graph(header: Header, row: Sequence[str], rank: str, position: int) -> Optional[Step]:
    """Return a step of step_trace_raw; the row of means at the end (its number is `-` or 0) is not a step."""
    name = cell(row, header.find("step num")) or ""
    if name in ("-", "0", ""):
        return None
    parts = {"total": ("total",), "gap": ("iteration interval",), "body": ("fp and bp",), "tail": ("tail",)}
    values = {key: number(cell(row, header.find(*aliases))) for key, aliases in parts.items()}
    gap, body, tail = (values[key] for key in ("gap", "body", "tail"))
    if gap is None or body is None or tail is None or values["total"] is None:
        return None
    return _iteration(header, (rank, name), (gap * TICK, body * TICK, tail * TICK))


def _iteration(header: Header, names: tuple[str, str], parts: tuple[float, float, float]) -> Step:
    gap, body, tail = (max(part, 0.0) for part in parts)
    collective = any(name.startswith(("stream ", "reduce ")) for name in header.places)
    return Step(*names, body, 0.0, gap, tail=tail, gap=gap, collective=collective)


def _iterations(header: Header, row: Sequence[str], rank: str, position: int) -> Optional[Step]:
    names = {"body": ("fp to bp time",), "tail": ("iteration refresh",), "gap": ("data aug bound",)}
    values = _numbers(header, row, names)
    body, tail = values["body"], values["tail"]
    if body is None or tail is None:
        return None
    device = cell(row, header.find("device id"))
    name = cell(row, header.find("iteration id")) or ""
    return _iteration(header, (rank or device or "", name), (values["gap"] or 0.0, body, tail))


def _stages(header: Header, row: Sequence[str], rank: str, position: int) -> Optional[Step]:
    """Return a step of ascend_cluster_analyse_*: milliseconds, and no free time; waiting to receive is the bubble."""
    names = {
        "computing": ("computation time",),
        "alone": ("communication alone time",),
        "receive": ("receive alone time",),
    }
    found = {key: number(cell(row, header.find(*aliases))) for key, aliases in names.items()}
    computing, alone = found["computing"], found["alone"]
    if computing is None or alone is None:
        return None
    bubble = min(found["receive"] or 0.0, alone)
    parts = (computing * 1e3, (alone - bubble) * 1e3, 0.0, bubble * 1e3)
    return Step(rank, str(position + 1), *parts, stage=UNKNOWN_STAGE)


def mean_steps(steps: Iterable[Step], source: str) -> list[RankSteps]:
    """Return the mean step of each rank, without its start-up."""
    by_rank: dict[str, list[Step]] = {}
    for step in steps:
        by_rank.setdefault(step.rank, []).append(step)
    return [_mean(rank, own, source) for rank, own in by_rank.items()]


def _mean(rank: str, steps: Sequence[Step], source: str) -> RankSteps:
    kept = list(steps)
    if len(steps) > 1 and _starts_up(steps):
        kept = kept[1:]
    mean = kept[0]._replace(
        computing=statistics.fmean(step.computing for step in kept),
        communication=statistics.fmean(step.communication for step in kept),
        free=statistics.fmean(step.free for step in kept),
        bubble=statistics.fmean(step.bubble for step in kept),
        overlapped=statistics.fmean(step.overlapped for step in kept),
        tail=statistics.fmean(step.tail for step in kept),
        preparing=_mean_of_known(step.preparing for step in kept),
        gap=_mean_of_known(step.gap for step in kept),
    )
    return RankSteps(rank, mean, len(kept), len(steps) - len(kept), source, sum(step.total for step in steps))


def _mean_of_known(values: Iterable[Optional[float]]) -> Optional[float]:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def _starts_up(steps: Sequence[Step]) -> bool:
    """Return whether the first step is start-up: step 1 of a graph always is, others if it is far longer."""
    first, others = steps[0], steps[1:]
    if first.gap is not None:
        return first.step == "1"
    return len(others) > 1 and first.total > START_UP * statistics.median(step.total for step in others)
