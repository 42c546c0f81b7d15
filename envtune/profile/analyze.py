"""From profiles to a report: one line for each rank, the verdict, the slow rank, what costs time, and notes."""

from __future__ import annotations

import os
from typing import Callable, Iterator, Mapping, Optional, Sequence

from envtune.messages import Message, Text, enumerated
from envtune.profile.evidence import Evidence, evidence_of
from envtune.profile.kinds import kinds_of, named
from envtune.profile.missing import Missing, missing_ranks
from envtune.profile.notes import FEW_KERNELS, notes_on, notes_on_files, notes_on_missing, starts_up
from envtune.profile.read import Reading, Unread, read_profiles
from envtune.profile.readers.steps import RankSteps, Step
from envtune.profile.unit import Unit
from envtune.profile.verdict import (
    DATA_ALONE,
    Bound,
    RankVerdict,
    SlowRank,
    job_verdict,
    rank_verdict,
    slow_rank,
)
from envtune.records import NamedTuple

# Of several kinds of profiles, the verdict of one with a limit goes first.
_LIMITS = (Bound.DATA, Bound.HOST, Bound.COMMUNICATION, Bound.BALANCED, Bound.COMPUTE, Bound.UNKNOWN)


class KindReport(NamedTuple):
    """The result for the ranks of one profiler; `profiler` is empty if nothing names it."""

    profiler: str
    ranks: tuple[RankVerdict, ...]
    bound: Bound
    likely: bool
    slow: Optional[SlowRank]
    missing: Missing


class ProfileReport(NamedTuple):
    """The result for all profiles; with several profilers, the verdict is that of a kind with a limit."""

    ranks: tuple[RankVerdict, ...]
    bound: Bound
    likely: bool  # the verdict is not based on a table of steps, or is based on a slow rank while ranks are missing
    slow: Optional[SlowRank]
    evidence: tuple[Evidence, ...]  # of all ranks, without duplicates
    notes: tuple[Text, ...]
    unread: tuple[Unread, ...]
    files: int
    noted: Optional[tuple[str, Mapping[str, str]]]  # the file and the job's variables noted by its profiler
    kinds: tuple[KindReport, ...]  # empty if no step is known


def profile(paths: Sequence[str], progress: Optional[Callable[[str], None]] = None) -> ProfileReport:
    """Read the profiles below these paths; raises OSError for a path that does not exist."""
    return report_of(read_profiles(paths, progress))


def report_of(reading: Reading) -> ProfileReport:
    """Return the report of what was read."""
    units = _merged(reading)
    _name(units)
    estimated = _estimate(units)
    kinds = [_kind(profiler, own, estimated) for profiler, own in kinds_of(units).items()]
    first = min(kinds, key=lambda kind: _LIMITS.index(kind.bound), default=None)
    evidence = [one for unit in units for one in evidence_of(unit)]
    bound, likely = (first.bound, first.likely) if first is not None else (Bound.UNKNOWN, False)
    if bound is Bound.UNKNOWN:
        bound = _without_steps(units, evidence)
        likely = bound is not Bound.UNKNOWN
    slow = [kind.slow for kind in kinds if kind.slow is not None]
    ranks = [one for kind in kinds for one in kind.ranks]
    return ProfileReport(
        tuple(sorted(ranks, key=lambda one: _rank_order(one.steps.rank))),
        bound,
        likely,
        max(slow, key=lambda one: one.excess, default=None),
        tuple(_same_once(evidence, kinds)),
        (*notes_on_files(reading), *_notes_on_kinds(kinds), *notes_on(units, evidence)),
        tuple(reading.unread),
        reading.files,
        _noted(units),
        tuple(kinds),
    )


def _kind(profiler: str, units: Sequence[Unit], estimated: bool) -> KindReport:
    """Return the report of the ranks of one profiler, which are compared with each other."""
    verdicts = [rank_verdict(steps, _loader(unit)) for unit in units for steps in unit.steps]
    ordered = sorted(verdicts, key=lambda one: _rank_order(one.steps.rank))
    missing = missing_ranks(units)
    slow = slow_rank([one.steps for one in ordered])
    if slow is not None and missing.ranks:
        slow = slow._replace(certain=False)
    likely = estimated or (slow is not None and not slow.certain)
    return KindReport(profiler, tuple(ordered), job_verdict(ordered, slow), likely, slow, missing)


def _notes_on_kinds(kinds: Sequence[KindReport]) -> Iterator[Text]:
    if len(kinds) > 1:
        names = enumerated([named(kind.profiler) for kind in kinds])
        yield Message(
            "The profiles are of several kinds ({names}): their ranks are not compared with each other.", names=names
        )
    for kind in kinds:
        yield from notes_on_missing(kind.missing)


