"""Reading the live machine never hangs, whatever lies in the way, and never changes anything."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Iterator, Sequence

import pytest
from helpers.assembled import collector_file

from envtune.collector.commands import OUTPUT_LIMIT, run_command
from envtune.collector.files import HEAD_SIZE
from envtune.collector.mounts import Mounts, remote_mounts
from envtune.errors import Denied, Missing, TimedOut, Unreadable, host_error_text
from envtune.host import LocalHost


def program(folder: Path, text: str) -> str:
    path = folder / "program"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def alive(pid: int) -> bool:
    """Whether the process runs: there, and no zombie that only waits for its parent."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_until(what: object, seconds: float = 60.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():  # type: ignore[operator]
            return True
        time.sleep(0.02)
    return False


# ---------------------------------------------------------------------------------------------------- commands


def test_a_command_answers(tmp_path: Path) -> None:
    result = LocalHost().run([program(tmp_path, 'echo "$LC_ALL $PWD"; echo bad >&2; exit 3')])
    assert (result.returncode, result.stdout, result.stderr) == (3, "C /\n", "bad\n")


def test_a_command_that_is_not_there_or_may_not_be_run(tmp_path: Path) -> None:
    with pytest.raises(Missing):
        LocalHost().run(["envtune-no-such-command"])
    closed = tmp_path / "closed"
    closed.write_text("#!/bin/sh\n")
    with pytest.raises(Denied):
        LocalHost().run([str(closed)])


