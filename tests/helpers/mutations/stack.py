"""Changes of hosts with an NPU network, a rank table or a container.

Each row is (host, what is laid over it first, what then changes, the ids that flip).
"""

from __future__ import annotations

import json
from typing import Any, Mapping

from envtune.collector.sources.npu import HCCN_CONF, HCCN_TOOL
from helpers.examples import shared_host

B, C = "910b-openeuler2203-cann82", "container-without-driver"
SITE = "/usr/local/python3.10.13/lib/python3.10/site-packages"
NET = {key: shared_host("npu-910b-net")[key] for key in ("files", "commands")}
CONF: str = NET["files"][HCCN_CONF]
TORCHVISION = "Name: torchvision\nVersion: 0.17.0\nRequires-Dist: torch==2.2.0\n"
SHM = "700 690 0:60 / /dev/shm rw,nosuid,nodev - tmpfs shm rw,size={}k\n"
SMALL, LARGE = SHM.format(65536), SHM.format(64 << 20)


def table(change: str = "", by: str = "") -> str:
    """A rank table of this host and another one, with one text of it replaced."""
    servers = []
    for number, server in enumerate(("192.0.2.10", "192.0.2.11")):
        devices = [
            {"device_id": str(n), "device_ip": f"192.168.100.{10 + n + 100 * number}", "rank_id": str(n + 2 * number)}
            for n in (0, 1)
        ]
        servers.append({"server_id": server, "device": devices})
    whole = {"status": "completed", "version": "1.0", "server_count": "2", "server_list": servers}
    text = json.dumps(whole)
    assert change in text
    return text.replace(change, by, 1)


def conf(change: str, by: str) -> Mapping[str, Any]:
    assert change in CONF
    return {"files": {HCCN_CONF: CONF.replace(change, by)}}


def answer(number: int, query: str, text: str) -> Mapping[str, Any]:
    return {"commands": {f"{HCCN_TOOL} -i {number} {query} -g": text}}


RANKED = {"environ": {"RANK_TABLE_FILE": "/job/hccl.json"}, "files": {**NET["files"], "/job/hccl.json": table()}}
INTERFACES = [{"name": "lo", "addresses": ["127.0.0.1"]}, {"name": "eth0", "addresses": ["192.0.2.10"]}]
JOB = {**NET, **RANKED, "interfaces": INTERFACES}


def job(change: str, by: str) -> Mapping[str, Any]:
    return {"files": {"/job/hccl.json": table(change, by)}}


ROWS: list[tuple[str, str, Mapping[str, Any], Mapping[str, Any], str]] = [
    # --- containers
    (C, "no hisi_hdc", {}, {"files": {"/dev/hisi_hdc": None}}, "CTR001"),
    (C, "DCMI mounted", {}, {"files": {"/usr/local/dcmi/libdcmi.so": {"size": 9}}}, "CTR004"),
    (
        C,
        "64 MB of shared memory",
        {"files": {"/proc/self/mountinfo": LARGE}},
        {"files": {"/proc/self/mountinfo": SMALL}},
        "CTR007",
    ),
    (
        C,
        "memory below the shared memory",
        {"files": {"/proc/self/mountinfo": LARGE, "/proc/self/cgroup": "0::/\n"}},
        {"files": {"/sys/fs/cgroup/memory.max": "1073741824\n"}},
        "CTR010",
    ),
    (C, "NPUs that are not here", {}, {"environ": {"ASCEND_VISIBLE_DEVICES": "0-7"}}, "CTR008 NET006"),
    # --- NPU network
    (B, "an NPU without an address", NET, conf("address_7=192.168.101.17\n", ""), "NET110"),
    (B, "a netmask with a hole", NET, conf("netmask_2=255.255.255.0", "netmask_2=255.0.255.0"), "NET111"),
    (B, "a gateway elsewhere", NET, conf("gateway_5=192.168.101.1", "gateway_5=192.168.1.1"), "NET111"),
    (B, "one address twice", NET, conf("address_1=192.168.100.11", "address_1=192.168.100.10"), "NET112"),
    (B, "no link", NET, answer(3, "-link", "link status: DOWN\n"), "NET114"),
    (B, "TLS of one NPU on", NET, answer(3, "-tls", "dev_id:3, tls switch[1](0:disable, 1:enable)\n"), "NET115"),
    (B, "a fault of the network", NET, answer(3, "-net_health", "net health status: Fault\n"), "NET116"),
    # --- rank table
    (B, "not completed", JOB, job("completed", "initializing"), "NET117"),
    (B, "a rank twice", JOB, job('"rank_id": "3"', '"rank_id": "2"'), "NET118"),
    (
        B,
        "a device twice",
        JOB,
        job('"device_id": "1", "device_ip": "192.168.100.111"', '"device_id": "0", "device_ip": "192.168.100.111"'),
        "NET119",
    ),
    (B, "an address of another device", JOB, job("192.168.100.11", "192.168.100.99"), "NET121"),
    (B, "an NPU that is not here", JOB, job('"device_id": "1"', '"device_id": "12"'), "NET120"),
    # --- Python
    (B, "decorator missing", {}, {"files": {f"{SITE}/decorator-5.1.1.dist-info/METADATA": None}}, "PY102"),
    (
        B,
        "attr over attrs",
        {},
        {"files": {f"{SITE}/attr-0.3.2.dist-info/METADATA": "Name: attr\nVersion: 0.3.2\n"}},
        "PY105",
    ),
    (
        B,
        "numpy 2",
        {},
        {
            "files": {
                f"{SITE}/numpy-1.26.4.dist-info/METADATA": None,
                f"{SITE}/numpy-2.2.6.dist-info/METADATA": "Name: numpy\nVersion: 2.2.6\n",
            }
        },
        "PY104",
    ),
    (
        B,
        "triton comes in addition",
        {"files": {f"{SITE}/triton_ascend-3.2.0.dist-info/METADATA": "Name: triton-ascend\nVersion: 3.2.0\n"}},
        {"files": {f"{SITE}/triton-3.2.0.dist-info/METADATA": "Name: triton\nVersion: 3.2.0\n"}},
        "PY106",
    ),
    (
        B,
        "torchvision of another torch",
        {},
        {"files": {f"{SITE}/torchvision-0.17.0.dist-info/METADATA": TORCHVISION}},
        "PY108",
    ),
    (
        B,
        "a C library that is too old",
        {
            "files": {
                f"{SITE}/torch/lib/libc10.so": {"size": 9, "runtime_versions": "needs:GLIBC_2.28 needs:GLIBCXX_3.4.22"},
                "/lib64/libc.so.6": {"size": 9, "runtime_versions": "provides:GLIBC_2.34"},
                "/lib64/libstdc++.so.6": {"size": 9, "runtime_versions": "provides:GLIBCXX_3.4.29"},
            }
        },
        {"files": {"/lib64/libc.so.6": {"size": 9, "runtime_versions": "provides:GLIBC_2.17"}}},
        "PY109",
    ),
    (
        B,
        "a libstdc++ that is too old",
        {
            "files": {
                f"{SITE}/torch/lib/libc10.so": {"size": 9, "runtime_versions": "needs:GLIBC_2.28 needs:GLIBCXX_3.4.22"},
                "/lib64/libc.so.6": {"size": 9, "runtime_versions": "provides:GLIBC_2.34"},
                "/lib64/libstdc++.so.6": {"size": 9, "runtime_versions": "provides:GLIBCXX_3.4.29"},
            }
        },
        {"files": {"/lib64/libstdc++.so.6": {"size": 9, "runtime_versions": "provides:GLIBCXX_3.4.19"}}},
        "PY110",
    ),
    (
        B,
        "the preloaded library removed",
        {
            "environ": {"LD_PRELOAD": "/usr/lib64/libjemalloc.so.2"},
            "files": {"/usr/lib64/libjemalloc.so.2": {"size": 9}},
        },
        {"files": {"/usr/lib64/libjemalloc.so.2": None}},
        "ENV111 PY111",
    ),
]
