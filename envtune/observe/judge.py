"""What an observed job waits for: the verdict, never more than likely, and the causes shown by the samples."""

from __future__ import annotations

from typing import Iterator, Optional, Sequence

from envtune.messages import Message, Text
from envtune.observe.sampling import Machine, Observation, Usage, busy_share
from envtune.profile.verdict import Bound
from envtune.records import NamedTuple

# Thresholds, measured with jobs of each kind (tests/observe).
DEMAND = 0.85  # share of the time it had a CPU in which a thread must run to be at its limit
WAITS = 0.25  # share of the time without a CPU from which the CPUs are too few for a thread at its limit
CROWDED = 0.75  # the same for a thread not at its limit: three quarters of its time are lost
NEARLY = 0.70  # like DEMAND, for a thread without a CPU for half of the time: its shares are of the rest
UNSEEN = 0.95  # from which too little of the thread is seen to tell what it would do with a CPU
NOTED = 0.10
THROTTLED = 0.05  # share of the time
DISK = 0.20  # share of the time with a CPU, in uninterruptible sleep
FAULTS = 50.0  # major page faults per second
SERIAL = (0.90, 1.05)  # CPUs that the threads of a process use in total if they run one at a time
SWAPPED = 100.0  # pages per second that the machine reads from swap
SLOW_CLOCK = 0.70  # of the highest frequency
REMOTE = 0.50  # of the memory, on other NUMA nodes
NPU_BUSY = 80.0  # percent: the NPUs are computing, whatever the host does
NPU_IDLE = 10.0  # percent: a gap


class Cause(NamedTuple):
    """One thing that the samples show, and its effect on the job."""

    name: str
    text: Text


class Judgement(NamedTuple):
    """The verdict and what it rests on."""

    bound: Bound
    causes: tuple[Cause, ...]
    notes: tuple[Text, ...]


def judge(found: Observation) -> Judgement:
    """Return what the job waits for."""
    mains = [usage for usage in found.usages if usage.is_main]
    if not mains:
        return Judgement(Bound.UNKNOWN, (), (Message("no process of the job ran long enough"),))
    workers = [usage for usage in found.usages if not usage.is_main]
    notes = tuple(_notes(found))
    busy = _npu_use(found)
    if busy is not None and busy >= NPU_BUSY:
        return Judgement(Bound.COMPUTE, (), notes)
    for bound, causes in (
        (Bound.HOST, list(_resources(found.machine, found.usages))),
        (Bound.HOST, list(_dispatch(mains, found.machine))),
        (Bound.HOST, list(_writing(mains, workers))),
        (Bound.DATA, list(_loading(mains, workers, found.machine))),
        (Bound.HOST, list(_serialized(mains))),
        (Bound.HOST, list(_crowded(mains, found.machine))),
    ):
        if causes:
            return Judgement(bound, tuple(causes), notes)
    return Judgement(Bound.BALANCED, (), (*notes, *_on_others(found.machine)))


def demand(usage: Usage) -> float:
    """Return the share of the time that the main thread would run if a CPU were always available.

    Time without a CPU is excluded: what others use of the machine does not make a thread busier.
    """
    return busy_share(usage.cpu, usage.waiting)


def _resources(machine: Machine, usages: Sequence[Usage]) -> Iterator[Cause]:
    """Yield what keeps every process of the job from running."""
    if machine.throttled is not None and machine.throttled >= THROTTLED:
        share = f"{machine.throttled:.0%}"
        yield Cause(
            "throttled", Message("the CPU limit of its control group throttles it for {share} of the time", share=share)
        )
    faults = sum(usage.major_faults for usage in usages)
    if faults >= FAULTS and machine.swapped_in is not None and machine.swapped_in >= SWAPPED:
        text = Message("{count} major page faults per second: its memory is read from swap", count=f"{faults:.0f}")
        yield Cause("swap", text)


def _dispatch(mains: Sequence[Usage], machine: Machine) -> Iterator[Cause]:
    """Yield why the main thread of a rank is at its limit."""
    worst = max(mains, key=demand)
    if demand(worst) < (NEARLY if worst.waiting >= 0.5 and not _is_blocked(worst) else DEMAND):
        return
    if worst.waiting >= WAITS:
        yield from _too_few_cpus([worst], machine)
        if worst.waiting >= UNSEEN or (machine.allowed is not None and machine.allowed < machine.cpus):
            return
    share = f"{demand(worst):.0%}"
    text = Message("the main thread of rank {rank} uses {share} of one CPU", rank=worst.rank, share=share)
    yield Cause("main-thread", text)


def _too_few_cpus(waiting: Sequence[Usage], machine: Machine) -> Iterator[Cause]:
    share = f"{max(usage.waiting for usage in waiting):.0%}"
    if machine.allowed is not None and machine.allowed < machine.cpus:
        yield Cause(
            "affinity",
            Message(
                "it may run on {allowed} of {cpus} CPUs and waits for one for {share} of the time",
                allowed=machine.allowed,
                cpus=machine.cpus,
                share=share,
            ),
        )
    else:
        text = Message("it waits for one of {cpus} CPUs for {share} of the time", cpus=machine.cpus, share=share)
        yield Cause("oversubscribed", text)


