"""Sample the processes of a job for some seconds, at a rate at which sampling costs at most COST of one core.

A rank is a process with its own RANK or, if none has one, the first process started by a shell or launcher; its
descendants are its workers. For each, the main thread is read every time, all threads at the beginning and at the end.
"""

from __future__ import annotations

import os
import select
import time
from typing import Callable, Optional

from envtune.observe import proc
from envtune.observe.proc import ThreadStat
from envtune.records import NamedTuple

COST = 0.005  # of one core; determines the interval
INTERVAL, LONGEST = 0.1, 5.0  # seconds between two samples
LONG_WAITS = 0.5  # share of the time without a CPU from which the states in the samples count, too
FAULT_SLEEPS = 0.8  # share of sleeps for pages read from storage from which all sleeps count as such
RESCAN = 2.0  # seconds between searches for new processes
BUCKETS = 30  # of a sparkline
_LAUNCHERS = frozenset(("sh", "bash", "dash", "zsh", "timeout", "env", "nohup", "torchrun", "mpirun", "srun", "time"))


class Usage(NamedTuple):
    """What one process did while it was observed; shares are of that time, 0 to 1."""

    pid: int
    name: str
    rank: str  # its rank; for a worker, the rank that it works for
    is_main: bool
    seconds: float
    cpu: float  # of its main thread
    waiting: float  # of its main thread, for a CPU
    disk: float  # sleeping for storage: from the samples, kernel accounting, or sleeps on page faults
    whole: float  # CPU of all its threads
    busiest_thread: float  # share of the time with a CPU in which the busiest thread except the main one ran
    major_faults: float  # a second
    children: float  # CPU of child processes that ended meanwhile
    writes: bool  # it wrote more to storage than it read
    series: tuple[float, ...]  # CPU of the main thread over time


class Machine(NamedTuple):
    """What the machine did meanwhile; shares are of the time, None if unknown."""

    cpus: int
    allowed: Optional[int]  # CPUs that the job may run on
    throttled: Optional[float]
    io_pressure: Optional[float]
    cpu_pressure: Optional[float]
    swapped_in: Optional[float]  # pages a second
    frequency: Optional[float]  # of the highest
    remote: Optional[float]  # share of the first rank's memory on other NUMA nodes


class Observation(NamedTuple):
    """A job observed for some seconds."""

    seconds: float
    samples: int
    cost: float  # CPU time of sampling, as share of one core
    usages: tuple[Usage, ...]
    machine: Machine
    npu: tuple[tuple[str, tuple[float, ...]], ...]  # utilization of each NPU in percent, by name
    ended: bool  # the job ended meanwhile


class _Tracked:
    """One process while it is observed."""

    def __init__(self, pid: int, first: ThreadStat, now: float) -> None:
        self.pid, self.first, self.last, self.began, self.now = pid, first, first, now, now
        self.wait = self.first_wait = proc.queue_wait(f"/proc/{pid}/task/{pid}/schedstat") or 0.0
        self.main = self.first_main = proc.stat(f"/proc/{pid}/task/{pid}/stat") or first
        self.threads = _threads(pid)
        self.transferred, self.writes = proc.transferred(pid), False
        self.sleeps, self.sleeps_on_faults = proc.sleeps(pid), False
        self.inherited = 0.0  # CPU time that its children had used before they were first seen
        self.samples = self.blocked = self.ready = 0
        self.points: list[tuple[float, float]] = [(now, self.main.cpu)]
        self.busiest = 0.0

    def sample(self, now: float) -> bool:
        """Read the process again; return whether it still exists."""
        whole, main = proc.stat(f"/proc/{self.pid}/stat"), proc.stat(f"/proc/{self.pid}/task/{self.pid}/stat")
        if whole is None or main is None or whole.started != self.first.started or whole.state in "ZX":
            return False
        self.last, self.main, self.now = whole, main, now
        self.wait = proc.queue_wait(f"/proc/{self.pid}/task/{self.pid}/schedstat") or self.wait
        self.samples += 1
        self.blocked += main.state == "D"
        self.ready += main.state == "R"
        self.points.append((now, main.cpu))
        return True

    def finish(self) -> None:
        """Read all threads for the last time."""
        seconds = max(self.now - self.began, 1e-3)
        read, written = (now - then for now, then in zip(proc.transferred(self.pid), self.transferred))
        self.writes = written > read
        self.sleeps_on_faults = are_on_faults(
            _difference(proc.sleeps(self.pid), self.sleeps), self.main.major_faults - self.first_main.major_faults
        )
        for thread, (cpu, wait) in _threads(self.pid).items():
            cpu_before, wait_before = self.threads.get(thread, (0.0, 0.0))
            if thread != self.pid:
                ran, waited = (cpu - cpu_before) / seconds, (wait - wait_before) / seconds
                self.busiest = max(self.busiest, busy_share(ran, waited), min(ran + waited, 1.0))

    def _waiting(self, cpu: float, seconds: float) -> float:
        """Return the share of the time in which it was runnable without a CPU.

        The kernel counts a wait when it ends: for long waits, on a busy machine, the samples are more accurate.
        """
        counted = min((self.wait - self.first_wait) / seconds, 1.0)
        if counted < LONG_WAITS or not self.samples:
            return counted
        return min(max(counted, self.ready / self.samples - cpu), 1.0 - cpu)

    def usage(self, rank: str, is_main: bool, ends: float) -> Usage:
        """Return what it did, as shares."""
        seconds = max(self.now - self.began, 1e-3)
        accounted = (self.main.blocked - self.first_main.blocked) / seconds
        sampled = self.blocked / self.samples if self.samples else 0.0
        cpu = min((self.main.cpu - self.first_main.cpu) / seconds, 1.0)
        waiting = self._waiting(cpu, seconds)
        asleep = max(1.0 - cpu - waiting, 0.0) if self.sleeps_on_faults else 0.0
        return Usage(
            self.pid,
            self.first.name,
            rank,
            is_main,
            seconds,
            cpu,
            waiting,
            min(max(accounted, sampled, asleep), 1.0),
            (self.last.cpu - self.first.cpu) / seconds,
            self.busiest,
            (self.last.major_faults - self.first.major_faults) / seconds,
            max(self.last.reaped - self.first.reaped - self.inherited, 0.0) / seconds,
            self.writes,
            _series(self.points, ends),
        )


