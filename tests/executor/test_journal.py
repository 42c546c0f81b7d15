"""The journal: torn lines, damage in the middle, other versions."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from helpers.executor_runs import apply, end, last
from helpers.killed_runs import (
    build,
    killed_at,
    write,
)

from envtune.executor.journal import encode_record
from envtune.executor.problems import RefusedError
from envtune.executor.recover import undo_run
from envtune.executor.run import apply_plan


def test_a_torn_last_line_is_no_damage(tmp_path: Path, no_sync: None) -> None:
    for cut in (1, 5, 40):
        root = tmp_path / str(cut)
        plan, state = build(root), str(root / "state")
        work = lambda plan=plan, state=state: apply_plan(plan, state)  # type: ignore[misc]  # noqa: E731
        killed_at(9, work, "journal-written")  # before the line is safe on disk, so before anything rests on it
        journal = Path(last(state).path)
        journal.write_bytes(journal.read_bytes()[:-cut])
        assert last(state).damaged == []
        end(root, state, "undo" if cut == 5 else "finish")
        assert last(state).damaged == []  # also when more was written behind it


def test_damage_in_the_middle_is_reported_and_not_guessed_over(tmp_path: Path, state: str) -> None:
    for name in "ab":
        (tmp_path / name).write_text("old")
    run = apply(state, write(tmp_path / "a", b"old", b"new"), write(tmp_path / "b", b"old", b"new"))["run"]
    journal = Path(last(state).path)
    lines = journal.read_bytes().splitlines(keepends=True)
    number = next(n for n, line in enumerate(lines) if b'"type": "intent"' in line)
    lines[number] = lines[number].replace(b"C01", b"C77")
    journal.write_bytes(b"".join(lines))
    assert last(state).damaged == [number + 1]
    results = undo_run(state, run)
    assert (tmp_path / "b").read_text() == "old" and (tmp_path / "a").read_text() == "new"
    told = [result["error"] for result in results if result["status"] == "failed"]
    assert len(told) == 2 and "damaged" in told[0] and f"[{number + 1}]" in told[1]


def test_a_journal_of_another_version_is_not_interpreted(tmp_path: Path, state: str) -> None:
    run = apply(state, write(tmp_path / "a", None, b"x"))["run"]
    path = Path(last(state).path)
    path.write_bytes(encode_record({"type": "begin", "schema": "envtune.journal/9", "plan": {"changes": []}}))
    with pytest.raises(RefusedError, match="another version"):
        undo_run(state, run)


def test_undo_needs_no_more_room_than_its_run_has_set_aside(
    tmp_path: Path, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk of the journals fills after the run: nothing more can be reserved on it."""
    path = tmp_path / "a"
    path.write_text("old")
    run = apply(state, write(path, b"old", b"new"))["run"]

    def full(descriptor: int, offset: int, size: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    assert undo_run(state, run)[0]["status"] == "undone" and path.read_text() == "old"
    assert last(state).status == "undone"