def _crowded(mains: Sequence[Usage], machine: Machine) -> Iterator[Cause]:
    """Yield that a main thread which needs little has no CPU for most of the time because others use them."""
    waiting = [usage for usage in mains if usage.waiting >= CROWDED]
    if waiting:
        yield from _too_few_cpus(waiting, machine)


def _serialized(mains: Sequence[Usage]) -> Iterator[Cause]:
    """Yield that the threads of a rank run one at a time: none is at its limit, and in total they use one CPU."""
    least, most = SERIAL
    for usage in mains:
        if least <= usage.whole <= most:
            share = f"{usage.whole:.0%}"
            text = Message(
                "no thread of rank {rank} is at its limit, but together they use {share} of one CPU, as threads do "
                "that run one at a time",
                rank=usage.rank,
                share=share,
            )
            yield Cause("serialized", text)
            return


def _is_blocked(usage: Usage) -> bool:
    return busy_share(usage.disk, usage.waiting) >= DISK


def _writing(mains: Sequence[Usage], workers: Sequence[Usage]) -> Iterator[Cause]:
    """Yield that a main thread waits for what it writes, such as logs and checkpoints."""
    blocked = [usage for usage in mains if _is_blocked(usage) and usage.writes]
    if blocked and not any(_is_blocked(usage) for usage in workers):
        share = f"{max(usage.disk for usage in blocked):.0%}"
        yield Cause("storage", Message("it waits for storage for {share} of the time while it writes", share=share))


def _loading(mains: Sequence[Usage], workers: Sequence[Usage], machine: Machine) -> Iterator[Cause]:
    """Yield what the processes or threads that load data wait for, if the main threads are not at their limit."""
    blocked = [usage for usage in (*workers, *mains) if _is_blocked(usage)]
    if blocked and (len(blocked) * 2 >= len(workers) or any(usage.is_main for usage in blocked)):
        share = f"{max(usage.disk for usage in blocked):.0%}"
        yield Cause("storage", Message("it waits for storage for {share} of the time", share=share))
        return
    full = [usage for usage in workers if demand(usage) >= DEMAND]
    if full and len(full) * 2 >= len(workers):
        squeezed = [usage for usage in full if usage.waiting >= WAITS]
        if squeezed:
            yield from _too_few_cpus(squeezed, machine)
        count, whole = len(full), len(workers)
        text = Message(
            "{count} of {whole} worker processes use a whole CPU: too few or too slow", count=count, whole=whole
        )
        yield Cause("workers", text)
        return
    started = max(usage.children for usage in mains)
    if started >= DEMAND:
        share = f"{started:.0%}"
        text = Message("short-lived processes that it starts use {share} of one CPU", share=share)
        yield Cause("children", text)
        return
    threaded = [usage for usage in mains if usage.busiest_thread >= DEMAND and usage.waiting < 0.5]
    if threaded and not workers:
        share = f"{threaded[0].busiest_thread:.0%}"
        text = Message("another thread uses {share} of one CPU while the main thread waits", share=share)
        yield Cause("loader-thread", text)


def _npu_use(found: Observation) -> Optional[float]:
    values = [value for _, series in found.npu for value in series]
    return sum(values) / len(values) if values else None


def _on_others(machine: Machine) -> Iterator[Text]:
    """Yield that the machine is too busy to call a job without findings healthy."""
    if machine.cpu_pressure is not None and machine.cpu_pressure >= CROWDED:
        share = f"{machine.cpu_pressure:.0%}"
        yield Message(
            "Tasks on this machine waited for a CPU for {share} of the time: observe again when less runs on it.",
            share=share,
        )


def _notes(found: Observation) -> Iterator[Text]:
    machine = found.machine
    waiting = max((usage.waiting for usage in found.usages if usage.is_main), default=0.0)
    if waiting >= NOTED:
        yield Message("The main thread has no CPU for {share} of the time.", share=f"{waiting:.0%}")
    if machine.frequency is not None and machine.frequency < SLOW_CLOCK:
        share = f"{machine.frequency:.0%}"
        yield Message("Its CPUs run at {share} of their maximum frequency.", share=share)
    if machine.remote is not None and machine.remote >= REMOTE:
        yield Message("{share} of its memory is on other NUMA nodes.", share=f"{machine.remote:.0%}")
    for name, series in found.npu:
        idle = sum(value < NPU_IDLE for value in series)
        if idle:
            yield Message("{npu} was idle in {count} of {samples} samples.", npu=name, count=idle, samples=len(series))
    if found.ended:
        yield Message("The job ended after {seconds} s.", seconds=f"{found.seconds:.0f}")
