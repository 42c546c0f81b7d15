"""What costs time in a step, as data: the share of the step from which it matters, what to do, and the source."""

from __future__ import annotations

from typing import Mapping

from envtune.messages import N_
from envtune.records import NamedTuple

MAJOR, MINOR = 0.05, 0.01  # of the step: below MINOR nothing is reported, below MAJOR no advice is given
GUIDE = "Ascend PyTorch porting guide (tag v1.5.0-3.0.rc2)"
MINDSPORE = "Ascend MindSpore porting guide"
ADVISOR = "msprof_analyze/advisor/rules (gitcode.com/Ascend/msprof-analyze)"


class Rule(NamedTuple):
    """One thing that costs time. Templates are those of messages (envtune/messages.py)."""

    title: str
    advice: str
    source: str
    major: float = MAJOR
    minor: float = MINOR


RULES: Mapping[str, Rule] = {
    "bubble": Rule(
        N_("Waiting for another pipeline stage (bubble)"),
        N_("Use more micro batches or balance the layers between the stages; the NPU itself is not slow."),
        "msprof_analyze, cluster_step_trace_time: Bubble is the time of receive operations",
    ),
    "free": Rule(
        N_("The NPU is idle (free time)"),
        N_("The host dispatches operators too slowly or is waiting; see the host's checks."),
        f"{ADVISOR}, free time of at least 10 %",
        0.10,
        0.10,
    ),
    "preparing": Rule(
        N_("Free time before the first kernel of the step"),
        N_("Check what runs between two steps: data loading, logging, printing the loss, saving."),
        "torch_npu, _trace_step_time_parser.py: Preparing is the time from the step's start to its first kernel",
        0.10,
        0.05,
    ),
    "gap": Rule(
        N_("Gap between two iterations, before the first operator"),
        N_("Set dataset_sink_mode=True in model.train and speed up the data pipeline."),
        f"{MINDSPORE}, iteration trace: a gap of about half the step was saved by dataset_sink_mode",
        0.30,
        0.10,
    ),
    "tail": Rule(
        N_("Time after backward: gradients and parameters"),
        N_("Use a fused optimizer; with several NPUs, tune how gradients are split for communication."),
        "CANN profiling guide, step_trace: Iteration Refresh",
        0.30,
        0.15,
    ),
    "loader": Rule(
        N_("Waiting for the data loader"),
        N_("Increase num_workers, use a faster image library, and put the data set on a local disk."),
        f"{GUIDE}, data loading; {ADVISOR}, dataloader.yaml",
        0.10,
        0.05,
    ),
    "dataset": Rule(
        N_("The data pipeline is slower than the training"),
        N_("Increase num_parallel_workers of {operation}; for a source, also check its storage."),
        f"{MINDSPORE}, data queues: an operation between a full queue and an empty one",
        0.0,
        0.0,
    ),
    "queue": Rule(
        N_("The queue to the device is empty"),
        N_("The device waits for data: speed up the data pipeline."),
        f"{MINDSPORE}, data queues",
        0.0,
        0.0,
    ),
    "processors": Rule(
        N_("The CPUs are busy preparing data"),
        N_("Give the job more CPUs or fewer workers, and decode images with a faster library."),
        "MindSpore, minddata_cpu_utilization; MindInsight warns from 80 % of use",
        0.0,
        0.0,
    ),
    "compile": Rule(
        N_("Operators are compiled while the training runs"),
        N_(
            "Call torch_npu.npu.set_compile_mode(jit_compile=False) before the training, and keep input shapes fixed; "
            "shapes that change are compiled again."
        ),
        f"{GUIDE}, compilation bottleneck: aclopCompile after the first step",
    ),
    "layout": Rule(
        N_("Data layout conversions (TransData)"),
        N_(
            "Keep one layout: set torch_npu.npu.config.allow_internal_format = False, or the formats that the guide "
            "shows."
        ),
        f"{GUIDE}, framework bottleneck. One network there: forward 600 -> 300 ms when concat kept NCHW",
    ),
    "cast": Rule(
        N_("Data type conversions (Cast)"),
        N_("Keep one data type throughout the network; MindSpore: amp_level='O3'."),
        f"{MINDSPORE}, operator statistics: Cast and BatchNorm took about half of the operators' time",
    ),
    "copies": Rule(
        N_("Copies of non-contiguous tensors (transpose, slices)"),
        N_("Replace transpose().contiguous() and chunk() by index_select with a fixed index, or avoid the view."),
        f"{GUIDE}, copy bottleneck. One network there: forward 1100 -> 600 ms without the copies of chunk",
    ),
    "optimizer": Rule(
        N_("The optimizer is not fused"),
        N_("Use torch_npu.optim.NpuFused{optimizer}, or apex.optimizers of NPU apex with mixed precision."),
        f"{GUIDE}, fused optimizers",
    ),
    "precision": Rule(
        N_("Matrix operators with float32 inputs"),
        N_("Use mixed precision (torch.npu.amp, apex O1 or O2); matrix units compute in float16 and bfloat16."),
        f"{GUIDE}, mixed precision. One network there: a step of 1300 ms took 920 ms with O1, 860 ms with O2",
    ),
    "aicpu": Rule(
        N_("Operators that run on the AI CPU"),
        N_("Use data types that the AI Core supports (int32 instead of int64), or another operator."),
        f"{ADVISOR}, aicpu_rules.yaml; {MINDSPORE}, operators on AICPU and host CPU take longer",
        0.05,
        0.0,
    ),
    "scalar": Rule(
        N_("Long kernels that run on the scalar unit"),
        N_("Report the operator with its shapes, or rewrite your custom kernel to use vector instructions."),
        "CANN profiling guide, op_summary: aic_scalar_ratio and aiv_scalar_ratio",
    ),
    "synchronize": Rule(
        N_("The host synchronizes with the device repeatedly"),
        N_(
            "Remove explicit synchronization, .item() and printing of tensors from the step; keep those that the "
            "network needs to converge."
        ),
        f"{GUIDE}, stream synchronization; {ADVISOR}, synchronize.yaml",
        0.10,
        0.10,
    ),
    "packets": Rule(
        N_("Communication in small packets"),
        N_("Send more data at once: larger gradient or ZeRO buckets, or gradient accumulation."),
        f"{ADVISOR}, packet.yaml: RDMA below 1 MB, HCCS and PCIE below 16 MB",
    ),
    "link": Rule(
        N_("A link is slower than usual"),
        N_("Test the link with hccl_test and compare it with the other nodes."),
        "msprof_analyze, docs of the communication matrix: HCCS about 18 GB/s, RDMA of Atlas 800 about 12 GB/s",
    ),
}
