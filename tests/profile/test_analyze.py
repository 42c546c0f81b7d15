"""What a profile says: the verdict, the slow rank and what costs time, for the layouts of each generation."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any, Sequence

import pytest
from helpers import profiles as made
from helpers.profiles import kernel, step_row, table, write_rank

from envtune.profile.analyze import ProfileReport, profile


def rules(report: ProfileReport, major: bool = True) -> list[str]:
    return [one.rule for one in report.evidence if one.major is major]


def notes(report: ProfileReport) -> str:
    return "\n".join(note.en for note in report.notes)


# ---------------------------------------------------------------------- verdicts of tables of steps


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [
        ((20, 10, 70), "host"),
        ((42, 5, 45), "balanced"),
        ((25, 51, 24), "communication"),
        ((80, 12, 8), "compute"),
        ((60, 2, 38), "compute"),
        ((36, 32, 32), "balanced"),
        ((3, 1, 0.2), "compute"),  # free time of less than a tenth is no finding, however short the step
    ],
)
@pytest.mark.parametrize("header", [made.STEP_2023, made.STEP_2025, made.STEP_2026])
def test_the_largest_part_of_a_step_is_the_verdict(
    tmp_path: Path, parts: Sequence[float], verdict: str, header: str
) -> None:
    row = step_row(*parts)
    row = [*row, parts[2] * 500] if header != made.STEP_2023 else row
    row = ["0", *row] if header == made.STEP_2026 else row
    report = profile([str(write_rank(tmp_path, 3, [row], header=header))])
    assert [(one.steps.rank, one.bound.value) for one in report.ranks] == [("3", verdict)]
    assert report.bound.value == verdict and not report.likely and report.slow is None
    shares = report.ranks[0].steps
    assert shares.share("computing", "communication", "free") == pytest.approx(1)
    assert shares.share("computing") == pytest.approx(parts[0] / sum(parts))


def test_half_of_the_free_time_before_the_first_kernel_is_named(tmp_path: Path) -> None:
    row = [*step_row(50, 10, 40), 20_000.0]
    report = profile([str(write_rank(tmp_path, 0, [row], header=made.STEP_2025))])
    assert rules(report) == ["free", "preparing"]
    assert [round(one.share or 0, 2) for one in report.evidence] == [0.4, 0.2]


def test_a_first_step_that_starts_up_is_left_out(tmp_path: Path) -> None:
    steps = [step_row(100, 0, 900, step="1"), *(step_row(90, 2, 8, step=str(n)) for n in (2, 3, 4))]
    report = profile([str(write_rank(tmp_path, 0, steps))])
    assert report.bound.value == "compute" and report.ranks[0].steps.number == 3
    assert "start-up" in notes(report)


def test_the_rank_that_waits_least_while_its_host_takes_longest_is_slow(tmp_path: Path) -> None:
    for rank, (communication, free) in enumerate([(60, 30), (62, 28), (5, 85), (58, 32)]):
        write_rank(tmp_path, rank, [step_row(10, communication, free)])
    report = profile([str(tmp_path)])
    assert report.slow is not None
    assert (report.slow.rank, report.slow.bound.value, report.slow.waiting) == ("2", "host", ("0", "1", "3"))
    assert report.bound.value == "host"
    assert [one.bound.value for one in report.ranks] == ["communication", "communication", "host", "communication"]


def test_a_rank_whose_kernels_take_longer_is_slow_by_computing(tmp_path: Path) -> None:
    for rank, computing in enumerate((50, 50, 80)):
        write_rank(tmp_path, rank, [step_row(computing, 90 - computing, 10)])
    slow = profile([str(tmp_path)]).slow
    assert slow is not None and (slow.rank, slow.bound.value) == ("2", "compute")


def test_ranks_that_all_wait_as_long_have_no_slow_one(tmp_path: Path) -> None:
    for rank, communication in enumerate((66, 70, 74, 68)):
        write_rank(tmp_path, rank, [step_row(10, communication, 20)])
    report = profile([str(tmp_path)])
    assert report.slow is None and report.bound.value == "communication"


def cluster(path: Path) -> Path:
    """Two stages of a pipeline: the second waits half of its step for the first."""
    rows = [["5", "rank", n, *step_row(60, 25, 15)[1:]] for n in (0, 1)]
    rows += [["5", "rank", n, *step_row(30, 60, 10, bubble=52)[1:]] for n in (2, 3)]
    rows += [["5", "stage", f"({n}, {n + 1})", *step_row(60, 60, 15)[1:]] for n in (0, 2)]
    path.write_text(table(made.CLUSTER, rows), "utf-8")
    return path


def test_a_bubble_is_told_from_a_slow_rank(tmp_path: Path) -> None:
    report = profile([str(cluster(tmp_path / "cluster_step_trace_time.csv"))])
    assert [(one.steps.rank, one.bound.value, one.waits) for one in report.ranks] == [
        ("0", "compute", False),
        ("1", "compute", False),
        ("2", "communication", True),
        ("3", "communication", True),
    ]
    assert report.slow is None
    bubble = next(one for one in report.evidence if one.rule == "bubble")
    assert (bubble.ranks, round(bubble.share or 0, 2), bubble.major) == (("2", "3"), 0.52, True)


def test_the_ranks_own_tables_go_before_that_of_the_cluster(tmp_path: Path) -> None:
    write_rank(tmp_path, 0, [step_row(80, 15, 5)])
    (tmp_path / "cluster_analysis_output").mkdir()
    cluster(tmp_path / "cluster_analysis_output" / "cluster_step_trace_time.csv")
    assert [one.steps.rank for one in profile([str(tmp_path)]).ranks] == ["0"]


# ---------------------------------------------------------------------- graphs: MindSpore <= 2.2, msprof


@pytest.mark.parametrize(
    ("parts", "verdict", "found"),
    [
        ((68, 15, 17), "data", ["gap"]),
        ((0.4, 98, 1), "compute", []),
        ((0.2, 58, 42), "compute", ["tail"]),
    ],
)
def test_an_iteration_is_divided_into_gap_body_and_tail(
    tmp_path: Path, parts: tuple[float, float, float], verdict: str, found: list[str]
) -> None:
    raw = tmp_path / "step_trace_raw_4_detail_time.csv"
    raw.write_text(table(made.GRAPH, made.graph_rows(*parts, count=5)), "utf-8")
    report = profile([str(tmp_path)])
    assert report.bound.value == verdict and rules(report) == found
    assert report.ranks[0].steps.rank == "4" and report.ranks[0].steps.number == 5
    assert report.ranks[0].steps.mean.total == pytest.approx(sum(parts) * 1000, rel=0.01)  # without start-up and means


def test_only_step_1_of_a_graph_gives_no_verdict(tmp_path: Path) -> None:
    rows = [made.graph_rows(5, 10, 1, count=1)[0], ["0", 0, 0, 0, 0, 0, 1243211, 0, 0]]
    (tmp_path / "step_trace_raw_0_detail_time.csv").write_text(table(made.GRAPH, rows), "utf-8")
    report = profile([str(tmp_path)])
    assert report.bound.value == "unknown" and "only step 1" in notes(report)


def test_iterations_of_msprof_have_units_in_their_header(tmp_path: Path) -> None:
    header = (
        "Device_id,Iteration ID,FP Start(us),BP End(us),Iteration End(us),Iteration Time(us),FP to BP Time(us),"
        "Iteration Refresh(us),Data Aug Bound(us),Model ID,Reduce Start(us),Reduce Duration(us)"
    )
    rows = [["0", n, 1, 2, 3, 100_000, 20_000, 70_000, "N/A" if n == 1 else 10_000, 1, 5, 6] for n in (1, 2, 3)]
    (tmp_path / "step_trace_20260301.csv").write_text(table(header, rows), "utf-8")
    report = profile([str(tmp_path)])
    assert report.bound.value == "communication"  # its tail holds collectives
    assert [one.rule for one in report.evidence] == ["tail", "gap"]


@pytest.mark.parametrize(
    ("fills", "slow", "verdict"),
    [
        ({"Batch": "", "Map": 0.1, "Reader": 0.95}, "Map", "data"),
        ({"Batch": "", "Map": 0.1, "Reader": 0.1}, "Reader", "data"),
        ({"Batch": 0.02, "Map": 0.9, "Reader": 0.9}, "Batch", "data"),
        ({"Batch": "", "Map": 0.3, "Reader": 0.3}, None, "unknown"),
        ({"Batch": "", "Map": 0.95, "Reader": 0.95}, None, "unknown"),
    ],
)
def test_the_operation_between_a_full_and_an_empty_queue_is_too_slow(
    tmp_path: Path, fills: dict[str, Any], slow: str, verdict: str
) -> None:
    rows = []
    for number, (name, fill) in enumerate(fills.items()):
        sizes = "" if fill == "" else f"[{int(64 * fill)}, {int(64 * fill)}]"
        inputs = f"[{number + 1}]" if number < 2 else ""
        rows.append([number, name, 4, sizes, "", "" if fill == "" else 64, 0 if fill == "" else fill, 10, "", inputs])
    (tmp_path / "minddata_pipeline_raw_0.csv").write_text(table(made.PIPELINE, rows), "utf-8")
    report = profile([str(tmp_path)])
    advised = [one.advice.en for one in report.evidence if one.rule == "dataset"]
    assert report.bound.value == verdict
    assert bool(advised) is (slow is not None) and all(slow in text for text in advised)


# ---------------------------------------------------------------------- what costs time


def kernels(rows: Sequence[Sequence[Any]]) -> dict[str, str]:
    return {"kernel_details.csv": table(made.KERNELS, rows)}


def many(kind: str, core: str, duration: float, count: int = 10, **more: str) -> list[list[Any]]:
    return [kernel(n, kind, core, 1e6 + n * 1000, duration, **more) for n in range(count)]


@pytest.mark.parametrize(
    ("rows", "rule"),
    [
        (many("TransData", "AI_VECTOR_CORE", 900), "layout"),
        (many("Cast", "AI_VECTOR_CORE", 900), "cast"),
        (many("TensorMove", "AI_VECTOR_CORE", 900), "copies"),
        (many("ForeachAddList", "AI_VECTOR_CORE", 900), "optimizer"),
        (many("MatMulV2", "AI_CORE", 900, types="FLOAT;FLOAT"), "precision"),
        (many("Unique", "AI_CPU", 900), "aicpu"),
    ],
)
def test_kernels_count_by_their_share_of_the_step(tmp_path: Path, rows: list[list[Any]], rule: str) -> None:
    large = profile([str(write_rank(tmp_path / "large", 0, [step_row(70, 25, 5)], files=kernels(rows)))])
    assert rules(large) == [rule]
    assert next(one.share for one in large.evidence if one.major) == pytest.approx(0.09)
    small = profile([str(write_rank(tmp_path / "small", 0, [step_row(200, 250, 30)], files=kernels(rows)))])
    assert rules(small) == [] and rules(small, major=False) == [rule]


@pytest.mark.parametrize("types", ["FLOAT16;FLOAT16", "BF16;FLOAT"])
def test_matrix_operators_in_half_precision_are_no_finding(tmp_path: Path, types: str) -> None:
    rows = many("MatMulV2", "AI_CORE", 900, types=types)
    report = profile([str(write_rank(tmp_path, 0, [step_row(70, 25, 5)], files=kernels(rows)))])
    assert report.evidence == ()


def test_fused_optimizers_and_dropout_masks_are_no_finding(tmp_path: Path) -> None:
    rows = [*many("ApplyAdamW", "AI_VECTOR_CORE", 900), *many("DSAStatelessGenBitMask", "DSA_SQE", 900)]
    report = profile([str(write_rank(tmp_path, 0, [step_row(70, 25, 5)], files=kernels(rows)))])
    assert report.evidence == ()


def test_compiling_while_training_runs_is_found_and_one_long_wait_is_not(tmp_path: Path) -> None:
    rows = [
        ["acl", "aclopCompileAndExecute", 15_000, 19, 750, 70, 1900, 1],
        ["acl", "aclrtSynchronizeStreamWithTimeout", 60_000, 7, 8571, 8, 59_000, 1],
    ]
    files = {"api_statistic.csv": table(made.API, rows)}
    report = profile([str(write_rank(tmp_path, 0, [step_row(60, 35, 5)], files=files))])
    assert rules(report) == ["compile"] and "jit_compile=False" in report.evidence[0].advice.en
    rows[1] = ["acl", "aclrtSynchronizeStreamWithTimeout", 60_000, 60, 1000, 8, 1500, 1]
    files = {"api_statistic.csv": table(made.API, rows)}
    assert rules(profile([str(write_rank(tmp_path / "2", 0, [step_row(60, 35, 5)], files=files))])) == [
        "synchronize",
        "compile",
    ]


def test_op_statistic_alone_says_what_its_shares_are_of(tmp_path: Path) -> None:
    rows = [["TransData", "AI_VECTOR_CORE", 57, 1600, 6, 25, 71, 16], ["MatMulV2", "AI_CORE", 8, 8400, 1, 2, 3, 84]]
    for header, name in ((made.STATISTIC, "op_statistic_1.csv"), (made.STATISTIC_2022, "op_statistic_2.csv")):
        cells = [["m", *row] for row in rows] if header == made.STATISTIC_2022 else rows
        path = tmp_path / name
        path.write_text(table(header, cells), "utf-8")
        report = profile([str(path)])
        assert [(one.rule, one.of, one.share) for one in report.evidence] == [("layout", "kernels", 0.16)]
        assert "cover kernels only" in notes(report) and report.bound.value == "unknown"


def test_a_waiting_data_loader_makes_free_time_data_bound(tmp_path: Path) -> None:
    def events(loader: float) -> dict[str, str]:
        names = [("ProfilerStep#5", 100_000.0), ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", loader)]
        return {"trace_view.json": made.trace(names)}

    slow = profile([str(write_rank(tmp_path / "1", 0, [step_row(30, 10, 60)], files=events(45_000)))])
    assert slow.bound.value == "data" and rules(slow) == ["free", "loader"]
    fast = profile([str(write_rank(tmp_path / "2", 0, [step_row(30, 10, 60)], files=events(900)))])
    assert fast.bound.value == "host" and rules(fast) == ["free"]


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_trace_alone_names_its_optimizer(tmp_path: Path, wrapped: bool) -> None:
    events = [("ProfilerStep#1", 10_000.0), ("Optimizer.step#AdamW.step", 1700.0), ("aten::add", 3.0)]
    path = tmp_path / "some.pt.trace.json"
    path.write_text(made.trace(events, wrapped), "utf-8")
    report = profile([str(path)])
    assert rules(report) == ["optimizer"] and "NpuFusedAdamW" in report.evidence[0].advice.en
    path.write_text(made.trace([events[0], ("Optimizer.step#NpuFusedAdamW.step", 1700.0)], wrapped), "utf-8")
    assert profile([str(path)]).evidence == ()


def collectives(transit: float, packets: dict[str, list[float]]) -> str:
    link = {
        "Transit Size(MB)": 400.0,
        "Transit Time(ms)": transit,
        "Bandwidth(GB/s)": 1.0,
        "Size Distribution": packets,
    }
    times = {"Elapse Time(ms)": 60.0, "Transit Time(ms)": transit, "Wait Time(ms)": 5.0, "Idle Time(ms)": 1.0}
    entry = {"Communication Time Info": times, "Communication Bandwidth Info": {"HCCS": link, "SDMA": link}}
    return json.dumps({"step5": {"p2p": {}, "collective": {"hcom_allReduce__1@2": entry, "Total Op Info": entry}}})


@pytest.mark.parametrize(
    ("transit", "packets", "found"),
    [
        (50.0, {"0.5": [900, 45.0], "32.0": [2, 5.0]}, ["packets"]),
        (50.0, {"32.0": [12, 50.0]}, ["link"]),  # 8 GB/s
        (20.0, {"32.0": [12, 20.0]}, []),
        (2.0, {"0.5": [900, 2.0]}, []),  # the ranks wait for each other
    ],
)
def test_communication_is_slow_by_packets_by_a_link_or_by_waiting(
    tmp_path: Path, transit: float, packets: dict[str, list[float]], found: list[str]
) -> None:
    files = {"communication.json": collectives(transit, packets)}
    report = profile([str(write_rank(tmp_path, 0, [step_row(30, 65, 5)], files=files))])
    assert rules(report) == found
    assert ("ranks wait for each other" in notes(report)) is (transit < 10)


# ---------------------------------------------------------------------- kernels without a table of steps


def test_kernels_in_order_give_a_likely_verdict(tmp_path: Path) -> None:
    rows = [kernel(n, "MatMulV2", "AI_CORE", n * 100, 20) for n in range(60)]
    path = tmp_path / "kernel_details.csv"
    path.write_text(table(made.KERNELS, rows), "utf-8")
    report = profile([str(path)])
    assert report.bound.value == "host" and report.likely
    assert report.ranks[0].steps.share("computing") == pytest.approx(60 * 20 / (59 * 100 + 20))
    path.write_text(table(made.KERNELS, reversed(rows)), "utf-8")
    assert profile([str(path)]).bound.value == "unknown"  # not in order
    path.write_text(table(made.KERNELS, rows[:20]), "utf-8")
    assert profile([str(path)]).bound.value == "unknown" and "too few" in notes(profile([str(path)]))


def test_level0_knows_types_from_names_only_and_says_so(tmp_path: Path) -> None:
    rows = [["5", f"trans_TransData_{n}", "N/A", "N/A", n * 100, 90, 0, 0] for n in range(60)]
    rows += [["5", f"hcom_allReduce__1_{n}_1", "N/A", "HCCL", 6000 + n * 100, 90, 0, 0] for n in range(5)]
    path = tmp_path / "kernel_details.csv"
    path.write_text(table(made.KERNELS_LEVEL0, rows), "utf-8")
    report = profile([str(path)])
    assert "Level0" in notes(report) and "layout" in rules(report)


def test_op_summary_of_an_older_release_is_the_same_table(tmp_path: Path) -> None:
    rows = [[1, n, 2, f"op{n}", "Cast", "AI_CORE", n * 100, 95, 5, 24, '"64,3"', "FLOAT"] for n in range(60)]
    (tmp_path / "op_summary_0_1.csv").write_text(table(made.SUMMARY_2023, rows), "utf-8")
    report = profile([str(tmp_path)])
    assert report.bound.value == "compute" and rules(report) == ["cast"]


# ---------------------------------------------------------------------- files that are not what they should be


def damaged(text: str) -> dict[str, tuple[bytes, bool]]:
    """Name -> (what the file holds, whether its steps are still read)."""
    data = text.encode()
    return {
        "BOM": (b"\xef\xbb\xbf" + data, True),
        "CRLF": (data.replace(b"\n", b"\r\n"), True),
        "UTF-16": (text.encode("utf-16"), True),
        "blank lines": (data.replace(b"\n", b"\n\n"), True),
        "cut off": (data[: len(data) - 60], True),
        "empty": (b"", False),
        "header only": (data.partition(b"\n")[0], False),
        "NUL bytes": (b"\0" * 4096, False),
        "no line end": (b"a," * (1 << 21), False),
        "other columns": (b"step;computing\n1;2\n", False),
    }


@pytest.mark.parametrize("name", damaged(""))
def test_a_damaged_file_is_read_or_named(tmp_path: Path, name: str) -> None:
    steps = table(made.STEP_2023, [step_row(20, 10, 70), step_row(21, 9, 70), step_row(22, 9, 70)])
    content, is_read = damaged(steps)[name]
    path = tmp_path / "step_trace_time.csv"
    path.write_bytes(content)
    report = profile([str(tmp_path)])
    assert (report.bound.value == "host") is is_read
    assert [file.path for file in report.unread] == ([] if is_read else [str(path)])


def test_an_unknown_header_is_named_and_not_guessed(tmp_path: Path) -> None:
    (tmp_path / "step_trace_time.csv").write_text("Step,Compute,Comm,Idle\n1,2,3,4\n", "utf-8")
    (file,) = profile([str(tmp_path)]).unread
    assert file.reason.en == "unknown header: Step, Compute, Comm, Idle"


@pytest.mark.parametrize("text", ["[{", '{"traceEvents": [{"name": "a"', '{"config": ', '{"a": 1}', "[1, 2"])
def test_json_that_ends_in_the_middle_is_no_crash(tmp_path: Path, text: str) -> None:
    (tmp_path / "trace_view.json").write_text(text, "utf-8")
    report = profile([str(tmp_path)])
    assert report.bound.value == "unknown" and report.files + len(report.unread) == 1


def test_a_trace_that_was_cut_off_is_read_up_to_there(tmp_path: Path) -> None:
    text = made.trace([("ProfilerStep#1", 1000.0), ("Optimizer.step#SGD.step", 300.0), ("aten::add", 3.0)])
    (tmp_path / "trace_view.json").write_text(text[:-40], "utf-8")
    report = profile([str(tmp_path)])
    assert rules(report) == ["optimizer"] and "the trace is truncated" in notes(report)


def test_raw_data_beside_the_output_is_not_read(tmp_path: Path) -> None:
    own = write_rank(tmp_path, 0, [step_row(80, 15, 5)])
    raw = own / "PROF_000001_2026" / "mindstudio_profiler_output"
    raw.mkdir(parents=True)
    (raw / "op_summary_1.csv").write_text("unknown\n", "utf-8")
    assert profile([str(tmp_path)]).unread == ()


def test_settings_that_make_steps_longer_are_named(tmp_path: Path) -> None:
    own = write_rank(tmp_path, 0, [step_row(80, 15, 5)])
    (own / "profiler_info_0.json").write_text(json.dumps(made.settings(0, with_stack=True)), "utf-8")
    assert "Recorded with with_stack" in notes(profile([str(tmp_path)]))


def test_the_folders_of_an_older_msprof_are_read(tmp_path: Path) -> None:
    summary = tmp_path / "PROF_000001_2022" / "device_3" / "summary"
    summary.mkdir(parents=True)
    rows = [[1, n, 2, f"op{n}", "MatMul", "AI_CORE", n * 100, 95, 5, 24, '"64,3"', "FLOAT16"] for n in range(60)]
    (summary / "op_summary_3_1.csv").write_text(table(made.SUMMARY_2023, rows), "utf-8")
    report = profile([str(tmp_path)])
    assert [(one.steps.rank, one.bound.value) for one in report.ranks] == [("3", "compute")]


def test_a_table_with_more_steps_than_any_profile_is_read_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("envtune.profile.read.MOST_STEPS", 3)
    write_rank(tmp_path, 0, [step_row(20, 10, 70, step=str(number)) for number in range(5)])
    found = profile([str(tmp_path)])
    assert found.bound.value == "host" and found.ranks[0].steps.number == 3
    assert [one.reason.en for one in found.unread] == ["only its first 3 rows were read"]


def test_kernels_are_in_order_though_the_first_digits_of_their_starts_change(tmp_path: Path) -> None:
    from envtune.profile.readers.kernels import read_kernels

    starts = (1717499999999000.0, 1717499999999900.0, 1717500000000000.0, 1717500000000500.0)
    rows = [kernel(number, "Mul", "AI_VECTOR_CORE", start, 100.0) for number, start in enumerate(starts)]
    path = tmp_path / "kernel_details.csv"
    path.write_text(table(made.KERNELS, rows), "utf-8")
    with path.open("rb") as file:
        file.readline()
        found = read_kernels(made.KERNELS.split(","), file)
    assert (found.span, found.busy, found.computing) == (1600.0, 400.0, 400.0)


def test_kernels_whose_starts_are_quoted_give_the_same_times(tmp_path: Path) -> None:
    rows = [kernel(number, "Mul", "AI_VECTOR_CORE", 1736413971558972.5 + number * 10, 4.0) for number in range(60)]
    path = tmp_path / "kernel_details.csv"
    path.write_text(table(made.KERNELS, rows), "utf-8")
    plain = profile([str(path)])
    path.write_text(re.sub(r"(17364\d+\.\d+\t)", r'"\1"', path.read_text("utf-8")), "utf-8")
    assert '"17364' in path.read_text("utf-8") and profile([str(path)]).ranks == plain.ranks


def quoted(text: str, quoting: Any) -> bytes:
    """Write a table again as another program would: numbers are written as they were."""
    to = io.StringIO()
    writer = csv.writer(to, quoting=quoting, lineterminator="\n")
    for row in csv.reader(io.StringIO(text)):
        writer.writerow([Number(cell) if re.fullmatch(r"[\d.]+", cell) else cell for cell in row])
    return to.getvalue().encode()


class Number(float):
    """A number that is written as it was read."""

    def __new__(cls, text: str) -> Number:
        made = super().__new__(cls, text)
        made.text = text
        return made

    text: str

    def __repr__(self) -> str:
        return self.text

    __str__ = __repr__


SAVED = {
    "line ends of Windows": lambda text: text.replace("\n", "\r\n").encode(),
    "a byte order mark": lambda text: text.encode("utf-8-sig"),
    "both": lambda text: text.replace("\n", "\r\n").encode("utf-8-sig"),
    "UTF-16": lambda text: text.encode("utf-16"),
    "blank lines": lambda text: text.replace("\n", "\n\n").encode(),
    "no line end at the end": lambda text: text.rstrip("\n").encode(),
    "names with a comma": lambda text: re.sub(r"aclnn_(\w+)", r'"aclnn_\1,part"', text).encode(),
    "every cell quoted": lambda text: quoted(text, csv.QUOTE_ALL),
    "every text quoted": lambda text: quoted(text, csv.QUOTE_NONNUMERIC),
}


@pytest.mark.parametrize("name", SAVED)
def test_a_table_of_kernels_is_the_same_however_it_was_saved(tmp_path: Path, name: str) -> None:
    kinds = (("MatMulV2", "AI_CORE"), ("TransData", "AI_VECTOR_CORE"), ("hcom_allReduce_", "HCCL"))
    rows = [kernel(n, *kinds[n % 3], 1736413971558972.5 + n * 100, 60 + n % 7, "FLOAT") for n in range(90)]
    path = tmp_path / "kernel_details.csv"
    text = table(made.KERNELS, rows)
    path.write_text(text, "utf-8")
    plain = profile([str(path)])
    path.write_bytes(SAVED[name](text))
    again = profile([str(path)])
    assert {one.rule for one in plain.evidence} >= {"layout", "precision"} and plain.bound.value != "unknown"
    assert (again.ranks, again.evidence, again.notes) == (plain.ranks, plain.evidence, plain.notes)


def test_kernels_that_wait_for_memory_are_named_where_they_are_many(tmp_path: Path) -> None:
    header = made.KERNELS.replace("aic_scalar_ratio", "aic_mte2_ratio")
    rows = [[*kernel(n, "MatMulV2", "AI_CORE", n * 200, 150, "DT_BF16;DT_BF16")[:-1], 0.96] for n in range(60)]
    path = tmp_path / "kernel_details.csv"
    path.write_text(table(header, rows), "utf-8")
    assert "MTE2" in notes(profile([str(path)]))
    rows += [kernel(60 + n, "Mul", "AI_VECTOR_CORE", 12000 + n * 3000, 2900) for n in range(60)]
    path.write_text(table(header, rows), "utf-8")
    assert "MTE2" not in notes(profile([str(path)]))


def test_the_transposes_of_a_channel_shuffle_are_named_with_what_avoids_them(tmp_path: Path) -> None:
    rows = [kernel(n, kind, "AI_CORE", n * 100, 90) for n, kind in enumerate(["Conv2D", "Transpose", "AsStrided"] * 30)]
    rows += [kernel(90 + n, "TransData", "AI_CORE", 9000 + n * 100, 90) for n in range(30)]
    report = profile([str(_written(tmp_path / "kernel_details.csv", rows))])
    assert {"copies", "layout"} <= {*rules(report)}
    advice = " ".join(one.advice.en for one in report.evidence)
    assert "index_select" in advice and "allow_internal_format" in advice


def _written(path: Path, rows: Sequence[Sequence[Any]]) -> Path:
    path.write_text(table(made.KERNELS, rows), "utf-8")
    return path


def test_an_iteration_gap_of_mindspore_is_answered_with_sink_mode_and_casts_with_the_level(tmp_path: Path) -> None:
    gap = tmp_path / "step_trace_raw_0_detail_time.csv"
    gap.write_text(table(made.GRAPH, made.graph_rows(90.0, 17.0, 23.0, 20)), "utf-8")
    types = "op_type,total_time,execution_frequency,percent\nCast,9.0,75,30.0\nMatMul,21.0,10,70.0\n"
    (tmp_path / "aicore_intermediate_0_type.csv").write_text(types, "utf-8")
    advice = " ".join(one.advice.en for one in profile([str(tmp_path)]).evidence if one.major)
    assert "dataset_sink_mode=True" in advice and "amp_level='O3'" in advice
