"""docs/snapshot.md is what people assemble hosts from: its example runs and shows what the page says it shows."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.examples import ROOT

from envtune.snapshot.open import LIMITS, TABLES, open_snapshot
from envtune.snapshot.schema import COMMAND, ENTRY, SNAPSHOT

PAGE = (ROOT / "docs" / "snapshot.md").read_text("utf-8")


def block(kind: str, after: str) -> str:
    found = re.search(rf"```{kind}\n(.*?)```", PAGE[PAGE.index(after) :], re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("example")
    program = folder / "bin"
    program.mkdir()
    (program / "envtune").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m envtune "$@"\n')
    (program / "envtune").chmod(0o755)
    environ = {**os.environ, "PATH": f"{program}:{os.environ['PATH']}", "COLUMNS": "100"}
    argv = ["sh", "-c", block("sh", "<!-- worked example")]
    done = subprocess.run(argv, cwd=folder, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.stderr == ""
    return folder, done.stdout


@pytest.mark.slow
def test_the_example_reports_what_the_page_shows(output: tuple[Path, str]) -> None:
    shown = block("text", "Among what it reports").splitlines()
    assert len(shown) == 3
    for line in shown:
        assert line in output[1], line
    assert "2 x 910B, driver 25.0.rc1.1, firmware 7.7.0.1.231" in output[1]
    assert "8.2.RC1" in output[1]


def test_the_example_packed_is_the_same_host(output: tuple[Path, str]) -> None:
    folder = output[0]
    subprocess.run(["tar", "czf", "train01.tar.gz", "host"], cwd=folder, check=True, timeout=60)
    packed, plain = open_snapshot(folder / "train01.tar.gz"), open_snapshot(folder / "host")
    assert packed.data == plain.data


def test_every_json_on_the_page_is_json() -> None:
    for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL):
        json.loads(text)


def test_every_key_is_on_the_page() -> None:
    for name in [*ENTRY.by_name, *COMMAND.by_name, *TABLES, *SNAPSHOT.by_name]:
        assert re.search(rf"\b{name}\b", PAGE), name
    assert f"{LIMITS.member >> 20} MiB" in PAGE and f"{LIMITS.total >> 20} MiB" in PAGE
    assert f"{LIMITS.members:,} members" in PAGE and f"{LIMITS.depth} directories" in PAGE
