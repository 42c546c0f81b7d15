"""Inputs that are no ordinary log: pipes nobody writes to, devices, gzip bombs; and times that are none."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Callable

import pytest
from helpers.growth import growth, is_linear

from envtune.diagnose import diagnose
from envtune.diagnose.logs.files import LogFile
from envtune.diagnose.logs.lines import parse
from envtune.diagnose.logs.packed import RATIO, UNPACKED
from envtune.diagnose.pipeline import time_window
from envtune.diagnose.scan import FirstError, Scan
from envtune.errors import UsageError
from envtune.report.diagnosis.content import nothing_known

TIMED = "2024-03-28 10:25:48.{:03} ERROR x"
ERROR = b"EI0006: Getting socket times out.\n"


def reasons(path: Path) -> list[str]:
    return [str(reason) for _, reason in diagnose([str(path)], check=False).unreadable]


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
    assert f"more than {RATIO} times its size" in str(found.unreadable[0][1])
    assert [d.candidate.entry.id for d in found.diagnoses] == ["H105"]
    assert found.size <= UNPACKED + RATIO * path.stat().st_size


@pytest.mark.slow
@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_a_compressed_log_is_read_and_what_is_damaged_said(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    (tmp_path / "train.log").write_bytes(pack(b"step\n" * 100_000 + ERROR) + pack(ERROR))
    found = diagnose([str(tmp_path / "train.log")], check=False)
    assert ([d.candidate.entry.id for d in found.diagnoses], found.lines, found.unreadable) == (["H105"], 100_002, ())
    (tmp_path / "train.log").write_bytes(pack(os.urandom(500_000).hex().encode())[:-200])
    assert "cut short; read up to there" in reasons(tmp_path / "train.log")[0]
    (tmp_path / "train.log").write_bytes(pack(ERROR) + b"garbage" * 9)
    assert "damaged" in reasons(tmp_path / "train.log")[0]


def test_what_stands_before_a_wrong_check_sum_is_read(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(ERROR))
    packed[-6] ^= 255
    (tmp_path / "train.log.gz").write_bytes(packed)
    found = diagnose([str(tmp_path / "train.log.gz")], check=False)
    assert [d.candidate.entry.id for d in found.diagnoses] == ["H105"]
    assert "damaged gzip" in str(found.unreadable[0][1])


ARCHIVES = {"zip": b"PK\3\4", "zstd": b"\x28\xb5\x2f\xfd", "lz4": b"\x04\x22\x4d\x18", "7z": b"7z\xbc\xaf\x27\x1c"}


@pytest.mark.parametrize("kind", ARCHIVES)
def test_an_archive_that_is_not_read_is_named(tmp_path: Path, kind: str) -> None:
    (tmp_path / "train.log").write_bytes(ARCHIVES[kind] + os.urandom(500))
    found = diagnose([str(tmp_path / "train.log")], check=False)
    assert str(found.unreadable[0][1]) == f"compressed with {kind}, which envtune does not read: unpack it first"
    assert str(nothing_known(found)) == f"Nothing could be read in {tmp_path / 'train.log'}."


BINARY = {
    "an executable": Path(sys.executable).resolve().read_bytes()[:4096],
    "bytecode": bytes(range(256)) * 8,
    "a picture": b"\x89PNG\r\n\x1a\n" + bytes(range(1, 32)) * 30,
}


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("kind", BINARY)
def test_what_is_no_text_is_said_to_be_none(tmp_path: Path, kind: str, pack: Callable[[bytes], bytes]) -> None:
    (tmp_path / "train.log").write_bytes(pack(BINARY[kind]))
    found = diagnose([str(tmp_path / "train.log")], check=False)
    assert [reason.to("zh") for _, reason in found.unreadable] == ["不是文本文件"]
    assert str(nothing_known(found)) == f"Nothing could be read in {tmp_path / 'train.log'}."


@pytest.mark.parametrize(
    "text",
    [
        b"\0" * 5000 + ERROR,
        b"\x1b[31mred\x1b[0m \x1b[1mbold\x1b[0m\r\n" * 40 + ERROR,
        b"  5%|#   |\x08\x08\x08\x08\x08\x08" * 40 + b"\n" + ERROR,
        "训练开始\n".encode("gb18030") * 100 + ERROR,
        "训练开始\n".encode("utf-16") + ERROR.decode().encode("utf-16-le"),
    ],
    ids=["a hole", "colours", "a progress bar", "GB18030", "UTF-16"],
)
def test_what_terminals_and_holes_leave_is_text(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "train.log").write_bytes(text)
    found = diagnose([str(tmp_path / "train.log")], check=False)
    assert [d.candidate.entry.id for d in found.diagnoses] == ["H105"] and not found.unreadable


@pytest.mark.parametrize(
    ("size", "shown"),
    [(58, "58 B"), (1_500, "1.5 kB"), (99_960, "100 kB"), (999_600, "1.0 MB"), (12_345_678, "12 MB"), (3e9, "3.0 GB")],
)
def test_the_size_of_what_has_no_lines(size: int, shown: str) -> None:
    report = replace(diagnose([os.devnull], check=False), size=int(size))
    assert str(nothing_known(report)) == f"No known error in {os.devnull} ({shown})."


REASONS = {
    "cut": (gzip.compress(ERROR * 99)[:-30], "gzip 文件不完整；只读取到中断处"),
    "damaged": (gzip.compress(ERROR)[:-8] + b"12345678", "gzip 文件已损坏，只读取到损坏处（"),
    "7z": (b"7z\xbc\xaf\x27\x1c", "使用 7z 压缩，envtune 不支持读取：请先解压"),
}


@pytest.mark.parametrize("kind", REASONS)
def test_why_it_could_not_be_read_in_chinese(tmp_path: Path, kind: str) -> None:
    content, said = REASONS[kind]
    (tmp_path / "train.log").write_bytes(content)
    ((_, reason),) = diagnose([str(tmp_path / "train.log")], check=False).unreadable
    assert reason.to("zh").startswith(said)


def test_text_that_begins_like_bzip2_is_text(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_bytes(b"BZh is the name of a job\n" + ERROR)
    assert diagnose([str(tmp_path / "train.log")], check=False).lines == 2


@pytest.mark.parametrize("after", [b"", b"\n" + ERROR + ERROR])
def test_the_hole_of_a_log_that_was_emptied_costs_nothing(tmp_path: Path, after: bytes) -> None:
    """`> train.log` while the job goes on writing where it was."""
    path = tmp_path / "train.log"
    with open(path, "wb") as file:
        file.write(ERROR)
        file.truncate(1 << 40)
        file.seek(0, os.SEEK_END)
        file.write(after)
    found = diagnose([str(path)], check=False)
    (diagnosis,) = found.diagnoses
    assert {hit.line.number for hit in diagnosis.candidate.hits} == ({1, 3, 4} if after else {1})
    assert found.size == path.stat().st_size


def test_the_first_error_of_many_logs_costs_in_proportion() -> None:
    def made(number: int) -> Scan:
        return Scan(errors=[FirstError(LogFile(f"{n}"), parse(1, TIMED.format(n)), (), ()) for n in range(number)])

    assert made(50).first_error == made(1).first_error
    assert is_linear(growth(made, lambda scan: scan.first_error, 1_000))


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
