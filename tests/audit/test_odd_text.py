"""Text that looks like a number or like JSON to one function and not to the next is no fault of envtune's."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.examples import example_context

from envtune.audit import examine
from envtune.catalog import load
from envtune.model import Outcome

SITE = "/usr/local/python3.9.9/lib/python3.9/site-packages"
CANN = "/usr/local/Ascend/ascend-toolkit/latest"
NUMBERS = ("²", "٣", "½", "１６", "1_0", "")  # str.isdigit() is true of the first, which int() refuses
COUNTS = ("HCCL_EVENT_TIMEOUT", "HCCL_EXEC_TIMEOUT", "HCCL_IF_BASE_PORT", "MASTER_PORT", "WORLD_SIZE", "RANK")
NESTED = "[" * 100_000
JSON = (NESTED, '{"host_ip":' * 50_000, '{"host_ip": 5}', '{"host_ip": {"a": 1}}', '{"host_ip": [[], 5, null]}', "5")


def numbered(text: str) -> dict[str, Any]:
    files: dict[str, Any] = {
        f"{SITE}/torch-2.1.0.dist-info/METADATA": None,
        f"{SITE}/torch-x.dist-info/METADATA": f"Name: torch\nVersion: {text}\n",
        f"{SITE}/torch/version.py": f"__version__ = '{text}'\n",
        f"{SITE}/torch_npu/version.py": f"__version__ = '2.{text}.0'\n",
        f"{CANN}/version.info": f"Version=8.{text}.RC{text}\n",
        "/usr/local/Ascend/driver/version.info": f"Version=25.0.rc{text}\n",
        "/proc/sys/net/ipv4/ip_local_port_range": f"{text} {text}\n",
        "/sys/devices/system/cpu/online": f"0-{text}\n",
        "/job/train.sh": f"set -- a b\nshift {text}\nA=${{{text}}}\nA=${{A:{text}}}\nx {text}>log\npython3 t.py\n",
    }
    npu_smi = (
        f"| npu-smi {text} Version: {text} |\n| {text} 910B3 | OK |\n| {text} | 0000:C1:00.0 | {text} / {text} |\n"
    )
    return {
        "like": ["npu-910b-8", "torch210"],
        "files": files,
        "environ": dict.fromkeys(COUNTS, text),
        "commands": {"npu-smi info": npu_smi},
        "target": {"script": "/job/train.sh"},
    }


def with_json(text: str) -> dict[str, Any]:
    return {
        "like": ["npu-910b-8", "torch210"],
        "files": {"/etc/envtune/attestations.json": text, "/job/white.json": text},
        "environ": {
            "HCCL_WHITELIST_DISABLE": "0",
            "HCCL_WHITELIST_FILE": "/job/white.json",
            "MASTER_ADDR": "10.0.0.1",
            "MASTER_PORT": "29500",
            "WORLD_SIZE": "16",
        },
        "commands": {"nft -j list ruleset": text},
    }


@pytest.mark.parametrize("data", [*map(numbered, NUMBERS), *map(with_json, JSON)], ids=lambda data: "")
def test_no_check_fails_itself(data: dict[str, Any]) -> None:
    context = example_context(data)
    findings = [f for check in load().checks for f in examine(check._replace(applies={}), context)]
    assert [(f.id, str(f.reason)) for f in findings if f.outcome is Outcome.ERROR] == []
