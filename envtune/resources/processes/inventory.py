"""Every NPU of a host with what is known about it: model, health, temperature, memory, and the processes on it."""

from __future__ import annotations

from typing import Iterable, Iterator, Mapping, Optional, Sequence

from envtune.context import Context
from envtune.errors import HostError, Missing, TimedOut, Verdict, failure_text, host_error_text
from envtune.messages import Literal, Message, Text
from envtune.records import NamedTuple
from envtune.resources.npu.devices import (
    MODELS,
    SMI_TIMEOUT,
    SmiOutput,
    accelerators,
    device_nodes,
    in_container,
    smi_output,
)
from envtune.resources.npu.health import device_label
from envtune.resources.npu.smi import MemoryUsage, NpuDevice
from envtune.resources.processes.usage import DeviceProcess, DeviceUsage, device_usage

COLUMNS = ("model", "health", "temperature", "memory", "processes")
NOT_LISTED = Message("the device node exists, but npu-smi does not list it")
NO_NODE = Message("on PCI, but npu-smi does not list it")


class NpuRow(NamedTuple):
    """One NPU; None means unknown, and `unknown` says why, by column. Temperature in C, memory in MB."""

    subject: str
    model: Optional[str]
    health: Optional[str]
    temperature: Optional[float]
    memory: Optional[MemoryUsage]
    processes: Optional[tuple[DeviceProcess, ...]]
    bus: str
    unknown: Mapping[str, Text]


def inventory(context: Context) -> tuple[NpuRow, ...]:
    """Return every NPU shown by npu-smi, the device nodes or the PCI bus, in this order; empty if there are none."""
    output, reason = _smi(context)
    devices = output.table.devices if output is not None else ()
    usages, no_usage = _usages(context)
    rows = []
    for device in devices:
        assert output is not None
        subject = device_label(output.table, device)
        rows.append(_listed(subject, _model(context, device), device, usages.get(subject), no_usage))
    return (*rows, *_unlisted(context, output, usages, reason, no_usage))


def _smi(context: Context) -> tuple[Optional[SmiOutput], Text]:
    """Return npu-smi's table, None if there is none; and why other devices are unknown."""
    try:
        output = smi_output(context)
    except Missing:
        return None, Message("npu-smi not found")
    except TimedOut:
        return None, Message("npu-smi did not respond within {seconds} s: the driver hangs", seconds=int(SMI_TIMEOUT))
    except HostError as error:
        return None, host_error_text(error)
    if output.failure is not None:
        return None, output.failure.meaning
    return output, output.table.incomplete or NOT_LISTED


def _usages(context: Context) -> tuple[Mapping[str, DeviceUsage], Text]:
    try:
        return {usage.subject: usage for usage in device_usage(context)}, Literal("")
    except Verdict as verdict:
        return {}, failure_text(verdict)
    except HostError as error:
        return {}, host_error_text(error)


def _model(context: Context, device: NpuDevice) -> str:
    """Return the chip's name; A3 prints `Ascend910`, which is less precise than what is known about the host."""
    return context.facts.value("npu") or device.name if device.name == "Ascend910" else device.name


def _listed(subject: str, model: str, device: NpuDevice, usage: Optional[DeviceUsage], no_usage: Text) -> NpuRow:
    memory = next((one for one in (device.hbm, device.memory) if one is not None and one.total), None)
    processes, why = _processes(usage, no_usage)
    unknown: dict[str, Text] = {}
    if device.temp is None:
        unknown["temperature"] = Message("npu-smi does not show it")
    if memory is None:
        unknown["memory"] = Message("npu-smi does not show it")
    if why is not None:
        unknown["processes"] = why
    return NpuRow(subject, model, device.health, device.temp, memory, processes, device.bus, unknown)


def _processes(
    usage: Optional[DeviceUsage], no_usage: Text
) -> tuple[Optional[tuple[DeviceProcess, ...]], Optional[Text]]:
    """Return the processes on a device, and why they are unknown or possibly incomplete."""
    if usage is None:
        return None, no_usage if no_usage.en else NOT_LISTED
    return usage.processes, usage.reason


def _unlisted(
    context: Context, output: Optional[SmiOutput], usages: Mapping[str, DeviceUsage], reason: Text, no_usage: Text
) -> Iterator[NpuRow]:
    """Yield the device nodes that npu-smi does not list or, if there are none, the cards on PCI."""
    table = output.table if output is not None else None
    listed = {table.node(device) for device in table.devices} if table is not None else set()
    nodes = [] if None in listed else [number for number in device_nodes(context) if number not in listed]
    model = context.facts.value("npu")
    for number in nodes:
        subject = f"npu{number}"
        yield _bare(subject, None if model == "none" else model, "", reason, usages.get(subject), no_usage)
    if not nodes and not in_container(context):
        for address, device in _cards(context, table.devices if table is not None else ()):
            why = NO_NODE if table is not None else reason
            yield _bare(f"pci {address}", MODELS.get(device), address, why, None, why)


def _cards(context: Context, devices: Sequence[NpuDevice]) -> Iterable[tuple[str, str]]:
    try:
        cards = accelerators(context)
    except HostError:
        return ()
    known = {device.bus for device in devices}
    return () if "" in known else [(card.address, card.device) for card in cards if card.address not in known]


def _bare(
    subject: str, model: Optional[str], bus: str, reason: Text, usage: Optional[DeviceUsage], no_usage: Text
) -> NpuRow:
    """Return the row of a device that npu-smi does not report."""
    processes, why = _processes(usage, no_usage)
    unknown = dict.fromkeys(("health", "temperature", "memory"), reason)
    if model is None:
        unknown["model"] = reason
    if why is not None:
        unknown["processes"] = why
    return NpuRow(subject, model, None, None, None, processes, bus, unknown)
