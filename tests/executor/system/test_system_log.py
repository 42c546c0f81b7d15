"""A line in the host's log for every change, without values and on one line."""

from __future__ import annotations

import shutil
import subprocess
import sys
import syslog
from pathlib import Path

import pytest
from helpers.examples import ROOT
from helpers.killed_runs import change, write

from envtune.executor.recover import undo_run
from envtune.executor.run import apply_plan


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    seen: list[str] = []
    monkeypatch.setattr(syslog, "syslog", lambda priority, text: seen.append(text))
    return seen


def test_a_line_for_every_change_and_for_taking_it_back(
    tmp_path: Path, state: str, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUDO_USER", "alice\nforged: line")
    path = tmp_path / "token"
    path.write_text("old")
    row = {**change("C01", write(path, b"old", b"S3CRET-VALUE")), "target": f"{path}\nNov 22 forged", "action": "a.b"}
    failing = change("C02", write(tmp_path / "other", b"not there", b"x"))
    name, _ = apply_plan({"changes": [row, failing]}, state)
    undo_run(state, name)
    assert len(lines) == 3 and all("\n" not in line and "S3CRET" not in line for line in lines)
    assert lines[0].startswith(f"run {name}: C01  a.b {path}?Nov 22 forged: done (") and "uid=" in lines[0]
    assert "sudo_user=alice?forged" in lines[0]
    assert lines[1].startswith(f"run {name}: C02") and ": refused (" in lines[1]
    assert ": undone (" in lines[2]


def test_a_log_that_fails_is_no_reason_to_fail(tmp_path: Path, state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise OSError(111, "Connection refused")

    monkeypatch.setattr(syslog, "syslog", fail)
    _, results = apply_plan({"changes": [change("C01", write(tmp_path / "a", None, b"x"))]}, state)
    assert results[0]["status"] == "done"


PROGRAM = """
import os, socket, sys
sys.path[:0] = [{root!r}, {root!r} + "/tests"]
from helpers.executor_runs import apply
from helpers.killed_runs import write
log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
log.bind("/dev/log")
assert apply({state!r}, write({path!r}, None, b"x"))["status"] == "done"
print(log.recv(4096).decode())
"""


@pytest.mark.root
def test_a_real_log(tmp_path: Path, state: str) -> None:
    """In a mount namespace with a /dev of its own."""
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed")
    program = PROGRAM.format(root=str(ROOT), state=state, path=str(tmp_path / "a"))
    script = 'mount -t tmpfs none /dev && mknod /dev/null c 1 3 && mknod /dev/urandom c 1 9 && exec "$@"'
    line = ["unshare", "-m", "sh", "-c", script, "sh", sys.executable, "-c", program]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"<{syslog.LOG_AUTHPRIV | syslog.LOG_NOTICE}>") and "C01" in done.stdout
