"""The output of `npu-smi info`, parsed by header names and column separators.

Layouts seen in published outputs: 1.9 and 21.0 on 910A (no Hugepages column), 21.0.4 on 910A, 21.0.3-25.x on
310 and 310P (`Chip Device`), 23.0-25.x on 910A and 910B, A3 (`Chip Phy-ID`, two chips per NPU, power `-`), 26.0 (wider,
with `Process id in container`), 25.6 on 950 (`NPU ID` in a separate cell). From 23.0 on there is a process table.
A truncated or wrapped output is reported in `incomplete`, never interpreted as a smaller host.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Mapping, Optional, Sequence

from envtune.messages import Message, Text
from envtune.ranges import checked_int
from envtune.records import NamedTuple

PROCESS_TABLE_SINCE = 23  # major version of npu-smi; older ones print the devices only

_NAME = re.compile(r"NPU ID|NPU Util\(%\)|Process id in container|Process id|Process name|Process memory\S*|\S+", re.I)
_IDLE = re.compile(r"No running processes found in NPU\s+([0-9]{1,9})\b", re.I)
_VERSION = re.compile(r"Version:\s*(\S+)", re.I)
_RETURNED = re.compile(r"\bret(?:urn code)?(?:\s+is|\s*=)\s*\(?(-\d+)")
_LIBRARY = re.compile(r"error while loading shared libraries:\s*(\S+?):")
_COLUMNS: Mapping[str, str] = {
    "npu id": "npu",
    "phy-id": "node",
    "device": "node",
    "bus-id": "bus",
    "process id in container": "inner",
    "process id": "pid",
    "process name": "process",
}
_STEMS = ("power", "temp", "hugepages", "memory", "hbm", "process id in container", "process id", "process name")


class MemoryUsage(NamedTuple):
    """Used of total: MB for memory, pages for huge pages."""

    used: int
    total: int


class NpuDevice(NamedTuple):
    """One chip; power in W, temperature in C. `node` is N of /dev/davinciN if a column gives it (Phy-ID, Device)."""

    npu: int
    chip: int
    node: Optional[int]
    name: str
    health: str
    bus: str = ""  # PCI address in lower case, empty if the table has NA
    power: Optional[float] = None
    temp: Optional[float] = None
    memory: Optional[MemoryUsage] = None
    hbm: Optional[MemoryUsage] = None
    hugepages: Optional[MemoryUsage] = None
    aicore: Optional[float] = None  # percent
    raw: str = ""  # its lines in the table


class NpuProcess(NamedTuple):
    """One row of the process table: `pid` in the host's numbering, `inner` in the container's; memory in MB."""

    npu: int
    chip: int
    pid: int
    name: str
    memory: Optional[int] = None
    inner: Optional[int] = None
    raw: str = ""


class NpuTable(NamedTuple):
    """Both tables: `incomplete` is what is missing of the devices, `without_processes` NPUs missing in the second."""

    version: str
    devices: tuple[NpuDevice, ...]
    processes: tuple[NpuProcess, ...]
    without_processes: tuple[int, ...]
    incomplete: Optional[Text] = None
    truncated: bool = False  # the end of this version's output is missing

    def node(self, device: NpuDevice) -> Optional[int]:
        """Return N of the device's /dev/davinciN; without a column for it the NPU id, if every NPU has one chip."""
        if device.node is not None:
            return device.node
        single = len({d.npu for d in self.devices}) == len(self.devices)
        return device.npu if single else None


class Failure(NamedTuple):
    """Why there is no table: a return code or a word, what it means, and whether a missing privilege can cause it."""

    code: str
    meaning: Text
    needs_privilege: bool = False


@dataclass
class _State:
    """The state of parsing after the rows read so far."""

    version: str = ""
    section: str = ""  # "", devices, processes
    upper: Sequence[Sequence[str]] = ()
    lower: Sequence[Sequence[str]] = ()
    pending: Optional[dict[str, str]] = None
    closed: bool = False  # the last line of the section was a border
    devices: list[NpuDevice] = field(default_factory=list)
    processes: list[NpuProcess] = field(default_factory=list)
    reported: set[int] = field(default_factory=set)  # NPUs in the process table
    broken: dict[str, str] = field(default_factory=dict)  # section -> the line that could not be parsed


