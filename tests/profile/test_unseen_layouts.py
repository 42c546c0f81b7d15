"""Profiles in header layouts of other generations, answered before envtune was run on them.

The headers are those that public repositories hold: msprof (tests of OpSummaryAssembler, ms_configuration), torch_npu
(`_csv_headers.py`), tests of mskpp for the tables of older NPUs, viewers of MindSpore, and profiles of vllm of 2026.
The numbers are made.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Iterable, NamedTuple, Sequence

import pytest
from helpers.profiles import trace

from envtune.profile.analyze import profile

START = 1774670741777000.0  # microseconds


class Case(NamedTuple):
    """Files, and what is right to say of them."""

    files: dict[str, bytes]
    verdict: str
    advised: Sequence[str] = ()  # rules, all of them
    said: Sequence[str] = ()  # in the notes
    unsaid: Sequence[str] = ()
    slow: str = ""
    unread: int = 0


def text(header: str, rows: Iterable[Sequence[Any]]) -> bytes:
    return "".join(f"{line}\n" for line in (header, *(",".join(map(str, row)) for row in rows))).encode()


def starts(count: int, period: float, first: float = START) -> list[float]:
    return [first + number * period for number in range(count)]


LEVEL0 = "Device_id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Num"
STEP_AND_DEVICE = (
    "Step Id,Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),"
    "Wait Time(us),Block Num,Mix Block Num,HF32 Eligible"
)
KERNELS_2026 = (
    "Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),"
    "Wait Time(us),Block Num,Mix Block Num,HF32 Eligible,Input Shapes,Input Data Types,Input Formats"
)
SUMMARY_910A = (
    "Model ID,Task ID,Stream ID,Op Name,OP Type,Task Type,Task Start Time,Task Duration(us),Task Wait Time(us),"
    "Block Dim,Input Shapes,Input Data Types,Input Formats,Output Shapes,Output Data Types,Output Formats,"
    "aicore_time(us),total_cycles,vec_time(us),vec_ratio,mac_time(us),mac_ratio,scalar_time(us),scalar_ratio,"
    "mte1_time(us),mte1_ratio,mte2_time(us),mte2_ratio,mte3_time(us),mte3_ratio,icache_miss_rate,memory_bound"
)
SUMMARY_51 = (
    "Model Name,Model ID,Task ID,Stream ID,Infer ID,Op Name,OP Type,Task Type,Task Start Time,Task Duration(us),"
    "Task Wait Time(us),Block Dim,Mix Block Dim"
)
SUMMARY_85 = (
    "Device_id,Model ID,Task ID,Stream ID,Op Name,OP Type,OP State,Task Type,Task Start Time(us),Task Duration(us),"
    "Task Wait Time(us),Block Dim,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,Output Shapes"
)
STEP_2026 = (
    "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
    "Communication(Not Overlapped and Exclude Receive),Preparing"
)
ITERATIONS = (
    "Iteration ID,FP Start(us),BP End(us),Iteration End(us),Iteration Time(us),FP to BP Time(us),Iteration Refresh(us),"
    "Data Aug Bound(us)"
)
ITERATIONS_DEVICE = f"Device_id,{ITERATIONS},Model ID"
STATISTIC = "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"
ENDS = [98, 2, 8, "NO", '"""64,64"""', "FLOAT16", "ND", '"""64,64"""']


def row_910a(start: float, duration: float, scalar: float, loads: float, kind: str = "add_custom") -> list[Any]:
    shapes = ["N/A"] * 6
    ratios = [duration, 78923, 0.2, 0.02, 0, 0, duration * scalar, scalar, 0, 0, duration * loads, loads, 2, 0.2, 0, 16]
    return [4294967295, 1, 47, kind, kind, "AI_CORE", f"{start:.3f}", duration, 0, 8, *shapes, *ratios]


def collective(link: str, size: float, time: float, packet: str) -> bytes:
    one = {
        "Communication Time Info": {
            "Start Timestamp(us)": START,
            "Elapse Time(ms)": time * 1.2,
            "Transit Time(ms)": time,
            "Wait Time(ms)": time * 0.1,
            "Synchronization Time(ms)": 0,
            "Idle Time(ms)": 0,
            "Wait Time Ratio": 0.1,
            "Synchronization Time Ratio": 0,
        },
        "Communication Bandwidth Info": {
            link: {
                "Transit Size(MB)": size,
                "Transit Time(ms)": time,
                "Bandwidth(GB/s)": size / time / 1.024,
                "Large Packet Ratio": 1,
                "Size Distribution": {packet: [int(size / float(packet)), time]},
            }
        },
    }
    return json.dumps({"step": {"p2p": {}, "collective": {"hcom_allReduce__1_0_1@2": one}}}).encode()


def spreadsheet(rows: int) -> bytes:
    """A table that a spreadsheet saved: byte order mark, CRLF, and starts with six digits."""
    made = [[0, 4294967295, n, 2, f"op{n}", "Mul", "static", "AI_CORE", "1.77467E+15", 20] for n in range(rows)]
    header = ",".join(KERNELS_2026.split(",")[:10])
    return b"\xef\xbb\xbf" + text(header, made).replace(b"\n", b"\r\n")


CASES: dict[str, Case] = {
    "Level0 of 2026, kernels with gaps": Case(
        {
            "kernel_details.csv": text(
                LEVEL0,
                [[0, "aclnnMatmul_MatMulCommon_MatMulV2", "N/A", "N/A", at, 20.5, 79, 8] for at in starts(80, 100)],
            )
        },
        "host",
        ["free"],
        ["Level0"],
    ),
    "step and device in front, kernels without gaps": Case(
        {
            "kernel_details.csv": text(
                STEP_AND_DEVICE,
                [
                    [n // 20, 8, 0, n, 46, f"aclnnMatmul_{n}", "MatMulV3", "static", "MIX_AIC", at, 97, 0, 24, 48, "NO"]
                    for n, at in enumerate(starts(80, 100))
                ],
            )
        },
        "compute",
    ),
    "collectives that nothing hides": Case(
        {
            "kernel_details.csv": text(
                KERNELS_2026,
                [
                    [0, 4294967295, n, 2, *what, at, time, 0, 8, 0, "NO", "N/A", "N/A", "N/A"]
                    for n, begin in enumerate(starts(60, 1000))
                    for what, at, time in (
                        (("aclnnAdd", "Add", "dynamic", "AI_VECTOR_CORE"), begin, 250),
                        (("hcom_allReduce__9", "hcom_allReduce_", "N/A", "COMMUNICATION"), begin + 260, 700),
                    )
                ],
            )
        },
        "communication",
        [],
        ["api_statistic"],
    ),
    "910A: long kernels in the scalar unit": Case(
        {
            "op_summary_0_1.csv": text(
                SUMMARY_910A, [row_910a(at, 1900, 0.95, 0.1) for at in starts(60, 2000, 1043640017380.831)]
            )
        },
        "compute",
        ["scalar"],
        [],
        ["PipeUtilization"],
    ),
    "910A: kernels that wait for memory": Case(
        {
            "op_summary_0_1.csv": text(
                SUMMARY_910A, [row_910a(at, 190, 0.1, 0.95, "MatMul") for at in starts(60, 200, 1043640017380.831)]
            )
        },
        "compute",
        [],
        ["MTE2"],
        ["PipeUtilization"],
    ),
    "CANN 5: starts without a unit, half idle": Case(
        {
            "op_summary_0_1.csv": text(
                SUMMARY_51,
                [
                    ["N/A", 1, n, 2, 1, f"add{n}", "Add", "AI_VECTOR_CORE", f"{at:.3f}\t", 40, 60, 8, 0]
                    for n, at in enumerate(starts(70, 100, 1043640017380.831))
                ],
            )
        },
        "host",
        ["free"],
    ),
    "CANN 8.5: op_summary with casts": Case(
        {
            "op_summary_20260301120000.csv": text(
                SUMMARY_85,
                [
                    [
                        0,
                        1,
                        n,
                        2,
                        f"op{n}",
                        ("Cast", "MatMulV2", "MatMulV2")[n % 3],
                        "static",
                        "AI_CORE",
                        f"{at:.3f}\t",
                        *ENDS,
                    ]
                    for n, at in enumerate(starts(90, 100))
                ],
            )
        },
        "compute",
        ["cast"],
    ),
    "steps without the newer columns": Case(
        {
            "step_trace_time.csv": text(
                "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage",
                [[0, step, 85704.02, 3873.52, 630.54, 4504.06, 21471.45, 111048.99] for step in (1, 2)],
            )
        },
        "compute",
        ["free"],
    ),
    "one step without a name": Case(
        {"step_trace_time.csv": text(STEP_2026, [[0, "", 12000, 0, 0, 0, 400, 12400, 0, 0, 50]])}, "compute"
    ),
    "host-bound with a long preparation": Case(
        {"step_trace_time.csv": text(STEP_2026, [[0, 1, 200000, 80000, 20000, 100000, 720000, 1e6, 0, 80000, 350000]])},
        "host",
        ["free", "preparing"],
    ),
    "a cluster with a slow rank": Case(
        {
            "cluster_step_trace_time.csv": text(
                f"Step,Type,Index,{STEP_2026.partition('Step,')[2]}",
                [
                    [
                        1,
                        "rank",
                        4,
                        239637.638,
                        109905.202,
                        14826.532,
                        124731.734,
                        297887.055,
                        647429.75,
                        0.0,
                        109905.202,
                        1,
                    ],
                    [
                        1,
                        "rank",
                        7,
                        240226.045,
                        401927.422,
                        238997.843,
                        640925.265,
                        3334.33,
                        648737.25,
                        0.0,
                        401927.422,
                        2,
                    ],
                ],
            )
        },
        "host",
        ["free"],
        ["5-6"],
        slow="4",
    ),
    "a summary with layout conversions": Case(
        {
            "op_statistic.csv": text(
                "OP Type,Count,Total Time(us),Avg Time(us),Ratio(%)",
                [["TransData", 570, 30000, 52, 30], ["MatMulV2", 100, 70000, 700, 70]],
            )
        },
        "unknown",
        ["layout"],
        ["kernels only"],
    ),
    "a summary of experts with nothing wrong": Case(
        {
            "op_statistic.csv": text(
                STATISTIC,
                [
                    [0, "GroupedMatmul", "MIX_AIC", 8, 8000, 900, 1000, 1100, 57],
                    [0, "FusedInferAttentionScore", "MIX_AIC", 4, 3000, 700, 750, 800, 21],
                    [0, "RmsNorm", "AI_VECTOR_CORE", 20, 1200, 40, 60, 90, 9],
                    [0, "MoeGatingTopK", "AI_VECTOR_CORE", 8, 1900, 90, 112.5, 240, 13],
                ],
            )
        },
        "unknown",
    ),
    "a host that synchronizes": Case(
        {
            "api_statistic_20260301120000.csv": text(
                "Device_id,Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance",
                [
                    ["host", "acl", "aclrtSynchronizeStream", 800000, 5000, 160, 10, 900, 30],
                    ["host", "node", "launch", 90000, 9000, 10, 1, 90, 3],
                ],
            )
        },
        "unknown",
        ["synchronize"],
    ),
    "iterations that wait for data": Case(
        {"step_trace_0_1.csv": text(ITERATIONS, [[n, 1, 2, 3, 40000, 38000, 2000, 61000] for n in range(2, 9)])},
        "data",
        ["gap"],
    ),
    "iterations that compute, with the device": Case(
        {
            "step_trace_20260301120000.csv": text(
                ITERATIONS_DEVICE,
                [[3, n, 1, 2, 3, 47590, 46000, 1590, "N/A" if n == 1 else 300, 1] for n in range(1, 9)],
            )
        },
        "compute",
    ),
    "MindSpore 2.4 with its data set": Case(
        {
            "n_7_ascend_ms/ASCEND_PROFILER_OUTPUT/step_trace_time.csv": text(
                STEP_2026, [[7, n, 20000, 60000, 0, 60000, 5000, 85000, 0, 60000, 100] for n in (4, 5)]
            ),
            "n_7_ascend_ms/ASCEND_PROFILER_OUTPUT/dataset.csv": text(
                "Operation,Stage,Occurrences,Avg. time (us),Custom Info", [["Dataset::Batch", "Next", 4, 9.5, ""]]
            ),
            "n_7_ascend_ms/ASCEND_PROFILER_OUTPUT/npu_module_mem.csv": text(
                "Device_id,Component,Timestamp(us),Total Reserved(KB),Device", [[7, "HCCL", START, 4096, "NPU:7"]]
            ),
        },
        "communication",
    ),
    "a slow link between nodes": Case(
        {
            "r_ascend_pt/ASCEND_PROFILER_OUTPUT/step_trace_time.csv": text(
                STEP_2026, [[0, 1, 20000, 70000, 0, 70000, 5000, 95000, 0, 70000, 100]]
            ),
            "r_ascend_pt/ASCEND_PROFILER_OUTPUT/communication.json": collective("RDMA", 400.0, 80.0, "40.0"),
        },
        "communication",
        ["link"],
    ),
    "a data loader in the trace beside the steps": Case(
        {
            "r_ascend_pt/ASCEND_PROFILER_OUTPUT/step_trace_time.csv": text(
                STEP_2026, [[0, 5, 30000, 5000, 0, 5000, 65000, 100000, 0, 5000, 60000]]
            ),
            "r_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json": trace(
                [
                    ("ProfilerStep#5", 100000.0),
                    ("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 58000.0),
                ]
            ).encode(),
        },
        "data",
        ["free", "preparing", "loader"],
    ),
    "starts whose digits a spreadsheet dropped": Case(
        {"kernel_details.csv": spreadsheet(80)}, "unknown", [], ["start times"]
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_layout_of_another_generation_is_answered(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    for path, content in case.files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)
    report = profile([str(tmp_path)])
    said = "\n".join(note.en for note in report.notes)
    assert report.bound.value == case.verdict
    assert sorted(one.rule for one in report.evidence if one.major) == sorted(case.advised)
    assert [words for words in case.said if re.search(words, said) is None] == []
    assert [words for words in case.unsaid if words in said] == []
    assert (report.slow.rank if report.slow is not None else "") == case.slow
    assert [one.reason.en for one in report.unread] == [] or case.unread
