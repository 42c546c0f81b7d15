"""Signals: one process by its identity, never envtune itself."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import Any

from helpers.executor_runs import apply

from envtune.executor.processes import process_identity
from envtune.executor.recover import undo_run


def sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "60"])


def signal_operation(pid: int, **more: Any) -> dict[str, Any]:
    row = process_identity(pid)
    assert row is not None
    return {"op": "signal", "pid": pid, "started": row[0], "uid": row[1], "grace": 2, **more}


def test_a_process_is_ended_by_its_number_and_cannot_come_back(state: str) -> None:
    child = sleeper()
    run = apply(state, signal_operation(child.pid))["run"]
    assert child.wait(60) == -signal.SIGTERM
    (result,) = undo_run(state, run)
    assert result["status"] == "refused" and "cannot be restored" in result["error"]


def test_another_process_under_the_number_is_not_touched(state: str) -> None:
    child = sleeper()
    try:
        operation = signal_operation(child.pid)
        operation["started"] -= 1
        assert apply(state, operation)["status"] == "done"  # the one that was meant is gone
        operation = signal_operation(child.pid)
        operation["uid"] += 1
        assert apply(state, operation)["status"] == "refused"
        assert child.poll() is None
    finally:
        child.kill()
        child.wait()


def test_envtune_does_not_end_itself_nor_what_started_it(state: str) -> None:
    for pid in (os.getpid(), os.getppid()):
        result = apply(state, signal_operation(pid))
        assert result["status"] == "refused" and "envtune itself" in result["error"]