def parse_info(text: str) -> NpuTable:
    """Return the tables of `npu-smi info`; what is missing is in `incomplete` and `without_processes`. Never raises."""
    state = _State()
    for line in text.lstrip("\ufeff").splitlines():
        line = line.strip()
        if line[:1] in ("+", "|") and not line.strip("+-=| "):
            _border(state, line)
        elif line.startswith("|") and line.endswith("|") and len(line) > 1:
            _row(state, line, [cell.strip() for cell in line[1:-1].split("|")])
        elif line.startswith("|") or (line and state.pending is not None):
            state.broken.setdefault(state.section, line)
            state.closed = False
    _end_section(state)
    return _table(state)


def _border(state: _State, line: str) -> None:
    if state.pending is not None and "=" in line:
        state.broken.setdefault("devices", line)
        state.pending = None
    state.closed = True


def _row(state: _State, line: str, cells: list[str]) -> None:
    version = _version(line)
    header = [[_column(name) for name in _NAME.findall(cell)] for cell in cells]
    names = _flat(header)
    if version and not state.section:
        state.version = version
    elif names[:1] == ["npu"] and "pid" in names:
        _end_section(state)
        state.section, state.upper, state.lower, state.closed = "processes", header, (), False
    elif names[:1] == ["npu"] and "health" in names:
        state.section, state.upper, state.lower = "devices", header, ()
    elif state.section == "devices" and not state.devices and state.pending is None and "bus" in names:
        state.lower = header
    elif state.section:
        state.closed = False
        (_device_row if state.section == "devices" else _process_row)(state, line, cells)


def _version(line: str) -> str:
    """Return the version in `npu-smi 23.0.3   Version: 23.0.3`, empty for other lines."""
    start = re.search(r"npu-smi\s+\S", line, re.I)
    version = _VERSION.search(line, start.end()) if start else None
    return version[1] if version else ""


def _column(name: str) -> str:
    lower = name.lower()
    stem = next((s for s in _STEMS if lower.startswith(s)), lower)
    return "used" if lower.startswith("process memory") else _COLUMNS.get(stem, stem)


def _values(names: Sequence[Sequence[str]], cells: Sequence[str]) -> Optional[dict[str, str]]:
    """Return column name -> value of one row; None if the row's cells do not match the header."""
    if len(names) != len(cells):
        return None
    row: dict[str, str] = {}
    for columns, cell in zip(names, cells):
        values = "/".join(part.strip() for part in cell.split("/")).split()
        if len(columns) == 1:
            row[columns[0]] = " ".join(values)
        elif len(values) == len(columns):
            row.update(zip(columns, values))
        elif list(columns) == ["npu", "name"] and values:
            row.update(npu=values[0], name=" ".join(values[1:]))
        elif values and columns:
            row[columns[0]] = values[0]
    return row


def _device_row(state: _State, line: str, cells: list[str]) -> None:
    if state.pending is None:
        row = _values(state.upper, cells)
        if row is None or _number(row.get("npu", "")) is None or not row.get("health") or not row.get("name"):
            state.broken.setdefault("devices", line)
            return
        row["raw"] = line
        if state.lower:
            state.pending = row
            return
        below: Optional[dict[str, str]] = {}
    else:
        row, state.pending = state.pending, None
        below = _values(state.lower, cells)
    if below is None or ("chip" in _flat(state.lower) and _number(below.get("chip", "")) is None):
        state.broken.setdefault("devices", line)
        return
    state.devices.append(_device({**below, **row, "raw": row["raw"] + ("\n" + line if below else "")}))


def _flat(names: Sequence[Sequence[str]]) -> list[str]:
    return [name for cell in names for name in cell]


def _device(row: Mapping[str, str]) -> NpuDevice:
    bus = row.get("bus", "")
    return NpuDevice(
        npu=checked_int(row["npu"]),
        chip=_number(row.get("chip", "")) or 0,
        node=_number(row.get("node", "")),
        name=row["name"],
        health=row["health"],
        bus=bus.lower() if ":" in bus else "",
        power=_decimal(row.get("power", "")),
        temp=_decimal(row.get("temp", "")),
        memory=_usage(row.get("memory", "")),
        hbm=_usage(row.get("hbm", "")),
        hugepages=_usage(row.get("hugepages", "")),
        aicore=_decimal(row.get("aicore(%)", "")),
        raw=row.get("raw", ""),
    )


