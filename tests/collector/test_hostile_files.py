"""Files that a stranger put where the collector looks: it answers soon, whatever they are."""

from __future__ import annotations

import io
import os
import resource
import socket
import subprocess
import sys
import zipfile
from functools import lru_cache
from pathlib import Path
from typing import Any, Callable

import pytest

from envtune.collector.files import list_names, read_bytes, read_head
from envtune.collector.machine import Machine
from envtune.collector.recorder import Recorder
from envtune.collector.snapshot import take
from envtune.collector.wheels import wheel_record, wheel_top_level

WHEEL = "usr/local/Ascend/ascend-toolkit/8.0/lib64/te-0.4.0-py3-none-any.whl"
MEMORY = 250 << 20
BOMB = 300 << 20  # bytes when unpacked


def fifo(path: Path) -> None:
    os.mkfifo(path)


def unix_socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # the name of a socket may have 107 bytes
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path.name)
    finally:
        os.chdir(here)


def circle(path: Path) -> None:
    path.symlink_to(path.name)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def sparse(path: Path) -> None:
    """4 KB on the disk: a directory of the archive that claims 4 GB, in a file that is as long."""
    with open(path, "wb") as file:
        size = 0xFFF00000
        file.truncate(size)
        file.seek(size)
        file.write(b"PK\5\6" + bytes(4) + b"\1\0\1\0" + size.to_bytes(4, "little") + bytes(4) + bytes(2))


@lru_cache
def bomb(compression: int) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", compression) as archive, archive.open("te-1.dist-info/RECORD", "w") as member:
        for _ in range(BOMB >> 20):
            member.write(bytes(1 << 20))
    return packed.getvalue()


def lying(path: Path) -> None:
    """A RECORD that says it has ten bytes and unpacks to 300 MB."""
    path.write_bytes(bomb(zipfile.ZIP_DEFLATED).replace(BOMB.to_bytes(4, "little"), (10).to_bytes(4, "little")))


def packed_otherwise(path: Path) -> None:
    path.write_bytes(bomb(zipfile.ZIP_BZIP2))


def long_field(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("te-1.dist-info/RECORD", '"' + "a" * 300_000 + '",sha256=x,1\n')


HOSTILE = (
    *(fifo, sparse, circle),
    *(
        pytest.param(kind, marks=pytest.mark.slow)
        for kind in (unix_socket, device, lying, packed_otherwise, long_field)
    ),
)
PLACES = (
    WHEEL,
    "usr/local/Ascend/driver/version.info",
    "usr/local/Ascend/ascend-toolkit/8.0/version.cfg",
    "usr/local/Ascend/ascend-toolkit/8.0/lib64/libhccl.so",
    "etc/Ascend/ascend_cann_install.info",
    "etc/os-release",
    "etc/ld.so.conf",
    "var/lib/dpkg/status",
)


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda hostile: hostile.__name__)
def test_a_recording_ends_whatever_is_in_a_place(hostile: Callable[[Path], None], tmp_path: Path) -> None:
    for place in PLACES:
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        hostile(path)
    code = "import sys\nfrom envtune.collector.snapshot import take\nfrom envtune.collector.machine import Machine\n"
    code += "assert take({}, Machine(sys.argv[1]), {})['files']"

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (10, 10))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], preexec_fn=limited, timeout=60, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kind", [fifo, unix_socket, circle, device], ids=lambda kind: kind.__name__)
def test_only_regular_files_are_read(kind: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "thing"
    kind(path)
    for read in (read_bytes, read_head, wheel_record):
        with pytest.raises(OSError):
            read(str(path))


@pytest.mark.parametrize("size", range(0, 200, 7))
def test_what_is_no_wheel_is_an_error_of_the_file(size: int, tmp_path: Path) -> None:
    whole = tmp_path / "te-1-py3-none-any.whl"
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("te/__init__.py", "")
        archive.writestr("te-1.dist-info/RECORD", "te/__init__.py,sha256=x,0\n")
    data = whole.read_bytes()
    for broken in (data[:size], data[: -size or None], data[:size] + b"\xff" * 8 + data[size + 8 :]):
        for read in (wheel_record, lambda file: wheel_top_level(file.read())):
            try:
                read(io.BytesIO(broken))
            except OSError:
                continue


def test_a_huge_directory_is_named_and_not_taken_for_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envtune.collector.glob.MATCH_LIMIT", 50)
    folder = tmp_path / "etc/Ascend"
    folder.mkdir(parents=True)
    for number in range(51):
        (folder / f"{number}").touch()
    recorded = take({}, Machine(str(tmp_path)), {})
    assert "/etc/Ascend/*" not in recorded["covered"], "what is not said is unknown, not absent"
    assert "/etc/os-release" in recorded["covered"]


def test_a_directory_has_a_largest_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envtune.collector.files.NAMES_LIMIT", 3)
    for name in "abcd":
        (tmp_path / name).touch()
    with pytest.raises(OSError, match="more than 3 names"):
        list_names(str(tmp_path))


def test_a_full_recording_says_nothing_about_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envtune.collector.recorder.ROOM", 5_000)
    (tmp_path / "big").write_text("x" * 6_000)
    recorder: Any = Recorder(Machine(str(tmp_path)), {}, {})
    with pytest.raises(OSError, match="full"):
        recorder.read_bytes("/big")
    assert "size" in recorder.files["/big"]
    assert recorder.glob("/b*") == []
    assert recorder.covered == []


def test_the_arguments_of_a_process_are_bounded() -> None:
    program = "print(flush=True); input()"
    child = subprocess.Popen(
        [sys.executable, "-c", program, *["a" * 100_000] * 10], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    child.stdout.readline()  # the kernel shows no arguments of a process that has only just been started
    try:
        row = next(row for row in Machine().processes() if row["pid"] == child.pid)
        assert row["argv"][1:3] == ["-c", program]
        assert sum(map(len, row["argv"])) < 16_384
    finally:
        child.communicate(b"\n")
