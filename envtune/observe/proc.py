"""Read what a sample needs from /proc and control groups; None if it cannot be read."""

from __future__ import annotations

import os
from typing import Iterator, Mapping, Optional

from envtune.ranges import cpu_numbers
from envtune.records import NamedTuple

TICKS = os.sysconf("SC_CLK_TCK")
_LIMIT = 1 << 16  # bytes of a file that is read
_CGROUP = "/sys/fs/cgroup"


class ThreadStat(NamedTuple):
    """A thread, or a whole process, from /proc/*/stat; times in seconds."""

    parent: int
    name: str
    state: str
    user: float
    system: float
    major_faults: int
    started: int
    processor: int
    blocked: float  # for block I/O; 0 if the kernel does not account for it
    reaped: float  # CPU time of its children that have ended

    @property
    def cpu(self) -> float:
        """CPU time."""
        return self.user + self.system


def read(path: str) -> Optional[str]:
    """Return the beginning of a file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(descriptor, _LIMIT).decode("utf-8", "replace")
    except OSError:
        return None
    finally:
        os.close(descriptor)


def stat(path: str) -> Optional[ThreadStat]:
    """Return the content of a stat file (proc(5)); its second field may contain blanks and brackets."""
    text = read(path)
    if text is None:
        return None
    name, _, rest = text.partition("(")[2].rpartition(")")
    cells = rest.split()
    if len(cells) < 40:
        return None
    return ThreadStat(
        int(cells[1]),
        name,
        cells[0],
        int(cells[11]) / TICKS,
        int(cells[12]) / TICKS,
        int(cells[9]),
        int(cells[19]),
        int(cells[36]),
        int(cells[39]) / TICKS,
        (int(cells[13]) + int(cells[14])) / TICKS,
    )


def queue_wait(path: str) -> Optional[float]:
    """Return the seconds that a thread was runnable without a CPU: schedstat, second field (sched-stats.rst)."""
    text = read(path)
    cells = (text or "").split()
    return int(cells[1]) / 1e9 if len(cells) == 3 else None


def transferred(pid: int) -> tuple[int, int]:
    """Return the bytes that a process had read from and written to storage; none if the kernel does not tell."""
    fields = dict(line.split(": ", 1) for line in (read(f"/proc/{pid}/io") or "").splitlines() if ": " in line)
    return int(fields.get("read_bytes") or 0), int(fields.get("write_bytes") or 0)


def children_of() -> dict[int, list[int]]:
    """Return the processes of this machine by parent."""
    found: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            process = stat(f"/proc/{name}/stat")
            if process is not None:
                found.setdefault(process.parent, []).append(int(name))
    return found


def descendants(pid: int) -> Iterator[int]:
    """Yield a process and its descendants."""
    children, left = children_of(), [pid]
    while left:
        own = left.pop(0)
        yield own
        left += children.get(own, ())


def variables(pid: int) -> Mapping[str, str]:
    """Return the variables that a process was started with; none if they cannot be read."""
    rows = (read(f"/proc/{pid}/environ") or "").split("\0")
    return dict(row.split("=", 1) for row in rows if "=" in row)


def status_field(pid: int, name: str) -> Optional[str]:
    """Return a field of /proc/PID/status."""
    for line in (read(f"/proc/{pid}/status") or "").splitlines():
        if line.startswith(f"{name}:"):
            return line.partition(":")[2].strip()
    return None


def sleeps(pid: int) -> Optional[int]:
    """Return how often the main thread of a process gave up its CPU to wait for something (proc(5))."""
    text = status_field(pid, "voluntary_ctxt_switches")
    return int(text) if text is not None and text.isdecimal() else None


def allowed_cpus(pid: int) -> Optional[int]:
    """Return the number of CPUs that a process may run on."""
    text = status_field(pid, "Cpus_allowed_list")
    try:
        return len(cpu_numbers(text)) if text else None
    except ValueError:
        return None


def throttled(pid: int) -> Optional[float]:
    """Return the longest time in seconds that any control group of a process was throttled; versions 1 and 2."""
    found = None
    for line in (read(f"/proc/{pid}/cgroup") or "").splitlines():
        controllers, _, path = line.partition(":")[2].partition(":")
        if controllers and "cpu" not in controllers.split(","):
            continue
        for mount in (
            (_CGROUP, f"{_CGROUP}/unified") if not controllers else (f"{_CGROUP}/cpu", f"{_CGROUP}/{controllers}")
        ):
            for seconds in _throttled_above(mount, path):
                found = max(found or 0.0, seconds)
    return found


def _throttled_above(mount: str, path: str) -> Iterator[float]:
    """Yield the value of each group from this one up to the root: a limit of any of them throttles."""
    while True:
        for line in (read(f"{mount}{path}/cpu.stat") or "").splitlines():
            name, _, value = line.partition(" ")
            if name == "throttled_usec" and value.isdecimal():
                yield int(value) / 1e6
            elif name == "throttled_time" and value.isdecimal():
                yield int(value) / 1e9
        if path in ("", "/"):
            return
        path = os.path.dirname(path)


def pressure(resource: str) -> Optional[float]:
    """Return the seconds in which some task of this machine waited for a resource (accounting/psi.rst)."""
    for line in (read(f"/proc/pressure/{resource}") or "").splitlines():
        if line.startswith("some") and "total=" in line:
            return int(line.rpartition("total=")[2]) / 1e6
    return None


def swapped_in() -> Optional[int]:
    """Return the pages that this machine read from swap."""
    for line in (read("/proc/vmstat") or "").splitlines():
        if line.startswith("pswpin "):
            return int(line.split()[1])
    return None


def frequency_share(processors: set[int]) -> Optional[float]:
    """Return the mean ratio of current to highest frequency of these CPUs."""
    shares = []
    for processor in sorted(processors)[:64]:
        base = f"/sys/devices/system/cpu/cpu{processor}/cpufreq"
        current, highest = read(f"{base}/scaling_cur_freq"), read(f"{base}/cpuinfo_max_freq")
        if current and highest and highest.strip().isdecimal() and current.strip().isdecimal():
            shares.append(int(current) / max(int(highest), 1))
    return sum(shares) / len(shares) if shares else None


def remote_memory(pid: int, processor: int) -> Optional[float]:
    """Return the share of a process's pages on NUMA nodes other than that of a CPU; None with one node."""
    nodes = [name for name in _listed("/sys/devices/system/node") if name.startswith("node") and name[4:].isdecimal()]
    own = next((name[4:] for name in nodes if os.path.exists(f"/sys/devices/system/node/{name}/cpu{processor}")), None)
    if len(nodes) < 2 or own is None:
        return None
    pages: dict[str, int] = {}
    for word in (read(f"/proc/{pid}/numa_maps") or "").split():
        node, _, count = word.partition("=")
        if node[:1] == "N" and node[1:].isdecimal() and count.isdecimal():
            pages[node[1:]] = pages.get(node[1:], 0) + int(count)
    total = sum(pages.values())
    return 1 - pages.get(own, 0) / total if total else None


def _listed(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []
