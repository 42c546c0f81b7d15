"""No log is named: those of this user's newest run are found where CANN, frameworks and launchers write them."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Mapping

import pytest

from envtune import diagnose
from envtune.diagnose.logs import own
from envtune.diagnose.logs.own import find_own_logs
from envtune.errors import UsageError
from envtune.snapshot.open import open_snapshot

NOW = 1_717_236_000.0
ERROR = b"[ERROR] 2024-06-01-10:00:05 (PID:7, Device:0, RankID:0) ERR01007 OPS feature not supported\n"


class Home:
    """A user's home directory, with a working directory in it."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = tmp_path
        self.environ: dict[str, str] = {"HOME": str(tmp_path / "home")}
        for folder in ("home", "work", "tmp"):
            (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / "work")
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
        monkeypatch.setattr(own, "KERNEL_LOGS", (str(tmp_path / "kern.log"),))
        shared = ("/var/log", "/tmp/ray")
        monkeypatch.setattr(own, "PLACES", tuple(p for p in own.PLACES if not p.folder.startswith(shared)))

    def put(self, name: str, content: bytes = ERROR, modified: float = NOW) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (modified, modified))
        return path

    def found(self, **environ: str) -> list[str]:
        files = find_own_logs({**self.environ, **environ}).files
        return [os.path.relpath(os.path.abspath(file.path), self.path) for file in files]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    return Home(tmp_path, monkeypatch)


def plog(pid: int, begun: float) -> str:
    return f"plog-{pid}_{time.strftime('%Y%m%d%H%M%S', time.localtime(begun))}000.log"


@pytest.mark.parametrize(
    ("name", "environ"),
    [
        ("home/ascend/log/debug/plog/plog-7_20240601080000000.log", {}),
        ("home/ascend/log/run/device-0/device-7_20240601080000000.log", {}),
        ("elsewhere/debug/plog/plog-7_20240601080000000.log", {"ASCEND_PROCESS_LOG_PATH": "elsewhere"}),
        ("flushed/log/debug/plog/plog-7_20240601080000000.log", {"ASCEND_WORK_PATH": "flushed"}),
        ("tmp/torchelastic_x1/none_y2/attempt_0/3/stderr.log", {}),
        ("agents/none_y2/attempt_0/3/stderr.log", {"PET_LOG_DIR": "agents"}),
        ("glog/rank_0/logs/mindspore.log", {"GLOG_log_dir": "glog"}),
        ("work/msrun_log/worker_3.log", {}),
        ("work/output/msrun_log/scheduler.log", {}),
        ("work/worker_0.log", {}),
        ("work/nohup.out", {}),
        ("home/nohup.out", {}),
        ("work/slurm-4711.out", {}),
        ("work/train.log", {}),
        ("work/logs/none_y2/attempt_0/0/stdout.log", {}),
    ],
)
def test_every_place(home: Home, name: str, environ: Mapping[str, str]) -> None:
    home.put(name)
    assert home.found(**{key: str(home.path / value) for key, value in environ.items()}) == [name]


def test_every_place_has_a_source() -> None:
    assert all(place.writer and place.source for place in own.PLACES)


def test_the_newest_run_with_all_its_ranks_and_its_output(home: Home) -> None:
    begun = NOW - 7200
    tree = "home/ascend/log/debug/plog/"
    home.put(tree + plog(1, begun - 90_000), modified=begun - 80_000)
    newest = [
        home.put(tree + plog(20 + rank, begun + rank), modified=NOW - 1000 * rank).relative_to(home.path)
        for rank in range(3)
    ]
    output = home.put("work/train.log", modified=NOW - 500).relative_to(home.path)
    home.put("work/yesterday.log", modified=begun - 85_000)
    assert sorted(home.found()) == sorted(map(str, [*newest, output]))
    looked = {place.path: place for place in find_own_logs(home.environ).looked}
    assert (looked["."].files, looked["."].older) == (1, 1)


