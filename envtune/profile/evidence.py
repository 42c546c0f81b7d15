"""Where the time of a step goes: measured by the rules, as share of the step if the step is known."""

from __future__ import annotations

import re
from typing import Iterator, Optional

from envtune.messages import Literal, Message, Text, enumerated
from envtune.profile.readers.communication import USUAL
from envtune.profile.readers.compiling import Compiling
from envtune.profile.readers.dataset import BUSY, Pipeline
from envtune.profile.readers.kernels import KernelGroup
from envtune.profile.rules import RULES, Rule
from envtune.profile.unit import Unit
from envtune.records import NamedTuple

_COPIES = ("TensorMove", "ViewCopy", "AsStrided", "Transpose", "StridedSlice", "StridedSliceD", "Contiguous")
_FRAMEWORK_COPIES = ("D2DCopywithStreamSynchronize", "PTCopy", "format_contiguous")
_LAYOUT = ("TransData", "Five2Four", "Four2Five")
_AICPU = ("AI_CPU", "AICPU", "HCCL_AI_CPU")
_COMPILE = re.compile(r"aclopCompile\w*", re.ASCII)
_SYNCHRONIZE = re.compile(r"(?:aclrt|rt)?(?:Synchronize(?:Device|Stream)|DeviceSynchronize|StreamSynchronize)\w*")
_OPTIMIZERS = ("SGD", "Adam", "AdamW", "Adadelta", "RMSprop", "Lamb")  # each has an NpuFused version
OF_KERNELS = 0.08  # share of the kernels above which advice is given
# Thresholds for a remark if the step's time is unknown.
_SHORT = 1_000.0  # microseconds
_WAITS = 10_000.0
_FEW_CALLS = 5
SMALL_SHARE = 0.20  # share of the transit time in packets that do not fill the link (packet.yaml)
_TRANSIT = 0.20  # of the collectives' time; below it, ranks wait for each other and no link is slow
_SLOW_LINK = 0.8  # of the usual bandwidth
_LARGE = 100.0  # MB above which a link's bandwidth is meaningful


class Evidence(NamedTuple):
    """One thing that costs time in a rank's steps; `share` is its share of `of`, None if it cannot be computed."""

    rule: str
    rank: str
    share: Optional[float]
    of: str  # step | kernels | "": what the share is of
    detail: Text
    advice: Text
    major: bool
    ranks: tuple[str, ...] = ()  # all ranks to which it applies

    @property
    def title(self) -> Text:
        """What costs time."""
        return Message(RULES[self.rule].title)

    @property
    def source(self) -> str:
        """The source of the rule."""
        return RULES[self.rule].source


def evidence_of(unit: Unit) -> list[Evidence]:
    """Return what costs time in this rank's steps, the largest share first, shares of kernels only at the end."""
    found = [one for measure in _MEASURES for one in measure(unit)]
    return sorted(found, key=lambda one: (not one.major, one.of != "step", -(one.share or 0.0)))


def _of_time(unit: Unit, rule: str, time: float, detail: Text, **fields: str) -> Iterator[Evidence]:
    """Yield evidence for a time in microseconds, as share of the step or, without one, of the kernels."""
    share, of = unit.share(time)
    yield from _of_share(unit, rule, share, of, detail, **fields)


def _of_calls(unit: Unit, rule: str, time: float, detail: Text) -> Iterator[Evidence]:
    """Yield evidence for a time on the host, which is not a share of the kernels."""
    share = None if unit.base is None else time / unit.base
    yield from _of_share(unit, rule, share, "" if share is None else "step", detail)


def _of_share(
    unit: Unit, rule: str, share: Optional[float], of: str, detail: Text, **fields: str
) -> Iterator[Evidence]:
    row = RULES[rule]
    if share is not None and (share < row.minor or share <= 0):
        return
    major = share is None or share >= _limit(row, of)
    yield Evidence(rule, unit.label, share, of, detail, Message(row.advice, **fields), major)


