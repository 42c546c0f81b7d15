#!/usr/bin/env python3
"""For how many files of a folder of labeled profiles the answer of `envtune profile` agrees with the label.

    python benchmarks/profile_accuracy.py FOLDER        FOLDER/index.jsonl: a row {"file": ..., "expect": ...} for each

The labels are prose. EXPECTED is what they mean: per file name the verdict, the evidence that must be named with
advice, the evidence that must be named (with advice or as small), and words of the notes. For a file without a row, and
beyond what its row names, there must be no advice. Prints what differs; exits with 1 if anything does.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
from pathlib import Path
from typing import Iterator, Mapping, NamedTuple, Sequence

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from envtune.profile.analyze import ProfileReport, profile


class Expected(NamedTuple):
    """What a label means."""

    verdict: str = "unknown"
    advised: tuple[str, ...] = ()  # rules: exactly these have advice
    named: tuple[str, ...] = ()  # rules: at least reported as small
    notes: tuple[str, ...] = ()  # words
    may: tuple[str, ...] = ()  # rules that the label neither asks for nor excludes


_HEAVY = Expected(notes=("compare shares, not durations",))
_COMMUNICATION = Expected("communication", ("free", "preparing"), notes=("overlaps with computing",))
_OF_KERNELS = Expected(advised=("optimizer", "layout"), notes=("not communication and free time",))
_LEVEL1 = Expected(
    "communication", ("free",), ("precision", "layout", "optimizer"), ("state dynamic", "overlaps with computing")
)
# The first pattern that fits the file counts.
EXPECTED: Mapping[str, Expected] = {
    "cann85_msprof/api_statistic_*": Expected(advised=("synchronize",)),
    "cann85_msprof/op_summary_*": Expected(advised=("scalar",), notes=("too few",)),
    "hta/cpu_only*": Expected(notes=("no device data",)),
    "mindinsight_PROF_2023/step_trace_*": Expected("compute", ("tail",)),
    "mindinsight_cluster/ascend_cluster_analyse_*_[01].csv": Expected("communication", ("bubble",)),
    "mindinsight_cluster/ascend_cluster_analyse_*": Expected("compute", may=("bubble",)),
    "mindinsight_cluster/step_trace_raw_*": Expected("compute", notes=("start-up",)),
    "mindinsight_profiler/aicore_intermediate_1_type.csv": Expected(advised=("layout",), named=("cast",)),
    "mindinsight_*/device_queue_profiling_*": Expected("data", ("queue",)),
    "mindinsight_profiler/pipeline_profiling_0.json": Expected("data", ("dataset",)),
    "mindinsight_profiler/step_trace_raw_*": Expected("data", ("gap",), ("tail",), ("start-up",)),
    "mindinsight_run_1/step_trace_raw_*": Expected("compute", ("tail",)),
    "mindinsight_run_2/minddata_cpu_utilization_*": Expected(advised=("processors",)),
    "mindinsight_run_2/minddata_pipeline_raw_*": Expected("data", ("dataset",)),
    "mindinsight_run_2/pipeline_profiling_*": Expected("data", ("dataset",)),
    "mindinsight_run_2/step_trace_raw_*": Expected(notes=("only step 1",)),
    "mindinsight_ut/minddata_pipeline_raw_[03].csv": Expected("data", ("dataset",)),
    "mindinsight_ut/minddata_pipeline_raw_1.csv": Expected(advised=("dataset",)),
    "mindinsight_ut/minddata_pipeline_raw_2.csv": Expected(notes=("All queues before Batch are full",)),
    "msinsight_cluster/cluster_communication.json": Expected(notes=("small packets",)),
    "msinsight_cluster/cluster_step_trace_time.csv": Expected("communication", ("bubble", "free")),
    "msinsight_op_summary_1.csv": Expected(named=("aicpu",), notes=("too few", "NonZero")),
    "msinsight_rank0_2023/kernel_details.csv": Expected(named=("aicpu",), notes=("too few", "NonZero")),
    "msinsight_rank1_2023/kernel_details.csv": Expected(notes=("PipeUtilization",)),
    "msinsight_rank?_2023/step_trace_time.csv": Expected("communication", ("free",)),
    "msinsight_text_level0_*/kernel_details.csv": Expected("communication", ("free",), ("layout",), ("Level0",)),
    "msinsight_text_*/profiler_info_*": _HEAVY,
    "msinsight_text_*/step_trace_time.csv": _COMMUNICATION,
    "msinsight_text_*/api_statistic.csv": Expected(advised=("compile",)),
    "msinsight_text_*/communication.json": Expected(notes=("the network is not the cause",)),
    "msinsight_text_*/kernel_details.csv": _LEVEL1,
    "msinsight_text_*/op_statistic.csv": _OF_KERNELS,
    "msinsight_text_*/trace_view_excerpt.json": Expected(advised=("compile", "optimizer")),
    "msprof_analyze/cluster_communication.json": Expected(notes=("small packets",)),
    "msprof_analyze/cluster_step_trace_time.csv": Expected("host", ("free",)),
    "msprof_analyze/kernel_details_2025_pipe.csv": Expected(notes=("state dynamic", "MTE2", "too few")),
    "msprof_analyze/kernel_details_fused_2023.csv": Expected(
        advised=("cast",), named=("aicpu",), notes=("belong to the start-up",)
    ),
    "msprof_analyze/trace_view_optimizer_only.json": Expected(advised=("compile", "optimizer"), named=("loader",)),
    "msprof_analyze/trace_view_optimizer_excerpt.json": Expected(advised=("optimizer",), named=("loader",)),
    "tb_plugin/torch_trace_num_workers_0.json": Expected("data", ("loader", "optimizer")),
    "tb_plugin/torch_trace_num_workers_4.json": Expected(may=("optimizer",)),
}
# Accepted differences: what the labels say and envtune does not.
NOT_ANSWERED: Mapping[str, str] = {
    "tb_plugin/torch_trace_num_workers_*": "pageable copies to the device (1 to 2 % of the step) are not measured",
}


def expected_of(file: str) -> Expected:
    """Return what the label of a file means."""
    return next((row for pattern, row in EXPECTED.items() if fnmatch.fnmatch(file, pattern)), Expected())


def differences(file: str, report: ProfileReport) -> Iterator[str]:
    """Yield what is not as expected."""
    wanted = expected_of(file)
    if report.bound.value != wanted.verdict:
        yield f"verdict {report.bound.value}, expected {wanted.verdict}"
    advised = {one.rule for one in report.evidence if one.major}
    missing, more = {*wanted.advised} - advised, advised - {*wanted.advised, *wanted.may}
    if missing or more:
        yield f"advised: missing {sorted(missing)}, too many {sorted(more)}"
    unnamed = {*wanted.named} - {one.rule for one in report.evidence}
    if unnamed:
        yield f"not named: {sorted(unnamed)}"
    notes = " ".join(note.en for note in report.notes)
    yield from (f"no note with {words!r}" for words in wanted.notes if words not in notes)
    yield from (f"not read: {one.reason.en}" for one in report.unread)


def labelled(folder: Path) -> Sequence[str]:
    """Return the files that have a label."""
    lines = (folder / "index.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line)["file"] for line in lines if line.strip()]


def main() -> None:
    """Analyze each file alone, and print what differs."""
    parser = argparse.ArgumentParser(description="Compare the answers of envtune profile with labels.")
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    files, wrong = labelled(folder), 0
    for file in files:
        found = list(differences(file, profile([str(folder / file)])))
        wrong += bool(found)
        for line in found:
            sys.stdout.write(f"{file}: {line}\n")
    sys.stdout.write(f"{len(files) - wrong} of {len(files)} files are answered as their labels say\n")
    for pattern, reason in NOT_ANSWERED.items():
        sys.stdout.write(f"left out of this comparison: {pattern}: {reason}\n")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
