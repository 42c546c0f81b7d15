"""Sum a table of kernels (kernel_details.csv, op_summary_*.csv) by type and core, in one pass over its bytes.

Such a table has a row for each kernel of every step and may have gigabytes: only the needed cells are cut from a line,
and the whole line is parsed as CSV only if a cell is quoted, or for kernels that need more cells.
"""

from __future__ import annotations

import math
import re
from functools import partial
from typing import IO, Optional, Sequence

from envtune.profile.readers.tables import LONGEST, Header, cell, header_of, number, rows_of
from envtune.records import NamedTuple

DETAILED = 20_000  # kernels whose data types and ratios are read; the others only count by type and core
LONG = 100.0  # microseconds above which the ratios of a kernel are read
VERY_LONG = 1_000.0  # above which the scalar unit is reported: short kernels always spend their time in it
MOVE_BOUND = 0.9  # share of the kernel's time in which MTE2 loads from memory
SCALAR_BOUND = 0.9  # share of the kernel's time in the scalar unit
_CUBE = re.compile(r"Conv|MatMul|Matmul|BatchMatMul", re.ASCII)
_COMMUNICATION_CORES = ("HCCL", "COMMUNICATION", "HCCL_AI_CPU")
_COLLECTIVE = re.compile(r"hcom_|hccl|Hcom", re.ASCII)
_LAST_WORD = re.compile(r"([A-Za-z][A-Za-z0-9]*?)_?\d*$")
_NONE = ("", "N/A", "NA")
_NAME, _TYPE = ("name", "op name"), ("type", "op type")
_CORE = ("accelerator core", "core type", "task type")
_DURATION, _START = ("duration", "task duration"), ("start time", "task start time")
_SCALAR = ("aic scalar ratio", "aiv scalar ratio", "scalar ratio")  # the last for NPUs without separate vector cores
CUT = 5  # digits
AT_ONCE = 16  # kernels: not more of them run at the same time on the streams of one NPU
LIMIT = 1e15  # microseconds: no kernel takes 30 years


class KernelGroup(NamedTuple):
    """Kernels of one type on one kind of core."""

    type: str
    core: str
    number: int
    total: float  # microseconds
    communicates: bool


class Kernels(NamedTuple):
    """The content of a table of kernels; times in microseconds."""

    groups: tuple[KernelGroup, ...]
    steps: frozenset[str]
    broadcasts: tuple[int, float]  # collectives of the start-up, and their time
    full_precision: float  # of matrix operators with float32 inputs
    cube: float  # of matrix operators whose data types were read
    scalar: float  # of long kernels that spend their time in the scalar unit
    moving: float  # of long kernels that spend their time moving data from memory
    dynamic: int  # kernels compiled for dynamic shapes
    span: Optional[float]  # from the first kernel's start to the last one's end; None if rows are not in order
    busy: float  # part of the span in which anything ran
    computing: float  # part of the span in which a kernel computed
    bad_rows: int
    has_types: bool
    is_rounded: bool  # the start times have lost digits: they show far too many kernels at the same time
    ratios: str  # pipe: scalar and vector ratios; memory: others only; "": none

    @property
    def total(self) -> float:
        """The time of all kernels that compute."""
        return sum(group.total for group in self.groups if not group.communicates)

    @property
    def communication(self) -> float:
        """The time of all collectives."""
        return sum(group.total for group in self.groups if group.communicates)

    def of(self, *types: str) -> tuple[int, float]:
        """Return number and time of the kernels of these types."""
        found = [group for group in self.groups if group.type in types and not group.communicates]
        return sum(group.number for group in found), sum(group.total for group in found)


class _Group:
    """The sums over kernels of one type, core and state."""

    __slots__ = (
        *("by_name", "communicates", "core", "core_cell", "detailed", "is_cube"),
        *("number", "state", "state_cell", "total", "type"),
    )

    def __init__(self, kind: str, core: str, state: str) -> None:
        self.type, self.core, self.state = kind, core, state
        self.core_cell: Optional[bytes] = None  # as in the table; None if the type is in no cell
        self.state_cell: Optional[bytes] = None
        self.by_name = kind in _NONE
        self.communicates = core in _COMMUNICATION_CORES or _COLLECTIVE.match(kind) is not None
        self.is_cube = not self.communicates and _CUBE.search(kind) is not None
        self.detailed = self.communicates or self.is_cube
        self.number, self.total = 0, 0.0


