"""Directories of other users: nobody leads a write of root out of them, by exchanging them or by links."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest
from helpers.exchanges import USER, attacker, everything, exchange
from helpers.executor_runs import apply, last
from helpers.killed_runs import change, forked, killed_at, write

from envtune.executor.common import failpoint_hooks
from envtune.executor.history import interrupted_runs, recorded_runs
from envtune.executor.problems import ExecutorError
from envtune.executor.recover import resume_run, undo_run
from envtune.executor.run import apply_plan

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="needs root")]

EXCHANGES = 50  # runs under attack, for each moment
FILES = {"train.sh": 20_000, "job.env": 20_000, "site-packages/torchvision/functional.py": 20_000}  # bytes


class Host:
    """A home of another user, beside it a directory of root, and a link in the home that points there.

    The same names are in both, so that a write, a rename or a removal that is led astray would hit something.
    """

    def __init__(self, root: Path, script: int = FILES["train.sh"]) -> None:
        self.files = {**FILES, "train.sh": script}
        self.root, self.home, self.protected = root, root / "home", root / "protected"
        self.state = str(root / "state")
        for name, size in self.files.items():
            for folder, data in ((self.home / "job", b"o" * size), (self.protected, b"not his")):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(data)
        (self.home / "link").symlink_to(self.protected)
        for path in (self.home, *self.home.rglob("*")):
            os.lchown(path, USER, USER)
        self.before = everything(self.protected)

    def operation(self, name: str) -> Any:
        return write(self.home / "job" / name, b"o" * self.files[name], b"n" * self.files[name])

    def change(self) -> None:
        apply_plan({"changes": [change(f"C{n}", self.operation(name)) for n, name in enumerate(FILES)]}, self.state)

    def undo(self) -> None:
        for run in recorded_runs(self.state):
            undo_run(self.state, run.name)

    def finish(self) -> None:
        for run in interrupted_runs(self.state):
            resume_run(self.state, run.name)

    def judge(self) -> None:
        assert everything(self.protected) == self.before
        assert {path.name for path in self.root.iterdir()} <= {"home", "protected", "state"}
        assert {path.lstat().st_uid for path in (self.home, *self.home.rglob("*"))} == {USER}
        assert {self.content(name) for name in FILES} <= {"old", "new"}

    def content(self, name: str) -> str:
        data = (self.home / "job" / name).read_bytes()
        return {b"o" * self.files[name]: "old", b"n" * self.files[name]: "new"}.get(data, "neither")

    def begin_again(self) -> None:
        """Undo what the attacker did not let be undone, and forget all runs."""
        if any(run.open_steps() or run.in_progress for run in recorded_runs(self.state)):
            self.undo()
        assert {self.content(name) for name in FILES} == {"old"} and not list(self.home.rglob(".envtune*"))
        shutil.rmtree(self.state, ignore_errors=True)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def attacked(host: Host, work: Callable[[], Any], waits: bool) -> None:
    """Run `work` in a child while the directory is exchanged under it."""

    def run() -> None:
        with contextlib.suppress(ExecutorError, OSError):
            work()

    with attacker(host.home, "job", "link", waits):
        assert os.waitpid(forked(run), 0)[1] == 0
    host.judge()


# The moments: while a change is applied, undone, and finished after a kill at one of the places in between.
MOMENTS: dict[str, Callable[[Host, int], Callable[[], Any]]] = {
    "apply": lambda host, number: host.change,
    "undo": lambda host, number: [host.change(), host.undo][1],
    "finish": lambda host, number: [killed_at(6 + number % 8, host.change), host.finish][1],
}


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_directory_that_is_exchanged_under_a_run(tmp_path: Path, no_sync: None, moment: str) -> None:
    host = Host(tmp_path, script=2_000_000)
    for number in range(EXCHANGES):
        attacked(host, MOMENTS[moment](host, number), waits=number % 5 != 0)
        host.begin_again()


@pytest.mark.parametrize("moment", ["apply", "undo"])
def test_a_directory_that_is_exchanged_at_a_place_of_a_run(host: Host, no_sync: None, moment: str) -> None:
    """Exchanged for good between any two steps; what follows is refused, and works when it is back."""
    home = os.open(host.home, os.O_RDONLY)
    for place in range(100):
        work = MOMENTS[moment](host, 0)
        places = iter(range(place))

        def strike(name: str, places: Iterator[int] = places) -> None:
            if next(places, None) is None and not (host.home / "job").is_symlink():
                exchange(home, "job", "link")

        failpoint_hooks.append(strike)
        with contextlib.suppress(ExecutorError):
            work()
        failpoint_hooks.clear()
        struck = (host.home / "job").is_symlink()
        if struck:
            exchange(home, "job", "link")
        host.judge()
        host.begin_again()
        if not struck:
            break
    os.close(home)
    assert place > 5


def test_what_is_written_in_a_users_directory_is_his(host: Host, no_sync: None) -> None:
    new = host.home / "job/made/here/new.env"
    assert apply(host.state, write(new, None, b"A=1\n"))["status"] == "done"
    host.change()
    assert {path.lstat().st_uid for path in host.home.rglob("*")} == {USER} and os.geteuid() == 0
    assert {host.content(name) for name in FILES} == {"new"}
    host.undo()
    assert {host.content(name) for name in FILES} == {"old"} and not new.parent.parent.exists()


@pytest.mark.parametrize("name", ["job", "job/new.env"])
def test_a_link_put_where_there_was_nothing_when_it_was_planned(host: Host, name: str) -> None:
    """No race is needed for this: the plan is read for a minute, and the link leads to a directory of root."""
    target = host.home / "job/new.env"
    operation = write(target, None, b"A=1\n")
    place = host.home / name
    if place.is_dir():
        shutil.rmtree(place)
    place.symlink_to(host.protected / ("new.env" if place == target else ""))
    os.lchown(place, USER, USER)
    result = apply(host.state, operation)
    assert result["status"] == "refused" and "symbolic link" in result["error"]
    assert everything(host.protected) == host.before


def test_a_directory_put_in_the_place_of_the_one_that_was_written(host: Host, no_sync: None) -> None:
    host.change()
    shutil.copytree(host.home / "job", host.home / "other")
    for path in (host.home / "other", *(host.home / "other").rglob("*")):
        os.chown(path, USER, USER)
    (host.home / "job").rename(host.home / "gone")
    (host.home / "other").rename(host.home / "job")
    before = everything(host.home / "job")
    assert {row["status"] for row in undo_run(host.state, last(host.state).name)} == {"refused"}
    assert everything(host.home / "job") == before


@pytest.mark.parametrize(("mode", "answer"), [(0o600, "Permission denied"), (0o644, "as whom it cannot be replaced")])
def test_a_name_for_a_file_of_root_gives_its_user_nothing(host: Host, mode: int, answer: str) -> None:
    """A hard link in the user's directory: what he may not read is not read for him, what he may not write stays."""
    theirs = host.protected / "secret"
    theirs.write_text("old")
    theirs.chmod(mode)
    os.link(theirs, host.home / "job/secret")
    result = apply(host.state, write(host.home / "job/secret", b"old", b"new"))
    assert result["status"] != "done" and answer in result["error"]
    assert theirs.read_text() == "old" and theirs.stat().st_uid == 0 and os.geteuid() == 0
    assert not last(host.state).open_steps() and not list(host.home.rglob(".envtune*"))


