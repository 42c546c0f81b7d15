"""What the NPU and process checks read: devices, npu-smi, and the processes that hold a device."""

import re
from typing import Any, Mapping, Set

from .tables import Table, quietly, record_command

HCCN_CONF = "/etc/hccn.conf"
HCCN_TOOL = "/usr/local/Ascend/driver/tools/hccn_tool"
HCCN_QUERIES = ("-ip", "-link", "-tls", "-net_health")
HCCN_SECONDS = 3.0  # for one query of one device
HCCN_TEXT = 400  # characters kept of an answer; certificates follow the TLS switch
NPU = Table(
    files=(
        HCCN_CONF,
        "/sys/bus/pci/devices/*/class",
        "/sys/bus/pci/devices/*/device",
        "/sys/bus/pci/devices/*/vendor",
    ),
    stats=(
        "/dev/davinci*",
        "/dev/devmm_svm",
        "/dev/hisi_hdc",
        HCCN_TOOL,
        "/var/log/npu/slog",
    ),
)
TOPOLOGY = ("npu-smi", "info", "-t", "topo")
INTERRUPT = "/proc/irq/*/sq_send_trigger_irq"  # the directory of a handler, inside that of its interrupt
PCI = "/sys/bus/pci/devices/"


def record_npu(recorder: Any) -> None:
    """Record npu-smi, which takes seconds on a full server, and what tells services from orphaned processes."""
    recorder.glob("/sys/bus/pci/devices/*/physfn")
    record_command(recorder, ("npu-smi", "info"), 20.0)
    if not recorder.commands.get(("npu-smi", "info"), {}).get("error"):
        record_command(recorder, ("npu-smi", "info", "-t", "board", "-i", "0"), 10.0)
    _record_places(recorder)
    if not recorder.machine.runs or not recorder.glob("/dev/davinci[0-9]*"):
        return
    quietly(_record_addresses, recorder)
    text = recorder.commands.get(("npu-smi", "info"), {}).get("stdout", "")
    listed = set(re.findall(r"(?m)^\|\s*\d+(?:\s+\d+)?\s*\|\s*(\d+)\s*\|", text))
    processes = recorder.machine.processes()
    rows = processes if isinstance(processes, list) else []
    parents = {row["pid"]: row["ppid"] for row in rows}
    launchers: Set[int] = set()
    for row in rows:
        if row.get("devices") or str(row["pid"]) in listed:
            for name in ("cgroup", "stat", "environ", "status", "limits"):
                quietly(recorder.read_bytes, "/proc/%d/%s" % (row["pid"], name))
            quietly(recorder.read_bytes, "/proc/%d/status" % row["ppid"])
            launchers |= _ancestors(row["ppid"], parents)
    for pid in launchers:
        quietly(recorder.read_bytes, "/proc/%d/cgroup" % pid)


def _record_places(recorder: Any) -> None:
    """Record the NUMA nodes of the NPUs, from npu-smi if the kernel knows none, and which CPUs handle interrupts."""
    known = set()
    for address in sorted(set(re.findall(r"[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9]", _listing(recorder)))):
        for name in ("numa_node", "local_cpulist"):
            quietly(recorder.read_bytes, PCI + address.lower() + "/" + name)
        known.add(str(recorder.files.get(PCI + address.lower() + "/numa_node")).strip())
    if "-1" in known:
        record_command(recorder, TOPOLOGY, 20.0)
    for path in recorder.glob(INTERRUPT):
        quietly(recorder.read_bytes, path.rpartition("/")[0] + "/effective_affinity_list")


def _listing(recorder: Any) -> str:
    return str(recorder.commands.get(("npu-smi", "info"), {}).get("stdout", ""))


def _record_addresses(recorder: Any) -> None:
    """Record the output of hccn_tool for each NPU that hccn.conf configures; stop after one that does not answer."""
    configured = set(re.findall(r"(?m)^\s*\w+?_(\d{1,3})\s*[=:]", recorder.read(HCCN_CONF)))
    recorder.stat(HCCN_TOOL)
    for path in recorder.glob("/dev/davinci[0-9]*"):
        number = path[len("/dev/davinci") :]
        for query in HCCN_QUERIES if number in configured else ():
            argv = (HCCN_TOOL, "-i", number, query, "-g")
            row = recorder.run(argv, HCCN_SECONDS)
            for stream in ("stdout", "stderr"):
                if stream in row:
                    row[stream] = row[stream][:HCCN_TEXT]
            if "error" in row:
                return


def _ancestors(pid: int, parents: Mapping[int, int]) -> Set[int]:
    """Return a process and its ancestors, without process 1."""
    found: Set[int] = set()
    while pid > 1 and pid in parents and pid not in found:
        found.add(pid)
        pid = parents[pid]
    return found
