"""Whether all NPUs are visible and healthy: npu-smi's table compared with the device nodes and the PCI bus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterable, Optional, Sequence

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Missing, NotApplicable, TimedOut, Undetermined
from envtune.messages import Message, Text
from envtune.model import Evidence, Reading, Source
from envtune.resources.npu.assigned import named_ranks
from envtune.resources.npu.devices import (
    NODES,
    PCI,
    SMI_TIMEOUT,
    Accelerator,
    SmiOutput,
    accelerators,
    device_nodes,
    in_container,
    smi_output,
    smi_undetermined,
)

if TYPE_CHECKING:
    from envtune.resources.npu.smi import NpuDevice, NpuTable

LISTED = Message("listed by npu-smi with Health OK")
NO_DEVICE = Message(
    "this container has no NPU (no /dev/davinciN): start it with its devices, or check the NPUs on the host"
)
TRUNCATED = Message("not among the devices npu-smi printed, but its output is incomplete")


@probe("npu.smi_answer")
def smi_answer(context: Context) -> Iterable[Reading]:
    """Whether npu-smi responds in time: `answers` or `no answer`."""
    expected = Message("a response within {seconds} s", seconds=int(SMI_TIMEOUT))
    try:
        output = smi_output(context)
    except Missing as error:
        raise NotApplicable(Message("npu-smi not found"), error.path) from None
    except TimedOut as error:
        shown = Message("no response within {seconds} s", seconds=int(SMI_TIMEOUT))
        return [Reading("npu-smi", "no answer", Evidence(error.path, str(error)), shown, expected)]
    if output.failure is not None and output.failure.code == "library":  # it has not reached the driver
        raise Undetermined(output.failure.meaning, output.source, output.text)
    answer = output.failure.meaning if output.failure is not None else Message("responds")
    return [Reading("npu-smi", "answers", Evidence(output.source, output.text), answer, expected)]


@probe("npu.health", formerly="npu_health.devices")
def devices(context: Context) -> Iterable[Reading]:
    """Health of each NPU, such as `OK` or `Warning`; `not listed` if npu-smi does not list it.

    Source: guide 003:3010-3022 (restart the server and all NPUs when they fail to come up), 003:3299 (`npu-smi info`);
    published outputs. Health words: OK, Warning, Alarm, Critical, UNKNOWN; dcmi_get_device_health calls the first four
    normal, minor, major and critical.
    """
    nodes = device_nodes(context)
    on_bus = _on_bus(context)
    try:
        output = smi_output(context)
    except Missing as error:
        return _without_smi(context, nodes, on_bus, error)
    if output.failure is not None:
        return [_failed(context, nodes, output)]
    table, evidence = output.table, Evidence(output.source, output.text)
    readings = [_health_reading(table, device) for device in table.devices]
    readings += _unlisted_nodes(table, nodes, evidence)
    if not in_container(context):
        readings += _unlisted_cards(table, on_bus, evidence)
    if table.incomplete is not None:
        return _only_unhealthy(readings, table.incomplete, evidence)
    if table.truncated and not nodes and not on_bus:
        return _only_unhealthy(readings, TRUNCATED, evidence)
    return readings


def _on_bus(context: Context) -> tuple[Accelerator, ...]:
    try:
        return accelerators(context)
    except HostError:
        return ()  # the device nodes still show which NPUs there are


def _without_smi(
    context: Context, nodes: Sequence[int], on_bus: Sequence[Accelerator], error: Missing
) -> Iterable[Reading]:
    if nodes:
        count = len(nodes)
        reason = Message("NPU device nodes: {count}; health unknown: npu-smi not found", count=count)
        raise Undetermined(reason, error.path)
    if in_container(context):
        return [_none_given(context, NODES)]
    if not on_bus:
        raise NotApplicable(Message("no NPU: no device node, nothing on PCI"), NODES)
    shown = Message("on PCI, but no driver is loaded for it: no device node, no npu-smi")
    return [_unlisted(card, shown, Evidence(f"{PCI}/{card.address}", card.device)) for card in on_bus]


def _none_given(context: Context, source: Source, text: str = "") -> Reading:
    """Judge a container without a device by the job: one with ranks fails there; otherwise raises Undetermined."""
    setting = named_ranks(context)
    if setting is None:
        raise Undetermined(NO_DEVICE, source, text)
    shown = Message("this container has no NPU (no /dev/davinciN), and the job has {setting}", setting=setting)
    return Reading("npu", "none", Evidence(source, text), shown, LISTED)


def _failed(context: Context, nodes: Sequence[int], output: SmiOutput) -> Reading:
    assert output.failure is not None
    if in_container(context) and not nodes:
        return _none_given(context, output.source, output.text)
    undetermined = smi_undetermined(context, output)
    if undetermined.needs_privilege or output.failure.code == "library":
        raise undetermined
    shown = Message("{code}: {meaning}", code=output.failure.code, meaning=output.failure.meaning)
    return Reading("npu-smi", output.failure.code, Evidence(output.source, output.text), shown, LISTED)


def device_label(table: NpuTable, device: NpuDevice) -> str:
    """Return `npu3`, by the number of its device node; `npu1-0` (NPU and chip) if the table does not contain it."""
    node = table.node(device)
    return f"npu{node}" if node is not None else f"npu{device.npu}-{device.chip}"


def _health_reading(table: NpuTable, device: NpuDevice) -> Reading:
    health = "OK" if device.health.upper() == "OK" else device.health
    return Reading(device_label(table, device), health, Evidence("npu-smi info", device.raw))


def _unlisted_nodes(table: NpuTable, nodes: Sequence[int], evidence: Evidence) -> list[Reading]:
    """Compare device nodes and table, both ways; nothing if no node was seen or the table has no numbers."""
    listed = [table.node(device) for device in table.devices]
    if not nodes:
        return []
    if None in listed:
        return [] if len(nodes) == len(listed) else [_miscounted(len(nodes), len(listed), evidence)]
    readings = []
    for number in sorted(set(nodes) - set(listed)):
        shown = Message("/dev/davinci{number} exists, but npu-smi does not list it", number=number)
        reason = TRUNCATED if table.truncated else None
        readings.append(Reading(f"npu{number}", "not listed", evidence, shown, LISTED, reason))
    seen = Evidence(NODES, " ".join(map(str, nodes)))
    for number in sorted(n for n in listed if n is not None and n not in nodes):
        shown = Message("npu-smi lists it, but /dev/davinci{number} does not exist", number=number)
        readings.append(Reading(f"npu{number}", "no device node", seen, shown, LISTED))
    return readings


def _miscounted(nodes: int, chips: int, evidence: Evidence) -> Reading:
    shown = Message("{nodes} device nodes, but npu-smi lists {chips} chips", nodes=nodes, chips=chips)
    return Reading("npu", f"{nodes} nodes, {chips} chips", evidence, shown, LISTED)


def _unlisted_cards(table: NpuTable, on_bus: Sequence[Accelerator], evidence: Evidence) -> list[Reading]:
    """Return the cards on PCI that npu-smi does not list; nothing if the table has no addresses."""
    if not on_bus or not all(device.bus for device in table.devices):
        return []
    addresses = {device.bus for device in table.devices}
    shown = Message("npu-smi does not list it")
    reason = TRUNCATED if table.truncated else None
    return [_unlisted(card, shown, evidence, reason) for card in on_bus if card.address not in addresses]


def _unlisted(card: Accelerator, shown: Text, evidence: Evidence, reason: Optional[Text] = None) -> Reading:
    return Reading(f"pci {card.address}", "not listed", evidence, shown, LISTED, reason)


def _only_unhealthy(readings: Sequence[Reading], reason: Text, evidence: Evidence) -> list[Reading]:
    """Return what a truncated output says about unhealthy devices; everything else is unknown, for `reason`."""
    unhealthy = [r for r in readings if r.reason is None and r.value not in ("OK", "not listed")]
    return [*unhealthy, Reading("npu", None, evidence, reason=reason)]
