"""The SQLite generation: the same steps, kernels and interfaces as in text."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from envtune.profile.analyze import profile

STEPS = (
    "deviceId INTEGER, step TEXT, computing NUMERIC, communication_not_overlapped NUMERIC, overlapped NUMERIC, "
    "communication NUMERIC, free NUMERIC, stage NUMERIC, bubble NUMERIC, "
    "communication_not_overlapped_and_exclude_receive NUMERIC, preparing NUMERIC"
)
CLUSTER = STEPS.replace("deviceId INTEGER, step TEXT", 'step TEXT, type TEXT, "index" TEXT')
TRACE = """
    CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY, value TEXT);
    CREATE TABLE TASK (startNs INTEGER, endNs INTEGER, deviceId INTEGER, globalTaskId INTEGER, taskType INTEGER);
    CREATE TABLE COMPUTE_TASK_INFO (name INTEGER, globalTaskId INTEGER, taskType INTEGER, opType INTEGER);
    CREATE TABLE CANN_API (startNs INTEGER, endNs INTEGER, name INTEGER);
    INSERT INTO STRING_IDS VALUES (1, 'TransData'), (2, 'AI_VECTOR_CORE'), (3, 'aclopCompileAndExecute');
    INSERT INTO TASK VALUES (0, 9000000, 0, 1, 2);
    INSERT INTO COMPUTE_TASK_INFO VALUES (1, 1, 2, 1);
    INSERT INTO CANN_API VALUES (0, 8000000, 3);
"""


def write(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    return path


def test_steps_kernels_and_interfaces_of_a_rank(tmp_path: Path) -> None:
    output = tmp_path / "node_2_2026_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    rows = "INSERT INTO StepTraceTime VALUES (2, '5', 20000, 10000, 0, 10000, 70000, 100000, 0, 10000, 9000);"
    write(output / "analysis.db", f"CREATE TABLE StepTraceTime ({STEPS}); {rows}")
    write(output / "ascend_pytorch_profiler_2.db", TRACE)
    report = profile([str(tmp_path)])
    assert [(one.steps.rank, one.bound.value) for one in report.ranks] == [("2", "host")]
    assert {one.rule: round(one.share or 0, 2) for one in report.evidence} == {
        "free": 0.7,
        "layout": 0.09,
        "preparing": 0.09,
        "compile": 0.08,
    }


def test_steps_of_a_cluster(tmp_path: Path) -> None:
    rows = "".join(
        f"INSERT INTO ClusterStepTraceTime VALUES "
        f"('5', 'rank', '{rank}', 20000, {wait}, 0, {wait}, {80000 - wait}, 100000, 0, {wait}, NULL);"
        for rank, wait in enumerate((50000, 50000, 5000))
    )
    write(tmp_path / "cluster_analysis.db", f"CREATE TABLE ClusterStepTraceTime ({CLUSTER}); {rows}")
    report = profile([str(tmp_path)])
    assert report.slow is not None and report.slow.rank == "2" and len(report.ranks) == 3


@pytest.mark.parametrize("script", ["CREATE TABLE other (a INTEGER)", "CREATE TABLE StepTraceTime (a INTEGER)"])
def test_a_database_of_something_else_is_named(tmp_path: Path, script: str) -> None:
    path = write(tmp_path / "analysis.db", script)
    assert [file.path for file in profile([str(tmp_path)]).unread] == [str(path)]


def test_a_damaged_database_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "analysis.db", TRACE)
    path.write_bytes(path.read_bytes()[:5000])
    assert [file.path for file in profile([str(tmp_path)]).unread] == [str(path)]