def test_a_group_that_root_gave_a_users_file_is_kept(host: Host) -> None:
    """`chown alice FILE` leaves it in root's group, which alice cannot give anything."""
    os.chown(host.home / "job/job.env", USER, 0)
    (host.home / "job/job.env").chmod(0o640)
    before = everything(host.home / "job")[str(host.home / "job/job.env")]
    assert apply(host.state, host.operation("job.env"))["status"] == "done"
    found = (host.home / "job/job.env").stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o7777) == (USER, 0, 0o640) and os.geteuid() == 0
    host.undo()
    assert everything(host.home / "job")[str(host.home / "job/job.env")][1:] == before[1:]


# (path from the root, its owner and mode) of every directory above a file -> as whom root writes there, or the refusal
WAYS: dict[str, tuple[dict[str, tuple[int, int]], object]] = {
    "root's": ({"a": (0, 0o755), "a/b": (0, 0o755)}, 0),
    "a user's": ({"a": (0, 0o755), "a/b": (USER, 0o755)}, USER),
    "below a user's": ({"a": (USER, 0o755), "a/b": (USER, 0o775)}, USER),
    "root's below a user's": ({"a": (USER, 0o755), "a/b": (0, 0o755)}, "which users other than root can change"),
    "of two users": ({"a": (USER, 0o755), "a/b": (USER + 1, 0o755)}, "can replace it"),
    "for everybody": ({"a": (0, 0o755), "a/b": (0, 0o777)}, "can be written by users other than root"),
    "a user's in one for everybody": ({"a": (0, 0o777), "a/b": (USER, 0o755)}, USER),
    "root's in one for everybody": ({"a": (0, 0o777), "a/b": (0, 0o755)}, "which users other than root can change"),
    "like /tmp": ({"a": (0, 0o755), "a/b": (0, 0o1777)}, 0),
    "root's in one like /tmp": ({"a": (0, 0o1777), "a/b": (0, 0o755)}, 0),
    "a user's in one like /tmp": ({"a": (0, 0o1777), "a/b": (USER, 0o755)}, USER),
}


