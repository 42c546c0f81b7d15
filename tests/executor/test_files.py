"""Files: written in one step, with owner, mode and attributes kept; kernel files written in place."""

from __future__ import annotations

import errno
import os
import stat
import struct
from pathlib import Path

import pytest
from helpers.executor_runs import apply, last
from helpers.killed_runs import (
    change,
    write,
)

from envtune.executor.files import normalized
from envtune.executor.recover import undo_run
from envtune.executor.run import apply_plan


def test_a_file_is_replaced_and_keeps_owner_mode_and_attributes(tmp_path: Path, state: str) -> None:
    path = tmp_path / "a.conf"
    path.write_text("old\n")
    path.chmod(0o4750)
    os.utime(path, ns=(10**18, 10**18))
    attributes = {"user.note": b"mine"}
    try:
        os.setxattr(path, "user.note", b"mine")
    except OSError:
        attributes = {}
    assert apply(state, write(path, b"old\n", b"new\n"))["status"] == "done"
    assert path.read_text() == "new\n" and stat.S_IMODE(path.stat().st_mode) == 0o4750
    assert {name: os.getxattr(path, name) for name in os.listxattr(path)} == attributes
    undo_run(state, last(state).name)
    found = path.stat()
    assert path.read_text() == "old\n" and found.st_mtime_ns == 10**18 and stat.S_IMODE(found.st_mode) == 0o4750
    assert {name: os.getxattr(path, name) for name in os.listxattr(path)} == attributes


def test_directories_are_made_for_everybody_and_go_again(tmp_path: Path, state: str) -> None:
    path = tmp_path / "etc/ld.so.conf.d/hccl.conf"
    before = os.umask(0o077)
    try:
        apply(state, write(path, None, b"/usr/local/lib\n"))
    finally:
        os.umask(before)
    assert [stat.S_IMODE(p.stat().st_mode) for p in (path.parent.parent, path.parent, path)] == [0o755, 0o755, 0o644]
    undo_run(state, last(state).name)
    assert not (tmp_path / "etc").exists()


def test_a_directory_somebody_uses_meanwhile_stays(tmp_path: Path, state: str) -> None:
    apply(state, write(tmp_path / "conf.d/ours", None, b"x"))
    (tmp_path / "conf.d/theirs").write_text("y")
    assert undo_run(state, last(state).name)[0]["status"] == "undone"
    assert [path.name for path in (tmp_path / "conf.d").iterdir()] == ["theirs"]


def test_directories_go_when_their_changes_are_undone_one_by_one(tmp_path: Path, state: str) -> None:
    first, second = (
        change("C01", write(tmp_path / "d/one", None, b"x")),
        change("C02", write(tmp_path / "d/two", None, b"x")),
    )
    name, _ = apply_plan({"changes": [first, second]}, state)
    undo_run(state, name, "C01")
    assert last(state).status == "partly-undone" and (tmp_path / "d/two").exists()
    undo_run(state, name)
    assert last(state).status == "undone" and not (tmp_path / "d").exists()


def test_other_names_of_a_file_keep_the_old_content(tmp_path: Path, state: str) -> None:
    path, other = tmp_path / "a", tmp_path / "b"
    path.write_text("old")
    os.link(path, other)
    apply(state, write(path, b"old", b"new"))
    assert (path.read_text(), other.read_text()) == ("new", "old")


def test_an_access_list_that_the_directory_hands_down_is_not_added(tmp_path: Path, state: str) -> None:
    path = tmp_path / "d/a"
    path.parent.mkdir()
    path.write_text("old")
    rows = ((0x01, 7, 2**32 - 1), (0x02, 6, 12345), (0x04, 5, 2**32 - 1), (0x10, 7, 2**32 - 1), (0x20, 5, 2**32 - 1))
    default = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *row) for row in rows)
    os.setxattr(path.parent, "system.posix_acl_default", default)
    (tmp_path / "d/inherits").write_text("")
    assert "system.posix_acl_access" in os.listxattr(tmp_path / "d/inherits")
    apply(state, write(path, b"old", b"new"))
    assert os.listxattr(path) == []
    apply(state, write(tmp_path / "d/new", None, b"new"))
    assert "system.posix_acl_access" in os.listxattr(tmp_path / "d/new")  # a new file is as the directory wants it


