"""Runs: nobody listening, Ctrl-C, a journal that breaks."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from helpers.executor_runs import apply, last
from helpers.killed_runs import change, killed_at, write

from envtune.executor.history import interrupted_runs, recorded_runs
from envtune.executor.problems import JournalError
from envtune.executor.recover import undo_run
from envtune.executor.run import apply_plan


def test_nobody_listening_is_no_reason_to_stop(tmp_path: Path, state: str) -> None:
    def gone(kind: str, record: Any) -> None:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    assert apply(state, write(tmp_path / "a", None, b"x"), on_event=gone)["status"] == "done"


def test_ctrl_c_takes_the_change_in_hand_back_and_begins_no_other(tmp_path: Path, state: str) -> None:
    first, third = change("C01", write(tmp_path / "a", None, b"x")), change("C03", write(tmp_path / "c", None, b"x"))
    script = ["/bin/sh", "-c", f"kill -INT {os.getpid()}; sleep 5"]
    second = change(
        "C02", write(tmp_path / "b", None, b"x"), {"op": "run", "argv": script, "check": {"argv": ["false"]}}
    )
    _, results = apply_plan({"changes": [first, second, third]}, state)
    assert [result["status"] for result in results] == ["done", "stopped", "stopped"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "state"]
    assert last(state).status == "partly" and not interrupted_runs(state)


def test_a_journal_directory_that_is_missing_is_made_again(tmp_path: Path, state: str) -> None:
    apply(state, write(tmp_path / "a", None, b"x"))
    shutil.rmtree(state)
    assert recorded_runs(state) == [] and interrupted_runs(state) == []
    assert apply(state, write(tmp_path / "b", None, b"x"))["status"] == "done"


def test_a_journal_that_breaks_stops_the_run_where_it_is(
    tmp_path: Path, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, path = os.write, tmp_path / "a"

    def full(descriptor: int, data: bytes) -> int:
        if b'"type": "done"' in data:
            raise OSError(errno.EIO, "Input/output error")
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(JournalError, match="Input/output error"):
        apply(state, write(path, None, b"x"), write(tmp_path / "b", None, b"x"))
    monkeypatch.undo()
    (past,) = interrupted_runs(state)
    assert not (tmp_path / "b").exists()
    assert undo_run(state, past.name)[0]["status"] == "undone" and not path.exists()


def test_a_run_that_was_killed_before_it_began_is_removed_by_the_next(tmp_path: Path, state: str) -> None:
    path = tmp_path / "file"
    killed_at(0, lambda: apply(state, write(path, None, b"new")), only="before-journal:begin")
    (left,) = (Path(state) / "runs").iterdir()
    assert (left / "journal.jsonl").stat().st_size == 0 and not path.exists()
    apply(state, write(path, None, b"new"))
    (run,) = (Path(state) / "runs").iterdir()
    assert (run / "journal.jsonl").stat().st_size > 0 and path.read_bytes() == b"new"


def test_an_original_that_was_saved_is_never_removed(tmp_path: Path, state: str) -> None:
    left = Path(state) / "runs/20260101-000000"
    (left / "originals").mkdir(parents=True)
    (left / "journal.jsonl").touch()
    apply(state, write(tmp_path / "file", None, b"new"))
    assert (left / "originals").is_dir()
