"""The table of lines: every row is met by a line of its release, and can be searched for cheaply."""

from __future__ import annotations

import re

import pytest
from helpers.rank_cases import CASES, NAMES, case
from helpers.yaml_text import load_yaml

from envtune.catalog.signatures.literals import required_literals
from envtune.ranks.lines import FIELDS, ROWS

# Lines that no case uses.
OTHERS = (
    "[INFO] HCCL(1,python):x [op_base_v2.cc:9]Entry-HcclCommInitRootInfo V910_95, rankId[3], rankNum[8].",
    "Entry-HcclCommInitClusterInfo:clusterInfo[/data/rank_table.json], rank[3], deviceLogicId[3]",
    "[1][Communicator Key Info]identifier[w] rankSize[8] serverNum[1] moduleNum[1]",
    "[1][Vnic]Listen on ip[192.168.2.199] port[16666] devPhyId[1]",
    "INFO [parallel_state.py:1203] world_size=8 rank=3 local_rank=3 distributed_init_method=tcp://10.0.0.1:1",
    "| distributed init (rank 3, world 8): env://",
    "DEBUG Device_id: 3, rank_id: 3, device_num: 8",
    "EI0005: The arguments for collective communication are inconsistent between ranks: tag [HcomAllReduce_66], "
    "parameter [count], local [16512], remote [8320]",
    "INFO - llamafactory.hparams.parser - Process rank: 3, world size: 8, device: npu:3, distributed training: True",
    "Process index: 3",
    "Training in distributed mode with multiple processes, 1 device per process.Process 3, total 8, device npu:3.",
    "export RANK=3 WORLD_SIZE=8",
    "using world size: 16, data-parallel size: 2",
    "  global_world_sizes=[16, 16]",
    "  global_ranks=[8, 9, 10]",
    "DistStoreError: Timed out after 1201 seconds waiting for clients. 15/16 clients joined.",
    "Receiving message from the root node timed out. Check whether node 10.0.0.1 reports an error",
    "INFO:torch.distributed.launcher.api:Starting elastic_operator with launch configs:\n  max_nodes        : 2\n"
    "  nproc_per_node   : 8\n  run_id           : none\n  rdzv_backend     : static\n"
    "  rdzv_endpoint    : 10.0.0.1:29500\n  rdzv_configs     : {'rank': 1, 'timeout': 900}\n",
    "[RankInfoDetectClient::Connect] get connected status socket timeout! timeout[120 s]",
    "rank num[8]is different with rank list size[4] in total topo rank info.",
    "RuntimeError: Rank 2 failed to pass monitoredBarrier in 1800000 ms",
    "Time out nodes are ['3']",
    "PrintErrorInfoForNotifyWaitTask:Notify wait execute failed, device_id=1, stream_id=20, notify_id=3",
    "Process group work REDUCE_SCATTER, seq_num 32716847 dispatch timeout.",
    "client : device[1] rank[1] get socket timeout, total[4] remain[3]",
    "errNo[0x5000013] Wait timeout for sockets recv, data[0xf], size[4]",
    "the connection failure between this device and target device may be due to the following reasons:",
    "Wait P2P enabled timeout, local device[0] remote device[3]",
    "wait time out for get P2P status",
    "server:10.0.0.1/5, server:10.0.0.1/1, Heartbeat Lost Occurred, Possible Reason: 1. Process has exited",
    "(EI0013): An error CQE occurred during operator execution. Local information: server 10.0.0.1, device ID 0, "
    "device IP 10.1.0.1. Peer information: server 10.0.0.2, device ID 1, device IP 10.1.0.2.",
    "base information is streamId:149, sqid:153, head:1, tail:1, type:SDMA, localRank:1, remoteRank:2",
    "aicpu exception: kernel AssignAdd",
    "EI0005: The arguments for collective communication are inconsistent between ranks:parameter count, local end "
    "16512, remote end 8320",
    "The parameters of operator AllReduce are inconsistent between ranks, parameter count is 8 on the local rank and 9 "
    "on the remote rank.",
    "[ERROR] ME(1:2,MainProcess):x [_api.py:268] Worker process 130673 exit with exception.",
    "Worker proc VllmWorker-3 died unexpectedly, shutting down executor.",
    "oom-kill:constraint=CONSTRAINT_MEMCG,task=python,pid=8812,uid=0",
    "[91.2] python[8812]: segfault at 10 ip 00007f1 sp 00007f2 error 4 in libc.so.6",
    "systemd[1]: train@2.service: Main process exited, code=killed, status=9/KILL",
    '        "Name": "/train-2",',
    '            "OOMKilled": true,',
    "31m  Warning  OOMKilling  pod/train-2  Memory cgroup out of memory",
    "  Warning  Evicted  31m  kubelet  The node was low on resource: memory.",
    "2025-03-04T10:12:00.1+00:00 container oom 0a1b2c3d4e51 (image=llm:2.6, name=train-2)",
    "(raylet) node_manager.cc:2973: Killing worker with task 1 (name=W.update, ip=10.0.0.1, pid=7000, memory used=6GB)",
)


def spellings() -> list[str]:
    """All lines that the cases and this file hold, with their fields filled in where a number or an address stands."""
    texts = [*load_yaml((CASES / "lines.yaml").read_text()).values(), *OTHERS]
    for name in NAMES:
        texts += ["\n".join(file["text"]) for file in case(name)["files"]]
    values = {"ip": "10.0.0.1", "dip": "10.1.0.1", "pip": "10.1.0.2", "comm": "w", "op": "AllReduce", "state": "NO"}
    values |= {"pserver": "10.0.0.2", "sserver": "10.0.0.3", "ranks": "1,2,", "status": "LOST"}
    filled = [re.sub(r"(?<!\{)\{(\w+)\}", lambda found: values.get(found[1], "7"), text) for text in texts]
    return [text.replace("{{", "{").replace("}}", "}").replace("{of[4][dip]}", "10.1.0.1") for text in filled]


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return spellings()


def test_a_row_is_met_and_has_a_literal(texts: list[str]) -> None:
    for row in ROWS:
        assert any(re.search(row.regex, text) for text in texts), row
        assert required_literals(row.regex, row.multiline), f"it would be searched for in every line: {row}"
        assert row.source, row


def test_fields_are_expressions_with_one_group() -> None:
    assert {name for name, regex in FIELDS.items() if re.compile(regex).groups != 1} == set()
