"""CPUs that are offline or isolated, NUMA nodes without memory, and the idle states of the CPUs.

Sources: kernel, Documentation/admin-guide/cputopology.rst, cpu-hotplug (core-api/cpu_hotplug.rst),
Documentation/ABI/stable/sysfs-devices-node, admin-guide/kernel-parameters.txt (isolcpus), admin-guide/pm/cpuidle.rst.
"""

from __future__ import annotations

import posixpath
from typing import Iterable

from envtune.context import Context
from envtune.context.registry import fact, probe
from envtune.errors import HostError, NotApplicable, Undetermined
from envtune.host import Host
from envtune.messages import Literal, Message
from envtune.model import Evidence, Fact, Reading
from envtune.ranges import cpu_numbers, join_subjects, whole_number
from envtune.resources.files.kernel import kernel_files, kernel_text

CPUS = "/sys/devices/system/cpu"
NODES = "/sys/devices/system/node"


def cpu_text(numbers: Iterable[int]) -> str:
    """Return CPUs in the kernel's list format: `0-3,8`."""
    return join_subjects(f"cpu{number}" for number in sorted(numbers)).replace("cpu", "").replace(", ", ",") or "-"


@probe("cpu.offline")
def offline(context: Context) -> Iterable[Reading]:
    """Number of offline CPUs; not applicable if hyper-threading is turned off."""
    host = context.host
    path = f"{CPUS}/present"
    present, online = cpu_numbers(kernel_text(host, path)), cpu_numbers(kernel_text(host, f"{CPUS}/online"))
    if not present or not online:
        raise Undetermined(Message("{path} is not a CPU list", path=path), path)
    missing = sorted(set(present) - set(online))
    evidence = Evidence(path, f"present {cpu_text(present)}, online {cpu_text(online)}")
    if missing and _threads_turned_off(host):
        raise NotApplicable(Message("hyper-threads are turned off (smt/control)"), f"{CPUS}/smt/control")
    subject = join_subjects(f"cpu{number}" for number in missing or present)
    shown = Message("{count} of {all} CPUs are offline", count=len(missing), all=len(present))
    return [Reading(subject, len(missing), evidence, shown)]


@fact("smt")
def fact_smt(context: Context) -> Fact:
    """Hyper-threading: `on` or `off`; `none` if the CPU does not support it."""
    path = f"{CPUS}/smt/control"
    text = context.host.read(path).strip()
    return Fact("smt", {"forceoff": "off", "notsupported": "none", "notimplemented": "none"}.get(text, text), path)


def _threads_turned_off(host: Host) -> bool:
    try:
        return host.read(f"{CPUS}/smt/control").strip() in ("off", "forceoff")
    except HostError:
        return False


@probe("cpu.nodes_without_memory")
def nodes_without_memory(context: Context) -> Iterable[Reading]:
    """Number of NUMA nodes that have CPUs but no memory."""
    host = context.host
    path = f"{NODES}/has_memory"
    memory, cpus = cpu_numbers(kernel_text(host, path)), cpu_numbers(kernel_text(host, f"{NODES}/has_cpu"))
    if not memory or not cpus:
        raise Undetermined(Message("{path} does not list any node", path=path), path)
    bare = sorted(set(cpus) - set(memory))
    subject = join_subjects(f"node{number}" for number in bare or cpus)
    evidence = Evidence(path, f"has_cpu {cpu_text(cpus)}, has_memory {cpu_text(memory)}")
    shown = Message("{count} of {all} nodes with CPUs have no memory", count=len(bare), all=len(cpus))
    return [Reading(subject, len(bare), evidence, shown)]


@probe("cpu.isolated")
def isolated(context: Context) -> Iterable[Reading]:
    """Number of isolated CPUs (isolcpus) among the CPUs that the job may use."""
    host = context.host
    path = f"{CPUS}/isolated"
    kept = cpu_numbers(kernel_text(host, path).strip().strip("()"))
    if not kept:
        raise NotApplicable(Message("no CPU is isolated"), path)
    pid = context.target.options.pid
    status = f"/proc/{'self' if pid is None else pid}/status"
    allowed = allowed_cpus(host.read(status))
    if not allowed:
        raise Undetermined(Message("{path} has no line for {name}", path=status, name="Cpus_allowed_list"), status)
    both = sorted(set(kept) & set(allowed))
    subject = join_subjects(f"cpu{number}" for number in both or kept)
    shown = Message("{count} of the job's {all} CPUs are isolated", count=len(both), all=len(allowed))
    return [Reading(subject, len(both), Evidence(path, f"isolated {cpu_text(kept)}"), shown)]


def allowed_cpus(status: str) -> tuple[int, ...]:
    """Return the CPUs of `Cpus_allowed_list` in a /proc/PID/status; empty if it has no such line."""
    for line in status.splitlines():
        if line.startswith("Cpus_allowed_list:"):
            return cpu_numbers(line.partition(":")[2])
    return ()


@probe("cpu.idle_states", unit="us")
def idle_states(context: Context) -> Iterable[Reading]:
    """Longest exit latency of the enabled idle states of CPU 0, in microseconds."""
    host = context.host
    states = []
    for path in kernel_files(host, f"{CPUS}/cpu0/cpuidle/state*/latency"):
        folder = posixpath.dirname(path)
        latency = whole_number(host.read(path))
        if latency is None:
            raise Undetermined(Message("{path} is not a number", path=path), path)
        if host.read(f"{folder}/disable").strip() == "0":
            states.append((latency, host.read(f"{folder}/name").strip()))
    if not states:
        raise NotApplicable(Message("every idle state is disabled"), f"{CPUS}/cpu0/cpuidle")
    latency, name = max(states)
    evidence = Evidence(f"{CPUS}/cpu0/cpuidle", ", ".join(f"{name} {latency}" for latency, name in states))
    return [Reading("cpu0", latency, evidence, Literal(f"{name}: {latency} us"))]
