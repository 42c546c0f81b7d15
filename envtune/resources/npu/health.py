"""Are all NPUs visible and healthy: npu-smi's table against the device nodes and the PCI bus."""

from __future__ import annotations

from typing import Iterable, Optional, Sequence

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Missing, NotApplicable, Undetermined
from envtune.model import Evidence, Reading, Text
from envtune.resources.npu.devices import (
    NODES,
    PCI,
    Accelerator,
    accelerators,
    ask,
    device_nodes,
    in_container,
    lacks_right,
)
from envtune.resources.npu.smi import Failure, NpuDevice, NpuTable

LISTED = Text("listed by npu-smi with Health OK", "在 npu-smi 中列出且 Health 为 OK")
NO_DEVICE = Text(
    "this container was given no NPU (no /dev/davinciN): start it with its devices, or judge the NPUs on the host",
    "该容器未映射 NPU 设备（没有 /dev/davinciN）：请在启动容器时映射设备，或在宿主机上检查",
)
CUT = Text("not among the devices npu-smi printed, but its output breaks off", "npu-smi 的输出不完整，其中没有该设备")


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
            Text(
                f"{count} device nodes are here, but npu-smi, which tells their health, is not",
                f"有 {count} 个设备节点，但没有 npu-smi，无法得知其健康状态",
            ),
            error.path,
        )
    if in_container(context):
        raise Undetermined(NO_DEVICE, NODES)
    if not on_bus:
        raise NotApplicable(Text("no NPU: no device node, nothing on PCI", "没有 NPU：无设备节点，PCI 上也没有"), NODES)
    shown = Text(
        "on PCI, but no driver serves it: no device node, no npu-smi",
        "PCI 上存在，但驱动未加载：无设备节点，无 npu-smi",
    )
    return [_lost(card, shown, Evidence(f"{PCI}/{card.address}", card.device)) for card in on_bus]


def _failed(context: Context, nodes: Sequence[int], failure: Failure, evidence: Evidence) -> Reading:
    if in_container(context) and not nodes:
        raise Undetermined(NO_DEVICE, evidence.source, evidence.text)
    if lacks_right(context, failure):
        raise Undetermined(failure.meaning, evidence.source, evidence.text, right=True)
    if failure.code == "library":
        raise Undetermined(failure.meaning, evidence.source, evidence.text)
    meaning = failure.meaning
    shown = Text(f"{failure.code}: {meaning.en}", f"{failure.code}：{meaning.zh}")
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
        text = Text(
            f"/dev/davinci{number} is there, but npu-smi does not list it",
            f"存在 /dev/davinci{number}，但 npu-smi 未列出",
        )
        reason = CUT if listed.cut else None
        found.append(Reading(f"npu{number}", "not listed", evidence, text, LISTED, reason))
    for number in sorted(n for n in known if n is not None and n not in nodes):
        text = Text(
            f"npu-smi lists it, but /dev/davinci{number} is not there", f"npu-smi 已列出，但没有 /dev/davinci{number}"
        )
        found.append(
            Reading(f"npu{number}", "no device node", Evidence(NODES, " ".join(map(str, nodes))), text, LISTED)
        )
    return found


def _miscounted(nodes: int, chips: int, evidence: Evidence) -> Reading:
    shown = Text(
        f"{nodes} device nodes, but npu-smi lists {chips} chips", f"设备节点 {nodes} 个，npu-smi 列出芯片 {chips} 个"
    )
    return Reading("npu", f"{nodes} nodes, {chips} chips", evidence, shown, LISTED)


def _unlisted_cards(listed: NpuTable, on_bus: Sequence[Accelerator], evidence: Evidence) -> list[Reading]:
    """Cards on PCI that npu-smi does not list; nothing when the table prints no addresses."""
    if not on_bus or not all(device.bus for device in listed.devices):
        return []
    listed_at = {device.bus for device in listed.devices}
    shown = Text("on PCI, but npu-smi does not list it", "PCI 上存在，但 npu-smi 未列出")
    reason = CUT if listed.cut else None
    return [_lost(card, shown, evidence, reason) for card in on_bus if card.address not in listed_at]


def _lost(card: Accelerator, shown: Text, evidence: Evidence, reason: Optional[Text] = None) -> Reading:
    return Reading(f"pci {card.address}", "not listed", evidence, shown, LISTED, reason)


def _doubtful(found: Sequence[Reading], reason: Text, evidence: Evidence) -> list[Reading]:
    """A text that breaks off: what it says of a sick device stands, everything else is untold."""
    sick = [reading for reading in found if reading.reason is None and reading.value not in ("OK", "not listed")]
    return [*sick, Reading("npu", None, evidence, reason=reason)]
