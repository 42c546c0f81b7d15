"""Which profiler wrote a file, by the names of its columns or keys, never by its file name alone.

Columns are compared without unit and letter case. Sources of the layouts: the parsers of torch_npu
(torch_npu/profiler/analysis/prof_view), msprof (Ascend/msprof, ms_configuration and viewer), MindSpore
(mindspore/python/mindspore/profiler) and mindstudio-profiler-tools (msprof_analyze/cluster_analyse).
"""

from __future__ import annotations

from typing import Any, Mapping, Optional, Sequence

from envtune.profile.readers.tables import Header
from envtune.records import NamedTuple


class Layout(NamedTuple):
    """A kind of table: its required columns, each with alternatives."""

    kind: str
    columns: tuple[tuple[str, ...], ...]
    title: str  # the file's usual name


_STEP = (("step",), ("computing",), ("communication(not overlapped)", "communication not overlapped"), ("free",))
# The first match counts: a table may have the columns of several kinds.
TABLES: Sequence[Layout] = (
    Layout("cluster_steps", (*_STEP, ("type",), ("index",)), "cluster_step_trace_time.csv"),
    Layout("steps", _STEP, "step_trace_time.csv"),
    Layout(
        "iterations",
        (("iteration id",), ("iteration time",), ("fp to bp time",), ("iteration refresh",), ("data aug bound",)),
        "step_trace_*.csv",
    ),
    Layout(
        "graph_steps",
        (("step num",), ("total",), ("fp and bp",), ("iteration interval",), ("tail",)),
        "step_trace_raw_*_detail_time.csv",
    ),
    Layout(
        "stage_steps",
        (("computation time",), ("communication alone time",), ("stage time",)),
        "ascend_cluster_analyse_*.csv",
    ),
    Layout(
        "kernels",
        (("name", "op name"), ("type", "op type"), ("duration", "task duration"), ("start time", "task start time")),
        "kernel_details.csv, op_summary_*.csv",
    ),
    Layout("operators", (("op type",), ("count",), ("total time",), ("ratio(%)", "ratio")), "op_statistic_*.csv"),
    Layout("apis", (("api name",), ("time",), ("count",), ("max",)), "api_statistic_*.csv"),
    Layout("aicpu", (("serial number",), ("kernel type",), ("total time",)), "aicpu_intermediate_*.csv"),
    Layout(
        "types",
        (
            ("kernel type", "op type"),
            ("total time", "execution time", "task time"),
            ("execution frequency",),
            ("percent", "total percent"),
        ),
        "aicore_intermediate_*_type.csv",
    ),
    Layout(
        "dataset",
        (("op id",), ("op type",), ("output queue usage rate",), ("output queue length",), ("children id",)),
        "minddata_pipeline_raw_*.csv",
    ),
)
# Tables that say nothing about where the time of a step goes; they are known, but ignored.
_OTHER: Sequence[tuple[str, ...]] = (
    ("full op name", "execution time"),
    ("full kernel name", "execution time"),
    ("full kernel time", "execution time"),  # in test data of MindInsight
    ("full kernel name", "task duration"),
    ("full kernel name", "flops"),
    ("full op name", "flops"),
    ("task id", "stream id", "block dim", "op info"),
    ("name", "size(kb)", "allocation time"),
    ("component", "timestamp", "total allocated(mb)"),
    ("component", "timestamp", "total allocated(kb)"),
    ("component", "timestamp", "total reserved(mb)"),
    ("component", "timestamp", "total reserved(kb)"),
    ("operation", "stage", "occurrences", "avg. time"),  # dataset.csv of MindSpore
    ("name", "input shapes", "call stack"),
    ("name", "input shapes", "host self duration"),
    ("stream id", "hit rate", "op name"),
    ("stream id", "hit rate", "victim rate"),
    ("kernel name", "kernel type", "stream id", "task id", "task time"),
    ("process id", "thread id", "api name"),
    ("device id", "metric"),
)


def table_kind(header: Header) -> Optional[str]:
    """Return the kind of a table, `other` for a known one without times of a step, None for an unknown header."""
    for layout in TABLES:
        if all(header.find(*alternatives) is not None for alternatives in layout.columns):
            return layout.kind
    return "other" if any(all(name in header.places for name in columns) for columns in _OTHER) else None


# Keys of a JSON object -> its kind.
_KEYS: Sequence[tuple[str, tuple[str, ...]]] = (
    ("metadata", ("ENV_VARIABLES",)),
    ("metadata", ("distributed_args",)),
    ("metadata", ("parallel_group_info",)),
    ("settings", ("config",)),
    ("trace", ("traceEvents",)),
    ("other", ("fp_start", "bp_end")),
    ("other", ("total_time", "num_of_streams")),
    ("other", ("operator",)),
    ("other", ("jobInfo", "DeviceInfo")),
    ("processors", ("cpu_processor_num", "device_info")),
    ("pipeline", ("op_info",)),
)


def json_kind(data: Mapping[str, Any]) -> Optional[str]:
    """Return the kind of a JSON object by its keys; None if they are unknown."""
    for kind, keys in _KEYS:
        if all(key in data for key in keys):
            return kind
    if any(key in ("p2p", "collective") or key.startswith(("step", "(")) for key in data):
        return "matrix" if _has(data, "Transport Type") else "communication"
    return None


def _has(data: Any, key: str, depth: int = 6) -> bool:
    """Return whether a key occurs when following the first member of each object."""
    while isinstance(data, Mapping) and data and depth:
        if key in data:
            return True
        data = next((value for value in data.values() if isinstance(value, Mapping) and value), None)
        depth -= 1
    return False


# Lines of text files of MindSpore's data pipeline: file name's beginning -> kind.
TEXT_FILES: Mapping[str, str] = {
    "device_queue_profiling": "queue",
    "dataset_iterator_profiling": "queue",
    "minddata_aicpu": "other",
    "output_data_preprocess_aicpu": "other",
    "flops": "other",
}