def are_on_faults(sleeps: Optional[int], faults: int) -> bool:
    """Return whether almost all sleeps of a thread were for pages that had to be read from storage.

    If storage answers within microseconds, samples see none of those sleeps, however many there are.
    """
    return sleeps is not None and 0 < sleeps * FAULT_SLEEPS <= faults


def _difference(last: Optional[int], first: Optional[int]) -> Optional[int]:
    return None if last is None or first is None else last - first


def busy_share(cpu: float, waiting: float) -> float:
    """Return the share of the time with a CPU in which a thread ran, from its shares of the whole time."""
    with_cpu = 1.0 - min(waiting, 1.0)
    return 1.0 if with_cpu <= cpu else cpu / with_cpu


def _threads(pid: int) -> dict[int, tuple[float, float]]:
    """Return for each thread the seconds it ran, and the seconds it was runnable without a CPU."""
    found = {}
    try:
        names = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return {}
    for name in names:
        thread = proc.stat(f"/proc/{pid}/task/{name}/stat")
        if thread is not None:
            found[int(name)] = thread.cpu, proc.queue_wait(f"/proc/{pid}/task/{name}/schedstat") or 0.0
    return found


def _series(points: list[tuple[float, float]], ends: float) -> tuple[float, ...]:
    """Return the CPU share in each of at most BUCKETS parts of the time."""
    count = min(BUCKETS, len(points) - 1)
    if count < 1:
        return ()
    places = [round(part * (len(points) - 1) / count) for part in range(count + 1)]
    shares = []
    for first, last in zip(places, places[1:]):
        span = points[last][0] - points[first][0]
        shares.append(min((points[last][1] - points[first][1]) / span, 1.0) if span > 0 else 0.0)
    return tuple(shares)


class _MachineReading:
    """Counters of the machine at the beginning."""

    def __init__(self, pid: int) -> None:
        self.pid, self.began = pid, time.monotonic()
        self.throttled, self.swapped = proc.throttled(pid), proc.swapped_in()
        self.io, self.cpu = proc.pressure("io"), proc.pressure("cpu")

    def sample(self) -> tuple[Optional[float], ...]:
        """Return the counters now; for a job that has ended, the last ones that were read."""
        return (proc.throttled(self.pid), proc.pressure("io"), proc.pressure("cpu"), _number(proc.swapped_in()))

    def result(self, last: tuple[Optional[float], ...], tracked: list[_Tracked]) -> Machine:
        """Return what changed since the beginning."""
        seconds = max(time.monotonic() - self.began, 1e-3)
        first = (self.throttled, self.io, self.cpu, _number(self.swapped))
        throttled, io, cpu, swapped = (
            None if a is None or b is None else max(b - a, 0.0) / seconds for a, b in zip(first, last)
        )
        processors = {one.main.processor for one in tracked}
        main = tracked[0] if tracked else None
        return Machine(
            os.cpu_count() or 1,
            proc.allowed_cpus(main.pid) if main is not None else None,
            throttled,
            io,
            cpu,
            swapped,
            proc.frequency_share(processors),
            proc.remote_memory(main.pid, main.main.processor) if main is not None else None,
        )


def _number(value: Optional[int]) -> Optional[float]:
    return None if value is None else float(value)


