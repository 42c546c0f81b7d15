"""Which CPUs handle the interrupts of the network interfaces.

Each queue of a card has its own interrupt, listed in `msi_irqs` of the card's PCI device; the CPUs that handle it are
in `effective_affinity_list`. Sources: kernel, Documentation/ABI/testing/sysfs-bus-pci (msi_irqs),
Documentation/ABI/testing/sysfs-class-net (operstate), core-api/irq/irq-affinity.rst, networking/scaling.rst (queues of
a card spread over CPUs); irqbalance(1).
"""

from __future__ import annotations

from typing import Iterable, Sequence

from envtune.collector.sources.cpu import CARDS, INTERRUPTS, INTERRUPTS_EACH, QUEUES
from envtune.collector.sources.npu import INTERRUPT as NPU_INTERRUPT
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Missing, NotApplicable, NotRecorded
from envtune.host import Host
from envtune.messages import Message, Text, clauses
from envtune.model import Evidence, Reading
from envtune.ranges import cpu_numbers
from envtune.resources.cpu.topology import cpu_text


@probe("cpu.network_interrupts")
def interrupts(context: Context) -> Iterable[Reading]:
    """Number of CPUs that handle the interrupts of each network card that is up (at most 16 are read per card)."""
    host = context.host
    cards = [folder for folder in host.glob(QUEUES) if _is_up(host, folder.split("/")[4])][:CARDS]
    queues = {folder.split("/")[4]: _numbers(host, folder) for folder in cards}
    queues = {name: numbers for name, numbers in queues.items() if len(numbers) > 1}
    if not queues:
        raise NotApplicable(Message("no network card that is up has several interrupts"), QUEUES)
    return [_reading(context, name, numbers) for name, numbers in queues.items()]


def _is_up(host: Host, name: str) -> bool:
    try:
        return host.read(f"/sys/class/net/{name}/operstate").strip() == "up"
    except (Missing, NotRecorded):
        return False


def _numbers(host: Host, folder: str) -> Sequence[int]:
    return sorted(int(name) for name in host.listdir(folder) if name.isdecimal())[:INTERRUPTS_EACH]


def _reading(context: Context, name: str, numbers: Sequence[int]) -> Reading:
    cpus: set[int] = set()
    looked_at = 0
    for number in numbers:
        try:
            cpus.update(cpu_numbers(context.host.read(INTERRUPTS % number)))
            looked_at += 1
        except Missing:
            continue  # belongs to an unused queue
    evidence = Evidence("/proc/irq/*/effective_affinity_list", f"{numbers[0]}-{numbers[-1]}: {cpu_text(cpus)}")
    if looked_at < 2 or not cpus:
        return Reading(name, None, evidence, reason=Message("the CPUs of its interrupts are unknown"))
    parts: list[Text] = [Message("{count} interrupts on CPUs {cpus}", count=looked_at, cpus=cpu_text(cpus))]
    both = cpus & _npu_cpus(context.host) if len(cpus) == 1 else set()
    if both:
        parts.append(Message("as well as interrupts of NPUs"))
    if len(cpus) == 1 and not any(row.name == "irqbalance" for row in context.host.processes()):
        parts.append(Message("irqbalance is not running"))
    return Reading(name, len(cpus), evidence, clauses(parts))


def _npu_cpus(host: Host) -> set[int]:
    """Return the CPUs that handle interrupts of NPUs; none if unknown."""
    found: set[int] = set()
    try:
        for path in host.glob(NPU_INTERRUPT):
            found.update(cpu_numbers(host.read(INTERRUPTS % int(path.split("/")[3]))))
    except (HostError, ValueError):
        return set()
    return found
