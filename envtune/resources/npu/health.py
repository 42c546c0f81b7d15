"""Are all NPUs visible and healthy: npu-smi's table against the device nodes and the PCI bus."""

from __future__ import annotations

from typing import Iterable, Optional, Sequence

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Missing, NotApplicable, Undetermined
from envtune.messages import Message, Text
from envtune.model import Evidence, Reading
from envtune.resources.npu.devices import (
    NODES,
    PCI,
    Accelerator,
    accelerators,
    ask,
    device_nodes,
    in_container,
    lacks_privilege,
)
from envtune.resources.npu.smi import Failure, NpuDevice, NpuTable

LISTED = Message("listed by npu-smi with Health OK")
NO_DEVICE = Message(
    "this container was given no NPU (no /dev/davinciN): start it with its devices, or judge the NPUs on the host"
)
CUT = Message("not among the devices npu-smi printed, but its output breaks off")


@probe("npu.health", formerly="npu_health.devices")
def devices(context: Context) -> Iterable[Reading]:
    """Health of every NPU, and every NPU that a device node or the PCI bus shows but npu-smi does not list.

    Source: guide 003:3010-3022 (restart the server and all NPUs when they fail to come up), 003:3299 (`npu-smi info`);
    facts D4. Health words: OK, Warning, Alarm, Critical, UNKNOWN; dcmi_get_device_health calls the first four normal,
    minor, major and critical.
    """
    nodes = device_nodes(context)
    on_bus = _on_bus(context)
    try:
        answer = ask(context)
    except Missing as error:
        return _without_smi(context, nodes, on_bus, error)
    evidence = Evidence(answer.source, answer.text)
    if answer.failure is not None:
        return [_failed(context, nodes, answer.failure, evidence)]
    listed = answer.table
    found = [_health(listed, device) for device in listed.devices]
    found += _unlisted_nodes(listed, nodes, evidence)
    if not in_container(context):
        found += _unlisted_cards(listed, on_bus, evidence)
    if listed.incomplete is not None:
        return _doubtful(found, listed.incomplete, evidence)
    if listed.cut and not nodes and not on_bus:
        return _doubtful(found, CUT, evidence)
    return found


def _on_bus(context: Context) -> tuple[Accelerator, ...]:
    try:
        return accelerators(context)
    except HostError:
        return ()  # the bus is a second witness; the device nodes are the first


def _without_smi(
    context: Context, nodes: Sequence[int], on_bus: Sequence[Accelerator], error: Missing
) -> Iterable[Reading]:
    if nodes:
        count = len(nodes)
        raise Undetermined(
            Message("{count} device nodes are here, but npu-smi, which tells their health, is not", count=count),
            error.path,
        )
    if in_container(context):
        raise Undetermined(NO_DEVICE, NODES)
    if not on_bus:
        raise NotApplicable(Message("no NPU: no device node, nothing on PCI"), NODES)
    shown = Message("on PCI, but no driver serves it: no device node, no npu-smi")
    return [_lost(card, shown, Evidence(f"{PCI}/{card.address}", card.device)) for card in on_bus]


def _failed(context: Context, nodes: Sequence[int], failure: Failure, evidence: Evidence) -> Reading:
    if in_container(context) and not nodes:
        raise Undetermined(NO_DEVICE, evidence.source, evidence.text)
    if lacks_privilege(context, failure):
        raise Undetermined(failure.meaning, evidence.source, evidence.text, needs_privilege=True)
    if failure.code == "library":
        raise Undetermined(failure.meaning, evidence.source, evidence.text)
    meaning = failure.meaning
    shown = Message("{code}: {meaning}", code=failure.code, meaning=meaning)
    return Reading("npu-smi", failure.code, evidence, shown, LISTED)


def label(listed: NpuTable, device: NpuDevice) -> str:
    """`npu3`: the number of its device node; `npu1-0` (NPU and chip) where the table does not tell."""
    node = listed.node(device)
    return f"npu{node}" if node is not None else f"npu{device.npu}-{device.chip}"


def _health(listed: NpuTable, device: NpuDevice) -> Reading:
    health = "OK" if device.health.upper() == "OK" else device.health
    return Reading(label(listed, device), health, Evidence("npu-smi info", device.raw))


def _unlisted_nodes(listed: NpuTable, nodes: Sequence[int], evidence: Evidence) -> list[Reading]:
    """Device nodes against the table, both ways; nothing when no node was seen or the table gives no numbers."""
    known = [listed.node(device) for device in listed.devices]
    if not nodes:
        return []
    if None in known:
        return [] if len(nodes) == len(known) else [_miscounted(len(nodes), len(known), evidence)]
    found = []
    for number in sorted(set(nodes) - set(known)):
        text = Message("/dev/davinci{number} is there, but npu-smi does not list it", number=number)
        reason = CUT if listed.cut else None
        found.append(Reading(f"npu{number}", "not listed", evidence, text, LISTED, reason))
    for number in sorted(n for n in known if n is not None and n not in nodes):
        text = Message("npu-smi lists it, but /dev/davinci{number} is not there", number=number)
        found.append(
            Reading(f"npu{number}", "no device node", Evidence(NODES, " ".join(map(str, nodes))), text, LISTED)
        )
    return found


def _miscounted(nodes: int, chips: int, evidence: Evidence) -> Reading:
    shown = Message("{nodes} device nodes, but npu-smi lists {chips} chips", nodes=nodes, chips=chips)
    return Reading("npu", f"{nodes} nodes, {chips} chips", evidence, shown, LISTED)


def _unlisted_cards(listed: NpuTable, on_bus: Sequence[Accelerator], evidence: Evidence) -> list[Reading]:
    """Cards on PCI that npu-smi does not list; nothing when the table prints no addresses."""
    if not on_bus or not all(device.bus for device in listed.devices):
        return []
    listed_at = {device.bus for device in listed.devices}
    shown = Message("on PCI, but npu-smi does not list it")
    reason = CUT if listed.cut else None
    return [_lost(card, shown, evidence, reason) for card in on_bus if card.address not in listed_at]


def _lost(card: Accelerator, shown: Text, evidence: Evidence, reason: Optional[Text] = None) -> Reading:
    return Reading(f"pci {card.address}", "not listed", evidence, shown, LISTED, reason)


def _doubtful(found: Sequence[Reading], reason: Text, evidence: Evidence) -> list[Reading]:
    """A text that breaks off: what it says of a sick device stands, everything else is untold."""
    sick = [reading for reading in found if reading.reason is None and reading.value not in ("OK", "not listed")]
    return [*sick, Reading("npu", None, evidence, reason=reason)]
