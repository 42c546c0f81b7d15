"""How many workers a job starts, and how many CPUs it may use."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.examples import example_context
from hypothesis import given
from hypothesis import strategies as st

from envtune.resources.system.data_loader import allowed_cpus, usable_cpus, worker_counts
from envtune.resources.system.storage import output_directories


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("python3 main.py --workers 160 --epochs 90\n", [160]),
        ("python3 main.py \\\n  --workers=40 \\\n", [40]),
        ("python3 main.py --workers '16' | tee log\n", [16]),
        ("main.py --workers 8; main.py --workers 4\n", [8, 4]),
        ("main.py --workers ${WORKERS}\n", [None]),
        ("main.py --workers=$(nproc)\n", [None]),
        ("# main.py --workers 160\n", []),
        ("main.py --num-workers 160 --my--workers 3\n", []),
        ("", []),
    ],
)
def test_worker_counts(text: str, counts: list[Any]) -> None:
    assert [number for number, _ in worker_counts(text)] == counts


@pytest.mark.parametrize(
    ("status", "count"),
    [
        ("Name:\tbash\nCpus_allowed:\tff\nCpus_allowed_list:\t0-7\n", 8),
        ("Cpus_allowed_list:\t0-3,96-99\n", 8),
        ("Cpus_allowed_list:\n", 0),
        ("", 0),
    ],
)
def test_affinity(status: str, count: int) -> None:
    assert allowed_cpus(status) == count


def test_a_quota_of_a_group_above_counts_and_none_does_not() -> None:
    files = {
        "/sys/devices/system/cpu/online": "0-191\n",
        "/proc/self/cgroup": "0::/slurm/job_7/step_0\n",
        "/sys/fs/cgroup/slurm/job_7/step_0/cpu.max": "max 100000\n",
        "/sys/fs/cgroup/slurm/job_7/cpu.max": "1250000 100000\n",
    }
    assert usable_cpus(example_context({"files": files}).host, "self") == (13, "/sys/fs/cgroup/slurm/job_7/cpu.max")
    files["/sys/fs/cgroup/slurm/job_7/cpu.max"] = "garbage"
    assert usable_cpus(example_context({"files": files}).host, "self").cpus == 192


def test_where_a_job_writes() -> None:
    assert output_directories({"HOME": "/home/train"}) == {"logs": "/home/train/ascend/log"}
    moved = {"HOME": "/home/train", "ASCEND_WORK_PATH": "/data/work", "TUNE_BANK_PATH": "relative"}
    assert output_directories(moved) == {"ASCEND_WORK_PATH": "/data/work"}
    assert output_directories({}) == {}


@given(st.text())
def test_no_text_breaks_a_parser(text: str) -> None:
    worker_counts(text)
    assert allowed_cpus(text) >= 0
