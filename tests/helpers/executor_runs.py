"""One change carried out by the executor, and the runs of it."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path
from typing import Any

from envtune.executor.history import RecordedRun, interrupted_runs, recorded_runs
from envtune.executor.processes import running_commands
from envtune.executor.recover import resume_run, undo_run
from envtune.executor.run import apply_plan
from envtune.executor.state import Lock
from helpers.killed_runs import (
    NEW,
    OLD,
    change,
    directories,
    tree,
)


def apply(state: str, *operations: Any, **more: Any) -> dict[str, Any]:
    """Carry out one change; its result, with the name of the run."""
    name, results = apply_plan({"changes": [change("C01", *operations)]}, state, **more)
    return {**results[0], "run": name}


def last(state: str) -> RecordedRun:
    return recorded_runs(state)[-1]


def quiet(state: str) -> None:
    """Wait for a command that the kill left running, also for one between fork and exec, which has the lock open."""
    if os.path.exists(os.path.join(state, "lock")):
        Lock(state, wait=120).release()
    while recorded_runs(state) and running_commands(last(state).directory):
        time.sleep(0.01)


def end(root: Path, state: str, way: str) -> None:
    """Finish or undo what was killed, and compare with the end that has."""
    pending = interrupted_runs(state)
    assert len(pending) <= 1
    for past in pending:
        results = resume_run(state, past.name) if way == "finish" else undo_run(state, past.name)
        good = "done" if way == "finish" and past.in_progress == "apply" else "undone"
        assert {result["status"] for result in results} <= {good}, results
    if not pending and way == "undo" and recorded_runs(state):
        undo_run(state, last(state).name)
    if pending or way == "undo":
        assert tree(root) == (NEW if way == "finish" else OLD)
    assert not [path for path in root.rglob("*.envtune-*") if "state" not in path.parts]
    assert not list(root.rglob(".envtune-*"))
    if way == "undo":
        made = {name for name in directories(root) if not name.startswith("state")}
        assert made == {"etc", "site", "site/pkg"}
        assert stat.S_IMODE((root / "etc/replaced").stat().st_mode) == 0o640
        assert (root / "etc/replaced").stat().st_mtime_ns == 10**18
    assert interrupted_runs(state) == []
    Lock(state).release()
    if way == "undo":  # what never began is removed by the next run
        assert not [path for path in Path(state).rglob("reserve") if (path.parent / "journal.jsonl").stat().st_size]
