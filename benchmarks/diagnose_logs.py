"""Synthetic logs for the benchmarks of `envtune diagnose`: what CANN writes at level INFO, in the formats of facts D9.

Eight processes of one host log into one file, each line with its own time, thread and numbers: addresses, sizes, node
and operator names, shapes. None of it is an error; known errors, or lines that merely contain a literal of one, are
inserted at a given rate.
"""

from __future__ import annotations

import random
from typing import Iterator, Sequence

SEED = 20240601
CHUNK_LINES = 20_000

# One line per kind of line: module, source file and line, text. Fields in braces are filled from pools.
KINDS = """\
RUNTIME|stream.cc:1253|KernelTask: submit, stream_id={stream}, task_id={task}, sq_head={n}, kernel={kernel}
RUNTIME|task.cc:2087|ToCommandBody: task_type={n}, stream_id={stream}, pc=0x{address}, args=0x{address}
RUNTIME|npu_driver.cc:1421|DevMemAlloc: success, size={bytes}, type=2, ptr=0x{address}, device_id={device}
RUNTIME|api_impl.cc:884|MemcpyAsync: dst=0x{address}, src=0x{address}, cpy_size={bytes}, kind=1, stream={stream}
RUNTIME|event.cc:311|Record: event_id={n}, stream_id={stream}, task_id={task}, notify_time={task}
RUNTIME|context.cc:640|StreamCreate: context=0x{address}, stream_id={stream}, priority=0, flags=0
RUNTIME|task_recycle.cc:77|TaskReclaim: stream_id={stream}, last={task}, pos={n}, finished {n} of {n}
HCCL|op_base.cc:1124|Entry-HcclAllReduce: tag[AllReduce_{address}], count[{bytes}], dataType[float16], op[sum]
HCCL|hccl_impl.cc:2750|[GetComm] tag[HcomAllGather_{n}_{n}] rank[{device}] ringSize[8] stream[{stream}]
HCCL|task_profiling.cc:190|[TaskProfiling] streamID[{stream}], taskID[{task}], transportType[SDMA], size[{bytes}]
HCCL|heartbeat.cc:402|[HeartBeat] local rank [192.168.100.10{device}/{device}] send to [192.168.100.11{device}/{n}]
GE|node_executor.cc:220|[{node}] Start to execute node, op type = {op}, iteration = {task}
GE|infershape_pass.cc:146|[{node}] infer shape succeeded, output 0: format ND, shape [{shape}]
GE|graph_manager.cc:790|PreRun: graph node size {n}, session id {n}, graph id {n}, graph name online_{task}
GE|hybrid_model_async_executor.cc:312|HandleResult: end of iteration {task}, output size {bytes}
FE|fe_graph_optimizer.cc:467|[FE_PERFORMANCE] The time cost of OptimizeOriginalGraph is [{task}] micro second.
FE|op_kernel_info_store.cc:88|op {op}, node {node}: kernel found in {kernel}.json, impl type {n}
ASCENDCL|op_executor.cpp:167|execute op: type = {op}, inputs = {n}, outputs = 1, stream = 0x{address}
ASCENDCL|memory.cpp:67|start to execute aclrtMalloc, size = {bytes}, policy = 0
ASCENDCL|stream.cpp:150|start to execute aclrtSynchronizeStreamWithTimeout, timeout = -1ms, id {stream}
TDT|data_queue.cpp:511|queue 0x{address} depth {n}/{n}, batch {task}, tensor bytes {bytes}
DRV|devmm_svm.c:1203|<curpid:{task}> <ref_alloc> va=0x{address}, size={bytes}, page_num={n}, devid={device}
CCECPU|ae_kernel_lib.cc:98|kernel {op} run end, cost {task} us, thread {n}, session {n}
PROFILING|msprof_reporter.cpp:216|report tag Framework, data length {bytes}, agent device {device}
ATB|runner_pool.cpp:55|{node} runner hit, workspace {bytes}, tiling {n}, host us {task}
OP|aclnn_base.cpp:77|aclnn{op} executor {address} unique id {task} workspaceSize {bytes} hit {n}
"""
OPERATORS = """\
MatMulV2 BatchMatMul SoftmaxV2 LayerNormV3 Add Mul Cast TransData Transpose Reshape GatherV2 StridedSliceD
ReduceSumD BiasAdd Gelu GeluGrad DropOutDoMask FlashAttentionScore ApplyAdamW Conv2D BNTrainingReduce
MaxPoolV3 ConcatD SplitVD
"""
# Four known errors; some of their lines are split into several here.
FAILING = (
    "[ERROR] HCCL({pid},python):{time} "
    "[task_exception.cc:88][{tid}][TaskExecStage][Timeout][HostAffinity]Task run failed, base information is "
    "streamID:[{stream}], taskID[{task}], tag[AllReduce_{address}], AlgType(level 0-1-2):[ring].",
    "[ERROR] RUNTIME({pid},python):{time} [davinci_kernel_task.cc:1180]{tid} PrintErrorInfo:Aicore kernel "
    "execute failed, device_id={device}, stream_id={stream}, report_stream_id={stream}, task_id={task}, fault "
    "kernel_name={kernel}, hash {address}",
    "[ERROR] RUNTIME({pid},python):{time} [npu_driver.cc:740]{tid} DevMemAlloc:Device malloc failed, "
    "size={bytes}, type=2",
    "EI0006: [PID: {pid}] {time} Getting socket times out. Reason: Remote Rank {device} did not send the data in time.",
)
# Contains what F08 looks for first, "cannot i(mport name)", but does not match it.
CHATTY = (
    "[INFO] GE({pid},python):{time} [inline_pass.cc:212] [{tid}][{node}] cannot inline into graph {n}, kept, "
    "cost {task}, args 0x{address}",
)


