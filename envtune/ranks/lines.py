"""The lines that tell something about several processes: one table, a row for each spelling.

`kind` names what such a line means (table.py, waits.py and claims.py read it), the named groups of `regex` are its
fields, `source` is where the spelling was seen. Fields that many lines contain in brackets, in any order, are in
FIELDS.

    own, own_ip, own_server, own_device     the process that printed the line, or that the line is about
    peer, peer_ip, peer_server, peer_device the process it waits for; `peer` is a rank of the communicator `comm`
    size                                    the number of ranks that are expected
    name                                    a pod, a container or a program: its log or its host has this name
    node, nodes                             workers as MindSpore numbers them

Sources: hcomm and hccl of CANN 5.1 to 9 with their fault diagnosis guide (`docs/en/user_guide/fault_diagnosis` of
hicann/hccl), ascend-faultdiag of Ascend/mind-cluster, torch_npu, MindSpore, PyTorch, Ray, vLLM, DeepSpeed, Open MPI,
MPICH, Slurm, Kubernetes, Docker, supervisord, systemd, the kernel; numbers are threads of vllm-ascend.
"""

from __future__ import annotations

from typing import Mapping, NamedTuple

IP = r"[\dA-Fa-f:.*xX]+"  # including masked ones; investigate() ignores those


class Row(NamedTuple):
    """One spelling of one kind of line."""

    kind: str
    regex: str
    source: str
    multiline: bool = False


FIELDS: Mapping[str, str] = {
    "size": r"\b(?:ranks|rankNum|totalRanks|nRanks|rankSize)\s?\[(\d+)\]",
    "rank": r"(?<![A-Za-z])(?:rank|userRank|rankId)\s?\[(\d+)\]",
    "comm": r"\bidentifier\s?\[([^\]]+)\]",
    "server": r"\b(?:server|serverId)\s?\[([^\]%]+)(?:%[^\]]*)?\]",
    "logic": r"\b(?:logicDevId|deviceLogicId|device)\s?\[(\d+)\]",
    "device": r"\b(?:phydevId|devPhyId|devicePhyId)\s?\[(\d+)\]",
    "device_ip": rf"\bdeviceIp\s?\[({IP})\]",
    "root_ip": r"\bhost ip\s?\[([^\]%]+)(?:%[^\]]*)?\]",
    "tag": r"\btag\s?\[([^\]]+)\]",
    "index": r"\bindex\s?\[(\d+)\]",
    "group": r"\bgroup\s?:\s?\[([^\]]+)\]",
    "peer": r"(?i)\b(?:remote rank|waiting peer rank)\s?:?\s?\[?(\w+)\]?",
    "own": r"\brankId\s?\[(\d+)\]",
    "task": r"\btaskType\s?\[([^\]]+)\]",
}

