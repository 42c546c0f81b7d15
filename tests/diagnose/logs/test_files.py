"""Where logs come from: plog trees, gzip, pipes, several hosts, a stretch of time."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers.faq import entries

from envtune.diagnose.logs.files import LogFile, find_logs, find_plogs
from envtune.diagnose.logs.lines import TimeWindow
from envtune.diagnose.patterns import Matcher, Pattern, select_prefilter
from envtune.diagnose.rank import resolve
from envtune.diagnose.scan import Scan, scan
from envtune.errors import UsageError

BIND = Pattern("PORT", r"bind failed, port (?P<port>\d+)")
LINE = b"[ERROR] HCCL(7,python):2024-06-01-10:00:05.000.000 [a.cc:1]bind failed, port 29500\n"
ORDINARY = b"[INFO] HCCL(7,python):2024-06-01-10:00:01.000.000 [a.cc:1]step done\n"


def put(root: Path, name: str, content: bytes = LINE, modified: float = 1_717_236_000.0) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (modified, modified))
    return path


def names(root: Path, *arguments: str) -> list[str]:
    return [os.path.relpath(file.path, root) for file in find_logs([str(root / argument) for argument in arguments])]


def read(*files: LogFile, window: TimeWindow = TimeWindow()) -> Scan:  # noqa: B008
    return scan(files, Matcher([BIND]), select_prefilter([BIND], files), window)


# ------------------------------------------------------------------------ log trees


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("ascend/log/plog/plog-100_20240601080000000.log", "ascend/log/plog/plog-200_20240601090000000.log"),
        ("log/debug/plog/plog-100_20240601080000000.log", "log/run/plog/plog-200_20240601090000000.log"),
        ("log/debug/device-0/device-100_20240601080000000.log", "log/debug/device-3/device-200_20240601090000000.log"),
        ("slog/host-0/host-0_20240601.log.1", "slog/host-0/host-0_20240602.log"),
        ("plog-100_20240601080000000.log.gz", "plog-200_20240601090000000.log"),
    ],
)
def test_trees_of_every_generation_newest_run_first(tmp_path: Path, older: str, newer: str) -> None:
    put(tmp_path, newer, modified=2_000.0 if "host-0" in newer else 500.0)
    put(tmp_path, older, modified=1_000.0)  # a copied plog may be younger on the disk than the one of a later run
    put(tmp_path, "ascend/kernel_meta/te_add.o", b"\x7fELF")
    put(tmp_path, "ascend/atrace/trace.bin", b"\0")
    put(tmp_path, "train.py", b"print()")
    assert names(tmp_path, "") == [newer, older]


def test_a_plog_tells_its_process_and_other_names_their_rank(tmp_path: Path) -> None:
    put(tmp_path, "plog/plog-4711_20240601080000000.log")
    put(tmp_path, "ranks/rank_3.log")
    put(tmp_path, "ranks/worker-12/stdout.log")
    put(tmp_path, "torchrun/none_x1/attempt_0/5/stderr.log")
    put(tmp_path, "other/train_8p.log")
    told = {os.path.basename(os.path.dirname(f.path)): (f.rank, f.pid) for f in find_logs([str(tmp_path)])}
    assert told == {
        "plog": (None, 4711),
        "ranks": (3, None),
        "worker-12": (12, None),
        "5": (5, None),
        "other": (None, None),
    }


def test_digits_in_a_name_that_are_no_date(tmp_path: Path) -> None:
    put(tmp_path, "plog-1_20241399000000000.log")
    assert names(tmp_path, "") == ["plog-1_20241399000000000.log"]


@pytest.mark.parametrize("name", ["host.tar.gz", "host.tgz", "host.json"])
def test_a_recorded_host_in_a_directory_is_no_log(tmp_path: Path, name: str) -> None:
    put(tmp_path, "train.log.gz")
    put(tmp_path, name)
    assert names(tmp_path, "") == ["train.log.gz"]


def test_a_directory_without_logs_and_a_name_that_is_not_there(tmp_path: Path) -> None:
    put(tmp_path, "train.py", b"print()")
    for argument in ("", "nowhere.log"):
        with pytest.raises(UsageError):
            find_logs([str(tmp_path / argument)])


def test_a_file_that_is_named_twice_is_read_once(tmp_path: Path) -> None:
    put(tmp_path, "rank0.log")
    (tmp_path / "latest.log").symlink_to("rank0.log")
    assert len(names(tmp_path, "rank0.log", "", "latest.log")) == 1


def test_the_plogs_of_a_run_are_those_written_since_it_began(tmp_path: Path) -> None:
    put(tmp_path, "home/ascend/log/debug/plog/plog-1_20240601080000000.log", modified=1_000.0)
    put(tmp_path, "home/ascend/log/debug/plog/plog-2_20240601090000000.log", modified=2_000.0)
    put(tmp_path, "elsewhere/debug/plog/plog-3_20240601090000000.log", modified=2_000.0)
    home = {"HOME": str(tmp_path / "home"), "ASCEND_PROCESS_LOG_PATH": str(tmp_path / "elsewhere")}
    assert [file.pid for file in find_plogs(home, 1_500.0)] == [3, 2]
    assert find_plogs({"HOME": str(tmp_path / "nobody")}, 0.0) == ()


# ---------------------------------------------------------------------- several hosts


@pytest.mark.parametrize("below", ["", "ascend/log/"])
def test_several_directories_are_several_hosts(tmp_path: Path, below: str) -> None:
    for host in ("nodeA", "nodeB"):
        put(tmp_path, f"{host}/{below}plog/plog-1_20240601080000000.log")
    files = find_logs([str(tmp_path / host / below) for host in ("nodeA", "nodeB")])
    assert [file.host for file in files] == ["nodeA", "nodeB"]


def test_one_directory_is_no_other_host(tmp_path: Path) -> None:
    put(tmp_path, "nodeA/rank0.log")
    assert [file.host for file in find_logs([str(tmp_path / "nodeA")])] == [""]


def test_the_host_whose_rank_failed_first_is_named(tmp_path: Path) -> None:
    waited = "EI0002: [PID: 1] 2024-06-01-10:35:0{}.000.000 The wait execution of the Notify register times out.\n"
    oom = "2024-06-01 10:05:00,000 step 3\nRuntimeError: NPU out of memory. Tried to allocate 2.00 GiB\n"
    for rank in range(4):
        put(tmp_path, f"node{'AB'[rank // 2]}/rank{rank}.log", (oom if rank == 2 else waited.format(rank)).encode())
    from helpers.faq import matcher

    files = find_logs([str(tmp_path / "nodeA"), str(tmp_path / "nodeB")])
    best = resolve(scan(files, matcher(), select_prefilter(matcher().patterns, files)), entries()).diagnoses[0]
    assert (best.entry.id, best.rank, best.host) == ("F13", 2, "nodeB")


# -------------------------------------------------------------------------------- gzip


def test_gzip_is_read_as_what_it_holds(tmp_path: Path) -> None:
    path = put(tmp_path, "plog-1_20240601080000000.log.gz", gzip.compress(ORDINARY * 40_000 + LINE))
    result = read(*find_logs([str(path)]))
    assert [hit.line.number for hit in result.hits] == [40_001]
    assert not result.unreadable


def test_members_one_after_the_other_and_padding(tmp_path: Path) -> None:
    path = put(tmp_path, "log.gz", gzip.compress(ORDINARY) + b"\0" * 700 + gzip.compress(LINE) + b"\0" * 99)
    result = read(LogFile(str(path)))
    assert [hit.line.number for hit in result.hits] == [2]
    assert not result.unreadable


def test_a_name_does_not_make_it_gzip(tmp_path: Path) -> None:
    assert read(LogFile(str(put(tmp_path, "log.gz", LINE)))).hits
    assert read(LogFile(str(put(tmp_path, "log", gzip.compress(LINE))))).hits


@pytest.mark.parametrize("damage", ["cut", "cut in the check sum", "flipped", "garbage after it"])
def test_of_damaged_gzip_what_is_there_is_read_and_the_damage_said(tmp_path: Path, damage: str) -> None:
    random = os.urandom(300_000)  # cannot be packed, so that the damage comes well after the line
    whole = gzip.compress(LINE + random.hex().encode() + b"\n" + ORDINARY)
    content = {
        "cut": whole[:-50_000],
        "cut in the check sum": whole[:-3],
        "flipped": whole[:-50_000] + bytes(b ^ 255 for b in whole[-50_000:-40_000]) + whole[-40_000:],
        "garbage after it": whole + b"garbage",
    }[damage]
    path = put(tmp_path, "log.gz", content)
    result = read(LogFile(str(path)))
    assert [hit.line.number for hit in result.hits] == [1]
    assert [file for file, _ in result.unreadable] == [str(path)]
    assert "read up to there" in str(result.unreadable[0][1])


@pytest.mark.slow
def test_a_bomb_is_read_in_bounded_memory(tmp_path: Path) -> None:
    path = put(tmp_path, "log.gz", gzip.compress(b"\0" * 60_000_000 + b"\n" + LINE))
    tracemalloc.start()
    result = read(LogFile(str(path)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert result.hits
    assert peak < 40 << 20


# ------------------------------------------------------------------------- files and pipes


def test_an_empty_file_and_one_that_cannot_be_read(tmp_path: Path) -> None:
    empty = put(tmp_path, "empty.log", b"")
    result = read(LogFile(str(empty)), LogFile(str(tmp_path)), LogFile(str(tmp_path / "gone.log")))
    assert (result.lines, result.hits) == (0, [])
    assert [path for path, _ in result.unreadable] == [str(tmp_path), str(tmp_path / "gone.log")]


def test_standard_input_is_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    child = subprocess.Popen(
        [sys.executable, "-c", f"import sys\nfor n in range(40000): sys.stdout.buffer.write({ORDINARY!r})\n"
         f"sys.stdout.buffer.write({LINE!r}[:-1])"],
        stdout=writing,
    )  # fmt: skip
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream))
        result = read(LogFile("-"))
        monkeypatch.undo()
    assert child.wait() == 0
    assert [hit.line.number for hit in result.hits] == [40_001]
    assert result.lines == 40_001


def test_a_pipe_that_has_a_name(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.log"
    os.mkfifo(pipe)
    content = gzip.compress(ORDINARY * 3 + LINE)
    child = subprocess.Popen([sys.executable, "-c", f"open({str(pipe)!r}, 'wb').write({content!r})"])
    assert [hit.line.number for hit in read(LogFile(str(pipe))).hits] == [4]
    assert child.wait() == 0


def test_a_big_file_has_the_same_line_numbers(tmp_path: Path) -> None:
    """Of big files lines are counted only up to where a number is wanted."""
    content = ORDINARY * 50_000 + LINE + b"\x1b[31m" + ORDINARY * 90_000 + b"Killed\n" + LINE
    path = put(tmp_path, "big.log", content)
    (file,) = find_logs([str(path)])
    assert file.size > 8 << 20
    result = read(file)
    assert [hit.line.number for hit in result.hits] == [50_001, 140_003]
    assert result.first_error is not None and result.first_error.line.number == 50_001
    assert result.lines is None and result.size == len(content)


# -------------------------------------------------------------------------- since, until


def at(second: int, text: str) -> str:
    return f"[INFO] HCCL(7,python):2024-06-01-10:00:{second:02d}.000.000 [a.cc:1]{text}\n"


def seconds(since: int, until: int) -> TimeWindow:
    start = 1_717_236_000.0
    return TimeWindow(start + since, start + until)


def test_only_what_was_printed_then_counts() -> None:
    log = "".join(at(second, f"bind failed, port {second}") for second in range(10, 50))
    result = read(LogFile("log", content=log.encode()), window=seconds(20, 23))
    assert [hit.groups["port"] for hit in result.hits] == ["20", "21", "22", "23"]
    assert sum(result.counts.values()) == 4


def test_a_line_without_a_time_belongs_to_the_one_before_it() -> None:
    log = "bind failed, port 1\n" + at(10, "x") + "bind failed, port 2\n" + at(30, "y") + "\nbind failed, port 3\n"
    ports = [
        [hit.groups["port"] for hit in read(LogFile("log", content=log.encode()), window=window).hits]
        for window in (seconds(5, 20), seconds(20, 40), TimeWindow(until=1_717_236_020.0))
    ]
    assert ports == [["2"], ["3"], ["1", "2"]]


def test_the_first_error_is_that_of_the_stretch() -> None:
    log = "ValueError: too early\n" + at(10, "x") + "ValueError: in time\n"
    error = read(LogFile("log", content=log.encode()), window=seconds(5, 20)).first_error
    assert error is not None and error.line.text == "ValueError: in time"


def test_dates_without_a_year_are_of_the_year_that_was_asked_for() -> None:
    log = "ERROR 06-01 10:00:10 [core.py:1] bind failed, port 1\nERROR 06-01 10:00:30 [core.py:1] bind failed, port 2\n"
    result = read(LogFile("log", content=log.encode()), window=seconds(5, 20))
    assert [hit.groups["port"] for hit in result.hits] == ["1"]
