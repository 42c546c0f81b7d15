"""Full disks, read-only file systems, chattr, missing privilege."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from pathlib import Path
from typing import Iterator

import pytest
from helpers.executor_runs import apply, last
from helpers.killed_runs import (
    OLD,
    build,
    forked,
    tree,
    write,
)

from envtune.executor.history import interrupted_runs
from envtune.executor.recover import undo_run
from envtune.executor.run import apply_plan
from envtune.executor.state import ensure_state_directory

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def mounted(*arguments: str) -> None:
    done = subprocess.run(["mount", *arguments], stderr=subprocess.PIPE, text=True)
    if done.returncode:
        pytest.skip(f"mount: {done.stderr}")


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 512 KiB."""
    place = tmp_path / "small"
    place.mkdir()
    mounted("-t", "tmpfs", "-o", "size=512k,mode=755", "envtune-test", str(place))
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(place: Path, keep: int = 0) -> None:
    with open(place / "ballast", "wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            file.truncate(max(0, file.tell() - keep))


@pytest.mark.root
@root_only
def test_a_full_disk_at_the_target_loses_nothing(small: Path, state: str) -> None:
    path = small / "a"
    path.write_bytes(b"old")
    fill(small)
    result = apply(state, write(path, b"old", b"n" * 200_000))
    assert result["status"] == "failed" and "No space left" in result["error"] and str(path) in result["error"]
    assert path.read_bytes() == b"old" and sorted(p.name for p in small.iterdir()) == ["a", "ballast"]
    assert last(state).status == "failed" and not interrupted_runs(state)


@pytest.mark.root
@root_only
def test_a_full_disk_below_the_journal_changes_nothing(small: Path, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    fill(small)
    with pytest.raises(OSError, match="No space left"):
        apply(str(small / "state"), write(path, b"old", b"new"))
    assert path.read_text() == "old"


@pytest.mark.root
@root_only
@pytest.mark.parametrize("keep", range(24_576, 131_072, 8192))
def test_a_disk_that_fills_up_in_the_middle(small: Path, tmp_path: Path, keep: int) -> None:
    """Originals and intents no longer fit at some point: those changes fail, the journal still comes to its end."""
    plan, state = build(tmp_path / "tree"), str(small / "state")
    ensure_state_directory(state)
    fill(small, keep)
    try:
        _, results = apply_plan(plan, state)
    except OSError as error:
        assert error.errno == errno.ENOSPC
        assert {**tree(tmp_path / "tree"), "marks": b""} == {**OLD, "marks": b""}
        return
    failed = [result for result in results if result["status"] != "done"]
    assert all("No space left" in result["error"] for result in failed) and not interrupted_runs(state)
    (small / "ballast").unlink()
    assert {result["status"] for result in undo_run(state, last(state).name)} <= {"undone"}
    assert tree(tmp_path / "tree") == OLD


@pytest.mark.root
@root_only
def test_a_read_only_root(tmp_path: Path, state: str) -> None:
    place = tmp_path / "ro"
    place.mkdir()
    (place / "a").write_text("old")
    mounted("--bind", str(place), str(place))
    try:
        mounted("-o", "remount,bind,ro", str(place))
        for operation in (
            write(place / "a", b"old", b"new"),
            write(place / "b", None, b"x"),
            write(place / "a", b"old", None),
        ):
            result = apply(state, operation)
            assert result["status"] == "failed" and "Read-only file system" in result["error"]
            assert last(state).end_state("C01") == "failed-restored"  # nothing is left there
            assert {result["status"] for result in undo_run(state, last(state).name)} <= {"undone"}
        assert (place / "a").read_text() == "old" and len(list(place.iterdir())) == 1
        with pytest.raises(OSError, match="Read-only file system"):
            apply(str(place / "state"), write(tmp_path / "c", None, b"x"))
        assert not (tmp_path / "c").exists()
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.root
@root_only
@pytest.mark.parametrize("flag", ["i", "a"])
def test_chattr_is_named_as_the_reason(tmp_path: Path, state: str, flag: str) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    if shutil.which("chattr") is None or subprocess.run(["chattr", f"+{flag}", str(path)]).returncode:
        pytest.skip("no chattr here")
    try:
        for content in (b"new", None):
            result = apply(state, write(path, b"old", content))
            assert result["status"] == "refused" and f"attribute {flag} of chattr" in result["error"]
        assert path.read_text() == "old" and sorted(p.name for p in tmp_path.iterdir()) == ["a", "state"]
    finally:
        subprocess.run(["chattr", f"-{flag}", str(path)], check=True)
    assert apply(state, write(path, b"old", b"new"))["status"] == "done"


@pytest.mark.root
@root_only
def test_without_the_right_nothing_is_touched(tmp_path: Path) -> None:
    """As user 12345, who sees nothing but this directory: a file of root in a directory of root."""
    os.chmod(tmp_path, 0o755)
    (tmp_path / "etc").mkdir()
    path = tmp_path / "etc/a"
    path.write_text("old")
    (tmp_path / "home").mkdir()
    os.chown(tmp_path / "home", 12345, 12345)

    def as_user() -> None:
        os.chroot(tmp_path)
        os.chdir("/")
        os.setgid(12345)
        os.setuid(12345)
        result = apply("/home/state", write(Path("/etc/a"), b"old", b"new"))
        assert result["status"] == "failed" and "Permission denied" in result["error"]

    assert os.waitpid(forked(as_user), 0)[1] == 0
    assert path.read_text() == "old" and len(list((tmp_path / "etc").iterdir())) == 1