def test_a_run_that_failed_before_a_newer_one_is_left_out(home: Home) -> None:
    tree = "home/ascend/log/debug/plog/"
    home.put(tree + plog(1, NOW - 600), modified=NOW - 500)
    home.put(tree + plog(2, NOW - 200), modified=NOW)
    assert home.found() == [tree + plog(2, NOW - 200)]


def test_ranks_that_ended_apart_are_one_run(home: Home) -> None:
    for rank in range(3):
        home.put(f"work/worker_{rank}.log", modified=NOW - 1000 * rank)
    home.put("work/old.log", modified=NOW - 4000)
    assert home.found() == ["work/worker_0.log", "work/worker_1.log", "work/worker_2.log"]


def test_no_more_than_its_limits(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own, "MAX_FILES", 2)
    for number in range(4):
        home.put(f"work/a{number}.log", modified=NOW - number)
    assert home.found() == ["work/a0.log", "work/a1.log"]
    monkeypatch.setattr(own, "MAX_BYTES", len(ERROR))
    assert home.found() == ["work/a0.log"]


def test_links_empty_files_and_other_names_are_no_logs(home: Home) -> None:
    home.put("elsewhere.txt")
    (home.path / "work/linked.log").symlink_to(home.path / "elsewhere.txt")
    home.put("work/empty.log", b"")
    home.put("work/train.py", b"raise ValueError\n")
    with pytest.raises(UsageError):
        home.found()


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file to another user")
def test_root_takes_no_log_of_another_user_for_its_own(home: Home) -> None:
    os.chown(home.put("work/theirs.log"), 12345, 12345)
    with pytest.raises(UsageError) as raised:
        home.found()
    assert "1 file of other users" in str(raised.value)
    home.put("work/mine.log")
    assert home.found() == ["work/mine.log"]


def test_nothing_found_says_where_it_looked_and_what_to_type(home: Home) -> None:
    with pytest.raises(UsageError) as raised:
        home.found(ASCEND_WORK_PATH="/nowhere")
    said = str(raised.value)
    assert f"{home.path}/home/ascend/log (CANN): no log" in said and "/nowhere/log" in said
    assert "envtune diagnose train.log" in said


def test_a_recorded_host_holds_no_logs(home: Home, tmp_path: Path) -> None:
    home.put("work/train.log")
    recorded = tmp_path / "host.json"
    recorded.write_text('{"schema": "envtune.snapshot/1", "meta": {}, "files": {}}')
    with pytest.raises(UsageError, match="a recorded host contains none"):
        diagnose([], open_snapshot(recorded))


# ---------------------------------------------------------------- what the kernel said meanwhile


def kernel_line(moment: float, text: str, form: str = "%b %e %H:%M:%S") -> str:
    return f"{time.strftime(form, time.localtime(moment))} node1 {text}\n"


@pytest.mark.parametrize("form", ["%b %e %H:%M:%S", "%Y-%m-%dT%H:%M:%S.250000+00:00"])
def test_the_kernel_lines_of_the_run_with_their_numbers(home: Home, form: str) -> None:
    killed = "kernel: [812.5] Out of memory: Killed process 4711 (python) total-vm:1kB"
    lines = [
        kernel_line(NOW - 90_000, killed, form),
        kernel_line(NOW - 1, "sshd[7]: Accepted publickey for alice", form),
        kernel_line(NOW - 2, killed, form),
        kernel_line(NOW + 90_000, killed, form),
    ]
    home.put("kern.log", "".join(lines).encode())
    home.put("work/train.log")
    *_, kernel = find_own_logs(home.environ).files
    assert kernel.path == str(home.path / "kern.log")
    assert kernel.content == f"\n\n{lines[2]}\n".encode()


def test_a_kernel_log_without_a_run_is_not_read(home: Home) -> None:
    home.put("kern.log", kernel_line(NOW, "kernel: Out of memory: Killed process 4711 (python)").encode())
    with pytest.raises(UsageError):
        home.found()
