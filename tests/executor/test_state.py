"""The state directory is private, and one run at a time holds its lock."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from helpers.executor_runs import apply, last
from helpers.killed_runs import (
    forked,
    write,
)

from envtune.executor.history import interrupted_runs, recorded_runs
from envtune.executor.problems import LockedError, RefusedError
from envtune.executor.recover import preview_undo
from envtune.executor.state import Lock, ensure_state_directory, lock_holder

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def test_the_state_is_private(tmp_path: Path, state: str) -> None:
    apply(state, write(tmp_path / "a", None, b"x"))
    for path in (Path(state), *Path(state).rglob("*")):
        assert not path.stat().st_mode & 0o077, path


def test_a_state_that_others_can_write_is_refused(tmp_path: Path, state: str) -> None:
    os.mkdir(state)
    os.chmod(state, 0o777)
    with pytest.raises(RefusedError, match="can be written by users other than root"):
        apply(state, write(tmp_path / "a", None, b"x"))
    os.rmdir(state)
    os.symlink(tmp_path, state)
    with pytest.raises(RefusedError, match="not a directory"):
        apply(state, write(tmp_path / "a", None, b"x"))
    assert not (tmp_path / "a").exists()


@root_only
def test_roots_state_is_not_below_a_directory_of_somebody_else(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 12345, 12345)
    with pytest.raises(RefusedError, match="users other than root"):
        apply(str(tmp_path / "theirs/state"), write(tmp_path / "a", None, b"x"))
    (tmp_path / "mine").mkdir()
    os.chown(tmp_path / "mine", 12345, 12345)
    with pytest.raises(RefusedError, match="belongs to user 12345"):
        apply(str(tmp_path / "mine"), write(tmp_path / "a", None, b"x"))


@root_only
def test_a_look_at_what_undo_would_do_runs_nothing_of_a_strangers_journal(tmp_path: Path, state: str) -> None:
    mark, done = tmp_path / "ran", tmp_path / "done"
    check = {"argv": ["sh", "-c", f"touch {mark}; test -e {done}"]}
    apply(state, {"op": "run", "argv": ["touch", str(done)], "check": check})
    run = last(state)
    mark.unlink()
    os.chown(state, 12345, 12345)
    with pytest.raises(RefusedError, match="belongs to user 12345"):
        preview_undo(run)
    assert not mark.exists()
    os.chown(state, 0, 0)
    assert [row["status"] for row in preview_undo(run)] == ["ready"] and mark.exists()


def test_the_second_run_hears_who_holds_the_lock_or_waits(tmp_path: Path, state: str) -> None:
    lock = Lock(state)
    lock.describe("20250101-000000")
    with pytest.raises(LockedError, match=f"pid {os.getpid()}, since .*, run 20250101-000000"):
        apply(state, write(tmp_path / "a", None, b"x"))
    assert (lock_holder(state) or {})["pid"] == str(os.getpid())

    def second() -> None:
        lock.release()  # the copy of the descriptor that the fork made
        apply(state, write(tmp_path / "a", None, b"x"), wait=120)

    pid = forked(second)
    time.sleep(0.3)
    assert not (tmp_path / "a").exists()
    lock.release()
    assert os.waitpid(pid, 0)[1] == 0 and (tmp_path / "a").exists()
    assert lock_holder(state) is None


def test_a_run_under_way_is_not_interrupted(tmp_path: Path, state: str) -> None:
    waiting = ["sh", "-c", f"until test -e {tmp_path}/go; do sleep 0.02; done"]
    operation = {"op": "run", "argv": waiting, "check": {"argv": ["false"]}}
    pid = forked(lambda: apply(state, operation))
    for _ in range(12_000):
        if recorded_runs(state) and last(state).steps:
            break
        time.sleep(0.01)
    assert last(state).in_progress == "apply" and interrupted_runs(state) == []
    (tmp_path / "go").touch()
    os.waitpid(pid, 0)


def test_the_parents_that_were_made_are_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut right after the first run: each new directory has been flushed, and the one that names it."""
    flushed, flush = set(), os.fsync

    def record(descriptor: int) -> None:
        flushed.add(os.path.realpath(f"/proc/self/fd/{descriptor}"))
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", record)
    ensure_state_directory(str(tmp_path / "var/lib/envtune"))
    made = [tmp_path, *(tmp_path / name for name in ("var", "var/lib", "var/lib/envtune"))]
    assert {str(path) for path in made} <= flushed


@pytest.mark.root
@root_only
def test_nothing_is_made_where_root_keeps_no_state(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 12345, 12345)
    with pytest.raises(RefusedError, match="users other than root"):
        ensure_state_directory(str(tmp_path / "theirs/new/state"))
    assert not list((tmp_path / "theirs").iterdir())
