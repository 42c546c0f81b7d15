"""What a log says is found whatever the log looks like: blocks, interleaved ranks, colors, encodings, half lines."""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path
from typing import Optional

import pytest
from helpers.faq import matcher

from envtune.catalog.signatures.literals import required_literals
from envtune.diagnose.logs import blocks
from envtune.diagnose.logs.files import LogFile
from envtune.diagnose.logs.lines import rank_of
from envtune.diagnose.patterns import Matcher, Pattern, select_prefilter
from envtune.diagnose.prefilter.templates import CandidateLine, TemplateFilter
from envtune.diagnose.scan import Scan, scan

BIND = Pattern("PORT", r"bind failed, port (?P<port>\d+)")
MULTI = Pattern("MULTI", r"abort in (?P<what>\w+)\s*\n\s*reason: (?P<why>\w+)", multiline=True)
PATTERNS = (BIND, MULTI, Pattern("WEAK", r"(?i)link\W+is down", "weak"))
ORDINARY = "[INFO] HCCL(7,python):2024-06-01-10:00:0{}.000.000 [comm.cc:1]step {} done\n"


def logs(*contents: bytes | str, path: str = "log{}") -> list[LogFile]:
    raw = [text.encode("utf-8") if isinstance(text, str) else text for text in contents]
    return [LogFile(path.format(number), content=one) for number, one in enumerate(raw)]


def found(*contents: bytes | str) -> Scan:
    files = logs(*contents)
    return scan(files, Matcher(PATTERNS), select_prefilter(PATTERNS, files))


def told(result: Scan) -> list[tuple[str, int, dict[str, str]]]:
    return [(hit.pattern.owner, hit.line.number, dict(hit.groups)) for hit in result.hits]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK", 200)


def ordinary(lines: int) -> str:
    return "".join(ORDINARY.format(number % 10, number) for number in range(lines))


# -------------------------------------------------------------------- blocks


@pytest.mark.parametrize("lines_before", range(8))
def test_a_signature_may_begin_in_one_block_and_end_in_the_next(small_blocks: None, lines_before: int) -> None:
    text = ordinary(lines_before) + "abort in copy\n  reason: stream\n" + ordinary(3)
    assert told(found(text)) == [("MULTI", lines_before + 1, {"what": "copy", "why": "stream"})]


def test_the_lines_around_a_hit_come_from_other_blocks_too(small_blocks: None) -> None:
    hit = found(ordinary(20) + "bind failed, port 29500\n" + ordinary(20)).hits[0]
    assert hit.line.number == 21
    assert [line.split("]")[-1] for line in hit.context] == [
        "step 17 done",
        "step 18 done",
        "step 19 done",
        "bind failed, port 29500",
        "step 0 done",
        "step 1 done",
        "step 2 done",
    ]


def test_a_signature_that_spans_lines_needs_them_in_order() -> None:
    assert not found("reason: stream\nabort in copy\n" + ordinary(3)).hits


def test_a_line_longer_than_everything_is_searched_to_its_end() -> None:
    line = "x" * 9_000_000
    result = found(f"{line} bind failed, port 1\n{line}\nbind failed, port 2\n")
    assert [(number, groups["port"]) for _, number, groups in told(result)] == [(1, "1"), (3, "2")]
    assert all(len(hit.line.text) <= 4 * 16_384 for hit in result.hits)


# ---------------------------------------------------------------- several ranks


@pytest.mark.parametrize(
    "prefix",
    ["[default{}]:", "[rank{}]: ", "[default{0}]:[rank{0}]: ", "{}: ", "[1,{}]<stderr>:", "(Worker_TP{} pid=948496) "],
)
def test_lines_of_another_rank_stand_between(prefix: str) -> None:
    mine, other = prefix.format(3), prefix.format(5)
    text = f"{mine}abort in copy\n{other}abort in nothing\n{other}step 1\n{mine}  reason: stream\n{other}step 2\n"
    result = found(text)
    assert told(result) == [("MULTI", 1, {"what": "copy", "why": "stream"})]


def test_lines_that_name_their_process_stand_between() -> None:
    between = "[INFO] 2024-03-07-01:31:48 (PID:116077, Device:5, RankID:5) step 7 done\n"
    assert told(found("abort in copy\n" + 3 * between + "  reason: stream\n"))[0][0] == "MULTI"