class _Sums:
    """The sums while a table is read."""

    def __init__(self, header: Header) -> None:
        self.header = header
        self.name, self.type = _known(header.find(*_NAME)), _known(header.find(*_TYPE))
        self.core, self.state = header.find(*_CORE), header.find("op state")
        self.step, self.data_types = header.find("step id"), header.find("input data types")
        self.duration, self.start = _known(header.find(*_DURATION)), _known(header.find(*_START))
        self.unit, self.start_unit = header.unit(*_DURATION), header.unit(*_START)
        places = header.places.items()
        self.ratios = tuple(place for name, place in places if name in _SCALAR)
        self.loads = header.find("aic mte2 ratio", "mte2 ratio")
        self.groups: dict[tuple[bytes, ...], _Group] = {}
        self.named: dict[str, _Group] = {}
        self.steps: set[bytes] = set()
        self.bad, self.left = 0, DETAILED
        self.full_precision = self.cube = self.scalar = self.moving = 0.0
        self.broadcasts = [0, 0.0]
        self.first = self.end = self.busy = self.computing = 0.0
        self.in_order, self.origin = True, 0.0

    @property
    def needed(self) -> int:
        """The cells at the beginning of a line that are examined."""
        places = (self.name, self.type, self.core, self.step, self.duration, self.start, self.state)
        return 1 + max(place for place in places if place is not None)

    def begin_at(self, start: bytes) -> tuple[int, bytes]:
        """Choose the first digits to cut off all starts, by the first of them; return how many and the digits."""
        digits = start.split(b".")[0].strip()
        quoted = int(digits.startswith(b'"'))
        digits = digits[quoted:]
        if len(digits) >= 12 and digits.isdigit():
            self.origin = float(digits[:CUT]) * 10 ** (len(digits) - CUT)
            return CUT + quoted, start[: CUT + quoted]
        return 0, b""

    def late(self, start: bytes) -> float:
        """Return a start parsed in full."""
        return float(start.strip(b'"')) - self.origin

    def group(self, key: tuple[bytes, ...], parts: Sequence[bytes]) -> _Group:
        """Return the group of a kernel with a new key, or whose type is only in its name."""
        found = self.groups.get(key)
        if found is None:
            kind, core, state = map(_text, key)
            found = _Group(kind, "" if self.core is None else core, "" if self.state is None else state)
            if not found.by_name:
                _, found.core_cell, found.state_cell = key
            self.groups[key] = found
        if not found.by_name:
            return found
        kind = _type_of_name(parts[self.name])
        return self.named.setdefault(kind, _Group(kind, found.core, found.state))


def _known(place: Optional[int]) -> int:
    assert place is not None  # formats.py: the table has the column
    return place


def read_kernels(header: Sequence[str], stream: IO[bytes]) -> Kernels:
    """Return the sums over the rows after the header; rows without a duration are counted and left out."""
    sums = _Sums(header_of(header))
    _read(sums, stream)
    return _result(sums)


def _read(sums: _Sums, stream: IO[bytes]) -> None:  # noqa: C901 (a call in the loop costs seconds of a large table)
    """Add every row: this loop dominates the cost of a large table, so it calls functions only for rare rows."""
    recent: dict[bytes, _Group] = {}  # the last used group of each type
    needed, type_at, duration_at, start_at = sums.needed, sums.type, sums.duration, sums.start
    core_at, state_at = (type_at if at is None else at for at in (sums.core, sums.state))
    step_at = 0 if sums.step is None else sums.step  # without steps: the first column, which rarely changes
    limit, long, last_step = LIMIT / sums.unit, LONG / sums.unit, b""
    last, end, compute_end, busy, computing = -math.inf, -math.inf, -math.inf, 0.0, 0.0
    end_cut: Optional[int] = None  # of a quoted start
    cut, origin = 0, b""  # the common prefix of all starts is not parsed: microseconds since 1970 are slow to parse
    for line in iter(partial(stream.readline, LONGEST), b""):  # lines are not longer: the rest counts as a bad row
        parts = line.split(b",", needed)
        try:
            duration, start = float(parts[duration_at]), float(parts[start_at][cut:end_cut])
        except (ValueError, IndexError):  # a quoted cell before them, or an incomplete row
            parts = _quoted(line)
            duration, start = _times(sums, parts, line)
        if not 0 <= duration < limit:
            sums.bad += duration != duration or duration >= 0
            continue
        group = recent.get(parts[type_at])
        if group is None or group.core_cell != parts[core_at] or group.state_cell != parts[state_at]:
            group = recent[parts[type_at]] = sums.group((parts[type_at], parts[core_at], parts[state_at]), parts)
            if end == -math.inf:
                cut, origin = sums.begin_at(parts[start_at])
                end_cut = -1 if origin[:1] == b'"' else None
                start = sums.first = sums.late(parts[start_at])
        group.number += 1
        group.total += duration
        if (duration >= long or group.detailed) and sums.left:
            _detail(sums, group, line, duration)
        if parts[step_at] != last_step:
            last_step = parts[step_at]
            sums.steps.add(last_step)
        if start >= end:  # nothing was running: the usual row, in order
            busy += duration
            last, end = start, start + duration
            if not group.communicates:
                computing += duration
                compute_end = end
            continue
        if start < last:
            if parts[start_at][:cut] != origin:  # the digits that are cut off have changed
                start = sums.late(parts[start_at])
            sums.in_order = sums.in_order and start >= last
        last, finish = start, start + duration
        if finish > end:  # rows are in the order in which the kernels started
            busy += duration if start >= end else finish - end
            end = finish
        if finish > compute_end and not group.communicates:
            computing += duration if start >= compute_end else finish - compute_end
            compute_end = finish
    sums.end, sums.busy, sums.computing = end, busy, computing


