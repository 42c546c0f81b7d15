"""Forty recorded hosts of four kinds, unlike each other in what differs on a real fleet, and three that deviate.

Each is a recorded host of tests/hosts under another name: addresses, process ids, times, boot id, temperatures, power,
free memory and disk space are its own. None of that is a difference between hosts.
"""

from __future__ import annotations

import json
import pickle
import random
import re
from functools import cache
from pathlib import Path
from typing import Any, Iterator, Mapping

from helpers.recorded import host_data

# recorded host -> stem of the names of the hosts made of it
KINDS: Mapping[str, str] = {
    "910b-openeuler2203-cann82": "node",
    "910a-centos76-nnae202": "c76-",
    "910b-ubuntu2004-residual": "gpu-lab",
    "a3-openeuler2203-cann85": "pod3-node",
}
OF_EACH = 10
_HEALTH_ROW = re.compile(r"(\| (?:OK|Warning|Alarm|Critical) +\| )([0-9.]+)( +)([0-9]+)( )")


def fleet() -> dict[str, dict[str, Any]]:
    """The hosts by name, none of which deviates."""
    hosts = {}
    for number, (recorded, stem) in enumerate(KINDS.items()):
        for node in range(1, OF_EACH + 1):
            hosts[f"{stem}{node}"] = twin(recorded, f"{stem}{node}", number, node)
    return hosts


# host -> what is different there: facts, and checks that fail
DEVIATIONS: Mapping[str, tuple[set[str], set[str]]] = {
    "node7": ({"driver", "variable:TASK_QUEUE_ENABLE"}, {"ENV001", "ENV015", "CANN103"}),
    "c76-3": ({"kernel", "variable:MASTER_PORT"}, set()),
    "pod3-node9": ({"torch_npu"}, {"CPU001", "CPU002"}),
}


def deviating() -> dict[str, dict[str, Any]]:
    """The same hosts, three of which are not like the others of their kind."""
    hosts = fleet()
    first = hosts["node7"]
    place = "/usr/local/Ascend/driver/version.info"
    first["files"][place] = json.loads(json.dumps(first["files"][place]).replace("25.0.rc1.1", "25.0.rc1"))
    first["environ"]["TASK_QUEUE_ENABLE"] = "0"
    second = hosts["c76-3"]
    second["uname"]["release"] = "3.10.0-1160.el7.x86_64"
    second["environ"]["MASTER_PORT"] = "29689"
    third = hosts["pod3-node9"]
    third["files"]["/sys/devices/system/cpu/cpufreq/policy5/scaling_governor"] = "powersave\n"
    rename = {path: path.replace("2.8.0.post2", "2.8.0.post1") for path in third["files"] if "2.8.0.post2" in path}
    for old, new in rename.items():
        third["files"][new] = json.loads(json.dumps(third["files"].pop(old)).replace("2.8.0.post2", "2.8.0.post1"))
    return hosts


def twin(recorded: str, name: str, network: int, node: int) -> dict[str, Any]:
    """A host like the recorded one, and its own in what is every host's own; every caller gets a copy."""
    data: dict[str, Any] = pickle.loads(_twin(recorded, name, network, node))
    return data


@cache
def _twin(recorded: str, name: str, network: int, node: int) -> bytes:
    own = random.Random(name)
    source = host_data(recorded)
    text = json.dumps(source).replace(source["host"], name).replace("192.0.2.10", f"10.0.{network}.{node}")
    data: dict[str, Any] = json.loads(text)
    data["now"] = source["now"] + own.randrange(1, 10**6)
    data["taken"] = f"2026-11-{own.randrange(1, 28):02d}T08:00:00Z"
    _own_processes(data, own)
    for path, entry in data["files"].items():
        if isinstance(entry, dict) and "link" not in entry and "dir" not in entry:
            entry["mtime"] = 1_760_000_000 + own.randrange(10**7)
        elif isinstance(entry, str) and "version" in path:
            data["files"][path] = {"text": entry, "mtime": 1_760_000_000 + own.randrange(10**7)}
    data["files"]["/proc/sys/kernel/random/boot_id"] = f"{own.getrandbits(128):032x}\n"
    memory = data["files"].get("/proc/meminfo", "")
    if memory:
        data["files"]["/proc/meminfo"] = re.sub(r"(MemFree: +)\d+", rf"\g<1>{own.randrange(9 * 10**8, 10**9)}", memory)
    for disk in data.get("disks") or ():
        disk["free"] -= own.randrange(10**10)
    environ = data["environ"]
    environ.update(MASTER_ADDR=f"10.0.{network}.1", MASTER_PORT="29688", NNODES=str(OF_EACH), NODE_RANK=str(node - 1))
    environ.update(HCCL_IF_IP=f"10.0.{network}.{node}", ASCEND_PROCESS_LOG_PATH=f"/logs/{name}", HOSTNAME=name)
    return pickle.dumps(data)


def _own_processes(data: dict[str, Any], own: random.Random) -> None:
    """Give the processes other ids and starting times, and the NPUs another temperature and power."""
    pids: dict[str, str] = {}
    moved = own.randrange(1000, 2000)
    for row in data.get("processes") or ():
        for key in ("pid", "ppid"):
            if row.get(key, 0) > 1:
                pids[str(row[key])] = str(row[key] + moved)
                row[key] += moved
        row["started"] = row.get("started", 0) + own.randrange(1000)
    for row in data.get("listeners") or ():
        row["pid"] = int(pids.get(str(row.get("pid")), row.get("pid") or 0)) or None
    for command, result in _commands(data):
        if command.startswith("npu-smi") and isinstance(result.get("stdout"), str):
            text = re.sub(r"(?<=\| )(\d+)(?= +\| [a-z])", lambda found: pids.get(found[0], found[0]), result["stdout"])
            result["stdout"] = _HEALTH_ROW.sub(
                lambda found: (
                    f"{found[1]}{_like(found[2], own.uniform(80, 99))}{found[3]}{_like(found[4], own.uniform(33, 60))} "
                ),
                text,
            )


def _like(text: str, number: float) -> str:
    decimals = 1 if "." in text else 0
    return f"{number:.{decimals}f}".rjust(len(text))[-len(text) :]


def _commands(data: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each command line and its result, in whichever of the two forms the table has."""
    table = data.get("commands") or {}
    if isinstance(table, dict):
        for command, result in list(table.items()):
            if isinstance(result, str):
                result = table[command] = {"stdout": result}
            yield command, result
    else:
        for row in table:
            yield row["argv"] if isinstance(row["argv"], str) else " ".join(row["argv"]), row


def write(folder: Path, hosts: Mapping[str, Mapping[str, Any]]) -> list[Path]:
    """Write each host as a snapshot of one file."""
    paths = []
    for name, data in hosts.items():
        path = folder / f"{name}.json"
        path.write_text(json.dumps({"schema": "envtune.snapshot/1", **data}), "utf-8")
        paths.append(path)
    return paths