def test_another_ranks_next_line_is_no_part_of_it() -> None:
    assert not found("[rank3]: abort in copy\n[rank5]: reason: stream\n[rank3]: step 2\n").hits


def test_ranks_are_counted_apart_and_repeats_not_kept() -> None:
    result = found("".join(f"[rank{n % 4}]: bind failed, port 29500\n" for n in range(4000)))
    assert result.counts == {("PORT", "log0"): 4000}
    assert sorted((hit.rank or 0) for hit in result.hits) == sorted(list(range(4)) * 5)


def test_a_line_a_hundred_thousand_times_is_counted_not_stored() -> None:
    result = found(b"bind failed, port 29500\n" * 100_000)
    assert result.counts == {("PORT", "log0"): 100_000}
    assert len(result.hits) == 5


@pytest.mark.slow
def test_memory_stays_flat_while_hits_repeat(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"[rank{n % 8}]: bind failed, port {n} link is down\n" for n in range(20_000)), "utf-8")
    tracemalloc.start()
    result = scan([LogFile(str(log))], Matcher(PATTERNS), select_prefilter(PATTERNS, ()))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert result.counts == {("PORT", str(log)): 20_000, ("WEAK", str(log)): 20_000}
    assert peak < 4 << 20


@pytest.mark.parametrize("times", [30, pytest.param(300, marks=pytest.mark.slow)])
def test_what_begins_like_a_signature_many_times_costs_little(times: int) -> None:
    others = "".join(f"[rank{rank}]: waiting\n" for rank in range(4, 60)) * 20
    start = time.process_time()
    assert not found(("[rank3]: abort in copy\n" + others) * times).hits
    assert time.process_time() - start < 60


def test_hits_of_a_hostile_log_are_kept_while_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envtune.diagnose.scan.MAX_CHARACTERS", 1 << 20)
    padding = "y" * 16_000
    result = found("".join(f"[rank{rank}]: bind failed, port {rank} {padding}\n" for rank in range(200)))
    assert result.counts == {("PORT", "log0"): 200}
    assert 10 < len(result.hits) < 64


@pytest.mark.parametrize(
    ("line", "rank"),
    [
        ("[rank3]: Traceback", 3),
        ("[default12]:[rank12]: x", 12),
        ("[ERROR] 2024-03-07-01:31:48 (PID:116072, Device:0, RankID:5) ERR00002", 5),
        ("[ERROR] 2024-03-07-01:31:48 (PID:116072, Device:0, RankID:-1) ERR00002", None),
        ("[INFO] HCCL(1,python) [hb.cc:1] local rank [10.0.0.1/1]: crimer rank [10.0.0.2/2] status[LOST]", 1),
        ("EI0006: Getting socket times out. Remote Rank 7 did not send the data", None),
        ("connect from rank 2 to rank 4 failed", None),
        ("worker rank 6: step 3", 6),
        ("(Worker_TP4 pid=948496) ERROR", 4),
        ("rank_table.json: 8 devices, ranks 16", None),
        ("7: step 3", 7),
    ],
)
def test_who_printed_a_line(line: str, rank: Optional[int]) -> None:
    assert rank_of(line) == rank


# ----------------------------------------------------------- terminals and encodings


@pytest.mark.parametrize(
    "line",
    [
        "\x1b[31mbind\x1b[0m failed, \x1b[1;33mport 29500\x1b[m",
        "\x1b]8;;http://host/\x07bind failed\x1b]8;;\x07, port 29500",
        "bind fai\0led, port 29500",
        "bind failed, port 29500\r",
        "\ufeffbind failed, port 29500",
    ],
)
def test_what_a_terminal_adds_does_not_hide_it(line: str) -> None:
    assert told(found(line + "\n")) == [("PORT", 1, {"port": "29500"})]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "gb18030", "latin-1"])
def test_other_encodings(encoding: str) -> None:
    text = ordinary(30) + "r\u00e4nge bind failed, port 29500\r\n"
    assert told(found(text.encode(encoding, "replace"))) == [("PORT", 31, {"port": "29500"})]


def test_utf_16_is_recognised_by_its_mark_though_most_of_it_is_chinese() -> None:
    text = "训练日志：" * 40 + "\nbind failed, port 29500\n"
    assert told(found(b"\xff\xfe" + text.encode("utf-16-le")))[0][:2] == ("PORT", 2)