def _process_row(state: _State, line: str, cells: list[str]) -> None:
    idle = _IDLE.search(line)
    if idle:
        state.reported.add(checked_int(idle[1]))
        return
    row = _values(state.upper, cells) or {}
    npu, pid = _number(row.get("npu", "")), _number(row.get("pid", ""))
    if npu is None or pid is None:
        state.broken.setdefault("processes", line)
        return
    state.reported.add(npu)
    used, inner = _number(row.get("used", "")), _number(row.get("inner", ""))
    chip = _number(row.get("chip", "")) or 0
    state.processes.append(NpuProcess(npu, chip, pid, row.get("process", ""), used, inner, line))


def _number(text: str) -> Optional[int]:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None


def _decimal(text: str) -> Optional[float]:
    try:
        return float(text)
    except ValueError:
        return None


def _usage(text: str) -> Optional[MemoryUsage]:
    used, _, total = text.partition("/")
    first, second = _number(used), _number(total)
    return None if first is None or second is None else MemoryUsage(first, second)


def _end_section(state: _State) -> None:
    if state.pending is not None:
        state.broken.setdefault("devices", "")
        state.pending = None
    if state.section == "devices" and not state.closed:
        state.broken.setdefault("devices", "")
    if state.section == "processes" and not state.closed and state.processes:
        state.reported.discard(state.processes[-1].npu)  # more rows of this NPU may be missing


def _table(state: _State) -> NpuTable:
    npus = sorted({device.npu for device in state.devices})
    without_processes = tuple(n for n in npus if "processes" in state.broken or n not in state.reported)
    major = _number(state.version.partition(".")[0])
    modern = major is None or major >= PROCESS_TABLE_SINCE
    incomplete: Optional[Text] = None
    if "devices" in state.broken:
        line = state.broken["devices"]
        incomplete = Message("the device table is incomplete or wrapped: {line!r}", line=line)
    elif not state.section:
        incomplete = Message("no device table")
    elif not state.devices:
        incomplete = Message("the device table is empty")
    elif len({(d.npu, d.chip) for d in state.devices}) < len(state.devices):
        incomplete = Message("the device table lists a chip twice")
    truncated = incomplete is not None or (modern and (state.section != "processes" or bool(without_processes)))
    devices, processes = tuple(state.devices), tuple(state.processes)
    return NpuTable(state.version, devices, processes, without_processes, incomplete, truncated)


def parse_failure(text: str, returncode: int = 0) -> Optional[Failure]:
    """Return the failure stated by an output without a table, None if there is none and the exit code is 0.

    Return codes: dcmi_interface_api.h (-8005 INNER_ERR, -8020 RESOURCE_OCCUPIED); npu-smi prints them when dcmi_init()
    fails. What causes -8005: a driver that is not loaded, an upgrade without a reboot (MindCluster FAQ), a user outside
    the group HwHiAiUser, a container without the device nodes (public issue threads).
    """
    library = _LIBRARY.search(text)
    if library:
        meaning = Message(
            "npu-smi does not start: {name} cannot be found; the driver's lib64 is not in the loader's search path",
            name=library[1],
        )
        return Failure("library", meaning)
    returned = _RETURNED.search(text)
    code = returned[1] if returned else ""
    if code == "-8020":
        return Failure(code, OCCUPIED, needs_privilege=True)
    if code == "-8005" or (not code and "DrvMngGetConsoleLogLevel failed" in text):
        return Failure(code or "DrvMngGetConsoleLogLevel", NOT_READY, needs_privilege=True)
    if code:
        return Failure(code, Message("the driver returned {code} to npu-smi", code=code))
    if returncode:
        meaning = Message("npu-smi ended with exit code {returncode}", returncode=returncode)
        return Failure(f"exit code {returncode}", meaning)
    return None


OCCUPIED = Message("a device is in use: another container has it mounted, or this user may not open the device nodes")
NOT_READY = Message(
    "the driver cannot be reached: not loaded, upgraded without a reboot, nodes not passed into the container, or "
    "this user is not in the group HwHiAiUser"
)
