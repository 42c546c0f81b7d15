"""Read tables of sums written by profilers: op_statistic, api_statistic, aicore_intermediate and aicpu_intermediate."""

from __future__ import annotations

from typing import Iterable, Iterator, Sequence

from envtune.profile.readers.kernels import KernelGroup
from envtune.profile.readers.tables import Header, cell, number
from envtune.records import NamedTuple

_TYPE, _CORE = ("op type", "kernel type"), ("core type", "task type")
_TOTAL = ("total time", "execution time", "task time")
_COMMUNICATION = ("HCCL", "COMMUNICATION")


class Api(NamedTuple):
    """One host API: how often it was called, and how long all calls and the longest one took (us)."""

    name: str
    calls: int
    total: float
    longest: float


def read_groups(header: Header, rows: Iterable[Sequence[str]]) -> Iterator[KernelGroup]:
    """Yield the rows of op_statistic (microseconds) and aicore_intermediate_*_type (milliseconds)."""
    milliseconds = header.find("execution frequency") is not None
    unit = header.unit(*_TOTAL, default="ms" if milliseconds else "us")
    for row in rows:
        kind, total = cell(row, header.find(*_TYPE)), number(cell(row, header.find(*_TOTAL)))
        count = number(cell(row, header.find("count", "execution frequency")))
        if kind and total is not None and total >= 0:
            core = cell(row, header.find(*_CORE)) or ""
            communicates = core in _COMMUNICATION or kind.startswith("hcom_")
            yield KernelGroup(kind, core, int(count or 0), total * unit, communicates)


def read_apis(header: Header, rows: Iterable[Sequence[str]]) -> Iterator[Api]:
    """Yield the rows of api_statistic."""
    unit, longest = header.unit("time"), header.unit("max")
    for row in rows:
        name, total = cell(row, header.find("api name")), number(cell(row, header.find("time")))
        count, most = number(cell(row, header.find("count"))), number(cell(row, header.find("max")))
        if name and total is not None and count is not None:
            yield Api(name, int(count), total * unit, (most or 0.0) * longest)


def read_aicpu(header: Header, rows: Iterable[Sequence[str]]) -> Iterator[KernelGroup]:
    """Yield the rows of aicpu_intermediate_* (milliseconds) except those that only wait for the data queue."""
    for row in rows:
        kind, total = cell(row, header.find("kernel type")), number(cell(row, header.find("total time")))
        if kind and total is not None and kind not in ("InitData", "GetNext", "EndOfSequence", "InitDataSetQueue"):
            yield KernelGroup(kind, "AI_CPU", 1, total * 1e3, False)