@pytest.mark.parametrize("kind", ["link", "directory", "fifo", "below a file"])
def test_only_regular_files_are_written(tmp_path: Path, state: str, kind: str) -> None:
    path = tmp_path / "thing"
    if kind == "link":
        path.symlink_to(tmp_path / "elsewhere")
    elif kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.write_text("a file")
        path = path / "below"
    result = apply(state, write(path, None, b"x"))
    assert result["status"] in ("refused", "failed") and "thing" in result["error"]
    assert not (tmp_path / "elsewhere").exists() and not last(state).steps


def test_what_is_not_as_planned_is_not_touched(tmp_path: Path, state: str) -> None:
    path = tmp_path / "a"
    path.write_text("somebody else's")
    result = apply(state, write(path, b"old", b"new"))
    assert result["status"] == "refused" and "not what the plan expected" in result["error"]
    assert path.read_text() == "somebody else's"


def test_what_is_there_already_is_not_written_again(tmp_path: Path, state: str) -> None:
    path = tmp_path / "a"
    path.write_text("new")
    inode = path.stat().st_ino
    assert apply(state, write(path, b"old", b"new"))["status"] == "done"
    assert path.stat().st_ino == inode and not last(state).steps
    assert undo_run(state, last(state).name) == [] and path.read_text() == "new"


def test_a_change_is_whole_or_not_at_all(tmp_path: Path, state: str) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    result = apply(state, write(path, b"old", b"new"), write(tmp_path / "b", b"not there", b"x"))
    assert result["status"] == "refused"
    assert path.read_text() == "old" and last(state).status == "failed" and not last(state).open_steps()


def test_kernel_files_are_compared_by_what_they_mean() -> None:
    path = "/sys/kernel/mm/transparent_hugepage/enabled"
    assert normalized(path, b"always [madvise] never\n") == b"madvise"
    assert normalized("/proc/sys/net/ipv4/tcp_rmem", b"4096\t131072\t6291456\n") == b"4096 131072 6291456"
    assert normalized("/etc/x", b"a\tb\n") == b"a\tb\n"
    assert normalized(path, None) is None


class Knob:
    """A file that stands for one of the kernel: written in place, and refusing as the kernel does."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str) -> None:
        self.path = tmp_path / "sys/knob"
        self.path.parent.mkdir()
        self.path.write_text(content)
        self.errors: list[int] = []
        monkeypatch.setattr("envtune.executor.files.KERNEL_DIRECTORIES", (str(tmp_path / "sys") + "/",))
        real = os.write

        def fake(descriptor: int, data: bytes) -> int:
            if os.readlink(f"/proc/self/fd/{descriptor}") != str(self.path):
                return real(descriptor, data)
            if self.errors:
                raise OSError(self.errors.pop(0), "the kernel says no")
            os.ftruncate(descriptor, 0)
            return real(descriptor, data)

        monkeypatch.setattr(os, "write", fake)


@pytest.mark.parametrize("code", [errno.EINVAL, errno.EPERM, errno.EROFS, errno.EIO])
def test_a_knob_that_refuses_is_left_and_named(
    tmp_path: Path, state: str, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    knob = Knob(tmp_path, monkeypatch, "powersave\n")
    knob.errors = [code] * 9
    result = apply(state, write(knob.path, b"powersave", b"performance\n"))
    assert result["status"] == "failed" and str(knob.path) in result["error"] and "kernel says no" in result["error"]
    assert knob.path.read_text() == "powersave\n" and last(state).status == "failed"


@pytest.mark.slow
def test_a_busy_knob_is_tried_again_for_a_moment(tmp_path: Path, state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    knob = Knob(tmp_path, monkeypatch, "powersave\n")
    knob.errors = [errno.EBUSY]
    assert apply(state, write(knob.path, b"powersave", b"performance\n"))["status"] == "done"
    assert knob.path.read_text() == "performance\n"
    knob.errors = [errno.EBUSY] * 9
    assert undo_run(state, last(state).name)[0]["status"] == "failed"
    knob.errors = []
    assert undo_run(state, last(state).name)[0]["status"] == "undone"
    assert knob.path.read_text() == "powersave\n"