def test_invalid_utf_8_is_read_around() -> None:
    assert told(found(b"\xff\xfa\x80 bind failed, port 29500 \xc3\n")) == [("PORT", 1, {"port": "29500"})]


def test_the_last_line_need_not_end() -> None:
    result = found(ordinary(1) + "bind failed, port 29500")
    assert told(result) == [("PORT", 2, {"port": "29500"})]
    assert result.lines == 2


def test_a_progress_bar_is_one_line_of_many_parts() -> None:
    bar = "".join(f"\r {done}%|##  | {done}/100 [00:0{done % 10}<00:30]" for done in range(100))
    result = found(f"start\n{bar}\rbind failed, port 29500\r 100%|\nbind failed, port 7\n")
    assert [(number, groups) for _, number, groups in told(result)] == [(2, {"port": "29500"}), (3, {"port": "7"})]
    assert result.hits[0].line.text == "bind failed, port 29500"


def test_a_progress_bar_of_megabytes_does_not_hide_the_error_after_it() -> None:
    bar = "".join(f"\r {done}%|##        | {done}/100000 [00:00<00:30, 3.2it/s]" for done in range(100_000))
    assert told(found(bar + "\rbind failed, port 29500\n")) == [("PORT", 1, {"port": "29500"})]


# ------------------------------------------------------------------- first error


def first(*contents: bytes | str) -> Optional[tuple[str, int, str]]:
    error = found(*contents).first_error
    return None if error is None else (error.file.path, error.line.number, error.line.text)


@pytest.mark.parametrize(
    "line",
    [
        "[ERROR] GE(1,python):2024-06-01-10:00:00.000.000 [a.cc:1] something new",
        "2025-10-15 11:11:50.834 ERROR engine.py:12 something new",
        "torch.distributed.DistBackendError: something new",
        "main.cpp:3:9: error: 'x' was not declared",
        "/bin/sh: line 1: 812 Segmentation fault (core dumped) python train.py",
        "Killed",
        "EI0099: [PID: 15] something new",
        "错误：找不到设备",
    ],
)
def test_the_first_error_of_a_log_that_nobody_knows(line: str) -> None:
    result = found(ordinary(8) + line + "\n" + ordinary(2) + "ValueError: a later one\n")
    assert result.first_error is not None
    assert (result.first_error.line.number, result.first_error.line.text) == (9, line)
    assert len(result.first_error.before) == 6 and len(result.first_error.after) == 3
    assert result.first_error.before[-1].endswith("step 7 done")


@pytest.mark.parametrize(
    "line",
    [
        "[INFO] GE(1,python):2024-06-01-10:00:00.000.000 [a.cc:1] Error count 0",
        "INFO: no errors found, error_rate=0.01",
        "[WARNING] torch.distributed.run: Error handling is off",
        "loss 0.3 terror 7",
    ],
)
def test_what_is_no_error(line: str) -> None:
    assert first(ordinary(3) + line + "\n") is None


def test_of_a_traceback_the_last_line_is_the_error() -> None:
    frames = 'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    raise ValueError(x)\n'
    assert first(ordinary(2) + frames + "custom.Problem: 7 of 8\nnext\n") == ("log0", 6, "custom.Problem: 7 of 8")


HEADER = "Traceback (most recent call last):\n"


@pytest.mark.parametrize(
    ("frames", "error"),
    [
        ('File "a.py", line 3, in f\nreturn g(\nValueError: x\nnext\n', (6, "ValueError: x")),
        (
            'File\n"/a/a.py",\nline 3, in f\nraise ValueError( x)\n[rank0]: ValueError: x\n',
            (8, "[rank0]: ValueError: x"),
        ),
        ('File "a.py", Line 3, in f\nassert x, (\n', (3, HEADER.strip())),
        ('File "a.py", line 3, in f\nreturn g(\n' + HEADER, (3, HEADER.strip())),
    ],
)
def test_a_frame_that_lost_its_indentation_is_no_error(frames: str, error: tuple[int, str]) -> None:
    assert first(ordinary(2) + HEADER + frames) == ("log0", *error)


def test_of_a_traceback_among_other_ranks_too() -> None:
    text = "".join(
        f"[rank{rank}]: {line}\n[rank5]: loading\n"
        for rank, line in ((3, "Traceback (most recent call last):"), (3, '  File "a.py", line 3'), (3, "Odd: 7"))
    )
    assert first(text) == ("log0", 5, "[rank3]: Odd: 7")


