"""Where the processes on the NPUs run: the CPUs that they may use, and whether their memory is in swap.

Sources: proc_pid_status(5); Ascend/pytorch, CPU_AFFINITY_CONF.md; Ascend/msboost and vllm-ascend, which bind processes.
envtune only reads the result of binding.
"""

from __future__ import annotations

import re
from typing import Iterable, Iterator, Optional, Sequence

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Missing, NotApplicable, NotRecorded, host_error_text
from envtune.job.environment import process_environment
from envtune.messages import Message, Text
from envtune.model import Evidence, Process, Reading
from envtune.ranges import cpu_numbers
from envtune.records import NamedTuple
from envtune.resources.cpu.topology import allowed_cpus, cpu_text
from envtune.resources.files.kernel import kernel_text
from envtune.resources.npu.topology import near_cpus

LIMIT = 32  # processes examined; a host has at most 16 devices, and some jobs two processes per device
ONLINE = "/sys/devices/system/cpu/online"
BINDERS = re.compile(r"(?i)\b(taskset|numactl|numad|mindstudio[-_]boost|msboost|affinity_vllm|host_analyzer)\b")
_NODE = re.compile(r"/dev/davinci(\d{1,4})")


class Rank(NamedTuple):
    """A process on NPUs: its row, N of its /dev/davinciN, its status; `reason` if that cannot be read."""

    process: Process
    nodes: tuple[int, ...]
    cpus: tuple[int, ...]
    status: str
    reason: Optional[Text] = None

    @property
    def subject(self) -> str:
        """Return its name in reports."""
        return f"process {self.process.pid}"

    @property
    def source(self) -> str:
        """Return the file that says where it runs."""
        return f"/proc/{self.process.pid}/status"


@probe("processes.far_from_npu")
def far_from_npu(context: Context) -> Iterable[Reading]:
    """Number of CPUs near its NPU that each NPU process may use."""
    running = ranks(context)
    near = near_cpus(context)
    for rank in running:
        cpus = {cpu for node in rank.nodes for cpu in near.get(node, ())}
        if rank.reason is not None or not cpus:
            yield _unknown(rank, Message("the CPUs near its NPU are unknown"))
            continue
        shown = Message(
            "runs on CPUs {own} ({binder}), its NPU is near CPUs {near}",
            own=cpu_text(rank.cpus),
            binder=_binder(context, rank.process),
            near=cpu_text(cpus),
        )
        yield Reading(rank.subject, len(cpus.intersection(rank.cpus)), _evidence(rank), shown)