def _limit(row: Rule, of: str) -> float:
    """Return the share above which advice is given; it is higher for kernels, as they are not the whole step."""
    return row.major if of != "kernels" else max(row.major, OF_KERNELS)


def _count(count: int, time: float) -> Text:
    return Message("{count} times, {time} ms", count=count, time=f"{time / 1e3:.1f}")


def _names(groups: list[KernelGroup]) -> Text:
    return enumerated(dict.fromkeys(group.type for group in groups[:3]))


def _parts(unit: Unit) -> Iterator[Evidence]:
    """Yield what the table of steps says itself."""
    for steps in unit.steps:
        mean, own = steps.mean, unit.of_rank(steps)
        if steps.only_start_up:
            continue
        if mean.gap is None:
            free, preparing = steps.share("free"), steps.share("preparing")
            yield from _of_share(own, "bubble", steps.share("bubble"), "step", _milliseconds(mean.bubble))
            yield from _of_share(own, "free", free, "step", _milliseconds(mean.free))
            yield from _of_share(own, "preparing", preparing, "step", _milliseconds(mean.preparing or 0.0))
        else:
            yield from _of_share(own, "gap", steps.share("free"), "step", _milliseconds(mean.gap))
            yield from _of_share(own, "tail", steps.share("tail"), "step", _milliseconds(mean.tail))


def _milliseconds(time: float) -> Text:
    return Message("{time} ms in each step", time=f"{time / 1e3:.1f}")


def _host_calls(unit: Unit) -> Iterator[Evidence]:
    yield from _compilation(unit)
    waits = [api for api in unit.apis if _SYNCHRONIZE.fullmatch(api.name) and api.calls >= _FEW_CALLS]
    if waits:  # a single long wait is for a collective or the step's end: it does not count
        api = max(waits, key=lambda one: one.total - one.longest)
        rest = api.total - api.longest
        if unit.base is not None or rest >= _WAITS:
            detail = Message("{name} {times}", name=api.name, times=_count(api.calls, api.total))
            yield from _of_calls(unit, "synchronize", rest, detail)


def _compilation(unit: Unit) -> Iterator[Evidence]:
    """Yield what is compiled after the first step; if the step is unknown, everything that is compiled."""
    compiled = [api for api in unit.apis if _COMPILE.fullmatch(api.name)]
    total, count = sum(api.total for api in compiled), sum(api.calls for api in compiled)
    trace, placed = unit.trace, _placed(unit, count)
    if placed is not None:
        yield from _compiled_later(unit, placed)
    elif compiled:
        if unit.base is not None or total >= _SHORT:
            yield from _of_calls(unit, "compile", total, _count(count, total))
    elif trace is not None and trace.compiles:
        share = trace.compile / trace.steps if trace.steps else None
        yield from _of_share(unit, "compile", share, "step", _count(trace.compiles, trace.compile))


def _compiled_later(unit: Unit, placed: Compiling) -> Iterator[Evidence]:
    if not placed.later_calls:
        return
    times = _count(placed.later_calls, placed.later)
    detail = Message("{times}, after the first step", times=times) if placed.has_first else times
    share = placed.later / placed.steps if placed.steps > 0 else None
    yield from _of_share(unit, "compile", share, "" if share is None else "step", detail)


def _placed(unit: Unit, count: int) -> Optional[Compiling]:
    """Return in which steps operators are compiled; None if the source lacks some of `count` compilations."""
    known = [unit.compiling, None if unit.trace is None else unit.trace.compiling]
    found = [one for one in known if one is not None and one.calls]
    best = max(found, key=lambda one: one.calls, default=None)
    return best if best is not None and (best.later_calls or best.calls >= count) else None


def _loading(unit: Unit) -> Iterator[Evidence]:
    trace = unit.trace
    if trace is None or not trace.steps:
        return
    loader = "_MultiProcessingDataLoaderIter" if trace.multiprocess else "_SingleProcessDataLoaderIter"
    detail = Message("{name} {times}", name=loader, times=_count(trace.loaders, trace.loader))
    yield from _of_share(unit, "loader", trace.loader / trace.steps, "step", detail)
    if trace.optimizer_name in _OPTIMIZERS:
        detail = Message(
            "Optimizer.step of {name}: {time} ms", name=trace.optimizer_name, time=f"{trace.optimizer / 1e3:.1f}"
        )
        share = trace.optimizer / trace.steps
        yield from _of_share(unit, "optimizer", share, "step", detail, optimizer=trace.optimizer_name)


