"""Where a job writes: whether the file system accepts files, and the services that a job depends on.

Sources: proc_pid_mountinfo(5); Kubernetes, node-pressure eviction (nodefs.inodesFree); Slurm's quick start
(clocks of all hosts agree).
"""

from __future__ import annotations

import posixpath
from typing import Iterable, Optional

from envtune import expect
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, NotApplicable, NotRecorded, host_error_text
from envtune.host import Host, disk_of
from envtune.messages import Literal, Message, Text
from envtune.model import Evidence, Expectation, Reading
from envtune.resources.system.mounts import MOUNTINFO, mount_holding
from envtune.resources.system.storage import output_directories

# chrony, ntp and its successors, systemd-timesyncd (the kernel keeps 15 characters), linuxptp
TIME_SERVICES = ("chronyd", "ntpd", "ntpsec", "openntpd", "systemd-timesyn", "ptp4l", "phc2sys")
# Fewer processes mean a table that was abridged for a test or an issue; a server with systemd has more.
FEW = 12


@probe("system.output_mounts")
def output_mounts(context: Context) -> Iterable[Reading]:
    """Mount mode of the file systems for the job's logs and caches: `ro` or `rw`."""
    text = context.host.read(MOUNTINFO)  # every Linux has it: if it is missing, it was not recorded or is hidden
    for name, path in output_directories(context.target.variables()).items():
        mount = mount_holding(text, posixpath.normpath(path))
        if mount is not None:
            value = "ro" if "ro" in mount.options else "rw"
            shown = Message("{path}: {point} is mounted {value}", path=path, point=mount.point, value=value)
            yield Reading(name, value, Evidence(MOUNTINFO, mount.line), shown)


@probe("system.output_inodes", unit="%")
def output_inodes(context: Context) -> Iterable[Reading]:
    """Free inodes of the file systems for the job's logs and caches, in percent."""
    for name, path in output_directories(context.target.variables()).items():
        yield _inodes(context.host, name, posixpath.normpath(path))


def _inodes(host: Host, name: str, path: str) -> Reading:
    try:
        disk = disk_of(host, path)
    except HostError as error:
        return Reading(name, None, Evidence(path, str(error)), reason=host_error_text(error))
    if disk.inodes is None or disk.free_inodes is None:
        lacking = NotRecorded(f"df -i {path}")
        return Reading(name, None, Evidence(path), reason=host_error_text(lacking))
    if not disk.inodes:
        shown = Message("{path}: this file system has no fixed number of files", path=disk.path)
        return Reading(name, 100, Evidence(path), shown, _percent)
    percent = disk.free_inodes * 100 // disk.inodes
    shown = Message("{percent}% of the inodes are free at {path}", percent=percent, path=disk.path)
    evidence = Evidence(disk.path, f"{disk.free_inodes} of {disk.inodes} inodes free")
    return Reading(name, percent, evidence, shown, _percent)


def _percent(expectation: Expectation) -> Optional[Text]:
    return expect.describe(expectation, expect.in_unit("%"))


@probe("system.time_services")
def time_services(context: Context) -> Iterable[Reading]:
    """Running time synchronization services, such as `chronyd`; empty if none is running."""
    rows = context.host.processes()
    threads = {row.pid for row in rows if row.name == "kthreadd"}  # its children are left out of a snapshot
    rows = tuple(row for row in rows if not {row.pid, row.ppid} & threads)
    running = sorted({row.name for row in rows if row.name in TIME_SERVICES and row.state != "Z"})
    if not running and len(rows) < FEW:
        raise NotApplicable(Message("the process table is incomplete: {count} processes", count=len(rows)), "/proc")
    shown = Literal(", ".join(running)) if running else Message("none of {names}", names=", ".join(TIME_SERVICES))
    return [Reading("clock", tuple(running), Evidence("/proc", ", ".join(running)), shown)]
