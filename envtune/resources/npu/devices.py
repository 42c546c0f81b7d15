"""Which NPUs this host has: PCI devices, device nodes and what npu-smi lists; facts `npu`, `npu_count`, `ascend`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Mapping, Optional

from envtune.context import Context
from envtune.context.registry import fact
from envtune.errors import HostError, Missing, NotRecorded, Undetermined, host_error_text
from envtune.host import exists
from envtune.messages import Message
from envtune.model import Fact
from envtune.records import NamedTuple

if TYPE_CHECKING:  # importing it takes some milliseconds, unnecessary on a host without npu-smi
    from envtune.resources.npu.smi import Failure, NpuTable

SMI = ("npu-smi", "info")
SMI_PATHS = ("/usr/local/sbin/npu-smi", "/usr/local/bin/npu-smi", "/usr/bin/npu-smi", "/usr/sbin/npu-smi")
SMI_TIMEOUT = 15.0  # seconds, less than a check has; eight cards take a few, a faulty driver far more
NODES = "/dev/davinci[0-9]*"
MANAGER = "/dev/davinci_manager"
PCI = "/sys/bus/pci/devices"
DRIVER = "/usr/local/Ascend/driver/version.info"
TOOLKITS = ("ascend-toolkit", "nnae", "cann", "nnrt", "latest")  # below /usr/local/Ascend

HUAWEI = "0x19e5"
ACCELERATOR = "0x12"  # PCI base class "processing accelerators"; Huawei's network and storage functions have others
# Source: published outputs of lspci, and PCI Device ID of `npu-smi info -t board`.
MODELS: Mapping[str, str] = {"0xd801": "910A", "0xd802": "910B", "0xd803": "A3", "0xd500": "310P", "0xd100": "310"}
TRAINING_FIRST = ("A3", "910B", "910A", "310P", "310")
# Chip names of the first 910 generation: torch_npu's list of SoC versions, values 100-104 (NpuVariables.cpp).
FIRST_910 = ("910a", "910proa", "910premiuma", "910b", "910prob")


class Accelerator(NamedTuple):
    """A Huawei accelerator on PCI: address in lower case, PCI device id such as 0xd802."""

    address: str
    device: str


class SmiOutput(NamedTuple):
    """The output of `npu-smi info`: a table, or the failure instead (then the table is empty)."""

    table: NpuTable
    failure: Optional[Failure]
    text: str
    source: str = "npu-smi info"


def accelerators(context: Context) -> tuple[Accelerator, ...]:
    """Return the Huawei accelerators on PCI without virtual functions (vNPUs); NotRecorded if a snapshot lacks them."""
    return context.cached(_accelerators)


def _accelerators(context: Context) -> tuple[Accelerator, ...]:
    host = context.host
    found = []
    for path in host.glob(f"{PCI}/*/vendor"):
        folder = path.rpartition("/")[0]
        try:
            if host.read(path).strip().lower() != HUAWEI:
                continue
            device = host.read(f"{folder}/device").strip().lower()
            if _is_accelerator(context, folder, device):
                found.append(Accelerator(folder.rpartition("/")[2].lower(), device))
        except Missing:
            continue
    return tuple(found)


def _is_accelerator(context: Context, folder: str, device: str) -> bool:
    """Return whether a Huawei function is an accelerator and not virtual."""
    host = context.host
    try:
        known = device in MODELS or host.read(f"{folder}/class").strip().startswith(ACCELERATOR)
        return known and not exists(host, f"{folder}/physfn")
    except NotRecorded:
        return True  # an older recorder: no class file, nothing about virtual functions


def device_nodes(context: Context) -> tuple[int, ...]:
    """Return N of every /dev/davinciN (davinci_manager and vNPU nodes do not count)."""
    suffixes = (path[len("/dev/davinci") :] for path in context.host.glob(NODES))
    return tuple(sorted(int(text) for text in suffixes if text.isascii() and text.isdecimal() and len(text) < 5))


def smi_output(context: Context) -> SmiOutput:
    """Return what `npu-smi info` prints, run at most once.

    Raises Missing if it is not installed, TimedOut if the driver does not answer.
    """
    return context.cached(_run_smi)


def _run_smi(context: Context) -> SmiOutput:
    host = context.host
    if host.live and not _installed(context):
        raise Missing(" ".join(SMI), "command not found")  # without the cost of a process
    try:
        result = host.run(SMI, timeout=SMI_TIMEOUT)
    except NotRecorded:
        if _installed(context):
            raise
        raise Missing(" ".join(SMI), "command not found") from None
    from envtune.resources.npu.smi import parse_failure, parse_info

    text = result.stdout + (f"\n{result.stderr}" if result.stderr.strip() else "")
    table = parse_info(result.stdout)
    return SmiOutput(table, None if table.devices else parse_failure(text, result.returncode), text)


def _installed(context: Context) -> bool:
    return any(exists(context.host, path) for path in SMI_PATHS)


def complete_table(context: Context) -> NpuTable:
    """Return the complete table of npu-smi; raises Undetermined with the reason if there is none."""
    output = smi_output(context)
    if output.failure is not None:
        raise smi_undetermined(context, output)
    if output.table.incomplete is not None:
        raise Undetermined(output.table.incomplete, output.source, output.text)
    return output.table


def smi_undetermined(context: Context, output: SmiOutput) -> Undetermined:
    """Return what a failure of npu-smi leaves undetermined, and whether root would see more."""
    assert output.failure is not None
    privilege = lacks_privilege(context, output.failure)
    return Undetermined(output.failure.meaning, output.source, output.text, needs_privilege=privilege)


def lacks_privilege(context: Context, failure: Failure) -> bool:
    """Return whether this failure may only mean that this user cannot open the device nodes."""
    if not failure.needs_privilege or context.host.euid == 0:
        return False
    try:
        node = context.host.stat(MANAGER)
    except HostError:
        return False
    return node.uid != context.host.euid and node.mode & 0o006 != 0o006


def in_container(context: Context) -> bool:
    """Return whether the device nodes are only those that a container was given."""
    return context.facts.value("container") == "true"


# ---------------------------------------------------------------------------------------------------- facts


@fact("npu")
def fact_npu(context: Context) -> Fact:
    """NPU model: `910A`, `910B`, `A3`, `310P`, `310` or the name of the chip; `none` without an NPU."""
    try:
        cards = accelerators(context)
    except HostError:
        cards = ()  # npu-smi may still name the model
    models = {MODELS[card.device] for card in cards if card.device in MODELS}
    if models:
        return Fact("npu", next(model for model in TRAINING_FIRST if model in models), f"{PCI}/*/device")
    none = Fact("npu", "none", f"{PCI}, {NODES}, npu-smi")
    try:
        output = smi_output(context)
    except Missing:
        if not cards and not device_nodes(context):
            return none
        return Fact("npu", None, NODES, Message("npu-smi, which shows the model, was not found"))
    if output.failure is not None:
        if not cards and not device_nodes(context):
            return none
        return Fact("npu", None, output.source, output.failure.meaning)
    if not output.table.devices:
        return Fact("npu", None, output.source, output.table.incomplete)
    return Fact("npu", table_model(output.table), output.source)


def table_model(table: NpuTable) -> str:
    """Return the model from the table's Name column.

    `910A`, `910ProB` and a bare `910B` are the first generation, `910B1` to `910B4` the second; A3 prints `Ascend910`
    (torch_npu maps it to 910_93). The memory columns decide if a bare name is ambiguous: only the first generation
    has DDR in addition to 32 GB of HBM (public listings of npu-smi on 910A, 910B and A3).
    """
    device = table.devices[0]
    chip = device.name.lower().replace(" ", "").replace("ascend", "", 1)
    first = device.hbm is None or (device.hbm.total < 40000 and (device.memory is None or device.memory.total > 0))
    if chip in FIRST_910:
        return "910A" if first or chip != "910b" else "910B"
    if chip == "910":
        return "910A" if first and device.node is None else "A3"
    if chip.startswith(("910_93", "910c")):
        return "A3"
    if chip.startswith("910b") and chip[4:5].isdecimal():
        return "910B"
    if chip.startswith("310p"):
        return "310P"
    return "310" if chip == "310" else device.name


@fact("npu_count")
def fact_npu_count(context: Context) -> Fact:
    """Number of NPUs that a job on this host can use."""
    nodes = device_nodes(context)
    if nodes:
        return Fact("npu_count", str(len(nodes)), NODES)
    try:
        output = smi_output(context)
        if output.table.devices and output.table.incomplete is not None:
            return Fact("npu_count", None, output.source, output.table.incomplete)
        if output.table.devices:
            return Fact("npu_count", str(len(output.table.devices)), output.source)
    except (Missing, NotRecorded):
        pass
    if in_container(context):
        return Fact("npu_count", "0", NODES)
    try:
        return Fact("npu_count", str(len(accelerators(context))), PCI)
    except NotRecorded as error:
        return Fact("npu_count", None, PCI, host_error_text(error))


@fact("ascend")
def fact_ascend(context: Context) -> Fact:
    """Whether this host has any Ascend component: an NPU, the driver, CANN, torch_npu or npu-smi."""
    failure: Optional[HostError] = None
    for find_sign in (_node_sign, _tree_sign, _bus_sign, _software_sign, _smi_sign):
        try:
            source = find_sign(context)
        except HostError as error:
            failure = error
            continue
        if source:
            return Fact("ascend", "true", source)
    searched = f"{NODES}, {DRIVER}, CANN, {PCI}, torch_npu, npu-smi"
    if failure is not None:
        return Fact("ascend", None, searched, host_error_text(failure))
    return Fact("ascend", "false", searched)


@fact("ascend_job")
def fact_ascend_job(context: Context) -> Fact:
    """Whether an NPU job is checked: a job was given, or this host has an Ascend component.

    Naming the job's other hosts also implies a job. If none is named, the fact is `ascend` itself, so that this is the
    reason given for a check that does not apply.
    """
    if context.target.options.named or context.target.options.peers:
        return Fact("ascend_job", "true", context.target.environment.description)
    return context.facts["ascend"]


def runs_elsewhere(context: Context) -> bool:
    """Return whether the job's files are judged on a host without any Ascend component, where it cannot run.

    What is not here (a device, a package, a directory) then says nothing about the job. A process runs where it is.
    """
    options = context.target.options
    return options.named and options.pid is None and context.facts.value("ascend") != "true"


ELSEWHERE = Message("this host has no Ascend component, and the job's host was not read")


def _node_sign(context: Context) -> str:
    return NODES if device_nodes(context) else ""


def _tree_sign(context: Context) -> str:
    paths = (DRIVER, *(f"/usr/local/Ascend/{name}" for name in TOOLKITS))
    return next((path for path in paths if exists(context.host, path)), "")


def _bus_sign(context: Context) -> str:
    return next((f"{PCI}/{card.address}" for card in accelerators(context)), "")


def _software_sign(context: Context) -> str:
    facts = (context.facts[name] for name in ("cann", "torch_npu"))
    return next((str(fact.source) for fact in facts if fact.value not in (None, "", "none", "false")), "")


def _smi_sign(context: Context) -> str:
    try:
        return " ".join(SMI) if _installed(context) or smi_output(context).table.devices else ""
    except Missing:
        return ""
