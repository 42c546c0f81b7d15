"""What to know about a profile before its numbers are used: how it was recorded, what it cannot tell."""

from __future__ import annotations

import os
from typing import Iterator, Optional, Sequence

from envtune.messages import Literal, Message, Text, enumerated, plural
from envtune.profile.evidence import SMALL_SHARE, Evidence
from envtune.profile.missing import Missing
from envtune.profile.read import Reading
from envtune.profile.readers.communication import Transport
from envtune.profile.readers.kernels import KernelGroup, Kernels
from envtune.profile.readers.layouts import TABLES
from envtune.profile.readers.steps import RankSteps
from envtune.profile.unit import Unit

_SHOWN = 6  # columns, and ranges of missing ranks, that are named
FEW_KERNELS = 50  # with fewer, the order of kernels means nothing
_MUCH = 0.08  # share of the kernels above which their limit is reported
_MATTERS = 0.30  # share of communication in the step above which its hidden part is reported
_START_UP = 50_000.0  # microseconds of a broadcast, which waits for ranks that start later
_TRANSIT = 0.20  # of the collectives' time; below it, ranks wait for each other
_BY_DATA = ("NonZero", "Unique", "MaskedSelect", "Where")


def notes_on(units: Sequence[Unit], evidence: Sequence[Evidence]) -> tuple[Text, ...]:
    """Return the notes on all ranks, without duplicates."""
    seen: dict[str, Text] = {}
    compiled = {one.rank for one in evidence if one.rule == "compile" and one.major}
    for unit in units:
        for measure in (_on_steps, _on_data, _on_trace, _on_kernels, _on_recording, _on_collectives):
            for note in measure(unit):
                seen.setdefault(note.en, note)
        for note in _on_states(unit, unit.label in compiled):
            seen.setdefault(note.en, note)
    return tuple(seen.values())


def notes_on_files(reading: Reading) -> Iterator[Text]:
    """Yield what was truncated, and the unknown columns of each kind of table."""
    yield from reading.remarks
    titles = {layout.kind: layout.title for layout in TABLES}
    for kind, columns in reading.columns.items():
        shown = [*columns][:_SHOWN]
        yield plural(
            "{title}: the column {columns} is unknown and was not used",
            "{title}: the columns {columns} are unknown and were not used",
            len(columns),
            title=titles[kind],
            columns=enumerated(shown),
        )


def notes_on_missing(missing: Missing) -> Iterator[Text]:
    """Yield which ranks are missing."""
    if not missing.ranks:
        return
    ranks = enumerated([*missing.ranks[:_SHOWN], "..."] if len(missing.ranks) > _SHOWN else missing.ranks)
    if missing.size:
        yield Message(
            "The job has {size} ranks; missing ranks: {ranks}. Whether one of them is slow is unknown.",
            size=missing.size,
            ranks=ranks,
        )
    else:
        yield Message("Missing ranks: {ranks}. Whether one of them is slow is unknown.", ranks=ranks)


def starts_up(kernels: Kernels) -> bool:
    """Return whether the kernels are those of the start-up, with broadcasts that wait for ranks starting later."""
    count, time = kernels.broadcasts
    return count > 0 and time >= _START_UP * count


def _on_steps(unit: Unit) -> Iterator[Text]:
    for steps in unit.steps:
        if steps.only_start_up:
            yield Message("rank {rank}: only step 1, which is start-up: no verdict from it", rank=steps.rank)
        elif steps.start_up:
            yield Message("The first step is start-up and is not counted.")
    hidden = _hidden(unit.steps)
    if hidden is not None:
        yield Message("{share} of the communication overlaps with computing.", share=f"{hidden:.0%}")


def _hidden(ranks: Sequence[RankSteps]) -> Optional[float]:
    """Return how much of the communication is hidden by computing; None if communication does not matter."""
    known = [one.mean for one in ranks if one.mean.overlapped > 0 and one.share("communication") >= _MATTERS]
    whole = sum(mean.overlapped + mean.communication + mean.bubble for mean in known)
    return sum(mean.overlapped for mean in known) / whole if known and whole > 0 else None


def _on_data(unit: Unit) -> Iterator[Text]:
    for pipeline in unit.pipelines[:1]:
        if pipeline.keeps_up:
            yield Message(
                "All queues before {name} are full, so more workers before it do not help.", name=pipeline.last
            )


