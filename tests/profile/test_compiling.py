"""Compilation while the training runs: only what is compiled after the first step is advised against."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Optional, Sequence

import pytest
from helpers import profiles as made
from helpers.profiles import kernel, step_row, table, write_rank

from envtune.profile.analyze import ProfileReport, profile

Events = Sequence[tuple[str, float, float]]  # name, begin and duration in milliseconds
START_UP = step_row(100, 0, 1900, step="7")
STEADY = [step_row(90, 2, 8, step=str(number)) for number in (8, 9, 10)]
IN_STEPS = [("ProfilerStep#7", 0, 2000), *((f"ProfilerStep#{8 + n}", 2000 + n * 100, 100) for n in range(3))]


def trace(events: Events) -> str:
    begin = 1_800_000_000_000_000.0
    made_events = [
        {"ph": "X", "name": name, "pid": 3, "tid": 3, "ts": f"{begin + at * 1000:.3f}", "dur": time * 1000, "args": {}}
        for name, at, time in events
    ]
    return json.dumps(made_events)


def compiled(times: Sequence[float], duration: float = 20) -> Events:
    return [("AscendCL@aclopCompileAndExecute", at, duration) for at in times]


def apis(calls: int, milliseconds: float) -> str:
    rows = [["acl", "aclopCompileAndExecute", milliseconds * 1000, calls, 1, 1, 1, 1]]
    return str(table(made.API, rows))


STEPS = "step TEXT, computing NUMERIC, communication_not_overlapped NUMERIC, free NUMERIC"


def write(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)


def found(report: ProfileReport) -> Optional[tuple[bool, Optional[float], str]]:
    one = next((one for one in report.evidence if one.rule == "compile"), None)
    return None if one is None else (one.major, None if one.share is None else round(one.share, 2), one.detail.en)


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ((10, 500, 1900), None),  # all of it in the start-up
        ((-30, 10), None),  # and before it
        ((10, 500, 2010, 2110), (True, 0.13, "2 times, 40.0 ms, after the first step")),
        ((2001, 2101, 2201), (True, 0.2, "3 times, 60.0 ms, after the first step")),
    ],
)
@pytest.mark.parametrize("with_totals", [False, True])
def test_only_what_is_compiled_after_the_first_step_is_found(
    tmp_path: Path, times: Sequence[float], said: object, with_totals: bool
) -> None:
    events = [*compiled(times), *IN_STEPS]  # a trace is not in the order of time
    files = {"trace_view.json": trace(events)}
    if with_totals:
        files["api_statistic.csv"] = apis(len(times), 20 * len(times))
    report = profile([str(write_rank(tmp_path, 0, [START_UP, *STEADY], files=files))])
    assert found(report) == said and report.bound.value == "compute"


def test_totals_count_where_nothing_tells_the_step(tmp_path: Path) -> None:
    only = {"api_statistic.csv": apis(41, 1500)}
    said = (True, 0.65, "41 times, 1500.0 ms")
    assert found(profile([str(write_rank(tmp_path / "1", 0, [START_UP, *STEADY], files=only))])) == said
    without = {**only, "trace_view.json": trace(IN_STEPS)}  # the trace has no events of the interface
    assert found(profile([str(write_rank(tmp_path / "2", 0, [START_UP, *STEADY], files=without))])) == said
    part = {**only, "trace_view.json": trace([*IN_STEPS, *compiled((10,))])}  # it has 1 of 41
    assert found(profile([str(write_rank(tmp_path / "3", 0, [START_UP, *STEADY], files=part))])) == said


@pytest.mark.parametrize(("step", "major"), [("ProfilerStep#0", None), ("ProfilerStep#7", True)])
def test_of_one_step_it_counts_unless_it_is_the_first_of_the_training(
    tmp_path: Path, step: str, major: Optional[bool]
) -> None:
    files = {"trace_view.json": trace([(step, 0, 100), *compiled((10, 40))])}
    said = found(profile([str(write_rank(tmp_path, 0, [step_row(60, 5, 35)], files=files))]))
    assert said == (None if major is None else (True, 0.4, "2 times, 40.0 ms"))


@pytest.mark.parametrize(("at", "said"), [(5, None), (105, (True, 0.2, "1 times, 20.0 ms, after the first step"))])
def test_a_database_tells_the_step_too(tmp_path: Path, at: int, said: object) -> None:
    output = tmp_path / "node_0_2026_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    rows = "INSERT INTO StepTraceTime VALUES ('5', 60000, 5000, 35000), ('6', 60000, 5000, 35000);"
    output.mkdir(parents=True)
    write(output / "analysis.db", f"CREATE TABLE StepTraceTime ({STEPS}); {rows}")
    script = f"""
        CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY, value TEXT);
        CREATE TABLE CANN_API (startNs INTEGER, endNs INTEGER, name INTEGER);
        CREATE TABLE STEP_TIME (id INTEGER PRIMARY KEY, startNs INTEGER, endNs INTEGER);
        INSERT INTO STRING_IDS VALUES (3, 'aclopCompileAndExecute');
        INSERT INTO CANN_API VALUES ({at} * 1000000, ({at} + 20) * 1000000, 3);
        INSERT INTO STEP_TIME VALUES (5, 0, 100000000), (6, 100000000, 200000000);
    """
    write(output / "ascend_pytorch_profiler_0.db", script)
    assert found(profile([str(tmp_path)])) == said


def test_the_state_of_the_kernels_is_said_where_operators_are_compiled(tmp_path: Path) -> None:
    rows = [kernel(n, "MatMulV2", "AI_CORE", n * 100, 20, state="dynamic") for n in range(60)]
    files = {"kernel_details.csv": table(made.KERNELS, rows)}

    def said(**more: str) -> bool:
        own = write_rank(tmp_path / str(len(more)), 0, [step_row(60, 5, 35)], files={**files, **more})
        return any("state dynamic" in note.en for note in profile([str(own)]).notes)

    assert said(**{"api_statistic.csv": apis(41, 30)})
    assert not said(**{"api_statistic.csv": apis(0, 0), "more": ""})
    own = write_rank(tmp_path / "alone", 0, [step_row(60, 5, 35)], files=files)
    (note,) = [note.en for note in profile([str(own)]).notes if "state dynamic" in note.en]
    assert note.endswith("is unknown without api_statistic.csv.")
