"""What the kernel counted in the control groups of the job: throttled periods, processes refused or killed.

Versions 1 and 2 of control groups have different names for these counters. A counter covers the time since the group
was created. Sources: kernel, Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst, cgroup-v1/pids.rst,
scheduler/sched-bwc.rst.
"""

from __future__ import annotations

import posixpath
import re
from typing import Iterable, Iterator, Mapping, Optional, Sequence

from envtune.collector.sources.system import COUNTERS
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import Missing, NotApplicable
from envtune.messages import Literal, Message, Text
from envtune.model import Evidence, Reading
from envtune.records import NamedTuple

# Groups that hold the jobs of several users.
SHARED = ("", "user.slice", "system.slice", "machine.slice", "docker", "slurmstepd.scope", "kubepods", "burstable",
    "besteffort", "kubepods.slice", "kubepods-burstable.slice", "kubepods-besteffort.slice")  # fmt: skip


class Counters(NamedTuple):
    """The counters of one control group: its path below the controller, the file, and its `name number` lines."""

    group: str
    path: str
    values: Mapping[str, int]
    text: str


@probe("cpu.throttled", unit="%")
def throttled(context: Context) -> Iterable[Reading]:
    """Share of periods in which the CPU quota throttled the job, in percent, for each of its control groups."""
    found = []
    for counters in _counters(context, "cpu"):
        periods, stopped = counters.values.get("nr_periods", 0), counters.values.get("nr_throttled", 0)
        if periods:
            shown = Message("throttled in {stopped} of {periods} periods", stopped=stopped, periods=periods)
            found.append(_reading(counters, stopped * 100 // periods, shown))
    return found or _nothing("no CPU quota", "cpu.stat")


@probe("system.refused_processes")
def refused_processes(context: Context) -> Iterable[Reading]:
    """Number of times that the process limit of the job's control groups was reached."""
    rows = _own(_counters(context, "pids"))
    return [
        _reading(row, row.values["max"], Literal(str(row.values["max"]))) for row in rows if "max" in row.values
    ] or _nothing("no limit on processes", "pids.events")


@probe("system.killed_processes")
def killed_processes(context: Context) -> Iterable[Reading]:
    """Number of processes in the job's control groups that the kernel killed because memory ran out."""
    rows = _own(_counters(context, "memory"))
    return [
        _reading(row, row.values["oom_kill"], Literal(str(row.values["oom_kill"])))
        for row in rows
        if "oom_kill" in row.values
    ] or _nothing("no count of killed processes", "memory.events")


def _own(rows: Sequence[Counters]) -> Iterator[Counters]:
    """Yield the job's group and those parents that contain only the job, its user or its pod.

    In version 2 a group also counts events in its subgroups: /user.slice the sessions of every user.
    Sources: systemd.special(7); kubelet, pkg/kubelet/cm (groups of the quality of service); dockerd, --cgroup-parent.
    """
    return (row for number, row in enumerate(rows) if not number or posixpath.basename(row.group) not in SHARED)


def _reading(row: Counters, value: int, shown: Text) -> Reading:
    return Reading(row.group, value, Evidence(row.path, row.text), shown)


def _nothing(what: str, name: str) -> tuple[Reading, ...]:
    raise NotApplicable(_NOTHING[what], name)


_NOTHING: Mapping[str, Text] = {
    "no CPU quota": Message("the job's control groups have no CPU quota"),
    "no limit on processes": Message("the job's control groups have no limit on processes"),
    "no count of killed processes": Message("the job's control groups have no count of killed processes"),
}


def _counters(context: Context, controller: str) -> tuple[Counters, ...]:
    """Return the counters of the job's group of this controller and of the groups above it."""
    pid = context.target.options.pid
    listing = f"/proc/{'self' if pid is None else pid}/cgroup"
    found: dict[str, Counters] = {}
    for folder, group, name in _files(context.host.read(listing), controller):
        path = f"{folder}{group.rstrip('/')}/{name}"
        text = _read(context, path)
        if text is not None:
            rows = (line.split() for line in text.splitlines())
            values = {row[0]: int(row[1]) for row in rows if len(row) == 2 and re.fullmatch(r"\d{1,18}", row[1])}
            found.setdefault(path, Counters(group or "/", path, values, text))
    return tuple(found.values())


def _files(listing: str, controller: str) -> Iterator[tuple[str, str, str]]:
    """Yield folder, group and file name of every group that may count, from the job's own upwards."""
    old, new = COUNTERS[controller]
    for line in listing.splitlines():
        controllers, _, group = line.partition(":")[2].partition(":")
        if controllers and controller not in controllers.split(","):
            continue
        folder = f"/sys/fs/cgroup/{controller}" if controllers else "/sys/fs/cgroup"
        while True:
            yield folder, group, old if controllers else new
            if group in ("", "/"):
                break
            group = group.rpartition("/")[0]


def _read(context: Context, path: str) -> Optional[str]:
    try:
        return context.host.read(path)
    except Missing:
        return None