def _pools(rng: random.Random) -> dict[str, list[str]]:
    def numbers(low: int, high: int) -> list[str]:
        return [str(int(low * (high / low) ** rng.random())) for _ in range(4099)]

    known = OPERATORS.split()
    operators = [rng.choice(known) for _ in range(4099)]
    return {
        "stream": numbers(1, 2048),
        "task": numbers(1, 65535),
        "n": numbers(1, 512),
        "bytes": numbers(512, 1 << 33),
        "device": [str(rng.randrange(8)) for _ in range(4099)],
        "address": [f"{rng.getrandbits(48):012x}" for _ in range(4099)],
        "op": operators,
        "node": [f"trans_{op}_{rng.randrange(4000)}" for op in operators],
        "kernel": [f"te_{op.lower()}_{rng.getrandbits(128):032x}_{rng.randrange(4)}" for op in operators],
        "shape": [",".join(str(rng.choice((1, 8, 32, 512, 1024, 4096, 12288))) for _ in range(3)) for _ in range(4099)],
    }


def lines(share: float = 0.0, seed: int = SEED, put_in: Sequence[str] = FAILING) -> Iterator[bytes]:
    """Yield chunks of whole lines, endlessly; a `share` of them are lines of `put_in`."""
    rng = random.Random(seed)
    pools = _pools(rng)
    rows = [row.split("|") for row in KINDS.splitlines()]
    spaced = [f"[{{level}}] {module}({{pid}},python):{{time}} [{at}] [{{tid}}]{text}" for module, at, text in rows]
    dense = [f"[{{level}}]{module}({{pid}}):{{time}} [{at}]{{tid}} {text}" for module, at, text in rows]
    kinds = spaced + spaced + dense
    clock = 1_717_200_000_000_000
    while True:
        chunk = []
        for _ in range(CHUNK_LINES):
            clock += rng.randrange(1, 400)
            kind = rng.choice(put_in) if share and rng.random() < share else rng.choice(kinds)
            chunk.append(_line(kind, clock, rng, pools))
        yield "".join(chunk).encode("ascii")


def _line(kind: str, clock: int, rng: random.Random, pools: dict[str, list[str]]) -> str:
    at = rng.randrange(4099)
    fields = {name: pool[(at * 7 + number) % 4099] for number, (name, pool) in enumerate(pools.items())}
    second, micro = divmod(clock, 1_000_000)
    of_day = second % 86_400
    process = at % 8
    fields["pid"] = str(116_072 + 131 * process)
    fields["tid"] = str(116_072 + 131 * process + at % 40)
    fields["level"] = "EVENT" if at % 50 == 0 else "INFO"
    fields["time"] = (
        f"2024-06-{1 + second // 86_400 % 28:02d}-{of_day // 3600:02d}:{of_day // 60 % 60:02d}:{of_day % 60:02d}"
        f".{micro // 1000:03d}.{micro % 1000:03d}"
    )
    return kind.format_map(fields) + "\n"
