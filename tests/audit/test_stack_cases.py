"""Whole situations of containers, NPU networks, rank tables and Python stacks, and what the checks have to say."""

from __future__ import annotations

import json
from typing import Any, Mapping

import pytest
from helpers.examples import example_context

from envtune.audit import examine
from envtune.catalog import load

POD = {"/.dockerenv": "", "/proc/self/cgroup": "0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-1.scope\n"}
BASE = "/proc/self/mountinfo"
SITE = "/usr/local/python3.10.13/lib/python3.10/site-packages"
TOOL = "/usr/local/Ascend/driver/tools/hccn_tool"
# As a public page of a cluster shows it.
PUBLIC_CONF = "".join(
    f"address_{n}=29.1.{137 + n}.{205 - n}\nnetmask_{n}=255.255.0.0\nnetdetect_{n}=29.1.0.1\ngateway_{n}=29.1.0.1\n"
    f"send_arp_status_{n}=1\n"
    for n in range(8)
)


def pod_table(**more: Any) -> str:
    """Version 1.2 as the HCCL user guide shows it: two super pods of two servers with four devices."""
    servers = [
        {
            "server_id": f"node_{s}",
            "host_ip": f"172.16.0.{100 + s}",
            "device": [
                {
                    "device_id": str(d),
                    "super_device_id": str(d + 4 * (s % 2)),
                    "device_ip": f"192.168.{s + 1}.{6 + d}",
                    "backup_device_ip": f"192.168.{s + 1}.{6 + (d ^ 1)}",
                    "rank_id": str(4 * s + d),
                }
                for d in range(4)
            ],
        }
        for s in range(4)
    ]
    pods = [
        {"super_pod_id": str(p), "server_list": [{"server_id": f"node_{2 * p + s}"} for s in (0, 1)]} for p in (0, 1)
    ]
    whole = {
        "status": "completed",
        "version": "1.2",
        "server_count": "4",
        "server_list": servers,
        "super_pod_list": pods,
    }
    return json.dumps({**whole, **more})


def ranked(text: str, like: str = "npu-910b-8", path: str = "/job/hccl.json", named: str = "") -> Mapping[str, Any]:
    return {"like": like, "environ": {"RANK_TABLE_FILE": named or path}, "files": {path: text}}


WITHOUT_VERSION = (
    '{"status":"completed","server_list":[{"device":[{"device_id":"0","device_ip":"192.168.101.1","rank_id":"0"}],'
    '"server_id":"10-0-0-1","host_ip":"10.0.0.1"}]}'
)
ONE_SERVER = (
    '{"status":"completed","version":"1.0","server_count":1,"server_list":[{"server_id":"node_0","device":['
    '{"device_id":0,"device_ip":"","rank_id":0},{"device_id":1,"device_ip":"","rank_id":1}]}]}'
)
SITE_39 = "/usr/local/python3.9.9/lib/python3.9/site-packages"


CASES: list[tuple[str, Mapping[str, Any], dict[str, str]]] = [
    (
        "a container with an NPU, but without davinci_manager",
        {"like": "npu-910b-8", "files": {"/.dockerenv": "", "/dev/davinci_manager": None}},
        {"CTR001": "fail", "CTR002": "pass"},
    ),
    ("a host without hisi_hdc", {"like": "npu-910b-8", "files": {"/dev/hisi_hdc": None}}, {"CTR001": "notapplicable"}),
    (
        "a process of a user in the group of the nodes",
        {
            "like": "npu-910b-8",
            "target": {"pid": 42},
            "files": {
                "/.dockerenv": "",
                "/proc/42/status": "Uid:\t1001\t1001\t1001\t1001\nGid:\t1001\t1001\t1001\t1001\nGroups:\t1000 \n",
                "/proc/42/environ": "PATH=/usr/bin\0",
            },
            "processes": [{"pid": 42, "ppid": 1, "user": "u", "name": "python3", "argv": ["python3"]}],
        },
        {"CTR002": "pass"},
    ),
    (
        "a pod with a memory volume at /dev/shm",
        {"files": {**POD, BASE: "1 0 0:9 / /dev/shm rw,relatime - tmpfs tmpfs rw\n"}},
        {"CTR007": "notapplicable"},
    ),
    (
        "a pod whose shared memory nobody thought of",
        {"files": {**POD, BASE: "1 0 0:9 / /dev/shm rw,relatime - tmpfs shm rw,size=65536k,inode64\n"}},
        {"CTR007": "fail"},
    ),
    (
        "all eight NPUs asked for and there",
        {"like": "npu-910b-8", "files": {"/.dockerenv": ""}, "environ": {"ASCEND_VISIBLE_DEVICES": "0-7"}},
        {"CTR008": "pass"},
    ),
    (
        "hccn.conf of a real cluster",
        {"like": "npu-910b-8", "files": {"/etc/hccn.conf": PUBLIC_CONF}},
        {"NET110": "pass", "NET111": "pass", "NET112": "pass", "NET114": "unknown"},
    ),
    (
        "the same, edited on Windows",
        {"like": "npu-910b-8", "files": {"/etc/hccn.conf": PUBLIC_CONF.replace("\n", "\r\n")}},
        {"NET110": "pass", "NET111": "pass", "NET112": "pass"},
    ),
    (
        "a tool that hangs on the third NPU",
        {"like": "npu-910b-net", "commands": {f"{TOOL} -i 2 -tls -g": {"error": "timeout"}}},
        {"NET115": "unknown", "NET114": "pass"},
    ),
    (
        "a host that only trains alone: no cables",
        {"like": "npu-910b-net", "commands": {f"{TOOL} -i {n} -link -g": "link status: DOWN\n" for n in range(8)}},
        {"NET114": "notapplicable"},
    ),
    (
        "a rank table of two super pods",
        ranked(pod_table(), "npu-a3-16"),
        {"NET117": "pass", "NET118": "pass", "NET119": "pass", "NET120": "notapplicable"},
    ),
    ("hccl.json of MindCluster, without a version", ranked(WITHOUT_VERSION), {"NET117": "pass", "NET118": "pass"}),
    (
        "numbers in place of texts, and no addresses",
        ranked(ONE_SERVER),
        {"NET117": "pass", "NET118": "pass", "NET119": "pass"},
    ),
    (
        "a table by a relative path, for one server more",
        {"cwd": "/home/train", **ranked(pod_table(server_count="5"), path="/home/train/t.json", named="t.json")},
        {"NET117": "fail", "NET118": "pass"},
    ),
    (
        "torch 2.1 and numpy 2 without any CANN",
        {"like": "torch210", "files": {f"{SITE_39}/numpy-2.0.2.dist-info/METADATA": ""}},
        {"PY104": "fail", "PY102": "notapplicable"},
    ),
    (
        "a package that the distribution installed",
        {
            "like": "cann-mid",
            "files": {
                f"{SITE}/decorator-5.1.1.dist-info/METADATA": None,
                f"{SITE}/decorator-4.4.2.egg-info": "Metadata-Version: 1.1\nName: decorator\nVersion: 4.4.2\n",
            },
        },
        {"PY102": "pass", "PY103": "pass"},
    ),
]


@pytest.mark.parametrize(("host", "told"), [pytest.param(host, told, id=what) for what, host, told in CASES])
def test_what_the_checks_say(host: Mapping[str, Any], told: Mapping[str, str]) -> None:
    context = example_context(host)
    checks = {check.id: check for check in load().checks if check.id in told}
    found = {}
    for id_ in told:
        outcomes = {finding.outcome.value for finding in examine(checks[id_], context)}
        found[id_] = next(word for word in ("fail", "unknown", "pass", "notapplicable") if word in outcomes)
    assert found == told