def observe(
    pid: int,
    seconds: float,
    stop: Optional[int] = None,
    npu: Optional[Callable[[], dict[str, float]]] = None,
    without: frozenset[int] = frozenset(),
) -> Observation:
    """Sample the processes of `pid` until `seconds` have passed, the job has ended or `stop` is readable.

    `npu` returns the utilization of each NPU in percent; it is called every LONGEST seconds. `without` are processes
    that do not belong to the job.
    """
    began, spent = time.monotonic(), time.thread_time()
    job, use = _Job(pid, without), _Use(npu)
    samples = 0
    while True:
        before = time.thread_time()
        job.sample(time.monotonic())
        use.sample(time.monotonic())
        samples += 1
        left = began + seconds - time.monotonic()
        if job.ended or left <= 0:
            break
        wait = min(max(INTERVAL, (time.thread_time() - before) / COST), LONGEST, left)
        if select.select([stop] if stop is not None else [], [], [], wait)[0]:
            break
    machine = job.finish()
    whole = max(time.monotonic() - began, 1e-3)
    usages = _usages(list(job.tracked.values()), pid)
    return Observation(whole, samples, (time.thread_time() - spent) / whole, usages, machine, use.result(), job.ended)


class _Use:
    """The utilization of the NPUs, read every LONGEST seconds."""

    def __init__(self, read: Optional[Callable[[], dict[str, float]]]) -> None:
        self._read, self._asked = read, -LONGEST
        self._values: dict[str, list[float]] = {}

    def sample(self, now: float) -> None:
        """Read it if it is time to."""
        if self._read is None or now - self._asked < LONGEST:
            return
        self._asked = now
        for name, percent in self._read().items():
            self._values.setdefault(name, []).append(percent)

    def result(self) -> tuple[tuple[str, tuple[float, ...]], ...]:
        """Return what was read, by NPU."""
        return tuple((name, tuple(values)) for name, values in sorted(self._values.items()))


class _Job:
    """The processes of a job and the counters of the machine while it is observed."""

    def __init__(self, pid: int, without: frozenset[int]) -> None:
        self.tracked: dict[int, _Tracked] = {}
        self._pid, self._without = pid, without
        self._alive: dict[int, _Tracked] = {}
        self._machine = _MachineReading(pid)
        self._counters = self._machine.sample()
        self._scanned = -LONGEST

    @property
    def ended(self) -> bool:
        """Whether none of its processes is left."""
        return not self._alive and (bool(self.tracked) or self._pid not in self._without)

    def sample(self, now: float) -> None:
        """Read every process again, and search for new ones from time to time."""
        if now - self._scanned >= (RESCAN if self._alive else INTERVAL):
            self._scanned = now
            self._find_new(now)
            self._counters = self._machine.sample() if self._alive else self._counters
        alive = {own: one for own, one in self._alive.items() if one.sample(now)}
        for own, one in self._alive.items():
            parent = self.tracked.get(one.first.parent)
            if own not in alive and parent is not None:
                parent.inherited += one.first.cpu + one.first.reaped
        self._alive = alive

    def finish(self) -> Machine:
        """Read all threads for the last time; return what the machine did."""
        for one in self._alive.values():
            one.finish()
        last = self._machine.sample() if self._alive else self._counters
        return self._machine.result(last, list(self._alive.values()))

    def _find_new(self, now: float) -> None:
        program = proc.read(f"/proc/{self._pid}/cmdline") if self._pid in self._without else None
        for own in proc.descendants(self._pid):
            if own in self._alive or own in self._without:
                continue
            if program is not None and proc.read(f"/proc/{own}/cmdline") == program:
                continue  # forked by the observing program, before its exec
            first = proc.stat(f"/proc/{own}/stat")
            if first is not None and first.state not in "ZX":
                self.tracked[own] = self._alive[own] = _Tracked(own, first, now)


def _usages(tracked: list[_Tracked], pid: int) -> tuple[Usage, ...]:
    """Return what the processes did, each for its rank; those that existed only briefly are left out."""
    if not tracked:
        return ()
    ends = max(one.now for one in tracked)
    longest = max(one.now - one.began for one in tracked)
    kept = [one for one in tracked if one.now - one.began >= 0.2 * longest]
    mains = _mains(kept, pid)
    parents = {one.pid: one.first.parent for one in tracked}
    found = []
    for one in kept:
        above = one.pid
        while above not in mains and above in parents:
            above = parents[above]
        if above in mains:
            found.append(one.usage(mains[above], one.pid in mains, ends))
    return tuple(sorted(found, key=lambda usage: (usage.rank.zfill(8), not usage.is_main, usage.pid)))


def _mains(tracked: list[_Tracked], pid: int) -> dict[int, str]:
    """Return the processes that are ranks, and their numbers."""
    ranks: dict[int, str] = {}
    numbers = {one.pid: proc.variables(one.pid).get("RANK", "") for one in tracked}
    for one in tracked:
        if numbers[one.pid].isdecimal() and numbers.get(one.first.parent, "") != numbers[one.pid]:
            ranks[one.pid] = numbers[one.pid]
    if ranks:
        return ranks
    children: dict[int, list[_Tracked]] = {}
    for one in tracked:
        children.setdefault(one.first.parent, []).append(one)
    known = {one.pid: one for one in tracked}
    left, number = [pid], 0
    while left:
        own = left.pop(0)
        below = children.get(own, [])
        is_launcher = own not in known or (known[own].first.name in _LAUNCHERS and bool(below))
        if is_launcher:
            left += [one.pid for one in below]
        else:
            ranks[own] = str(number)
            number += 1
    return ranks
