"""What the folder of a run tells of its hosts, and whether a controller has it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envtune.executor.fleet.requests import framed_answer
from envtune.fleet.fix.folder import RunFolder


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    made = RunFolder(tmp_path / "fleet.db", "fleet-20260102-030405")
    made.make()
    return made


def test_it_is_in_use_until_it_is_released(folder: RunFolder, tmp_path: Path) -> None:
    other = RunFolder(tmp_path / "fleet.db", "fleet-20260102-030405")
    assert other.in_use
    folder.release()
    assert not other.in_use
    assert not RunFolder(tmp_path / "fleet.db", "fleet-none").in_use
    assert folder.path.stat().st_mode & 0o777 == 0o700


CHANGED = framed_answer({"state": "changed", "runs": ["20260102-030406"], "results": []})
REFUSED = framed_answer({"state": "refused", "runs": [], "error": "the lock is \x1b[31mheld"})


@pytest.mark.parametrize(
    ("output", "errors", "status", "state", "detail"),
    [
        (f"banner\n{CHANGED}bye", "", 0, "changed", ""),
        (REFUSED, "", 0, "refused", "the lock is \\x1b[31mheld"),
        ("", "ssh: connect to host h port 22: Connection refused", 255, "unreachable", "Connection refused"),
        ("", "Host key verification failed.", 255, "unreachable", "Host key"),
        ("", "sudo: a password is required", 1, "unreachable", "a password is required"),
        ("", "sh: 1: timeout: not found", 127, "unreachable", "not found"),
        ("", "Connection to h closed by remote host.", 255, "begun", "closed by remote host"),
        (CHANGED[:-20], "", 0, "begun", ""),
        ("", "", 124, "begun", ""),
    ],
)
def test_a_host_by_what_it_printed(
    folder: RunFolder, output: str, errors: str, status: int, state: str, detail: str
) -> None:
    folder.write("begun/h", b"")
    folder.write("output/h", json.dumps([output, errors, status]).encode())
    answer = folder.answer("h")
    assert answer.state == state and detail in answer.detail


def test_a_host_that_said_nothing(folder: RunFolder) -> None:
    assert folder.answer("h").state == "planned"
    folder.write("begun/h", b"")
    assert folder.answer("h").state == "begun"
    folder.clear()
    assert folder.answer("h").state == "planned"
