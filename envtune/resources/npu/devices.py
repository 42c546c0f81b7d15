"""Which NPUs this host has: PCI devices, device nodes and what npu-smi lists. Facts `npu`, `npu_count`, `ascend`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Mapping, NamedTuple, Optional

from envtune.context import Context
from envtune.context.registry import fact
from envtune.errors import HostError, Missing, NotRecorded, Undetermined, host_error_text
from envtune.host import exists
from envtune.messages import Message
from envtune.model import Fact

if TYPE_CHECKING:  # its import costs some milliseconds, which a host without npu-smi need not pay
    from envtune.resources.npu.smi import Failure, NpuTable

SMI = ("npu-smi", "info")
SMI_PATHS = ("/usr/local/sbin/npu-smi", "/usr/local/bin/npu-smi", "/usr/bin/npu-smi", "/usr/sbin/npu-smi")
SMI_TIMEOUT = 20.0  # seconds; eight cards take some, a driver in trouble takes far more
NODES = "/dev/davinci[0-9]*"
MANAGER = "/dev/davinci_manager"
PCI = "/sys/bus/pci/devices"
DRIVER = "/usr/local/Ascend/driver/version.info"
TOOLKITS = ("ascend-toolkit", "nnae", "cann", "nnrt", "latest")  # below /usr/local/Ascend

HUAWEI = "0x19e5"
ACCELERATOR = "0x12"  # PCI base class "processing accelerators"; Huawei's network and storage functions are others
# Source: facts D4 (lspci), PCI Device ID of `npu-smi info -t board`.
MODELS: Mapping[str, str] = {"0xd801": "910A", "0xd802": "910B", "0xd803": "A3", "0xd500": "310P", "0xd100": "310"}
TRAINING_FIRST = ("A3", "910B", "910A", "310P", "310")
# Chip names of the first 910 generation: torch_npu's list of SoC versions, values 100-104 (NpuVariables.cpp).
FIRST_910 = ("910a", "910proa", "910premiuma", "910b", "910prob")


class Accelerator(NamedTuple):
    """A Huawei accelerator on PCI: address in lower case, PCI device id such as 0xd802."""

    address: str
    device: str


class Answer(NamedTuple):
    """What `npu-smi info` said: a table, or the failure instead of one (then the table is empty)."""

    table: NpuTable
    failure: Optional[Failure]
    text: str
    source: str = "npu-smi info"


def accelerators(context: Context) -> tuple[Accelerator, ...]:
    """The Huawei accelerators on PCI, virtual functions (vNPUs) left out; NotRecorded when a snapshot is silent."""
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
            if not (device in MODELS or host.read(f"{folder}/class").strip().startswith(ACCELERATOR)):
                continue
            if exists(host, f"{folder}/physfn"):
                continue
        except Missing:
            continue
        except NotRecorded:
            pass  # an older recorder: no class file, no word on virtual functions
        found.append(Accelerator(folder.rpartition("/")[2].lower(), device))
    return tuple(found)


def device_nodes(context: Context) -> tuple[int, ...]:
    """N of every /dev/davinciN (davinci_manager and vNPU nodes are others)."""
    tails = (path[len("/dev/davinci") :] for path in context.host.glob(NODES))
    return tuple(sorted(int(tail) for tail in tails if tail.isascii() and tail.isdigit() and len(tail) < 5))


def ask(context: Context) -> Answer:
    """`npu-smi info`, run at most once; Missing when it is not installed, TimedOut when the driver does not answer."""
    return context.cached(_ask)


def _ask(context: Context) -> Answer:
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
    listed = parse_info(result.stdout)
    return Answer(listed, None if listed.devices else parse_failure(text, result.returncode), text)


def _installed(context: Context) -> bool:
    return any(exists(context.host, path) for path in SMI_PATHS)


def table(context: Context) -> NpuTable:
    """The complete table of npu-smi; `Undetermined` with the reason when there is none."""
    answer = ask(context)
    if answer.failure is not None:
        raise Undetermined(
            answer.failure.meaning, answer.source, answer.text, needs_privilege=lacks_privilege(context, answer.failure)
        )
    if answer.table.incomplete is not None:
        raise Undetermined(answer.table.incomplete, answer.source, answer.text)
    return answer.table


def lacks_privilege(context: Context, failure: Failure) -> bool:
    """Whether this failure may only mean that this user cannot open the device nodes."""
    if not failure.needs_privilege or context.host.euid == 0:
        return False
    try:
        node = context.host.stat(MANAGER)
    except HostError:
        return False
    return node.uid != context.host.euid and node.mode & 0o006 != 0o006


def in_container(context: Context) -> bool:
    """Whether the device nodes are only those that a container was given."""
    return context.facts.value("container") == "true"


# ---------------------------------------------------------------------------------------------------- facts


@fact("npu")
def fact_npu(context: Context) -> Fact:
    """The model: 910A, 910B, A3, 310P, 310, the chip's own name when it is another, none."""
    try:
        found = {MODELS[a.device] for a in accelerators(context) if a.device in MODELS}
        strange = any(a.device not in MODELS for a in accelerators(context))
    except HostError:
        found, strange = set(), False  # npu-smi may still tell
    if found:
        return Fact("npu", next(model for model in TRAINING_FIRST if model in found), f"{PCI}/*/device")
    try:
        answer = ask(context)
    except Missing:
        if strange or device_nodes(context):
            why = Message("npu-smi, which would name the model, is not here")
            return Fact("npu", None, NODES, why)
        return Fact("npu", "none", f"{PCI}, {NODES}, npu-smi")
    if answer.failure is not None:
        if not strange and not device_nodes(context):
            return Fact("npu", "none", f"{PCI}, {NODES}, npu-smi")
        return Fact("npu", None, answer.source, answer.failure.meaning)
    if not answer.table.devices:
        return Fact("npu", None, answer.source, answer.table.incomplete)
    return Fact("npu", model_of(answer.table), answer.source)


