"""Which CPUs are near an NPU, and which CPUs handle its interrupts.

The kernel lists the CPUs of a PCI device's NUMA node in `local_cpulist`; if it knows no node (`numa_node` -1, as on
some boards) npu-smi does: `npu-smi info -t topo`, a table with `CPU Affinity` as one of the last columns. Sources:
kernel, Documentation/ABI/testing/sysfs-bus-pci and core-api/irq/irq-affinity.rst; Ascend/msprof, misc/host_analyzer
(sq_send_trigger_irq).
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Iterable, Mapping, Optional

from envtune.collector.sources.npu import INTERRUPT, TOPOLOGY
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Missing, NotApplicable, Undetermined
from envtune.messages import Message, enumerated
from envtune.model import Evidence, Reading
from envtune.ranges import cpu_numbers
from envtune.resources.npu.devices import PCI, SMI_TIMEOUT, complete_table

_ROW = re.compile(r"(?m)^\s*(?:NPU|Phy-ID)\s*(\d{1,4})\s+(\S.*)$")
_LINE = re.compile(r"(?mi)^\s*CPU Affinity\s*:\s*([\d,-]+)\s*$")


def near_cpus(context: Context) -> Mapping[int, tuple[int, ...]]:
    """Return the CPUs near each NPU, by N of its /dev/davinciN; raises a Verdict or HostError if none is known."""
    return context.cached(_near_cpus)


def _near_cpus(context: Context) -> Mapping[int, tuple[int, ...]]:
    table = complete_table(context)
    places = {table.node(device): _local_cpus(context, device.bus) for device in table.devices if device.bus}
    known = {node: cpus for node, cpus in places.items() if node is not None and cpus}
    return known or _listed(context)


def _local_cpus(context: Context, address: str) -> tuple[int, ...]:
    """Return the CPUs of a device's NUMA node; none if the kernel knows no node."""
    host, folder = context.host, f"{PCI}/{address}"
    try:
        if host.read(f"{folder}/numa_node").strip() == "-1":
            return ()
        return cpu_numbers(host.read(f"{folder}/local_cpulist"))
    except Missing:
        raise NotApplicable(Message("this kernel does not show NUMA nodes of devices"), folder) from None


def _listed(context: Context) -> Mapping[int, tuple[int, ...]]:
    """Return the CPUs listed by npu-smi."""
    source = " ".join(TOPOLOGY)
    text = context.host.run(TOPOLOGY, timeout=SMI_TIMEOUT).stdout
    found = parse_topology(text)
    if not found:
        raise Undetermined(Message("neither the kernel nor npu-smi shows the NPUs' NUMA nodes"), source, text)
    return found


def parse_topology(text: str) -> Mapping[int, tuple[int, ...]]:
    """Return the column `CPU Affinity` of `npu-smi info -t topo` by NPU; empty for text without it.

    A listing of a single card has no table but a line `CPU Affinity : 0-23`; its card counts as NPU 0.
    """
    if "CPU Affinity" not in text:
        return {}
    single = _LINE.search(text)
    if single is not None:
        return {0: cpu_numbers(single[1])}
    found = {}
    for number, rest in _ROW.findall(text):
        cpus = _first_list(rest.split())
        if cpus:
            found[int(number)] = cpus
    return found


def _first_list(words: list[str]) -> tuple[int, ...]:
    """Return the first of the CPU lists at the end of a row: what follows is the NUMA node."""
    last: tuple[int, ...] = ()
    for word in reversed(words):
        numbers = cpu_numbers(word)
        if not numbers:
            break
        last = numbers
    return last


@probe("npu.interrupts")
def interrupts(context: Context) -> Iterable[Reading]:
    """Number of CPUs that handle the task interrupts of all NPUs (`sq_send_trigger_irq`)."""
    host = context.host
    paths = host.glob(INTERRUPT)
    if len(paths) < 2:
        raise NotApplicable(Message("fewer than two NPUs have an interrupt of this kind"), INTERRUPT)
    handled: Counter[str] = Counter()
    failure: Optional[HostError] = None
    for path in paths:
        number = path.split("/")[3]
        try:
            handled[host.read(f"/proc/irq/{number}/effective_affinity_list").strip()] += 1
        except HostError as error:
            failure = error
    if failure is not None:
        raise failure
    names = ", ".join(sorted(handled, key=lambda cpus: (len(cpus), cpus)))
    shown = Message("{count} NPU interrupts on {cpus}", count=len(paths), cpus=enumerated(f"cpu{names}".split(", ")))
    evidence = Evidence("/proc/irq/*/effective_affinity_list", names)
    cpus = {cpu for text in handled for cpu in cpu_numbers(text)}
    return [Reading("sq_send_trigger_irq", len(cpus), evidence, shown)]
