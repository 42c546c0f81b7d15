"""Inputs that are no ordinary log: pipes nobody writes to, devices, gzip bombs; and times that are none."""

from __future__ import annotations

import gzip
import os
import threading
from pathlib import Path

import pytest

from envtune.diagnose import diagnose
from envtune.diagnose.logs.blocks import RATIO, UNPACKED
from envtune.diagnose.pipeline import time_window
from envtune.errors import UsageError

ERROR = b"EI0006: Getting socket times out.\n"


def reasons(path: Path) -> list[str]:
    return [reason for _, reason in diagnose([str(path)], check=False).unreadable]


def test_a_pipe_without_a_writer_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envtune.host.input.SILENCE", 0.1)
    os.mkfifo(tmp_path / "train.log")
    assert "nothing was written" in reasons(tmp_path / "train.log")[0]


def test_a_pipe_with_a_writer_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_bytes(ERROR * 50_000))
    writer.start()
    found = diagnose([str(path)], check=False)
    writer.join()
    assert [d.candidate.entry.id for d in found.diagnoses] == ["H105"]
    assert found.lines == 50_000


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/tty", "/dev/null"])
def test_a_device_is_refused(device: str) -> None:
    assert reasons(Path(device))[0] in ("neither a file nor a pipe", "No such device or address")


@pytest.mark.slow
def test_a_gzip_bomb_is_read_up_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "train.log.gz"
    with gzip.open(path, "wb") as file:
        file.write(ERROR)
        for _ in range((UNPACKED >> 20) + 200):
            file.write(b" " * ((1 << 20) - 1) + b"\n")
    found = diagnose([str(path)], check=False)
    assert f"more than {RATIO} times its size" in found.unreadable[0][1]
    assert [d.candidate.entry.id for d in found.diagnoses] == ["H105"]
    assert found.size <= UNPACKED + RATIO * path.stat().st_size


NO_TIMES = (
    *("2024-02-30 10:25", "2024-13-01 10:25", "2024-03-28 25:25", "2024-03-28"),
    *("2024-03-28 10:25+08:00", "2024-03-28T10:25:48Z", "2024-03-28 10:25 CST", "x 2024-03-28 10:25"),
)


@pytest.mark.parametrize("word", NO_TIMES)
def test_what_is_no_time_of_a_log_is_refused(word: str) -> None:
    with pytest.raises(UsageError):
        time_window(word, None)


@pytest.mark.parametrize(
    "word", ["2024-02-29 10:25", "2024-03-28 10:25:48", "2024-03-28T10:25:48.123", "2024-03-28-10:25"]
)
def test_a_time_as_logs_write_it_is_taken(word: str) -> None:
    assert time_window(word, None).since is not None
