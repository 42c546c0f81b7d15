"""Needs of the C and C++ runtime, read from real ELF files, from damaged ones, and compared with objdump's words."""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.examples import example_context

from envtune.audit import examine
from envtune.catalog import load
from envtune.collector.machine import Machine
from envtune.collector.python.elf import READS, file_versions, runtime_versions
from envtune.errors import Missing, Unreadable
from envtune.host import LocalHost
from envtune.model import Outcome


def libc() -> Path:
    for line in Path("/proc/self/maps").read_text().splitlines():
        if re.search(r"/libc(-2\.\d+)?\.so(\.6)?$", line):
            return Path(line.split()[-1])
    pytest.skip("this Python has no libc of its own")


def test_the_libc_of_this_process_provides_its_own_version() -> None:
    words = LocalHost().runtime_versions(str(libc()))
    version = os.confstr("CS_GNU_LIBC_VERSION")
    assert version is not None
    # distributions give their own symbols the version of the release or of the one before
    (provided,) = re.findall(r"provides:GLIBC_(2\.\d+)", words)
    assert tuple(map(int, provided.split("."))) <= tuple(map(int, version.split()[1].split(".")[:2]))
    assert Machine().runtime_versions(str(libc())) == words


@pytest.mark.compiler
def test_needs_are_what_objdump_prints() -> None:
    if shutil.which("objdump") is None:
        pytest.skip("no objdump")
    path = os.path.realpath(sys.executable)
    done = subprocess.run(["objdump", "-p", path], capture_output=True, text=True, check=True)
    wanted = {tuple(map(int, number.split("."))) for number in re.findall(r"\bGLIBC_(\d+(?:\.\d+)+)", done.stdout)}
    (found,) = re.findall(r"needs:GLIBC_([\d.]+)", LocalHost().runtime_versions(path))
    assert tuple(map(int, found.split("."))) == max(wanted)


def test_what_is_no_library(tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("GROUP ( libc.so.6 )\n")
    (tmp_path / "old.so").write_bytes(b"\x7fELF\x01\x01" + bytes(80))
    for name in ("text.so", "old.so"):
        with pytest.raises(Unreadable):
            LocalHost().runtime_versions(str(tmp_path / name))
    with pytest.raises(Missing):
        LocalHost().runtime_versions(str(tmp_path / "missing.so"))


def test_a_damaged_library_is_an_error_or_a_word_and_ends() -> None:
    data = libc().read_bytes()
    chance = random.Random(19)
    for _ in range(60):
        broken = bytearray(data[: chance.choice((40, 64, 900, 5000, len(data)))])
        for _ in range(chance.randrange(1, 40)):
            place = chance.randrange(min(len(broken), 2000))
            broken[place] = chance.randrange(256)
        count = 0

        def read_at(offset: int, size: int, content: bytes = bytes(broken)) -> bytes:
            nonlocal count
            count += 1
            return content[offset : offset + size]

        with contextlib.suppress(OSError):
            assert isinstance(runtime_versions(read_at), str)
        assert count <= READS


def test_a_circle_of_versions_ends(tmp_path: Path) -> None:
    """An entry of .gnu.version_r that names itself as the next one."""
    header = b"\x7fELF\x02\x01" + bytes(26) + struct.pack("<Q", 64) + bytes(14) + struct.pack("<HH", 56, 2) + bytes(6)
    load_row = struct.pack("<IIQQQQQQ", 1, 0, 0, 0, 0, 4096, 4096, 0)
    dynamic = struct.pack("<IIQQQQQQ", 2, 0, 512, 512, 512, 64, 64, 0)
    rows = struct.pack("<QQQQQQ", 5, 1024, 0x6FFFFFFE, 2048, 0, 0)
    need = struct.pack("<HHIII", 1, 65535, 0, 16, 16) + struct.pack("<IHHII", 0, 0, 0, 1, 16) * 60
    data = bytearray(4096)
    data[: len(header)] = header
    data[64:176] = load_row + dynamic
    data[512 : 512 + len(rows)] = rows
    data[1024:1035] = b"\0GLIBC_2.9\0"
    data[2048 : 2048 + len(need)] = need
    path = tmp_path / "circle.so"
    path.write_bytes(bytes(data))
    with contextlib.suppress(OSError):
        file_versions(os.open(path, os.O_RDONLY))


@pytest.mark.parametrize(("conda", "outcome"), [("GLIBCXX_3.4.30", Outcome.UNKNOWN), ("GLIBCXX_3.4.20", Outcome.FAIL)])
def test_with_conda_either_libstdcxx_may_be_loaded(conda: str, outcome: Outcome) -> None:
    site = "/opt/conda/lib/python3.9/site-packages"
    context = example_context(
        {
            "like": "bare",
            "environ": {"PATH": "/opt/conda/bin:/usr/bin"},
            "files": {
                "/opt/conda/bin/python3.9": {"size": 1, "mode": "0755"},
                "/opt/conda/bin/python3": {"link": "python3.9"},
                "/opt/conda/lib/python3.9/os.py": "",
                "/opt/conda/conda-meta/history": "",
                f"{site}/torch-2.1.0.dist-info/METADATA": "Name: torch\nVersion: 2.1.0\n",
                f"{site}/torch/lib/libtorch_cpu.so": {"size": 9, "runtime_versions": "needs:GLIBCXX_3.4.26"},
                "/opt/conda/lib/libstdc++.so.6": {"size": 9, "runtime_versions": f"provides:{conda}"},
                "/usr/lib64/libstdc++.so.6": {"size": 9, "runtime_versions": "provides:GLIBCXX_3.4.19"},
            },
        }
    )
    (check,) = [check for check in load().checks if check.id == "PY110"]
    assert [finding.outcome for finding in examine(check, context)] == [outcome]