def model_of(listed: NpuTable) -> str:
    """The model by the table's Name column.

    `910A`, `910ProB` and a bare `910B` are the first generation, `910B1` to `910B4` the second; A3 prints `Ascend910`
    (torch_npu maps it to 910_93). Where the bare names leave it open the memory columns tell: only the first generation
    has DDR beside 32 GB of HBM (public listings of npu-smi on 910A, 910B and A3).
    """
    device = listed.devices[0]
    chip = device.name.lower().replace(" ", "").replace("ascend", "", 1)
    first = device.hbm is None or (device.hbm.total < 40000 and (device.memory is None or device.memory.total > 0))
    if chip in FIRST_910:
        return "910A" if first or chip != "910b" else "910B"
    if chip == "910":
        return "910A" if first and device.node is None else "A3"
    if chip.startswith(("910_93", "910c")):
        return "A3"
    if chip.startswith("910b") and chip[4:5].isdigit():
        return "910B"
    if chip.startswith("310p"):
        return "310P"
    return "310" if chip == "310" else device.name


@fact("npu_count")
def fact_npu_count(context: Context) -> Fact:
    """How many NPU devices a job on this host can address: device nodes, else what npu-smi lists, else PCI."""
    nodes = device_nodes(context)
    if nodes:
        return Fact("npu_count", str(len(nodes)), NODES)
    try:
        answer = ask(context)
        if answer.table.devices and answer.table.incomplete is not None:
            return Fact("npu_count", None, answer.source, answer.table.incomplete)
        if answer.table.devices:
            return Fact("npu_count", str(len(answer.table.devices)), answer.source)
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
    """true when anything of Ascend is here: device node, driver, CANN, PCI device, torch_npu, or npu-smi."""
    silent: Optional[HostError] = None
    for look in (_node_sign, _tree_sign, _bus_sign, _software_sign, _smi_sign):
        try:
            source = look(context)
        except HostError as error:
            silent = error
            continue
        if source:
            return Fact("ascend", "true", source)
    looked = f"{NODES}, {DRIVER}, CANN, {PCI}, torch_npu, npu-smi"
    if silent is not None:
        return Fact("ascend", None, looked, host_error_text(silent))
    return Fact("ascend", "false", looked)


def _node_sign(context: Context) -> str:
    return NODES if device_nodes(context) else ""


def _tree_sign(context: Context) -> str:
    paths = (DRIVER, *(f"/usr/local/Ascend/{name}" for name in TOOLKITS))
    return next((path for path in paths if exists(context.host, path)), "")


def _bus_sign(context: Context) -> str:
    return next((f"{PCI}/{card.address}" for card in accelerators(context)), "")


def _software_sign(context: Context) -> str:
    facts = (context.facts[name] for name in ("cann", "torch_npu"))
    return next((fact.source for fact in facts if fact.value not in (None, "", "none", "false")), "")


def _smi_sign(context: Context) -> str:
    try:
        return " ".join(SMI) if _installed(context) or ask(context).table.devices else ""
    except Missing:
        return ""