@pytest.mark.parametrize("way", WAYS)
def test_as_whom_root_writes(tmp_path: Path, way: str) -> None:
    directories, expected = WAYS[way]
    for name, (owner, mode) in directories.items():
        (tmp_path / name).mkdir()
        os.chown(tmp_path / name, owner, owner)
        (tmp_path / name).chmod(mode)
    result = apply(str(tmp_path / "state"), write(tmp_path / "a/b/new", None, b"new"))
    if isinstance(expected, int):
        assert result["status"] == "done", result
        assert (tmp_path / "a/b/new").stat().st_uid == expected
    else:
        assert result["status"] == "refused" and str(expected) in result["error"]
        assert not (tmp_path / "a/b/new").exists()


def test_a_group_that_can_write_a_directory_of_root(tmp_path: Path) -> None:
    """A system group that nobody is in (staff of Debian) is no other user; one of the users is."""
    for gid, answer in ((USER, "refused"), (50, "done")):
        folder = tmp_path / str(gid)
        folder.mkdir()
        os.chown(folder, 0, gid)
        folder.chmod(0o2775)
        assert apply(str(tmp_path / "state"), write(folder / "new", None, b"new"))["status"] == answer


def test_links_are_followed_where_only_root_can_put_them(tmp_path: Path) -> None:
    """As /usr/local/Ascend/ascend-toolkit/latest; a link of a user is not."""
    for name, owner in (("5.0.2", 0), ("theirs", USER)):
        (tmp_path / name).mkdir()
        os.chown(tmp_path / name, owner, owner)
    (tmp_path / "latest").symlink_to("5.0.2")
    (tmp_path / "theirs/latest").symlink_to("../5.0.2")
    os.lchown(tmp_path / "theirs/latest", USER, USER)
    assert apply(str(tmp_path / "state"), write(tmp_path / "latest/a", None, b"new"))["status"] == "done"
    assert (tmp_path / "5.0.2/a").read_bytes() == b"new"
    result = apply(str(tmp_path / "state"), write(tmp_path / "theirs/latest/b", None, b"new"))
    assert result["status"] == "refused" and "name its target" in result["error"]
    assert not (tmp_path / "5.0.2/b").exists()
