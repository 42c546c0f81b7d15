"""The writing end, story by story: what it writes, what it refuses, what is left after a crash, and the way back."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import signal
import stat
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Iterator

import pytest
from helpers.examples import ROOT
from helpers.killed_runs import (
    NEW,
    OLD,
    build,
    change,
    directories,
    encoded,
    forked,
    killed_after,
    killed_at,
    mark,
    tree,
    write,
)

from envtune.executor.files import digest, normalized
from envtune.executor.history import RecordedRun, interrupted_runs, recorded_runs
from envtune.executor.journal import encode_record
from envtune.executor.operations.command import matching
from envtune.executor.plan import operation_fault, operation_of, plan_fault, stale_changes
from envtune.executor.problems import JournalError, LockedError, RefusedError
from envtune.executor.processes import process_identity, running_commands
from envtune.executor.recover import resume_run, undo_run
from envtune.executor.run import apply_plan
from envtune.executor.state import Lock, ensure_state_directory, lock_holder

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def state(tmp_path: Path) -> str:
    return str(tmp_path / "state")


def apply(state: str, *operations: Any, **more: Any) -> dict[str, Any]:
    """Carry out one change; its result, with the name of the run."""
    name, results = apply_plan({"changes": [change("C01", *operations)]}, state, **more)
    return {**results[0], "run": name}


def last(state: str) -> RecordedRun:
    return recorded_runs(state)[-1]


# ---------------------------------------------------------------------- one file


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
    assert stale_changes({"changes": [change("C01", write(path, b"old", b"new"))]}).keys() == {"C01"}


def test_what_is_there_already_is_not_written_again(tmp_path: Path, state: str) -> None:
    path = tmp_path / "a"
    path.write_text("new")
    inode = path.stat().st_ino
    assert apply(state, write(path, b"old", b"new"))["status"] == "done"
    assert path.stat().st_ino == inode and not last(state).steps
    assert stale_changes({"changes": [change("C01", write(path, b"old", b"new"))]}) == {}
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


# ---------------------------------------------------------------------- the way back


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


def test_the_undo_command_names_what_it_found(tmp_path: Path, state: str) -> None:
    table = tmp_path / "table"
    table.write_text("{ tcp dport 22 } # handle 3\n")
    add = ["/bin/sh", "-c", f"echo '{{ tcp dport 29688 }} # handle 7' >>{table}"]
    find = {"argv": ["cat", str(table)], "pattern": r"29688 } # handle (?P<handle>\d+)"}
    undo = {"argv": ["/bin/sh", "-c", f"sed -i '/{{handle}}$/d; s/{{ tcp/{{ tcp/' {table}"], "find": find}
    run = apply(state, {"op": "run", "argv": add, "check": {"argv": ["grep", "29688", str(table)]}, "undo": undo})[
        "run"
    ]
    assert "29688" in table.read_text()
    assert undo_run(state, run)[0]["status"] == "undone"
    assert table.read_text() == "{ tcp dport 22 } # handle 3\n"


def test_a_command_waits_for_what_it_rests_on(tmp_path: Path, state: str) -> None:
    """A rule is placed by its number: among other rules than planned the number means another place."""
    rules = tmp_path / "rules"
    rules.write_text("-A one packets 7\n-A drop packets 9\n# comment\n")
    planned = digest(matching("-A one \n-A drop ", "(?m)^-A .*$"))
    given = {"argv": ["cat", str(rules)], "pattern": "(?m)^-A .*$", "ignore": "packets [0-9]+", "digest": planned}
    check = {"argv": ["test", "-e", str(tmp_path / "done")]}
    operation = {"op": "run", "argv": ["touch", str(tmp_path / "done")], "check": check, "given": given}
    plan = {"changes": [change("C01", operation)]}
    assert stale_changes(plan) == {}
    rules.write_text("-A drop packets 9\n-A one packets 7\n")
    assert "tells something else than when the plan was made" in str(stale_changes(plan)["C01"])
    assert apply(state, operation)["status"] == "refused" and not (tmp_path / "done").exists()
    rules.write_text("-A one packets 8\n-A drop packets 10\n")
    assert apply(state, operation)["status"] == "done"
    rules.write_text("-A one\n-A ours\n")  # what is done already rests on nothing
    assert stale_changes(plan) == {} and apply(state, operation)["status"] == "done"


def test_a_command_that_fails_or_hangs_is_told_with_its_last_words(tmp_path: Path, state: str) -> None:
    check = {"argv": ["false"]}
    failing = {"op": "run", "argv": ["/bin/sh", "-c", "echo reading lists; echo no space; exit 100"], "check": check}
    result = apply(state, failing)
    assert result["status"] == "failed" and "100" in result["error"] and "no space" in result["error"]
    log = Path(state) / "runs" / result["run"] / "output.log"
    assert "reading lists\nno space\n" in log.read_text() and stat.S_IMODE(log.stat().st_mode) == 0o600
    began = time.monotonic()
    hanging = apply(state, {"op": "run", "argv": ["sleep", "60"], "check": check, "timeout": 0.3})
    assert "did not end" in hanging["error"] and time.monotonic() - began < 10


def test_output_comes_while_the_command_runs_and_a_daemon_is_not_waited_for(tmp_path: Path, state: str) -> None:
    lines: list[tuple[float, str]] = []

    def note(kind: str, record: Any) -> None:
        if kind == "output":
            lines.append((time.monotonic(), record["line"]))

    script = f"echo one; sleep 0.4; echo two; touch {tmp_path}/done; sleep 3 &"
    began = time.monotonic()
    operation = {
        "op": "run",
        "argv": ["/bin/sh", "-c", script],
        "check": {"argv": ["test", "-e", str(tmp_path / "done")]},
    }
    assert apply(state, operation, on_event=note)["status"] == "done"
    assert [line for _, line in lines] == ["one", "two"] and lines[1][0] - lines[0][0] > 0.2
    assert time.monotonic() - began < 2.5


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


# ---------------------------------------------------------------------- processes


def sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "60"])


def signal_operation(pid: int, **more: Any) -> dict[str, Any]:
    row = process_identity(pid)
    assert row is not None
    return {"op": "signal", "pid": pid, "started": row[0], "uid": row[1], "grace": 2, **more}


def test_a_process_is_ended_by_its_number_and_cannot_come_back(state: str) -> None:
    child = sleeper()
    run = apply(state, signal_operation(child.pid))["run"]
    assert child.wait(5) == -signal.SIGTERM
    (result,) = undo_run(state, run)
    assert result["status"] == "refused" and "cannot be brought back" in result["error"]


def test_another_process_under_the_number_is_not_touched(state: str) -> None:
    child = sleeper()
    try:
        operation = signal_operation(child.pid)
        operation["started"] -= 1
        assert apply(state, operation)["status"] == "done"  # the one that was meant is gone
        operation = signal_operation(child.pid)
        operation["uid"] += 1
        assert apply(state, operation)["status"] == "refused"
        assert child.poll() is None
    finally:
        child.kill()
        child.wait()


def test_envtune_does_not_end_itself_nor_what_started_it(state: str) -> None:
    for pid in (os.getpid(), os.getppid()):
        result = apply(state, signal_operation(pid))
        assert result["status"] == "refused" and "envtune itself" in result["error"]


# ---------------------------------------------------------------------- killed


def judge(root: Path, state: str) -> None:
    """Every file is old or new, and the journal knows which."""
    found = tree(root)
    litter = {name for name in found if ".envtune-" in name}
    site = {name for name in (*OLD, *NEW) if name.startswith("site/")}  # trees are replaced by commands, not at once
    for name in set(found) - litter - site - {"marks", "marks.new"}:
        assert found[name] in (OLD.get(name), NEW.get(name)), name
    lost = [name for name in set(OLD) - site - set(found) if name in NEW]
    assert not lost
    runs = recorded_runs(state)
    if not runs or not runs[-1].begin:
        assert {**found, "marks": b""} == {**OLD, "marks": b""}
        return
    for change_ in runs[-1].plan["changes"]:
        for number, operation in enumerate(change_["operations"]):
            step = runs[-1].steps.get((change_["id"], number), {"state": "untouched"})
            judge_step(operation, step)


def judge_step(operation: Any, step: Any) -> None:
    observe = operation_of(operation).observe
    if step["state"] == "done":
        assert observe() == step["now"]
    elif step["state"] == "reverted":
        assert observe() == step["kept"]["was"]
    elif step["state"] == "untouched" and "expect" in operation:
        assert observe() == operation["expect"]


def quiet(state: str) -> None:
    """Wait for a command that the kill left running, also for one between fork and exec, which has the lock open."""
    if os.path.exists(os.path.join(state, "lock")):
        Lock(state, wait=10).release()
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
    assert not list(Path(state).rglob("reserve"))


@pytest.fixture
def no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed process loses nothing that it wrote: only a power cut needs fsync, and 10,000 of them take minutes."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


EVERY = pytest.mark.parametrize(  # each failpoint once finished and once undone; the fast part takes every eleventh
    ("odd", "stride"), [(1, 11), *(pytest.param(odd, 1, marks=pytest.mark.slow) for odd in (0, 1))]
)


@EVERY
def test_killed_at_every_failpoint(tmp_path: Path, no_sync: None, odd: int, stride: int) -> None:
    for number in range(0, 10_000, stride):
        root = tmp_path / str(number)
        plan, state = build(root), str(root / "state")
        ended = killed_at(number, lambda plan=plan, state=state: apply_plan(plan, state))  # type: ignore[misc]
        quiet(state)
        judge(root, state)
        end(root, state, "finish" if number % 2 == odd else "undo")
        shutil.rmtree(root)
        if ended:
            break
    assert number > 100  # that many places were tried


@EVERY
def test_killed_at_every_failpoint_of_an_undo(tmp_path: Path, no_sync: None, odd: int, stride: int) -> None:
    """An undo that was killed is an interrupted run, too; finishing it means to finish the undo."""
    for number in range(0, 10_000, stride):
        root = tmp_path / str(number)
        plan, state = build(root), str(root / "state")
        name, _ = apply_plan(plan, state)
        ended = killed_at(number, lambda state=state, name=name: undo_run(state, name))  # type: ignore[misc]
        quiet(state)
        judge(root, state)
        for past in interrupted_runs(state):
            again = resume_run if number % 2 == odd else undo_run
            assert {result["status"] for result in again(state, past.name)} <= {"undone"}
        end(root, state, "undo")
        shutil.rmtree(root)
        if ended:
            break
    assert number > 50


def test_killed_while_it_was_finished(tmp_path: Path, no_sync: None) -> None:
    for number in range(0, 400, 23):
        root = tmp_path / str(number)
        plan, state = build(root), str(root / "state")
        killed_at(60, lambda plan=plan, state=state: apply_plan(plan, state))  # type: ignore[misc]
        (past,) = interrupted_runs(state)
        ended = killed_at(number, lambda state=state, past=past: resume_run(state, past.name))  # type: ignore[misc]
        quiet(state)
        judge(root, state)
        end(root, state, "finish" if number % 2 else "undo")
        shutil.rmtree(root)
        if ended:
            break
    else:
        pytest.fail("it never came to its end")


@pytest.mark.slow
def test_killed_at_200_random_moments(tmp_path: Path) -> None:
    chance = random.Random(20260101)
    plan, state = build(tmp_path / "measure"), str(tmp_path / "measure/state")
    began = time.monotonic()
    os.waitpid(forked(lambda: apply_plan(plan, state)), 0)
    whole, killed = time.monotonic() - began, 0
    for number in range(1000):
        root = tmp_path / str(number)
        plan, state = build(root), str(root / "state")
        moment = chance.uniform(0, whole)
        ended = killed_after(moment, lambda plan=plan, state=state: apply_plan(plan, state))  # type: ignore[misc]
        whole *= 0.99 if ended else 1.002  # the machine is not always as fast as when it was measured
        quiet(state)
        judge(root, state)
        end(root, state, chance.choice(["finish", "undo"]))
        shutil.rmtree(root)
        killed += not ended
        if killed == 200:
            break
    assert killed == 200


def test_a_command_of_a_killed_run_that_still_runs_is_waited_for(
    tmp_path: Path, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation = {"op": "run", "argv": ["sleep", "30"], "check": {"argv": ["false"]}}
    pid = forked(lambda: apply(state, operation))
    for _ in range(200):
        if recorded_runs(state) and running_commands(last(state).directory):
            break
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    (past,) = interrupted_runs(state)
    (running,) = running_commands(past.directory)
    monkeypatch.setattr("envtune.executor.recover.PATIENCE", 0.1)
    with pytest.raises(RefusedError, match=f"still running: process {running}"):
        undo_run(state, past.name)
    os.kill(running, signal.SIGKILL)
    for _ in range(200):
        if not running_commands(past.directory):
            break
        time.sleep(0.02)
    assert undo_run(state, past.name)[0]["status"] == "undone"


def test_nothing_is_written_on_top_of_an_interrupted_run(tmp_path: Path, no_sync: None) -> None:
    plan, state = build(tmp_path), str(tmp_path / "state")
    killed_at(60, lambda: apply_plan(plan, state))
    with pytest.raises(RefusedError, match="was interrupted"):
        apply_plan({"changes": []}, state)


# ---------------------------------------------------------------------- the journal


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


def test_damage_in_the_middle_is_told_and_not_guessed_over(tmp_path: Path, state: str) -> None:
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


@pytest.mark.parametrize("name", ["../x", "20250101-000000/..", "", "20250101-000000"])
def test_only_runs_are_undone(state: str, name: str) -> None:
    ensure_state_directory(state)
    with pytest.raises(RefusedError):
        undo_run(state, name)


# ---------------------------------------------------------------------- state and lock


def test_the_state_is_private(tmp_path: Path, state: str) -> None:
    apply(state, write(tmp_path / "a", None, b"x"))
    for path in (Path(state), *Path(state).rglob("*")):
        assert not path.stat().st_mode & 0o077, path


def test_a_state_that_others_can_write_is_refused(tmp_path: Path, state: str) -> None:
    os.mkdir(state)
    os.chmod(state, 0o777)
    with pytest.raises(RefusedError, match="can be written by others"):
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
    with pytest.raises(RefusedError, match="others than root"):
        apply(str(tmp_path / "theirs/state"), write(tmp_path / "a", None, b"x"))
    (tmp_path / "mine").mkdir()
    os.chown(tmp_path / "mine", 12345, 12345)
    with pytest.raises(RefusedError, match="belongs to user 12345"):
        apply(str(tmp_path / "mine"), write(tmp_path / "a", None, b"x"))


def test_the_second_run_hears_who_holds_the_lock_or_waits(tmp_path: Path, state: str) -> None:
    lock = Lock(state)
    lock.describe("20250101-000000")
    with pytest.raises(LockedError, match=f"pid {os.getpid()}, since .*, run 20250101-000000"):
        apply(state, write(tmp_path / "a", None, b"x"))
    assert (lock_holder(state) or {})["pid"] == str(os.getpid())

    def second() -> None:
        lock.release()  # the copy of the descriptor that the fork made
        apply(state, write(tmp_path / "a", None, b"x"), wait=10)

    pid = forked(second)
    time.sleep(0.3)
    assert not (tmp_path / "a").exists()
    lock.release()
    assert os.waitpid(pid, 0)[1] == 0 and (tmp_path / "a").exists()
    assert lock_holder(state) is None


def test_a_run_under_way_is_not_interrupted(tmp_path: Path, state: str) -> None:
    operation = {"op": "run", "argv": ["sleep", "1"], "check": {"argv": ["false"]}}
    pid = forked(lambda: apply(state, operation))
    for _ in range(200):
        if recorded_runs(state) and last(state).steps:
            break
        time.sleep(0.01)
    assert last(state).in_progress == "apply" and interrupted_runs(state) == []
    os.waitpid(pid, 0)


# ---------------------------------------------------------------------- a hostile machine


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
            assert result["status"] == "failed" and f"attribute {flag} of chattr" in result["error"]
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


# ---------------------------------------------------------------------- hostile plans


HOSTILE: list[tuple[Any, str]] = [
    ({"op": "shell", "argv": ["rm"]}, "op: there is no kind"),
    ({"path": "/etc/x"}, "op: missing"),
    ({"op": "file", "path": "/etc/../x", "content": None}, "path"),
    ({"op": "file", "path": "etc/x", "content": None}, "path"),
    ({"op": "file", "path": "//etc/x", "content": None}, "path"),
    ({"op": "file", "path": "/etc/x\0", "content": None}, "path"),
    ({"op": "file", "path": "/", "content": None}, "path"),
    ({"op": "file", "path": "/etc/x"}, "content: missing"),
    ({"op": "file", "path": "/etc/x", "content": "not base64!"}, "content"),
    ({"op": "file", "path": "/etc/x", "content": None, "mode": "0644"}, "mode"),
    ({"op": "file", "path": "/etc/x", "content": None, "mode": 0o100644}, "mode"),
    ({"op": "file", "path": "/etc/x", "content": None, "uid": -1}, "uid"),
    ({"op": "file", "path": "/etc/x", "content": None, "owner": 0}, "owner: unknown"),
    ({"op": "run", "argv": "rm -rf /", "check": {"argv": ["true"]}}, "argv"),
    ({"op": "run", "argv": ["x"], "check": {}}, "check"),
    (
        {
            "op": "run",
            "argv": ["x"],
            "check": {"argv": ["x"]},
            "undo": {"argv": ["x"], "find": {"argv": ["x"], "pattern": "("}},
        },
        "undo",
    ),
    ({"op": "run", "argv": ["x"], "check": {"argv": ["x"]}, "env": {"A=B": "c"}}, "env"),
    ({"op": "swap", "root": "/x", "touches": ["../y"], "steps": [], "verify": []}, "touches"),
    ({"op": "swap", "root": "/x", "touches": [""], "steps": [], "verify": []}, "touches"),
    ({"op": "swap", "root": "/x", "touches": ["."], "steps": [], "verify": []}, "touches"),
    ({"op": "swap", "root": "/x", "touches": ["/etc"], "steps": [], "verify": []}, "touches"),
    ({"op": "signal", "pid": 1, "started": 1, "uid": 0, "grace": 1}, "pid"),
    ({"op": "signal", "pid": -1, "started": 1, "uid": 0, "grace": 1}, "pid"),
    ({"op": "signal", "pid": True, "started": 1, "uid": 0, "grace": 1}, "pid"),
]


@pytest.mark.parametrize(("operation", "member"), HOSTILE, ids=[why + str(n) for n, (_, why) in enumerate(HOSTILE)])
def test_a_malformed_operation_is_refused_before_anything_is_written(state: str, operation: Any, member: str) -> None:
    assert str(operation_fault(operation)).startswith(member)
    with pytest.raises(RefusedError, match=r"changes\[0\]\.operations\[0\]"):
        apply(state, operation)
    assert not os.path.exists(state)


@pytest.mark.parametrize(
    "plan",
    [
        None,
        [],
        {},
        {"changes": {}},
        {"changes": [1]},
        {"changes": [{"id": "../x", "operations": []}]},
        {"changes": [{"id": "C01"}]},
    ],
)
def test_a_malformed_plan_is_refused(state: str, plan: Any) -> None:
    with pytest.raises(RefusedError, match="malformed plan"):
        apply_plan(plan, state)


def test_a_change_occurs_once(state: str) -> None:
    assert "twice" in str(plan_fault({"changes": [change("C01"), change("C01")]}))


# ---------------------------------------------------------------------- by itself


OLDEST = [
    p for v in ("3.6.15", "3.7.16") for p in [Path(f"~/.pyenv/versions/{v}/bin/python").expanduser()] if p.exists()
]


@pytest.mark.parametrize("python", [sys.executable, *map(str, OLDEST)])
def test_it_runs_alone_where_envtune_is_not_installed(tmp_path: Path, python: str) -> None:
    program = tmp_path / "program"
    shutil.copytree(ROOT / "envtune/executor", program / "executor")
    (program / "__main__.py").write_text("import sys; from executor.__main__ import main; sys.exit(main())")
    plan = build(tmp_path / "tree")
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    env = {"PATH": os.environ["PATH"], "ENVTUNE_STATE": str(tmp_path / "tree/state")}

    def call(*words: str) -> Any:
        done = subprocess.run([python, "-I", str(program), *words], env=env, stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout)

    told = call("apply", str(tmp_path / "plan.json"))
    assert {result["status"] for result in told["results"]} == {"done"} and tree(tmp_path / "tree") == NEW
    assert call("pending") == []
    assert {result["status"] for result in call("undo", told["run"])["results"]} == {"undone"}
    assert tree(tmp_path / "tree") == OLD


def test_undo_and_resume_can_be_called_twice(tmp_path: Path, no_sync: None) -> None:
    plan, state = build(tmp_path), str(tmp_path / "state")
    name, _ = apply_plan(plan, state)
    with pytest.raises(RefusedError, match="was not interrupted"):
        resume_run(state, name)
    undo_run(state, name)
    assert undo_run(state, name) == [] and tree(tmp_path) == OLD


def test_a_marked_command_is_not_run_twice(tmp_path: Path, state: str) -> None:
    build(tmp_path)
    apply(state, mark(tmp_path, "six"))
    apply(state, mark(tmp_path, "six"))
    assert (tmp_path / "marks").read_text() == "six\n"
    assert encoded(b"x") == "eA=="