def test_of_several_files_the_earliest_error_counts() -> None:
    late = "[ERROR] GE(1,python):2024-06-01-10:00:05.000.000 [a.cc:1] late\n"
    early = "2024-06-01 10:00:01,000 start\nRuntimeError: early\n"  # its time is that of the line before
    untimed = "ValueError: some time\n"
    assert first(untimed, late, early) == ("log2", 2, "RuntimeError: early")


def test_a_time_without_a_year_is_compared_with_the_others() -> None:
    vllm = "ERROR 06-01 10:00:07 [core.py:1] later\n"
    plog = "[ERROR] GE(1,python):2024-06-01-10:00:05.000.000 [a.cc:1] sooner\n"
    assert first(vllm, plog) is not None and first(vllm, plog)[0] == "log1"  # type: ignore[index]


def test_a_line_that_is_known_to_be_harmless_is_not_the_first_error() -> None:
    harmless = Pattern("NOISE", r"ErrorNo: -1\(failed\)", harmless=True)
    text = "[ERROR] GE(1,python) ErrorNo: -1(failed)\n" + ordinary(1) + "[ERROR] GE(1,python) real\n"
    files = logs(text)
    error = scan(files, Matcher([harmless]), select_prefilter([harmless], files)).first_error
    assert error is not None and error.line.number == 3


# --------------------------------------------------------------- what a signature requires


def test_what_is_required_may_come_later_and_is_noted_once_per_file() -> None:
    needed = Pattern("", r"QUEUE\s*=\s*0", role="requires")
    files = logs("bind failed, port 1\n" + ordinary(5) + "export QUEUE = 0\nQUEUE=0\n", "bind failed, port 2\n")
    result = scan(files, Matcher([BIND, needed]), select_prefilter([BIND, needed], files))
    assert result.present == {(needed.regex, "log0")}
    assert len(result.hits) == 2


def test_an_expression_of_which_nothing_is_certain_is_found_all_the_same() -> None:
    pattern = Pattern("SITE", r"\b\d{4}-[XY]\d\b")
    files = logs(ordinary(100) + "code 4711-X3\n" + ordinary(100))
    assert told(scan(files, Matcher([pattern]), select_prefilter([pattern], files))) == [("SITE", 101, {})]


def test_a_word_of_hexadecimal_letters_is_found() -> None:
    pattern = Pattern("SITE", r"(?i)\bdecade\b")
    files = logs(ordinary(100) + "what a Decade 0xfeed\n" + ordinary(100))
    assert told(scan(files, Matcher([pattern]), select_prefilter([pattern], files))) == [("SITE", 101, {})]


def test_templates_of_a_log_that_never_repeats_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envtune.diagnose.prefilter.templates.MAX_REMEMBERED", 100_000)
    prefilter = TemplateFilter(())
    blocks_ = ["".join(f"{chr(97 + n % 26) * (n % 90)}g{b}\n" for n in range(500)).encode() for b in range(50)]
    for block in blocks_:
        assert not list(prefilter.candidates(block))
    assert list(prefilter.candidates(b"x\nERROR y\n")) == [CandidateLine(2, 9, (0,))]


@pytest.mark.parametrize(
    "line",
    [
        "step done",
        " iteration 100/5000 | elapsed time per iteration (ms): 500.1 | learning rate: 1.0E-4 | lm loss: 2.3E+00 |",
        "epoch 3 step 20 loss 0.33 lr 0.01",
        "{'loss': 1.2, 'grad_norm': 0.3, 'learning_rate': 1e-05, 'epoch': 0.1}",
        "INFO:tensorflow:loss = 10.80, step = 36 (0.219 sec)",
        "2026-01-01 10:00:00 - mmengine - INFO - Epoch(train) [1][50/100] lr: 1e-2 eta: 0:01:00 time: 0.3 loss: 1.0",
    ],
)
def test_what_every_training_prints_begins_no_signature_of_several_lines(line: str) -> None:
    """A log is long because of such lines: looking at those that follow each of them would take minutes."""
    tried = [pattern for pattern in matcher().patterns if pattern.multiline and may_match(pattern, line)]
    assert tried == []


def may_match(pattern: Pattern, line: str) -> bool:
    needs = required_literals(pattern.regex, pattern.multiline)
    return any(
        all(
            any((one.text in line) if one.exact else (one.text in line.lower()) for one in option) for option in options
        )
        for options in needs
    )
