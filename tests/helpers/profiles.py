"""Outputs of profilers as tests need them: the layouts of torch_npu, MindSpore and msprof, with other numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Iterable, Mapping, Optional, Sequence

STEP = "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble"
STEP_2023 = f"{STEP},Communication(Not Overlapped and Exclude Receive)"
STEP_2025 = f"{STEP_2023},Preparing"
STEP_2026 = f"Device_id,{STEP_2025}"
CLUSTER = f"Step,Type,Index,{STEP_2023.partition(',')[2]}"
GRAPH = "step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail"
KERNELS = (
    "Step Id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),"
    "Block Dim,Mix Block Dim,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,aic_mac_ratio,aic_scalar_ratio"
)
KERNELS_LEVEL0 = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Dim"
SUMMARY_2023 = (
    "Model ID,Task ID,Stream ID,Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),Task Wait Time(us),"
    "Block Dim,Input Shapes,Input Data Types"
)
STATISTIC = "OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"
STATISTIC_2022 = f"Model Name,{STATISTIC}"
API = "Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance"
PIPELINE = (
    "op_id,op_type,num_workers,output_queue_size,output_queue_average_size,output_queue_length,"
    "output_queue_usage_rate,sample_interval,parent_id,children_id"
)


def table(header: str, rows: Iterable[Sequence[Any]]) -> str:
    """A CSV file: cells with a comma are quoted."""
    lines = [header, *(",".join(_cell(cell) for cell in row) for row in rows)]
    return "\n".join(lines) + "\n"


def _cell(value: Any) -> str:
    text = str(value)
    return '"' + text.replace('"', '""') + '"' if "," in text or '"' in text else text


def step_row(
    computing: float,
    communication: float,
    free: float,
    *,
    step: str = "5",
    overlapped: float = 0.0,
    bubble: float = 0.0,
) -> list[Any]:
    """A row of STEP_2023, in milliseconds of each part."""
    parts = [part * 1000 for part in (computing, communication, overlapped, communication + overlapped, free)]
    whole = (computing + communication + free - bubble) * 1000
    return [step, *parts, whole, bubble * 1000, (communication - bubble) * 1000]


def write_rank(
    root: Path,
    rank: int,
    steps: Sequence[Sequence[Any]],
    *,
    header: str = STEP_2023,
    files: Optional[Mapping[str, str]] = None,
    variables: Optional[Mapping[str, str]] = None,
) -> Path:
    """What torch_npu writes for one rank; returns its directory."""
    own = root / f"node_{rank}_20260301_ascend_pt"
    output = own / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (output / "step_trace_time.csv").write_text(table(header, steps), "utf-8")
    (own / f"profiler_info_{rank}.json").write_text(json.dumps(settings(rank)), "utf-8")
    if variables is not None:
        (own / "profiler_metadata.json").write_text(json.dumps({"ENV_VARIABLES": dict(variables)}), "utf-8")
    for name, text in (files or {}).items():
        (output / name).write_text(text, "utf-8")
    return own


def settings(rank: int, **common: bool) -> dict[str, Any]:
    """profiler_info_N.json."""
    schedule = {"skip_first": 10, "wait": 0, "warmup": 1, "active": 2, "repeat": 1}
    return {
        "config": {
            "common_config": {"schedule": schedule, **common},
            "experimental_config": {"_profiler_level": "Level1", "_l2_cache": False},
        },
        "rank_id": rank,
    }


def kernel(
    number: int, kind: str, core: str, start: float, duration: float, types: str = "FLOAT16", state: str = "static"
) -> list[Any]:
    """A row of KERNELS; the shapes are quoted twice, as msprof does."""
    name = f"aclnn_{kind}_{number}"
    cells = ["5", "4294967295", number, 2, name, kind, state, core, f"{start:.3f}\t", duration, 0.5]
    return [*cells, 24, 0, "NO", '"64,3,11,11;64"', types, "ND", 0.5, 0.1]


def graph_rows(gap: float, body: float, tail: float, count: int) -> list[list[Any]]:
    """Rows of GRAPH: a long start-up step, `count` steps of these milliseconds, and the row of means."""
    made = [_graph_row(1, 0.0, body * 20, tail)]
    made += [_graph_row(number, gap, body, tail) for number in range(2, count + 2)]
    return [*made, ["-", "-", "-", *_graph_row(0, gap, body * 4, tail)[3:]]]


def _graph_row(number: int, gap: float, body: float, tail: float) -> list[Any]:
    ticks = [int(part * 100_000) for part in (gap, body, tail)]  # a tick is 10 ns
    return [number, 1, 2, sum(ticks), 1, 2, *ticks]


def trace(events: Iterable[tuple[str, float]], wrapped: bool = False) -> str:
    """trace_view.json of these events: (name, duration in microseconds)."""
    made = [
        {"ph": "X", "name": name, "pid": 7, "tid": 7, "ts": f"1.{number}", "dur": duration, "args": {"Stream Id": 1}}
        for number, (name, duration) in enumerate(events)
    ]
    return json.dumps({"schemaVersion": 1, "traceEvents": made} if wrapped else made)