def _kernels(unit: Unit) -> Iterator[Evidence]:
    rows = (
        ("layout", [group for group in unit.groups if group.type in _LAYOUT]),
        ("cast", [group for group in unit.groups if group.type == "Cast"]),
        ("copies", [group for group in unit.groups if group.type in (*_COPIES, *_FRAMEWORK_COPIES)]),
        ("aicpu", [group for group in unit.groups if group.core in _AICPU]),
    )
    for rule, groups in rows:
        total = sum(group.total for group in groups)
        if groups and total > 0:
            detail = Message(
                "{names} {times}", names=_names(groups), times=_count(sum(group.number for group in groups), total)
            )
            yield from _of_time(unit, rule, total, detail)
    each = [group for group in unit.groups if group.type.startswith("Foreach")]
    has_trace = unit.trace is not None and unit.trace.optimizer_name
    if each and not has_trace:
        total = sum(group.total for group in each)
        detail = Message("{names} {times}", names=_names(each), times=_count(sum(g.number for g in each), total))
        yield from _of_time(unit, "optimizer", total, detail, optimizer="...")
    if unit.full_precision > 0:
        yield from _of_time(unit, "precision", unit.full_precision, _milliseconds_in_all(unit.full_precision))
    if unit.scalar > 0:
        yield from _of_time(unit, "scalar", unit.scalar, _milliseconds_in_all(unit.scalar))


def _milliseconds_in_all(time: float) -> Text:
    return Message("{time} ms in the profile", time=f"{time / 1e3:.1f}")


def _collectives(unit: Unit) -> Iterator[Evidence]:
    found = unit.collectives
    if found is None or found.elapsed <= 0:
        return
    communication = unit.communication_share
    if found.transit < _TRANSIT * found.elapsed or (communication is not None and communication < 0.10):
        return
    for link in found.transports:
        bandwidth = link.bandwidth or 0.0
        detail = Message(
            "{name}: {size} MB at {bandwidth} GB/s",
            name=link.name,
            size=f"{link.size:.0f}",
            bandwidth=f"{bandwidth:.1f}",
        )
        if link.small >= SMALL_SHARE * link.time and link.time >= 0.5 * found.transit:
            yield from _of_share(unit, "packets", None, "", detail)
        elif link.name in USUAL and link.size >= _LARGE and bandwidth < _SLOW_LINK * USUAL[link.name]:
            yield from _of_share(unit, "link", None, "", detail)


def _data(unit: Unit) -> Iterator[Evidence]:
    for pipeline in unit.pipelines[:1]:
        slow = pipeline.bottleneck
        if slow is not None:
            yield from _of_share(unit, "dataset", None, "", _fill(pipeline), operation=f"{slow.name} ({slow.number})")
    if unit.queue is not None and 2 * unit.queue.empty >= unit.queue.records:
        detail = Message("empty in {empty} of {records} records", empty=unit.queue.empty, records=unit.queue.records)
        yield from _of_share(unit, "queue", None, "", detail)


def _processors(unit: Unit) -> Iterator[Evidence]:
    if unit.idle is not None and unit.idle <= BUSY:
        detail = Message("{share} idle while data is prepared", share=f"{unit.idle:.0%}")
        yield from _of_share(unit, "processors", None, "", detail)


def _fill(pipeline: Pipeline) -> Text:
    parts = [f"{one.name} {one.fill:.0%}" for one in pipeline.operations if one.fill is not None]
    return Message("fill levels of the queues: {levels}", levels=enumerated([Literal(part) for part in parts]))


_MEASURES = (_parts, _host_calls, _loading, _kernels, _collectives, _data, _processors)