def _rank_order(rank: str) -> tuple[int, str]:
    return (int(rank), "") if rank.isdecimal() else (1 << 30, rank)


def _merged(reading: Reading) -> list[Unit]:
    """Return the units; a table of several ranks counts if the ranks have no tables of their own."""
    units = list(reading.units.values())
    own = any(unit.steps for unit in units)
    return units if own else [*reading.clusters[:1], *units]


def _name(units: Sequence[Unit]) -> None:
    """Give every unit its name for reports: its rank if that is unique, else its directory."""
    ranks = [unit.rank for unit in units if unit.rank is not None]
    for unit in units:
        rank = unit.rank
        plain = os.path.basename(unit.name.partition("#")[0].rstrip("/")) or unit.name
        if rank is not None and ranks.count(rank) == 1:
            unit.label = rank
        elif len(units) == 1 and rank is None and len(unit.steps) <= 1:
            unit.label = "0"
        else:
            unit.label = plain if rank is None else f"{plain}:{rank}"
        if len(unit.steps) == 1:
            unit.steps = [unit.steps[0]._replace(rank=unit.label)]


def _loader(unit: Unit) -> Optional[float]:
    trace = unit.trace
    return trace.loader / trace.steps if trace is not None and trace.steps > 0 else None


def _estimate(units: Sequence[Unit]) -> bool:
    """Derive steps for units without a table of steps from the order of their kernels or a trace of graphs."""
    if any(unit.steps for unit in units):
        return False
    made = False
    for unit in units:
        steps = _of_graphs(unit) or _of_kernels(unit)
        if steps is not None:
            unit.steps = [steps]
            made = True
    return made


def _of_graphs(unit: Unit) -> Optional[RankSteps]:
    trace = unit.trace
    if trace is None or trace.body + trace.tail <= 0:
        return None
    count = max(trace.step_count, 1)
    body, tail = trace.body / count, trace.tail / count
    step = Step(unit.label, "", body, 0.0, 0.0, tail=tail, gap=0.0)
    return RankSteps(unit.label, step, count, 0, unit.name, trace.body + trace.tail)


def _of_kernels(unit: Unit) -> Optional[RankSteps]:
    if len(unit.kernels) != 1:
        return None
    found = unit.kernels[0]
    kernels = sum(group.number for group in found.groups)
    if found.span is None or found.span <= 0 or kernels < FEW_KERNELS or starts_up(found):
        return None
    waited = found.busy - found.computing
    hidden = max(found.communication - waited, 0.0)
    step = Step(unit.label, "", found.computing, waited, found.span - found.busy, overlapped=hidden)
    return RankSteps(unit.label, step, max(len(found.steps), 1), 0, unit.name, found.span)


def _without_steps(units: Sequence[Unit], evidence: Sequence[Evidence]) -> Bound:
    """Return the verdict if no step is known: data if the loader or the queues show it, else none."""
    if any((_loader(unit) or 0.0) >= DATA_ALONE for unit in units):
        return Bound.DATA
    starved = any(pipeline.starved for unit in units for pipeline in unit.pipelines)
    empty = any(one.rule == "queue" for one in evidence)
    return Bound.DATA if starved or empty else Bound.UNKNOWN


def _same_once(evidence: Sequence[Evidence], kinds: Sequence[KindReport]) -> Iterator[Evidence]:
    """Yield each item once per kind, from the rank where it costs most; the largest share of the step first."""
    several = {one.steps.rank: kind.profiler for kind in kinds for one in kind.ranks} if len(kinds) > 1 else {}
    by_rule: dict[tuple[str, str], list[Evidence]] = {}
    for one in evidence:
        by_rule.setdefault((several.get(one.rank, ""), one.rule), []).append(one)
    worst = [
        (max(group, key=lambda one: (one.major, one.share or 0.0)), [one.rank for one in group])
        for group in by_rule.values()
    ]
    ordered = sorted(worst, key=lambda row: (not row[0].major, row[0].of != "step", -(row[0].share or 0.0)))
    for one, ranks in ordered:
        yield one._replace(ranks=tuple(dict.fromkeys(sorted(ranks, key=_rank_order))))


def _noted(units: Sequence[Unit]) -> Optional[tuple[str, Mapping[str, str]]]:
    for unit in units:
        if unit.metadata is not None and unit.metadata.variables is not None:
            return unit.metadata_file, unit.metadata.variables
    return None
