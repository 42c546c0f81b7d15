"""Profiles that are not whole or not of one job: cut tables, unknown columns, several profilers, missing ranks."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any, Mapping, Optional, Sequence

import pytest
from helpers import profiles as made
from helpers.profiles import graph_rows, kernel, step_row, table, write_rank

from envtune.profile.analyze import ProfileReport, profile
from envtune.report.profile.json import profile_data
from envtune.report.profile.text import render

ROOT = Path(__file__).parents[2]
SPARSE = 2 << 30


def notes(report: ProfileReport) -> str:
    return "\n".join(note.en for note in report.notes)


def step_table(own: Path) -> Path:
    return own / "ASCEND_PROFILER_OUTPUT" / "step_trace_time.csv"


# ---------------------------------------------------------------------- tables that end in the middle of a row

ROWS = [step_row(20, 10, 70, step=str(number)) for number in (11, 12, 13)]


@pytest.mark.parametrize("cells", range(1, 9))
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_row_that_was_cut_off_is_named_and_does_not_count(
    tmp_path: Path, cells: int, line_end: str, mark: str
) -> None:
    own = write_rank(tmp_path, 0, ROWS)
    last = ",".join(str(cell) for cell in step_row(9000, 9000, 9, step="14")[:cells])
    path = step_table(own)
    path.write_bytes((mark + (table(made.STEP_2023, ROWS) + last).replace("\n", line_end)).encode())
    report = profile([str(tmp_path)])
    assert f"{path}: ends in the middle of a row; read up to line 4" in notes(report)
    (rank,) = report.ranks
    assert (rank.steps.number, rank.steps.mean.total, rank.bound.value) == (3, 100_000.0, "host")


def test_a_table_of_kernels_that_was_cut_off_counts_up_to_there(tmp_path: Path) -> None:
    rows = [kernel(n, "MatMulV2", "AI_CORE", n * 100, 90) for n in range(61)]
    path = tmp_path / "kernel_details.csv"
    path.write_text(table(made.KERNELS, rows)[:-12], "utf-8")  # in the last row, after its duration
    report = profile([str(path)])
    assert f"{path}: ends in the middle of a row; read up to line 61" in notes(report)
    assert report.ranks[0].steps.whole == pytest.approx(59 * 100 + 90) and "incomplete" not in notes(report)


@pytest.mark.parametrize(
    "text",
    [
        table(made.STEP_2023, ROWS),
        table(made.STEP_2023, ROWS).rstrip("\n"),  # an editor took the last line end
        table(made.STEP_2023, ROWS) + "  ",
        made.STEP_2023,
    ],
)
def test_a_table_whose_last_row_is_whole_is_not_called_cut(tmp_path: Path, text: str) -> None:
    step_table(write_rank(tmp_path, 0, ROWS)).write_text(text, "utf-8")
    assert "in the middle" not in notes(profile([str(tmp_path)]))


# ---------------------------------------------------------------------- columns


def test_an_unknown_column_is_named_once_and_the_others_are_found_by_name(tmp_path: Path) -> None:
    names = made.STEP_2023.split(",")
    order = [4, 5, 0, 1, 7, 2, 3, 6, 8]
    header = ",".join(["Die Temperature(C)", *(names[place] for place in order)])
    for rank in (0, 1):
        rows = [[61.5, *(row[place] for place in order)] for row in ROWS]
        write_rank(tmp_path, rank, rows, header=header)
    report = profile([str(tmp_path)])
    assert [note.en for note in report.notes] == [
        "step_trace_time.csv: the column Die Temperature(C) is unknown and was not used"
    ]
    assert report.bound.value == "host" and not report.unread


@pytest.mark.parametrize("header", [made.STEP_2023, made.STEP_2025, made.STEP_2026])
def test_columns_of_known_releases_are_no_note(tmp_path: Path, header: str) -> None:
    row = step_row(20, 10, 70)
    row = [*row, 9000] if header != made.STEP_2023 else row
    row = ["0", *row] if header == made.STEP_2026 else row
    files = {
        "op_statistic.csv": table(made.STATISTIC_2022, [["m", "MatMul", "AI_CORE", 1, 2, 2, 2, 2, 100]]),
        "api_statistic.csv": table(made.API, [["acl", "aclnnAdd", 1, 1, 1, 1, 1, 1]]),
    }
    report = profile([str(write_rank(tmp_path, 0, [row], header=header, files=files))])
    assert "unknown" not in notes(report)


# ---------------------------------------------------------------------- the same file twice

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


def named_twice(tmp_path: Path, own: Path) -> dict[str, list[Path]]:
    link = tmp_path / "link"
    link.symlink_to(own)
    output = own / "ASCEND_PROFILER_OUTPUT"
    return {
        "the directory": [own, own],
        "with a slash": [own, own],
        "a link": [own, link],
        "a link first": [link, own],
        "a part of it": [own, output],
        "a part of it first": [output, own],
        "a file": [own, output / "op_statistic.csv"],
        "a file by a link": [link / "ASCEND_PROFILER_OUTPUT" / "op_statistic.csv", own],
        "dots": [own, own / ".." / own.name],
    }


TWICE = (
    *("the directory", "with a slash", "a link", "a link first", "a part of it", "a part of it first", "a file"),
    *("a file by a link", "dots"),
)


@pytest.mark.parametrize("name", TWICE)
def test_a_file_that_is_given_twice_counts_once(tmp_path: Path, name: str) -> None:
    files = {"op_statistic.csv": table(made.STATISTIC, [["TransData", "AI_CORE", 10, 9000, 1, 1, 1, 9]])}
    own = write_rank(tmp_path / "real", 0, ROWS, files=files)
    once = profile([str(own)])
    paths = [str(path) for path in named_twice(tmp_path, own)[name]]
    paths = [f"{path}/" if name == "with a slash" and index else path for index, path in enumerate(paths)]
    twice = profile(paths)
    assert (twice.files, twice.evidence) == (once.files, once.evidence)
    assert [rank.steps.mean for rank in twice.ranks] == [rank.steps.mean for rank in once.ranks]
    (note,) = [note.en for note in twice.notes if "counted once" in note.en]
    assert note.startswith(f"{paths[1]}: ")


def test_of_two_exports_of_a_table_the_newer_one_counts(tmp_path: Path) -> None:
    rows = [["TransData", "AI_CORE", 10, 9000, 1, 1, 1, 30], ["MatMul", "AI_CORE", 10, 21000, 1, 1, 1, 70]]
    for day in ("01", "02"):
        (tmp_path / f"op_statistic_202603{day}120000.csv").write_text(table(made.STATISTIC, rows), "utf-8")
    (tmp_path / "op_statistic_7.csv").write_text(table(made.STATISTIC, rows), "utf-8")  # no time in its name
    report = profile([str(tmp_path)])
    assert report.files == 2 and [one.detail.en for one in report.evidence] == ["TransData 20 times, 18.0 ms"]
    (older,) = report.unread
    assert older.path.endswith("_20260301120000.csv") and "op_statistic_20260302120000.csv" in older.reason.en


def test_a_database_beside_tables_does_not_double_them(tmp_path: Path) -> None:
    api = table(made.API, [["acl", "aclopCompileAndExecute", 8000, 1, 8000, 8000, 8000, 0]])
    statistic = table(made.STATISTIC, [["TransData", "AI_VECTOR_CORE", 1, 9000, 1, 1, 1, 100]])
    own = write_rank(tmp_path, 0, ROWS, files={"api_statistic.csv": api, "op_statistic.csv": statistic})
    once = profile([str(own)]).evidence
    with closing(sqlite3.connect(own / "ASCEND_PROFILER_OUTPUT" / "ascend_pytorch_profiler_0.db")) as connection:
        connection.executescript(TRACE)
    assert {"layout", "compile"} <= {one.rule for one in once} and tuple(profile([str(own)]).evidence) == tuple(once)


# ---------------------------------------------------------------------- large files


@pytest.mark.slow
def test_a_sparse_tail_is_read_in_bounded_memory(tmp_path: Path) -> None:
    """A crash may leave a table with two gigabytes of NUL bytes behind its rows; nothing of them is kept."""
    rows = [kernel(n, "MatMulV2", "AI_CORE", n * 100, 90) for n in range(60)]
    path = tmp_path / "kernel_details.csv"
    path.write_text(table(made.KERNELS, rows), "utf-8")
    whole = profile([str(path)]).ranks
    with path.open("r+b") as file:
        file.truncate(SPARSE)
    limited = "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29)); " + (
        "from envtune.profile.analyze import profile; print(profile(sys.argv[1:]).ranks)"
    )
    words = [sys.executable, "-c", limited, str(path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(words, capture_output=True, text=True, env=environment, check=True)
    assert ended.stdout == f"{whole}\n"


# ---------------------------------------------------------------------- profiles of several profilers


def add_mindspore(root: Path, device: int) -> None:
    """A directory of MindSpore <= 2.2 whose iterations wait for data."""
    (root / "ms").mkdir(exist_ok=True)
    path = root / "ms" / f"step_trace_raw_{device}_detail_time.csv"
    path.write_text(table(made.GRAPH, graph_rows(70, 25, 5, count=4)), "utf-8")


def test_ranks_of_two_profilers_have_a_verdict_for_each_and_are_not_compared(tmp_path: Path) -> None:
    write_rank(tmp_path, 0, [step_row(92, 5, 3)])
    add_mindspore(tmp_path, 1)
    report = profile([str(tmp_path)])
    assert {(kind.profiler, kind.bound.value, len(kind.ranks)) for kind in report.kinds} == {
        ("torch_npu", "compute", 1),
        ("MindSpore <= 2.2", "data", 1),
    }
    assert report.bound.value == "data" and "are not compared" in notes(report)
    assert [kind["verdict"] for kind in profile_data(report, None, "en")["kinds"]] == [
        kind.bound.value for kind in report.kinds
    ]
    text = render(report, None, "en")
    assert "torch_npu: compute-bound" in text and "MindSpore <= 2.2: data-bound" in text


def test_a_slow_rank_is_one_of_its_own_kind(tmp_path: Path) -> None:
    for rank, suffix in ((0, "pt"), (1, "pt"), (2, "ms"), (3, "ms")):
        slower = 55 if suffix == "ms" else 0  # the ranks of one kind are alike
        own = write_rank(tmp_path, rank, [step_row(20 + slower, 70 - slower, 10)])
        own.rename(own.with_name(own.name.replace("_pt", f"_{suffix}")))
    report = profile([str(tmp_path)])
    assert report.slow is None and {kind.profiler for kind in report.kinds} == {"torch_npu", "MindSpore"}


def test_what_takes_time_is_said_for_each_kind(tmp_path: Path) -> None:
    for rank, suffix in ((0, "pt"), (1, "ms")):
        own = write_rank(tmp_path, rank, [step_row(30, 10, 60 - rank)])
        own.rename(own.with_name(own.name.replace("_pt", f"_{suffix}")))
    assert [(one.rule, one.ranks) for one in profile([str(tmp_path)]).evidence] == [("free", ("0",)), ("free", ("1",))]


def test_a_directory_without_the_profilers_name_goes_with_the_others(tmp_path: Path) -> None:
    write_rank(tmp_path, 0, [step_row(92, 5, 3)])
    (tmp_path / "rank_1").mkdir()
    (tmp_path / "rank_1" / "step_trace_time.csv").write_text(table(made.STEP_2023, [step_row(92, 5, 3)]), "utf-8")
    report = profile([str(tmp_path)])
    assert [len(kind.ranks) for kind in report.kinds] == [2] and "several kinds" not in notes(report)


# ---------------------------------------------------------------------- missing ranks


def write_ranks(
    root: Path, ranks: Sequence[int], metadata: Optional[Mapping[str, Any]] = None, slow: Optional[int] = None
) -> ProfileReport:
    for rank in ranks:
        parts = (20, 12, 68) if rank == slow else (20, 60, 20)
        own = write_rank(root, rank, [step_row(*parts)])
        if metadata is not None:
            (own / "profiler_metadata.json").write_text(json.dumps(metadata), "utf-8")
    return profile([str(root)])


GROUPS = {
    "parallel_group_info": {
        "10.0.0.1_1": {"group_name": "default_group", "group_rank": 0, "global_ranks": [*range(12)]},
        "10.0.0.1_2": {"group_name": "tp", "group_rank": 0, "global_ranks": [0, 1]},
    }
}


@pytest.mark.parametrize(
    ("ranks", "metadata", "missing", "size"),
    [
        ((0, 1, 3, 4), None, ("2",), 0),
        ((8, 9, 12), None, ("10-11",), 0),  # of the second node, whose ranks begin at 8
        ((0, 1, 2), None, (), 0),
        ((1, 2, 5), {"distributed_args": {"world_size": 8}}, ("0", "3-4", "6-7"), 8),
        ((0, 1), {"distributed_args": {"world_size": 2}}, (), 2),
        ((0,), {"distributed_args": {"world_size": 4}}, ("1-3",), 4),
        ((0, 1, 2), GROUPS, ("3-11",), 12),
        ((0, 1), {"distributed_args": {"world_size": 1 << 60}}, (), 0),
        ((0, 5), {"distributed_args": {"world_size": 2}}, ("1-4",), 0),  # of another job: the gap stays
    ],
)
def test_missing_ranks_are_named(
    tmp_path: Path, ranks: Sequence[int], metadata: Optional[Mapping[str, Any]], missing: tuple[str, ...], size: int
) -> None:
    report = write_ranks(tmp_path, ranks, metadata)
    (kind,) = report.kinds
    assert (kind.missing.ranks, kind.missing.size) == (missing, size)
    said = [note.en for note in report.notes if "missing ranks" in note.en.lower()]
    assert len(said) == bool(missing) and all(", ".join(missing) in note for note in said)
    assert report.bound.value == "communication" and not report.likely


def test_a_slow_rank_is_not_certain_while_ranks_are_missing(tmp_path: Path) -> None:
    whole = write_ranks(tmp_path / "whole", (0, 1, 2, 3), slow=2)
    assert whole.slow is not None and whole.slow.certain and not whole.likely
    assert "Slow rank: 2" in render(whole, None, "en")
    part = write_ranks(tmp_path / "part", (0, 2, 3), {"distributed_args": {"world_size": 4}}, slow=2)
    assert part.slow is not None and not part.slow.certain and part.likely
    text = render(part, None, "en")
    assert "Slow rank:" not in text and "Likely slow rank: 2" in text and "likely host-bound" in text
    assert profile_data(part, None, "en")["slow_rank"]["certain"] is False
