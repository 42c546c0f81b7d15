"""A number of thousands of digits in what was read is no fault of envtune's: the check is unknown, with the reason."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.examples import example_context

from envtune.audit import examine
from envtune.catalog import load
from envtune.model import Outcome

BIG = "1" + "0" * 5000
SITE = "/usr/local/python3.9.9/lib/python3.9/site-packages"
COUNTS = tuple(
    f"HCCL_{name}" for name in ("EVENT_TIMEOUT", "EXEC_TIMEOUT", "IF_BASE_PORT", "CONNECT_TIMEOUT", "BUFFSIZE")
)
COUNTS += ("HCCL_HOST_SOCKET_PORT_RANGE", "MASTER_PORT", "WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "PATH")
COUNTS += ("ASCEND_RT_VISIBLE_DEVICES", "TASK_QUEUE_ENABLE", "SLURM_NNODES", "CPU_AFFINITY_CONF", "OMP_NUM_THREADS")
CANN = "/usr/local/Ascend/ascend-toolkit/latest"


def distribution(name: str, version: str) -> dict[str, Any]:
    folder = f"{SITE}/{name}-{version[:20]}.dist-info"
    return {f"{folder}/METADATA": f"Name: {name}\nVersion: {version}\n", f"{folder}/RECORD": f"{name}/x.py,,{BIG}\n"}


HOSTS: dict[str, dict[str, Any]] = {
    "torch": {
        "like": ["npu-910b-8", "torch210"],
        "files": {
            f"{SITE}/torch-2.1.0.dist-info/METADATA": None,
            **distribution("torch", BIG),
            f"{SITE}/torch/version.py": f"__version__ = '{BIG}'\n",
            f"{SITE}/torch_npu/version.py": f"__version__ = '2.1.0.post{BIG}'\n",
        },
    },
    "pip, pillow, opencv": {
        "like": ["npu-910b-8", "torch210"],
        "files": {
            **distribution("pip", BIG),
            **distribution("pillow", f"9.{BIG}"),
            **distribution("numpy", f"{BIG}.1"),
            f"{SITE}/PIL/_version.py": f"__version__ = '9.{BIG}'\n",
        },
    },
    "variables": {"like": ["npu-910b-8", "torch210"], "environ": dict.fromkeys(COUNTS, BIG)},
    "ranges": {"like": "npu-910b-8", "environ": dict.fromkeys(COUNTS, f"{BIG}-{BIG},{BIG}:{BIG}")},
    "kernel": {
        "like": "npu-910b-8",
        "files": dict.fromkeys(
            (
                "/proc/sys/net/ipv4/ip_local_port_range",
                "/proc/sys/net/ipv4/ip_local_reserved_ports",
                "/sys/fs/cgroup/cpu.max",
                "/sys/fs/cgroup/memory.max",
                "/proc/sys/vm/swappiness",
            ),
            f"{BIG} {BIG}\n",
        ),
    },
    "firewall": {
        "like": "npu-910b-8",
        "environ": {"MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29688"},
        "commands": {
            "iptables-save": "*filter\n:INPUT DROP [0:0]\n"
            f"-A INPUT -p tcp --dport {BIG} -m mark --mark {BIG} -j ACCEPT\nCOMMIT\n",
            "ufw status verbose": f"Status: active\nDefault: deny (incoming)\n\n{BIG}/tcp   ALLOW IN   Anywhere\n",
        },
    },
    **{
        like: {
            "like": like,
            "files": {
                f"{CANN}/version.info": f"Version={BIG}\n",
                f"{CANN}/version.cfg": f"runtime_running_version=[{BIG}:{BIG}]\n",
                "/usr/local/Ascend/driver/version.info": f"Version={BIG}.rc{BIG}\n"
                f"compatible_version=[V{BIG}R{BIG}C{BIG}]\n",
                "/usr/local/Ascend/firmware/version.info": f"Version={BIG}\n",
            },
        }
        for like in ("cann-old", "cann-mid", "cann-new")
    },
}


@pytest.mark.parametrize("host", HOSTS)
def test_no_check_fails_over_a_number(host: str) -> None:
    context = example_context(HOSTS[host])
    wrong = [
        (check.id, str(finding.reason)[:150])
        for check in load().checks
        for finding in examine(check._replace(applies={}), context)
        if finding.outcome is Outcome.ERROR
    ]
    assert wrong == []


def test_the_reason_names_the_number() -> None:
    context = example_context(HOSTS["torch"])
    (check,) = [check for check in load().checks if check.id == "PY008"]
    (finding,) = examine(check._replace(applies={}), context)
    assert finding.outcome is Outcome.UNKNOWN and finding.reason is not None and "5001 digits" in finding.reason.en
