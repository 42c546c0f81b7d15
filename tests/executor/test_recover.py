"""Undo: refused where others changed the subject since, never from a damaged original, twice the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.executor_runs import apply, last
from helpers.killed_runs import (
    OLD,
    build,
    tree,
    write,
)

from envtune.executor.files import digest
from envtune.executor.problems import RefusedError
from envtune.executor.recover import resume_run, undo_run
from envtune.executor.run import apply_plan
from envtune.executor.state import ensure_state_directory


def test_undo_refuses_what_somebody_changed_and_keeps_a_copy_when_forced(tmp_path: Path, state: str) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    run = apply(state, write(path, b"old", b"new"))["run"]
    path.write_text("theirs")
    (refused,) = undo_run(state, run)
    assert refused["status"] == "refused" and refused["foreign"] == digest(b"theirs")
    assert path.read_text() == "theirs" and last(state).status == "partly-undone"
    (forced,) = undo_run(state, run, force=True)
    assert forced["status"] == "undone" and path.read_text() == "old"
    assert Path(forced["copy"]).read_text() == "theirs"
    assert undo_run(state, run) == []


def test_undo_refuses_to_bring_back_what_somebody_removed(tmp_path: Path, state: str) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    run = apply(state, write(path, b"old", b"new"))["run"]
    path.unlink()
    assert undo_run(state, run)[0]["status"] == "refused" and not path.exists()
    assert undo_run(state, run, force=True)[0]["status"] == "undone" and path.read_text() == "old"


def test_a_damaged_original_is_never_put_back(tmp_path: Path, state: str) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    run = apply(state, write(path, b"old", b"new"))["run"]
    (Path(state) / "runs" / run / "0001.orig").write_text("rotten")
    (result,) = undo_run(state, run)
    assert result["status"] == "failed" and "damaged" in result["error"] and path.read_text() == "new"


@pytest.mark.parametrize("name", ["../x", "20250101-000000/..", "", "20250101-000000"])
def test_only_runs_are_undone(state: str, name: str) -> None:
    ensure_state_directory(state)
    with pytest.raises(RefusedError):
        undo_run(state, name)


def test_undo_and_resume_can_be_called_twice(tmp_path: Path, no_sync: None) -> None:
    plan, state = build(tmp_path), str(tmp_path / "state")
    name, _ = apply_plan(plan, state)
    with pytest.raises(RefusedError, match="was not interrupted"):
        resume_run(state, name)
    undo_run(state, name)
    assert undo_run(state, name) == [] and tree(tmp_path) == OLD