@probe("processes.crowded", unit="%")
def crowded(context: Context) -> Iterable[Reading]:
    """Number of NPU processes that share a set of CPUs, in percent of the number of these CPUs."""
    groups: dict[tuple[int, ...], list[Rank]] = {}
    for rank in ranks(context):
        if rank.reason is not None:
            yield _unknown(rank, rank.reason)
        else:
            groups.setdefault(rank.cpus, []).append(rank)
    for cpus, group in groups.items():
        shown = Message("processes: {count}, on CPUs {cpus}", count=len(group), cpus=cpu_text(cpus))
        subject = ", ".join(rank.subject for rank in group)
        yield Reading(subject, -(-len(group) * 100 // len(cpus)), _evidence(group[0]), shown)


@probe("processes.swapped", unit="MB")
def swapped(context: Context) -> Iterable[Reading]:
    """Memory of each NPU process in swap, in MB (10^6 bytes)."""
    for rank in ranks(context):
        found = re.search(r"(?m)^VmSwap:\s+(\d{1,15}) kB", rank.status)
        if found is None:
            yield _unknown(rank, Message("{path} has no line for {name}", path=rank.source, name="VmSwap"))
            continue
        amount = int(found[1]) * 1024 // 1_000_000
        shown = Message("{amount} MB in swap", amount=amount)
        yield Reading(rank.subject, amount, Evidence(rank.source, found[0]), shown)


@probe("processes.unbound")
def unbound(context: Context) -> Iterable[Reading]:
    """Whether each NPU process with CPU_AFFINITY_CONF is bound to CPUs: `bound` or `as its parent`."""
    found = False
    for rank in ranks(context):
        variables = process_environment(context.host, rank.process.pid).variables
        value = (variables or {}).get("CPU_AFFINITY_CONF", "")
        if not re.match(r"[12](,|$)", value):
            continue
        found = True
        yield _bound(context, rank, value)
    if not found:
        raise NotApplicable(
            Message("no visible process on an NPU has CPU_AFFINITY_CONF with mode 1 or 2"), "/proc/*/environ"
        )


def _bound(context: Context, rank: Rank, value: str) -> Reading:
    """Compare the CPUs of a process with those of its parent, from which it inherits them unless it was bound."""
    source = f"/proc/{rank.process.ppid}/status"
    try:
        parent = allowed_cpus(context.host.read(source))
    except HostError as error:
        return _unknown(rank, host_error_text(error))
    if rank.reason is not None or not parent:
        return _unknown(rank, Message("{path} has no line for {name}", path=source, name="Cpus_allowed_list"))
    same = rank.cpus == parent
    fields = {"value": value, "cpus": cpu_text(rank.cpus)}
    shown = (
        Message("CPU_AFFINITY_CONF={value}, and still on all CPUs of its parent: {cpus}", **fields)
        if same
        else Message("CPU_AFFINITY_CONF={value}: bound to CPUs {cpus}", **fields)
    )
    return Reading(rank.subject, "as its parent" if same else "bound", _evidence(rank), shown)


def ranks(context: Context) -> Sequence[Rank]:
    """Return the processes that have an NPU open, with --pid only that one; not applicable if there is none."""
    return context.cached(_find_ranks)


def _find_ranks(context: Context) -> Sequence[Rank]:
    named = context.target.options.pid
    rows = [row for row in context.host.processes() if row.devices]
    rows = [row for row in rows if row.pid == named] if named is not None else list(_without_workers(rows))
    if not rows:
        raise NotApplicable(Message("no visible process has an NPU device open"), "/proc/*/fd")
    return tuple(_rank(context, row) for row in rows[:LIMIT])


def _without_workers(rows: Sequence[Process]) -> Iterator[Process]:
    """Yield the processes that opened their NPUs themselves: a data loader's worker inherits its parent's by fork.

    Sources: fork(2), open file descriptors; NVIDIA-NeMo/Megatron-Bridge#5984 (the same with the devices of GPUs).
    """
    devices = {row.pid: set(row.devices) for row in rows}
    return (row for row in rows if not set(row.devices) <= devices.get(row.ppid, set()))


def _rank(context: Context, row: Process) -> Rank:
    nodes = tuple(int(found[1]) for found in map(_NODE.fullmatch, row.devices) if found)
    path = f"/proc/{row.pid}/status"
    try:
        status = context.host.read(path)
    except Missing:
        ended = Message("process {pid} has just ended", pid=row.pid)
        return Rank(row, nodes, (), "", ended if context.host.live else host_error_text(NotRecorded(path)))
    except HostError as error:
        return Rank(row, nodes, (), "", host_error_text(error))
    cpus = allowed_cpus(status)
    reason = None if cpus else Message("{path} has no line for {name}", path=path, name="Cpus_allowed_list")
    return Rank(row, nodes, cpus, status, reason)


def _unknown(rank: Rank, reason: Text) -> Reading:
    return Reading(rank.subject, None, Evidence(rank.source), reason=rank.reason or reason)


def _evidence(rank: Rank) -> Evidence:
    return Evidence(rank.source, f"Cpus_allowed_list: {cpu_text(rank.cpus)}")


def _binder(context: Context, process: Process) -> Text:
    """Return what may have chosen the CPUs of a process."""
    if allowed_cpus(_status(context, process.pid)) == cpu_numbers(kernel_text(context.host, ONLINE)):
        return Message("all CPUs that are online")
    variables = process_environment(context.host, process.pid).variables or {}
    if variables.get("CPU_AFFINITY_CONF", "0")[:1] in ("1", "2"):
        return Message("bound by {name}", name=f"CPU_AFFINITY_CONF={variables['CPU_AFFINITY_CONF']}")
    name = next(_binding(context), None)
    return Message("bound") if name is None else Message("bound, perhaps by {name}", name=f"{name} (running)")


def _status(context: Context, pid: int) -> str:
    try:
        return context.host.read(f"/proc/{pid}/status")
    except HostError:
        return ""


def _binding(context: Context) -> Iterator[str]:
    """Yield the names of programs that bind processes and run on this host."""
    for row in context.host.processes():
        found = BINDERS.search(" ".join((row.name, *row.argv[:3])))
        if found is not None:
            yield found[1]
