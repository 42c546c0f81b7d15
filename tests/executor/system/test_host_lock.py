"""One lock for root's runs on a host, which no other user can hold."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from helpers.executor_runs import apply
from helpers.killed_runs import forked, write

from envtune.executor.problems import LockedError
from envtune.executor.system import host_lock
from envtune.executor.system.host_lock import exclusive_run


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    monkeypatch.setenv("ENVTUNE_HOST_LOCK", str(tmp_path / "run/envtune.lock"))
    monkeypatch.setattr(host_lock, "PATIENCE_WITH_OTHERS", 0.0)
    (tmp_path / "run").mkdir(mode=0o755)
    return tmp_path / "run/envtune.lock"


@pytest.mark.root
def test_runs_with_other_state_directories_exclude_each_other(tmp_path: Path, place: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    with exclusive_run(str(tmp_path / "one"), 0.0):
        with pytest.raises(LockedError, match=f"pid {os.getpid()}, state directory {tmp_path}/one"):
            apply(str(tmp_path / "two"), write(path, b"old", b"new"))
        assert path.read_text() == "old" and place.stat().st_mode & 0o777 == 0o600
    assert apply(str(tmp_path / "two"), write(path, b"old", b"new"))["status"] == "done"


@pytest.mark.root
@pytest.mark.parametrize("what", ["link", "fifo", "theirs", "open directory", "nothing"])
def test_nobody_else_can_hold_it_or_have_root_write_elsewhere(tmp_path: Path, place: Path, what: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    if what == "link":
        place.symlink_to(victim)
    elif what == "fifo":
        os.mkfifo(place)
    elif what == "theirs":
        place.write_text("")
        os.chown(place, 65534, 65534)
    elif what == "open directory":
        place.parent.chmod(0o1777)
    else:
        place.parent.rmdir()
    with exclusive_run(str(tmp_path / "one"), 0.0):
        assert victim.read_text() == "precious" and not (place.is_file() and place.stat().st_size and what != "link")


@pytest.mark.root
def test_another_user_cannot_open_it(tmp_path: Path, place: Path) -> None:
    with exclusive_run(str(tmp_path / "one"), 0.0):
        pass

    def as_nobody() -> None:
        os.setuid(65534)
        os.open(place, os.O_RDONLY)

    for folder in [tmp_path, *tmp_path.parents]:
        if folder.name.startswith("pytest-"):
            folder.chmod(0o755)
    _, status = os.waitpid(forked(as_nobody), 0)
    assert os.WEXITSTATUS(status) == 3
