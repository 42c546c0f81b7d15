"""What a container may use: shared memory, CPUs for its NPUs, memory.

Sources: docker run reference (`--shm-size`: 64m by default), PyTorch's README (shared memory of containers), proc(5)
for mountinfo, tmpfs(5), the kernel's cgroup-v2 page (`memory.max`; pages of a tmpfs are charged to the group).
"""

from __future__ import annotations

import re
from typing import Iterable, Iterator, Optional

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Missing, NotApplicable, Undetermined
from envtune.host import Host
from envtune.messages import Message
from envtune.model import Evidence, Reading
from envtune.resources.containers.devices import require_devices
from envtune.resources.system.data_loader import usable_cpus
from envtune.resources.system.mounts import MOUNTINFO, Mount, mount_at

SHARED = "/dev/shm"
MEBIBYTE = 1 << 20
UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
UNLIMITED = 1 << 60  # bytes; cgroup 1 shows a number near 2^63 if there is no limit


@probe("containers.shared_memory", unit="MB")
def shared_memory(context: Context) -> Iterable[Reading]:
    """Size limit of /dev/shm in MB (2^20 bytes); not applicable without a limit."""
    mount = _shared(context.host)
    size = size_of(mount)
    if size is None:
        raise NotApplicable(Message("{path} is mounted without a size limit", path=SHARED), MOUNTINFO, mount.line)
    shown = Message("{amount} MB", amount=size // MEBIBYTE)
    return [Reading(SHARED, size // MEBIBYTE, Evidence(MOUNTINFO, mount.line), shown)]


@probe("containers.shared_memory_fits")
def shared_memory_fits(context: Context) -> Iterable[Reading]:
    """Whether the size limit of /dev/shm is within the container's memory limit; not applicable if either has no limit.

    In Kubernetes an emptyDir without sizeLimit gets exactly the memory limit of its pod.
    """
    host = context.host
    mount = _shared(host)
    size, limit = size_of(mount), memory_limit(host)
    if size is None or limit is None:
        raise NotApplicable(Message("{path} or the container's memory has no limit", path=SHARED), MOUNTINFO)
    allowed, source = limit
    shown = Message("{size} MB of {limit} MB", size=size // MEBIBYTE, limit=allowed // MEBIBYTE)
    expected = Message("at most the memory limit")
    return [Reading(SHARED, size <= allowed, Evidence(source, f"{mount.line}\n{allowed}"), shown, expected)]


def _shared(host: Host) -> Mount:
    try:
        found = mount_at(host.read(MOUNTINFO), SHARED)
    except Missing:
        found = None
    if found is None or found.kind != "tmpfs":
        raise NotApplicable(Message("no tmpfs is mounted at {path}", path=SHARED), MOUNTINFO)
    return found


def size_of(mount: Mount) -> Optional[int]:
    """Return the `size=` of a tmpfs in bytes; None if not set (then it is half of the memory)."""
    for option in mount.options:
        match = re.fullmatch(r"size=(\d{1,15})([kmg]?)", option)
        if match is not None:
            return int(match[1]) * UNITS[match[2]]
    return None


def memory_limit(host: Host) -> Optional[tuple[int, str]]:
    """Return the lowest memory limit of this control group and its parents in bytes, and its file; None if none."""
    try:
        found = list(_limits(host))
    except Missing:
        return None
    return min(found) if found else None


def _limits(host: Host) -> Iterator[tuple[int, str]]:
    for line in host.read("/proc/self/cgroup").splitlines():
        controllers, _, path = line.partition(":")[2].partition(":")
        if controllers and "memory" not in controllers.split(","):
            continue
        base, name = (
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes") if controllers else ("/sys/fs/cgroup", "memory.max")
        )
        while True:
            source = f"{base}{path.rstrip('/')}/{name}"
            number = _number(host, source)
            if number is not None and number < UNLIMITED:
                yield number, source
            if path in ("", "/"):
                break
            path = path.rpartition("/")[0]


def _number(host: Host, path: str) -> Optional[int]:
    try:
        text = host.read(path).strip()
    except Missing:
        return None
    return int(text) if text.isdecimal() and len(text) < 20 else None


@probe("containers.cpus_for_devices")
def cpus_for_devices(context: Context) -> Iterable[Reading]:
    """Number of CPUs that the container may use for each of its NPUs, rounded down."""
    count = len(require_devices(context))
    process = str(context.target.options.pid or "self")
    try:
        limit = usable_cpus(context.host, process)
    except HostError as error:
        raise Undetermined(Message("the CPUs of this container are unknown"), error.path) from None
    shown = Message("{cpus} CPUs for {devices} NPUs", cpus=limit.cpus, devices=count)
    return [
        Reading("CPUs", limit.cpus // count, Evidence(limit.source), shown, Message("at least one CPU for each NPU"))
    ]