def _on_trace(unit: Unit) -> Iterator[Text]:
    trace, name = unit.trace, os.path.basename(unit.name)
    if trace is None:
        return
    if trace.events and not trace.steps:
        yield Message("{name}: no step in this trace, so no shares can be computed", name=name)
    if trace.events and not trace.device and not unit.kernels:
        yield Message("{name}: no device data in this trace", name=name)
    if not trace.complete:
        yield Message("{name}: the trace is truncated; the part before the cut was read", name=name)


def _on_kernels(unit: Unit) -> Iterator[Text]:
    if unit.operators and not unit.base:
        yield Message("The ratios of op_statistic cover kernels only, not communication and free time.")
    for kernels in unit.kernels:
        count = sum(group.number for group in kernels.groups)
        if kernels.bad_rows:
            yield plural(
                "{count} row of kernels is incomplete and was left out",
                "{count} rows of kernels are incomplete and were left out",
                kernels.bad_rows,
            )
        if 0 < count < FEW_KERNELS:
            yield plural("Only {count} kernel: too few to compare", "Only {count} kernels: too few to compare", count)
        if count >= FEW_KERNELS and kernels.is_rounded:
            yield Message("The start times of the kernels are rounded, so their idle time is unknown.")
        if count:
            yield from _on_columns(kernels)
            yield from _on_rows(kernels)


def _on_columns(kernels: Kernels) -> Iterator[Text]:
    if not kernels.has_types:
        yield Message("Level0 does not record types, cores and data types of kernels; profile with Level1 to see them.")
    if kernels.ratios == "memory":
        yield Message("The kernels were recorded without PipeUtilization, so what limits a single kernel is unknown.")


def _on_rows(kernels: Kernels) -> Iterator[Text]:
    computing: list[KernelGroup] = [group for group in kernels.groups if not group.communicates]
    if kernels.moving >= _MUCH * kernels.total > 0:
        yield Message(
            "Kernels that take {time} ms in total load data for at least 90% of their time (MTE2): they are "
            "memory-bound.",
            time=f"{kernels.moving / 1e3:.1f}",
        )
    if starts_up(kernels):
        yield Message(
            "{count} broadcasts ({time} ms in total) belong to the start-up, not to a step.",
            count=kernels.broadcasts[0],
            time=f"{kernels.broadcasts[1] / 1e3:.0f}",
        )
    names = [group.type for group in computing if group.type in _BY_DATA]
    if names:
        yield Message("{names}: the size of the result depends on the data (dynamic shapes)", names=enumerated(names))


def _on_states(unit: Unit, is_compiled: bool) -> Iterator[Text]:
    """Yield what the states of the kernels say if operators are compiled, or if nothing else tells."""
    is_unknown = not unit.apis and unit.trace is None and unit.compiling is None
    for kernels in unit.kernels if is_compiled or is_unknown else ():
        computing = sum(group.number for group in kernels.groups if not group.communicates)
        if not computing or kernels.dynamic != computing:
            continue
        if is_compiled:
            yield Message("All kernels have the state dynamic: they were compiled for shapes that may change.")
        else:
            yield Message(
                "All kernels have the state dynamic: they were compiled for shapes that may change. Whether operators "
                "are compiled during the training is unknown without api_statistic.csv."
            )


def _on_recording(unit: Unit) -> Iterator[Text]:
    found = unit.settings
    if found is not None and found.costly:
        yield Message(
            "Recorded with {options}, which make every step longer: compare shares, not durations.",
            options=enumerated(found.costly),
        )


def _on_collectives(unit: Unit) -> Iterator[Text]:
    found = unit.collectives
    if found is not None and found.elapsed > 0 and found.transit < _TRANSIT * found.elapsed:
        yield Message(
            "Data moves in {share} of the collectives' time ({links}): ranks wait for each other, the network is not "
            "the cause.",
            share=f"{found.transit / found.elapsed:.0%}",
            links=enumerated([_link(link) for link in found.transports if link.bandwidth is not None]),
        )


def _link(link: Transport) -> Text:
    speed = f"{link.name} {link.bandwidth:.1f} GB/s"
    if link.small >= SMALL_SHARE * link.time:
        return Message("{link} in small packets", link=speed)
    return Literal(speed)