_AFTER_TIME = r"(?:\d{4}-\d\d-\d\dT[\d:.]+Z)?\s*"  # kubectl logs --timestamps
_GUIDE = "hicann/hccl docs/en/user_guide/fault_diagnosis"
_FAULTDIAG = "Ascend/mind-cluster component/ascend-faultdiag"
_STARTS = (
    # Communicators: `rank[..]` of `ranks[..]` in `identifier[..]`.
    Row(
        "start", r"rootinfo: host ip\[", "Entry-HcclCommInitRootInfo*: cann-hccl op_base.cc (CANN 6.3 to 9), Ascend 950"
    ),
    Row("start", r"\bV9\w+, rankId\[\d+\], rankNum\[", "op_base_v2.cc (Ascend 950)"),
    Row(
        "start",
        r"ClusterInfo\w*:clusterInfo\[",
        "Entry-HcclCommInitClusterInfo: op_base.cc (CANN 6.3 to 8), rank table",
    ),
    Row("start", r"\brank(?:Num|Size)\s?\[\d+\], ?rank\s?\[\d+\]", "SetupAgent, HcclCommInitRootInfo: CANN 6.3 to 9"),
    Row("start", r"hcclCommInitInfo:commId\[", "hccl_comm.cc (CANN 8)"),
    Row("start", r"hcom init by file success", "hcom.cc (CANN 5, 6), rank table"),
    Row("start", r"\[LocalRank Key Info\]", f"{_GUIDE}/debug_thinking.md (CANN 8.5, 9)"),
    Row("start", r"\[Communicator Key Info\]", f"{_GUIDE}/debug_thinking.md (CANN 8.5, 9)"),
    Row("root", r"HcclGetRootInfo success\b", "op_base.cc (CANN 6.3 to 8)"),
    Row(
        "address",
        rf"hccn_tool -i (?P<device>\d+) -ip -g\s*\n\s*ipaddr:\s?(?P<address>{IP})",
        "output of hccn_tool, as node checks collect it",
        True,
    ),
    Row("vnic", rf"\[Vnic\]\s?Listen on ip\[(?P<vnic>{IP})\]", f"{_FAULTDIAG} regular_table.py"),
    # Launchers and frameworks.
    Row("self", r"\(PID:\d+, ?Device:-?\d+, ?RankID:-?\d+\)", "torch_npu; `RankID:-1` where it is not known"),
    Row("self", r"\brank (?P<rank>\d+) in world size (?P<size>\d+) is assigned as", "vLLM parallel_state.py"),
    Row("self", r"\bworld_size=(?P<size>\d+) rank=(?P<rank>\d+) local_rank=\d+", "vLLM parallel_state.py"),
    Row("self", r"distributed init \(rank (?P<rank>\d+)(?:, wor[ld]+ (?P<size>\d+))?\)", "DETR, DINO, LAVIS"),
    Row("self", r"\bRANK(?:_ID)?=(?P<rank>\d+)\b", "environment of torchrun, MindSpore"),
    # Plain words: a rank only at the start of a file, and if nothing else gives one (table.py).
    Row(
        "said",
        r"(?i)\b(?:start(?:ing)?|running) (?!to\b)(?:[\w-]+ ){1,4}(?:for|on|as) rank[ :=]{1,3}(?P<rank>\d+)\b",
        "`start training for rank 0, device 0`: scripts of MindSpore models; `Running basic DDP example on rank 0`: "
        "the tutorial of PyTorch",
    ),
    Row(
        "said", r"(?i)\brank_id\s?[:=]\s?(?P<rank>\d+)\b", "`Device_id: 0, rank_id: 0, device_num: 8`: MindSpore models"
    ),
    Row("said", r"Process rank: (?P<rank>\d+), world size: \d+", "LlamaFactory hparams/parser.py"),
    Row("said", r"^Process index: (?P<rank>\d+)", "accelerate state.py"),
    Row("said", r"device per process\.\s?Process (?P<rank>\d+), total \d+", "timm train.py"),
    Row("world", r"\b(?:WORLD_SIZE|RANK_SIZE)=(?P<size>\d+)\b", "environment of torchrun, MindSpore"),
    Row("world", r"\busing world size: (?P<size>\d+)", "Megatron-LM arguments.py"),
    Row("world", r"\bdist_world_size=(?P<size>\d+)", "DeepSpeed launch.py"),
    Row("world", r"\bglobal_world_sizes=\[(?P<size>\d+)", "torch.distributed.elastic"),
    Row("world", r"(?P<joined>\d+)/(?P<size>\d+) clients joined", "torch DistStoreError"),
    Row(
        "launch",
        r"--(?:nproc[_-]per[_-]node|local_worker_num)(?:=|\s+)(?P<each>\d{1,4})\b",
        "torchrun, msrun (MindSpore): how they are started",
    ),
    Row(
        "launch",
        r"nproc_per_node\s*: (?P<each>\d{1,4})\s*\n(?:[^\n]*\n){0,4}?[^\n]*rdzv_configs\s*: "
        r"\{'rank': (?P<node>\d{1,6}),",
        "torch.distributed.launcher.api: launch configs",
        True,
    ),
    Row(
        "placed",
        r"The new node: (?P<node>[\w.-]+)\(role: MS_WORKER\), rank id: (?P<rank>\d+), device id: (?P<device>\d+), "
        r"hostname: (?P<host>[\w.-]+)",
        "MindSpore meta_server_node.cc",
    ),
    Row("places", r"\bglobal_ranks=\[(?P<ranks>[\d, ]+)\]", "torch.distributed.elastic: ranks of this host"),
    Row("places", r"global_rank_mapping=.*?\{(?P<mapping>'[^}]*)\}", "DeepSpeed launch.py: ranks of all hosts"),
)
_TOPOLOGY = (
    Row("topo", r"topo exchange server get socket time ?out", f"{_GUIDE}/cluster_info_nego.md (CANN 6 to 9)"),
    Row("topo.connected", r"connected rankinfo\[LINE\s?\d+\]:\s*(?P<connected>.*)", f"{_GUIDE}/cluster_info_nego.md"),
    Row("topo.expected", r"need connect rankNum is \[(?P<size>\d+)\]", f"{_GUIDE}/cluster_info_nego.md"),
    Row("topo.missing", r"Failed to connect agent\s?\[(?P<missing>[\d, ]*)\]", f"{_GUIDE}/cluster_info_nego.md"),
    Row("topo.missing", r"unconnected ranks:\s?\W{0,3}\[(?P<missing>[\d, ]*)\]", "EI0015 (CANN 8.5, 9)"),
    Row(
        "topo.peer", r"GetRankBasicInfo from rank\[(?P<peer>\w+)\] failed", "topoinfo_exchange_server.cc (CANN 6 to 8)"
    ),
    Row("topo", r"topo exchange agent get socket time ?out", f"{_GUIDE}/cluster_info_nego.md"),
    Row(
        "topo.root",
        rf"TopoExchangeAgent: connect server\[(?P<root_ip>{IP})[^\]]*\] failed",
        "topoinfo_exchange_agent.cc",
    ),
    Row("topo", r"receive (?:msg length )?from fdhandle failed", "topoinfo_exchange_base.cc (CANN 6 to 8)"),
    Row("topo", r"rank num\[\d+\]\s?is different with rank list size", "topoinfo_exchange_agent.cc"),
    Row("topo", r"Receiving message from the root node timed out", "EI0015 (CANN 8.5, 9), Ascend 950"),
    Row("topo", r"get connected status socket time ?out", "rank_info_detect_client.cc (Ascend 950)"),
    Row(
        "store",
        r"(?i)client socket has (?:timed out|failed)|connect\(\) timed out|store->get\([^)]*\) got error",
        "torch c10d TCPStore: the process of rank 0 holds the store",
    ),
    Row("topo.missing", r"Ranks? (?P<missing>[\d, ]+) failed to pass monitoredBarrier", "torch ProcessGroupGloo.cpp"),
)
_NOTIFY = (
    Row("notify", r"(?:Task|FFTS\+?) run failed, base information is", "task_exception_handler.cc (CANN 6.3 to 9)"),
    Row("notify.peer", r"para information is .*?remote rank:\s?\[", "task_exception_handler.cc (CANN 6.3 to 8)"),
    Row("notify.group", r"groupRank information is group:", "task_exception_handler.cc (CANN 7 to 9)"),
    Row(
        "notify.data",
        r"opData information is (?:tag:(?P<tag>[^,]+), ?group:(?P<group>[^,]+), ?opIndex:(?P<index>\d+)"
        r"|.*?\bindex\[(?P<number>\d+)\])(?:.*?\bcount[:\[](?P<count>\d+))?",
        "task_exception_handler.cc; aicpu_communicator.cc",
    ),
    Row(
        "notify.device",
        r"base information is streamId:.*?type:\s?NOTIFY WAIT, ?localRank:(?P<own>\d+), ?remoteRank:(?P<peer>\d+)",
        "aicpu_communicator.cc (CANN 8.1 to 9), log of the device",
    ),
    Row("notify", r"Notify register (?:times? out|waits for execution|has not received)", "EI0002 (CANN 5 to 9)"),
    Row("notify", r"(?i)notify wait (?:execute )?(?:fail|time)", "RUNTIME task_info.cc (CANN 6 to 9)"),
    Row(
        "notify",
        r"Watchdog caught collective operation timeout: Work\w+\((?:SeqNum=(?P<index>\d+), ?)?OpType=(?P<tag>\w+)",
        "torch_npu ProcessGroupHCCL.cpp",
    ),
    Row(
        "notify",
        r"Process group work (?P<tag>\w+), ?seq_num (?P<index>\d+) dispatch timeout",
        "torch_npu ProcessGroupHCCL.cpp",
    ),
)
_LINKS = (
    Row(
        "socket",
        rf"\|\s*(?P<peer_ip>{IP})\((?P<peer>\d+)\)\s*\|(?:\s*\d+\s*\|)?\s*(?P<own_ip>{IP})\((?P<own>\d+)\)\s*\|"
        r"[^\n]*\|\s*(?:time ?out|no connect|connect fail|fail)\w*\s*\|",
        "LINK_ERROR_INFO of hccl_socket_manager.cc, comm_base.cc (CANN 6 to 9)",
    ),
    Row("socket.self", r"userrank\[(?P<own>\d+)\] exchanger Status", "exchanger_network.cc (CANN 5)"),
    Row(
        "socket",
        r"\|\s+\d+\s+\|\s+(?P<peer>\d+)\s+\|\s+(?:client|server)\s+\|\s+NO\s+\|",
        "exchanger_network.cc (CANN 5)",
    ),
    Row(
        "socket",
        rf"createLink para:\s?rank\[\d+\]-localUserrank\[(?P<own>\d+)\]-localIpAddr\[(?P<own_server>{IP})"
        r"(?:%[^\]/]*)?(?:/(?P<own_device>\d+))?\], ?(?:dst_rank|remoteRank)\[\d+\]-remoteUserrank\[(?P<peer>\d+)\]"
        rf"-remote(?:IpAddr|_ip_addr)\[(?P<peer_server>{IP})(?:%[^\]/]*)?(?:/(?P<peer_device>\d+))?\]",
        "transport_manager.cc; EI0009 (CANN 6 to 9)",
    ),
    Row(
        "socket.detected",
        rf"srcRank \(server (?P<own_server>{IP})[^,]*, device ID (?P<own_device>\d+)[^)]*\) fails? to connect to "
        rf"dstRank \(server (?P<peer_server>{IP})[^,]*, device ID (?P<peer_device>\d+)",
        "detect_connect_anomalies.cc (CANN 8.3 to 9)",
    ),
    Row("tls", r"\bTLS SWITCH \((?P<tls>\d)\)", f"{_GUIDE}/param_link_stage.md, log of the device"),
    Row(
        "tls",
        rf"\|\s*{IP}\(\d+\)\s*\|[^\n]*\|\s*(?P<tls>ENABLE|DISABLE)\s*\|",
        f"{_GUIDE}/param_link_stage.md, LINK_ERROR_INFO (CANN 8.3 to 9)",
    ),
    Row("socket", r"wait socket establish time ?out, role\[\d+\] rank\[(?P<own>\d+)\]", "hccl_socket_manager.cc"),
    Row("socket", r"device\[\d+\] rank\[(?P<own>\d+)\] get socket time ?out", "exchanger_network.cc (CANN 5)"),
    Row("socket", r"Getting socket times? out", "EI0006 (CANN 5 to 9)"),
    Row("socket", r"Wait timeout for sockets? recv|get rasocket time ?out", "adapter_hccp.cc (CANN 6 to 8)"),
    Row("socket", r"the connection failure between this device", "comm_base.cc (CANN 5 to 7)"),
    Row(
        "p2p",
        r"connected p2p time ?out.*?remote phy\w* id:\s?(?P<peer_device>\d+)",
        "p2p_mgmt.cc (CANN 5 to 9)",
    ),
    Row(
        "p2p",
        r"Enable P2P Failed, ?src devicePhyId\[(?P<own_device>\d+)\], ?dst devicePhyId\[(?P<peer_device>\d+)\]",
        "transport_manager.cc (CANN 6 to 9)",
    ),
    Row(
        "p2p",
        r"(?i)p2p \w+ time ?out, ?local device\[(?P<own_device>\d+)\],? ?remote device\[(?P<peer_device>\d+)\]",
        f"{_FAULTDIAG} kg-config.json",
    ),
    Row("p2p", r"(?i)wait time ?out for get p2p status", "p2p_mgmt.cc (CANN 5)"),
)
_HEARTBEATS = (
    Row(
        "lost",
        rf"Cluster Exception Location\s?\[IP/ID\]:\s?\[(?P<server>{IP})(?:%[^\]/]*)?/(?P<device>\d+)\]"
        r"(?:.{0,200}?ExceptionType:\s?\[?(?P<status>[\w ]+))?",
        f"{_GUIDE}/task_exec_stage.md (CANN 7 to 9)",
    ),
    Row(
        "lost",
        rf"local rank \[(?P<own_server>{IP})(?:%[^\]/]*)?/(?P<own_device>\d+)\]: ?crimer rank "
        rf"\[(?P<server>{IP})(?:%[^\]/]*)?/(?P<device>\d+)\](?: status\s?\[(?P<status>[\w ]+)\])?",
        f"{_GUIDE}/task_exec_stage.md (CANN 7 to 9)",
    ),
    Row(
        "lost",
        rf"rank \[(?P<own_server>{IP})(?:%[^\]/]*)?/(?P<own_device>\d+)\]: ?rank "
        rf"\[(?P<server>{IP})(?:%[^\]/]*)?/(?P<device>\d+)\] status\s?\[(?P<status>[\w ]+)\] by rank \[",
        "heartbeat.cc (CANN 8, 8.5): HCCL_TRACE",
    ),
    Row(
        "lost",
        rf"server:(?P<server>{IP})(?:%[^/]*)?/(?P<device>\d+), ?"
        rf"server:(?P<own_server>{IP})(?:%[^/]*)?/(?P<own_device>\d+), ?"
        r"(?P<status>[\w ]+?) Occurred",
        f"task_exception_handler.cc (CANN 7); {_FAULTDIAG}",
    ),
    Row(
        "lost",
        r"serverId\[(?P<server>[^\]%]+)(?:%[^\]]*)?\], ?deviceId\[(?P<device>\d+)\], ?(?P<status>[\w ]+?) Occurred",
        "heartbeat.cc (CANN 5, 6)",
    ),
)
_CQE = (
    Row(
        "cqe",
        r"An error CQE occurred during operator execution\. ?Local information: server (?P<own_server>[^,\s]+), "
        r"device ID (?P<own_device>\d+), device IP (?P<own_ip>[\da-fA-F:.]*[\da-fA-F])\W+Peer information: server "
        r"(?P<peer_server>[^,\s]+), device ID (?P<peer_device>\d+), device IP (?P<peer_ip>[\da-fA-F:.]*[\da-fA-F])",
        "EI0013, EI0018 (CANN 8.3 to 9)",
    ),
    Row(
        "cqe",
        rf"cqe err(?:or)? status\s?\[\d+\].*?localInfo\{{.*?deviceIp\[(?P<own_ip>{IP})\]\}}.*?remoteIP\{{.*?"
        rf"deviceIp\[(?P<peer_ip>{IP})\]",
        f"{_GUIDE}/task_exec_stage.md (CANN 8.5, 9)",
    ),
    Row(
        "cqe",
        rf"cqe err(?:or)? status\s?\[\d+\](?:.*?localIP:?\s?\[(?P<own_ip>{IP})\])?"
        rf".*?(?:remoteIP|[ ,]ip):?\s?\[(?P<peer_ip>{IP})\]",
        "heartbeat.cc (CANN 6 to 8)",
    ),
)
_FAILURES = (
    Row("failed", r"base information is streamId:.*?type:\s?SDMA", "aicpu_communicator.cc (CANN 8.1 to 9)"),
    Row("failed", r"fftsplus sdma error|\bEI0012\b|SDMA memory copy task exception", f"{_GUIDE}/task_exec_stage.md"),
    Row(
        "failed",
        r"[Aa][Ii]\s?[Cc]ore kernel execute failed|fault kernel_name=",
        "RUNTIME task_info.cc, AI Core exception",
    ),
    Row("failed", r"(?i)aicpu (?:exception|kernel execute failed)|\bSegmentation fault\b", "RUNTIME; the kernel"),
    Row(
        "conflict",
        r"CMD information (?P<field>\w+) check fail\W{0,2}local\s?\[(?P<own_value>[^\]]*)\], ?"
        r"remote\s?\[(?P<peer_value>[^\]]*)\]",
        f"{_GUIDE}/param_link_stage.md (CANN 6 to 9)",
    ),
    Row(
        "conflict",
        r"inconsistent between ranks:?\s?(?:parameter )?(?P<field>\w+), local end (?P<own_value>\S+), "
        r"remote end (?P<peer_value>\S+)",
        "EI0005 (CANN 5 to 8)",
    ),
    Row(
        "conflict",
        r"are inconsistent between ranks, parameter (?P<field>\S+) is (?P<own_value>\S+) on the local rank and "
        r"(?P<peer_value>\S+) on the remote rank",
        "EI0005 (CANN 8.5, 9)",
    ),
    Row(
        "conflict",
        r"inconsistent between ranks:?\s?tag \[[^\]]*\], ?parameter \[(?P<field>[^\]]*)\], ?"
        r"local \[(?P<own_value>[^\]]*)\], ?remote \[(?P<peer_value>[^\]]*)\]",
        "EI0005 (CANN 6)",
    ),
    Row(
        "conflict.other",
        r"arguments for collective communication are inconsistent between ranks",
        "EI0005 (CANN 5 to 9)",
    ),
)
_ENDS = (
    Row(
        "first",
        rf"Root Cause \(first observed failure\):\s*\n{_AFTER_TIME}\[\d+\]:\s*\n{_AFTER_TIME}time\s*:[^\n]*\n"
        rf"{_AFTER_TIME}host\s*:\s*(?P<host>\S+)\s*\n{_AFTER_TIME}rank\s*:\s*(?P<rank>\d+)[^\n]*\n"
        rf"{_AFTER_TIME}exitcode\s*:\s*(?P<exit>-?\d+)\s*\(pid: (?P<pid>\d+)\)",
        "torch.distributed.elastic",
        True,
    ),
    Row(
        "exit",
        r"failed \(exitcode: (?P<exit>-?\d+)\) local_rank: (?P<local>\d+) \(pid: (?P<pid>\d+)\)",
        "torch.distributed.elastic",
    ),
    Row(
        "exit",
        r"noticed that process rank (?P<rank>\d+) with PID (?P<pid>\d+) on node (?P<host>\S+) "
        r"exited on signal (?P<signal>\d+)",
        "Open MPI",
    ),
    Row(
        "exit",
        r"srun: error: (?P<host>[\w.-]+): tasks? (?P<rank>\d+): (?P<how>Killed|Segmentation fault|Bus error|Aborted"
        r"|Out Of Memory|Exited with exit code \d+)",
        "Slurm",
    ),
    Row("exit", r"--local_rank=(?P<local>\d+).*exits with return code = (?P<exit>-?\d+)", "DeepSpeed launch.py"),
    Row("exit", r"Worker process (?P<pid>\d+) exit with exception", "MindSpore process_entity/_api.py"),
    Row("exit", r"VllmWorker-(?P<rank>\d+) died unexpectedly", "vLLM multiproc_executor.py"),
    Row(
        "exit",
        r"line \d+:\s+(?P<pid>\d+) (?P<how>Killed|Segmentation fault|Bus error|Aborted)",
        "bash",
    ),
    Row(
        "exit",
        r"(?:Out of memory|out of memory): Kill(?:ed)? process (?P<pid>\d+)(?: \((?P<program>[^)\n]*)\))?",
        "the kernel: a host, a cgroup",
    ),
    Row("exit", r"\[(?P<pid>\d+)\]: (?P<how>segfault) at [\da-f]+ ip", "the kernel (dmesg)"),
    Row("exit", r"\boom-kill:.*?(?:\btask=(?P<program>[^,\s]+),)?\bpid=(?P<pid>\d+)", "the kernel (dmesg)"),
    Row(
        "exit",
        r"= +(?:RANK (?P<rank>\d+) )?PID (?P<pid>\d+) RUNNING AT (?P<host>[\w.-]+)\s*\n=\s+"
        r"(?:KILLED BY SIGNAL|EXIT CODE): (?P<signal>\d+)",
        "Hydra: MPICH, Intel MPI",
        True,
    ),
    Row(
        "exit",
        r"\bprocess (?P<local>\d+) terminated with (?:signal (?P<how>SIG\w+)|exit code (?P<exit>\d+))",
        "torch/multiprocessing/spawn.py",
    ),
    Row("exit", r"slurmstepd(?:-(?P<host>[\w.-]+))?: error: Detected \d+ oom[_-]kill", "slurmstepd"),
    Row(
        "exit",
        r"\bexited: (?P<name>[\w:.-]+) \((?:terminated by (?P<how>SIG\w+)|exit status (?P<exit>\d+)); not expected\)",
        "supervisord",
    ),
    Row("exit", r"(?P<name>[\w@.-]+)\.service: Main process exited, code=killed, status=(?P<signal>\d+)/", "systemd"),
    # What ends a container from outside; the pod is named in the line, above it in its file, or by the file's name.
    Row("pod", r"\bName:\s+(?P<name>[\w.-]+)\s*\nNamespace:", "kubectl describe pod", True),
    Row(
        "pod",
        r"\bkind: Pod\s*\nmetadata:\s*\n(?:[^\n]*\n){0,9}?  name: (?P<name>[\w.-]+)",
        "kubectl get pod -o yaml",
        True,
    ),
    Row("pod", r'"Name": "/(?P<name>[\w.-]+)"', "docker inspect"),
    Row("exit", r'\b[Rr]eason"?:\s+"?(?P<how>OOMKilled|Evicted)\b', "kubectl describe, get -o yaml or json: a pod"),
    Row("exit", r'\b(?:Exit Code|exitCode"?):\s+(?P<exit>13[579])\b', "kubectl describe, get -o yaml or json: a pod"),
    Row("exit", r"(?P<name>[a-z][\w.-]*)\s+\d+/\d+\s+(?P<how>OOMKilled|Evicted)\b", "kubectl get pods"),
    Row(
        "exit",
        r"\b(?P<how>OOMKilling|Evicted|TaintManagerEviction|Preempted|Preempting)\s[^\n]{0,60}?\b[Pp]od/(?P<name>[\w.-]+)",
        "kubectl get events",
    ),
    Row("exit", r"\bWarning\s+(?P<how>Evicted)\s+\S+\s+kubelet\b", "kubectl describe pod: its events"),
    Row("gone", r"\bNode(?:NotReady|Lost)\s[^\n]{0,60}?\b(?:[Pp]od|[Nn]ode)/(?P<name>[\w.-]+)", "kubectl get events"),
    Row("exit", r"\bExited \((?P<exit>13[579])\) [^\n]*\s(?P<name>[\w.-]+)\s*$", "docker ps --all"),
    Row("exit", r'"(?P<how>OOMKilled)": true', "docker inspect"),
    Row("exit", r"\bcontainer oom [\da-f]+ \([^\n]*?\bname=(?P<name>[\w.-]+)", "docker events"),
    # What MindSpore's scheduler and its launcher print about workers that do not answer.
    Row("gone", r"The node: (?P<node>[\w.-]+) is timed out", "MindSpore meta_server_node.cc"),
    Row("gone", r"Timed out node list is: \[const vector\]\{(?P<nodes>[^}\n]*)\}", "MindSpore meta_server_node.cc"),
    Row("gone", r"Time out nodes are \[(?P<nodes>[^\]\n]*)\]", "MindSpore process_entity/_api.py"),
    Row(
        "raised",
        r"RayTaskError\((?P<error>\w+)\): .*?\bpid=(?P<pid>\d+), ip=(?P<host>[\w.:-]+)",
        "Ray exceptions.py: an exception of an actor, printed by the driver",
    ),
    Row(
        "died",
        r"Worker IP address: (?P<host>\S+) Worker port: \d+ Worker PID: (?P<pid>\d+) Worker exit type: (?P<how>\w+)",
        "Ray raylet; vllm-ascend 1778",
    ),
    Row(
        "died",
        r"Memory on the node \(IP: (?P<host>[^,\s]+), ID: [^)\s]*\) where the \w+ "
        r"(?:\([^()\n]*?\bpid=(?P<pid>\d+)|was running)",
        "Ray memory monitor, node_manager.cc: the id since 2.2",
    ),
    Row(
        "died",
        r"\b[1-9]\d* Workers \(tasks / actors\) killed due to memory pressure[^\n]*?, IP: (?P<host>[\w.:-]+)\)",
        "Ray node_manager.cc",
    ),
    Row("died", r"process killed to reclaim memory\. worker pid: (?P<pid>\d+)", "Ray node_manager.cc"),
    Row(
        "died",
        r"Killing worker with task [^\n]*?\bip=(?P<host>[\w.:-]+), pid=(?P<pid>\d+)",
        "Ray raylet, node_manager.cc",
    ),
    Row(
        "died",
        r"(?:ActorDiedError|RayActorError|ActorUnavailableError)[^\n]*\n"
        r"(?:(?!\s*pid:)[^\n]*\n){0,4}?(?:\[[^\]\n]*\])?\s*pid: (?P<pid>\d+)\s*\n"
        r"(?:(?:\[[^\]\n]*\])?\s*name: \w*?_(?P<group>\d{1,4}):(?P<local>\d{1,4})\s*\n)?"
        r"(?:(?!\s*ip:)[^\n]*\n){0,4}?(?:\[[^\]\n]*\])?\s*ip: (?P<host>\S+)",
        "Ray exceptions.py; verl 1309, vllm 15199; names of actors: single_controller/ray/base.py of verl",
        True,
    ),
)
ROWS = (*_STARTS, *_TOPOLOGY, *_NOTIFY, *_LINKS, *_HEARTBEATS, *_CQE, *_FAILURES, *_ENDS)