def _times(sums: _Sums, parts: Sequence[bytes], line: bytes) -> tuple[float, float]:
    """Return duration and start of an unusual row; -1 for a blank line, NaN for an incomplete one."""
    if not line.strip():
        return -1.0, 0.0
    try:
        duration, start = float(parts[sums.duration]), sums.late(parts[sums.start])
    except (ValueError, IndexError):
        return math.nan, 0.0
    return (duration, start) if len(parts) >= sums.needed else (math.nan, 0.0)


def _text(cell: bytes) -> str:
    """Return the text of a cell that may be quoted."""
    return cell.decode("utf-8", "replace").strip().strip('"').strip()


def _quoted(line: bytes) -> list[bytes]:
    return [part.encode("utf-8", "replace") for row in rows_of([line]) for part in row]


def _type_of_name(name: bytes) -> str:
    """Return the type of a kernel, which Level0 omits: the last word of its name."""
    text = _text(name)
    if _COLLECTIVE.match(text):
        return text.split("__")[0].rstrip("_0123456789")
    found = _LAST_WORD.search(text)
    return found[1] if found else text


def _detail(sums: _Sums, group: _Group, line: bytes, duration: float) -> None:
    """Add what is only in the cells at the end of a row."""
    sums.left -= 1
    duration *= sums.unit
    row = next(rows_of([line]), [])
    if group.communicates:
        if "broadcast" in (cell(row, sums.name) or "").lower():
            sums.broadcasts[0] += 1
            sums.broadcasts[1] += duration
        return
    _add_precision(sums, group, row, duration)
    if duration < LONG:
        return
    ratios = [number(cell(row, place)) or 0.0 for place in sums.ratios]
    if duration >= VERY_LONG and ratios and max(ratios) >= SCALAR_BOUND:
        sums.scalar += duration
    if (number(cell(row, sums.loads)) or 0.0) >= MOVE_BOUND:
        sums.moving += duration


def _add_precision(sums: _Sums, group: _Group, row: Sequence[str], duration: float) -> None:
    types = (cell(row, sums.data_types) or "").strip('"')
    if group.is_cube and types not in _NONE:
        sums.cube += duration
        names = {one.strip().replace("DT_", "") for one in types.split(";")}
        if names & {"FLOAT", "FLOAT32"} and not names & {"FLOAT16", "BF16", "BFLOAT16", "INT8"}:
            sums.full_precision += duration


def _result(sums: _Sums) -> Kernels:
    rows = [group for group in (*sums.groups.values(), *sums.named.values()) if group.number]
    groups = [KernelGroup(one.type, one.core, one.number, one.total * sums.unit, one.communicates) for one in rows]
    cube = sum(one.total for one in rows if one.is_cube) * sums.unit
    names = sums.header.places
    other = any(name.startswith(("aic ", "aiv ", "aicore ")) for name in names)
    placed = sums.in_order and math.isfinite(sums.end) and sums.unit == sums.start_unit
    span = sums.end - sums.first
    is_rounded = placed and sum(one.total for one in rows) > AT_ONCE * span
    steps = sums.steps if sums.step is not None else ()
    return Kernels(
        tuple(sorted(groups, key=lambda group: -group.total)),
        frozenset(map(_text, steps)),
        (int(sums.broadcasts[0]), sums.broadcasts[1]),
        cube * sums.full_precision / sums.cube if sums.cube else 0.0,  # extrapolated from those whose types were read
        cube,
        sums.scalar,
        sums.moving,
        sum(one.number for one in rows if one.state == "dynamic" and not one.communicates),
        span * sums.unit if placed and not is_rounded else None,
        sums.busy * sums.unit,
        sums.computing * sums.unit,
        int(sums.bad),
        any(not one.by_name for one in sums.groups.values() if not one.communicates),
        is_rounded,
        "pipe" if sums.ratios else "memory" if other else "",
    )