def test_a_command_that_ignores_term_is_killed_with_its_grandchildren(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    text = f"trap '' TERM INT HUP; (trap '' TERM; sleep 300 & echo $! >> {pids}; wait) & echo $! >> {pids}; sleep 300"
    began = time.monotonic()
    with pytest.raises(TimedOut):
        LocalHost().run([program(tmp_path, text)], timeout=0.5)
    assert time.monotonic() - began < 60
    found = [int(word) for word in pids.read_text().split()]
    assert len(found) == 2
    assert wait_until(lambda: not any(alive(pid) for pid in found))


def test_a_grandchild_that_keeps_the_pipe_open_does_not_hold_us_up(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    began = time.monotonic()
    result = LocalHost().run([program(tmp_path, f"sleep 300 & echo $! > {pid}; echo done")], timeout=120)
    try:
        assert (result.stdout, result.returncode) == ("done\n", 0)
        assert time.monotonic() - began < 60
    finally:
        os.kill(int(pid.read_text()), signal.SIGKILL)


@pytest.mark.parametrize("mebibytes", [8, pytest.param(1024, marks=pytest.mark.slow)])
def test_a_gigabyte_of_output_is_cut(mebibytes: int) -> None:
    code = f"import sys\nfor _ in range({mebibytes}): sys.stdout.write('x' * (1 << 20))"
    row = run_command([sys.executable, "-S", "-c", code], timeout=60)
    assert row["rc"] == 0
    assert len(row["stdout"]) == OUTPUT_LIMIT


def test_endless_output_ends_at_the_deadline() -> None:
    began = time.monotonic()
    with pytest.raises(TimedOut):
        LocalHost().run(["yes"], timeout=0.2)
    assert time.monotonic() - began < 60


def test_binary_output_is_no_error(tmp_path: Path) -> None:
    assert "\ufffd" in LocalHost().run([program(tmp_path, r"printf '\377\000\200'")]).stdout


def test_a_command_is_the_system_s_whatever_path_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "ls").write_text("#!/bin/sh\necho hijacked\n")
    (tmp_path / "ls").chmod(0o755)
    assert LocalHost().run(["ls", "-d", "/"]).stdout == "/\n"


def test_a_command_that_others_can_change_is_denied_with_the_place(tmp_path: Path) -> None:
    path = program(tmp_path, "echo run")
    tmp_path.chmod(0o777)
    row = run_command([path])
    assert row == {"argv": [path], "error": "denied", "untrusted": str(tmp_path)}
    with pytest.raises(Denied) as caught:
        LocalHost().run([path])
    assert host_error_text(caught.value).to("en") == f"{path} was not run: others can change {tmp_path}"


@pytest.mark.root
@pytest.mark.slow
def test_a_command_in_state_d_is_left_behind(tmp_path: Path) -> None:
    if os.geteuid() != 0 or not all(shutil.which(name) for name in ("mkfs.ext4", "fsfreeze", "mount")):
        pytest.skip("needs root, mkfs.ext4 and fsfreeze")
    image, point = tmp_path / "image", tmp_path / "point"
    image.write_bytes(b"")
    os.truncate(image, 16 << 20)
    point.mkdir()
    subprocess.run(["mkfs.ext4", "-q", str(image)], check=True, timeout=30)
    subprocess.run(["mount", "-o", "loop", str(image), str(point)], check=True, timeout=30)
    try:
        subprocess.run(["fsfreeze", "-f", str(point)], check=True, timeout=30)
        try:
            began = time.monotonic()
            pid = tmp_path / "pid"
            with pytest.raises(TimedOut):
                LocalHost().run([program(tmp_path, f"echo $$ > {pid}; exec touch {point}/x")], timeout=0.5)
            assert time.monotonic() - began < 60
            stuck = int(pid.read_text())
            assert Path(f"/proc/{stuck}/stat").read_text().rpartition(")")[2].split()[0] == "D"
        finally:
            subprocess.run(["fsfreeze", "-u", str(point)], check=True, timeout=30)
        assert wait_until(lambda: not alive(stuck))
    finally:
        subprocess.run(["umount", str(point)], check=True, timeout=30)


# ---------------------------------------------------------------------------------------------------- files


def test_what_is_no_plain_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    host = LocalHost()
    for path in (str(tmp_path / "pipe"), "/dev/zero", str(tmp_path)):
        with pytest.raises(Unreadable):
            host.read(path)
    assert host.stat(str(tmp_path / "pipe")).kind == "fifo"
    assert host.stat("/dev/zero").kind == "char"


def test_what_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xff\xfe")
    (tmp_path / "b").write_bytes(b"a\0b")
    host = LocalHost()
    for name in "ab":
        with pytest.raises(Unreadable):
            host.read(str(tmp_path / name))
    assert host.read_bytes(str(tmp_path / "b")) == b"a\0b"


def test_a_file_beyond_the_limit(tmp_path: Path) -> None:
    with open(tmp_path / "large", "wb") as file:
        file.truncate(1 << 33)
    with pytest.raises(Unreadable):
        LocalHost().read(str(tmp_path / "large"))
    assert LocalHost().head(str(tmp_path / "large")) == b"\0" * HEAD_SIZE


def test_missing_and_links(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    host = LocalHost()
    with pytest.raises(Missing):
        host.read(str(tmp_path / "link"))
    assert host.readlink(str(tmp_path / "link")) == "nowhere"
    assert host.stat(str(tmp_path / "link"), follow=False).kind == "link"
    with pytest.raises(Missing):
        host.listdir(str(tmp_path / "none"))


def test_a_file_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    host = LocalHost()
    assert host.read(str(tmp_path / "a")) == "1"
    (tmp_path / "a").write_text("2")
    assert host.read(str(tmp_path / "a")) == "1"


# ---------------------------------------------------------------------------------------------------- mounts


def test_which_mounts_may_hang() -> None:
    text = (
        "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
        "30 22 0:40 / /home rw shared:5 - nfs4 server:/home rw,vers=4.2\n"
        "31 22 0:41 / /mnt/my\\040data rw - fuse.sshfs user@host: rw\n"
        "32 22 0:42 / /sys/fs/fuse/connections rw - fusectl fusectl rw\n"
        "33 22 0:43 / /lustre rw - lustre 192.0.2.1@o2ib:/fs rw\n"
        "34 22 0:44 / /home rw - tmpfs tmpfs rw\n"
        "broken line\n"
    )
    assert remote_mounts(text) == {"/mnt/my data": "fuse.sshfs", "/lustre": "lustre"}


@pytest.fixture
def dead_mount(tmp_path: Path) -> Iterator[Path]:
    """A real FUSE file system whose daemon never answers."""
    if os.geteuid() != 0:
        pytest.skip("needs root to mount")
    point = tmp_path / "dead"
    point.mkdir()
    try:
        device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        pytest.skip("needs /dev/fuse")
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
    if libc.mount(b"envtune", os.fsencode(point), b"fuse", 0, options) != 0:
        os.close(device)
        pytest.skip(f"cannot mount: {os.strerror(ctypes.get_errno())}")
    try:
        yield point
    finally:
        os.close(device)  # ends the connection: whoever hangs gets an error
        libc.umount2(os.fsencode(point), 2)


@pytest.mark.root
def test_a_mount_that_does_not_answer_costs_its_own_reads_only(
    dead_mount: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "alive").write_text("x")
    (tmp_path / "way").symlink_to(dead_mount / "folder")
    touched = []

    def touch(argv: Sequence[str], timeout: float) -> dict[str, Any]:
        touched.append(argv[-1])
        return run_command(argv, timeout)

    monkeypatch.setattr("envtune.collector.mounts.run_command", touch)
    host = LocalHost()
    for read in (host.read, host.stat, host.listdir, host.readlink, host.disk, host.head):
        for path in (dead_mount / "file", tmp_path / "way" / "file"):
            with pytest.raises(TimedOut):
                read(str(path))
    assert host.glob(str(tmp_path / "*" / "file")) == ()
    assert host.read(str(tmp_path / "alive")) == "x"
    assert [path for path in touched if path.startswith(str(dead_mount))] == [str(dead_mount)], (
        "once, not at every read"
    )
    assert threading.active_count() == 1


@pytest.mark.parametrize("silent", ["stat -L", "dd", "find"])
def test_a_mount_that_tells_its_size_and_nothing_else_is_not_entered(
    silent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looking a name up, opening and reading may hang where statfs is answered: what is asked for is touched first."""

    def answer(argv: Sequence[str], timeout: float) -> dict[str, Any]:
        return {"error": "timeout"} if " ".join(argv).startswith(silent) else run_command(argv, timeout)

    (tmp_path / "job").mkdir() if silent == "find" else (tmp_path / "job").write_text("x")
    monkeypatch.setattr("envtune.collector.mounts.run_command", answer)
    host = LocalHost()
    host._mounts._remote = {str(tmp_path): "nfs4"}
    host._mounts.enter(str(tmp_path))
    asked, real = [], os.stat

    def stat(path: Any, **options: Any) -> os.stat_result:
        asked.append(str(path))
        return real(path, **options)

    with monkeypatch.context() as patched:
        patched.setattr("os.stat", stat)
        host.name_readers({"script": str(tmp_path / "job")})
        with pytest.raises(TimedOut):
            host.stat(str(tmp_path / "job"))
    assert str(tmp_path / "job") not in asked


@pytest.mark.root
def test_the_loader_of_the_touching_child_is_kept_off_it(
    dead_mount: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(dead_mount))
    monkeypatch.setattr("envtune.collector.mounts.TOUCH_SECONDS", 60)  # a busy machine does not hang
    mounts = Mounts()
    mounts._remote = {str(tmp_path): "nfs4"}  # a mount that answers; a second real one is not to be had here
    mounts.enter(str(tmp_path))


@pytest.mark.root
def test_the_collector_does_not_hang_on_it_either(dead_mount: Path, tmp_path: Path) -> None:
    environ = {"PATH": f"{dead_mount}/bin:/usr/bin", "HOME": str(dead_mount), "ASCEND_HOME_PATH": str(dead_mount)}
    done = subprocess.run(
        [sys.executable, str(collector_file(tmp_path)), "-o", str(tmp_path / "host.tgz")],
        env={**environ, "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=tmp_path,
        timeout=60,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    from envtune.snapshot.open import open_snapshot

    with pytest.raises(TimedOut):
        open_snapshot(tmp_path / "host.tgz").read(f"{dead_mount}/file")
