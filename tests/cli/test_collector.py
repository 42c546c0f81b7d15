"""`envtune collector`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.assembled import assembled
from helpers.program import FULL, completed, program
from helpers.rows import sampled

from envtune.snapshot.open import open_snapshot


def envtune(*arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "envtune", *arguments]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.slow
def test_it_prints_a_program_that_records(tmp_path: Path) -> None:
    done = envtune("collector")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == assembled("collector")
    argv = [sys.executable, "-", "-o", str(tmp_path / "host.tgz")]
    subprocess.run(argv, input=done.stdout, text=True, check=True, timeout=60)
    assert open_snapshot(tmp_path / "host.tgz").name == os.uname().nodename


@pytest.mark.parametrize(("lang", "words"), sampled([("en", "not written"), ("zh", "写入失败")], 2))
def test_it_says_why_it_cannot_print(lang: str, words: str) -> None:
    ended = program("collector", "--lang", lang, stdout=FULL)
    assert ended.status == 2
    assert words in ended.err.decode("utf-8") and b"Traceback" not in ended.err


def test_the_help_shows_how_it_is_used() -> None:
    done = completed("collector", "--help")
    assert done.returncode == 0
    assert "envtune collector | ssh HOST python3 -I - > host.tar.gz" in done.stdout
