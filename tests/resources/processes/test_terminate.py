"""Ending left-over processes: exactly those, by number and start time; others' only when named with their owner."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Mapping

import pytest
from helpers.examples import ROOT, example_context

from envtune.audit import examine
from envtune.catalog import load
from envtune.fix.plan import Plan, make_plan
from envtune.model import FixOptions

INIT = {"pid": 1, "ppid": 0, "user": "root", "name": "systemd", "started": 1699000000}
BOOT = 1699000000
NOTHING = FixOptions()


def row(pid: int, **more: Any) -> dict[str, Any]:
    return {
        "pid": pid,
        "ppid": 1,
        "user": "root",
        "name": "python3",
        "started": BOOT + 500,
        "devices": ["/dev/davinci0"],
        **more,
    }


def planned(*rows: dict[str, Any], options: FixOptions = NOTHING, uids: Mapping[int, int] = {}, **more: Any) -> Plan:
    """The plan for a host without npu-smi on whose /dev/davinci0 these processes are."""
    files: dict[str, Any] = {
        "/dev/davinci0": {"char": True},
        "/proc/stat": f"cpu 1 2\nbtime {BOOT}\n",
        "/proc/self/stat": "999 (x) S 1",
    }
    for one in rows:
        files[f"/proc/{one['pid']}"] = {"dir": None, "uid": uids.get(one["pid"], 0)}
        files[f"/proc/{one['pid']}/stat"] = f"{one['pid']} (py (x) 3) S " + "0 " * 18 + "50000 0 0"
        files[f"/proc/{one['pid']}/cgroup"] = "0::/user.slice/session-1.scope\n"
    own = {"pid": 999, "ppid": 998, "user": "root", "name": "envtune", "started": BOOT + 900}
    example = {
        "arch": "aarch64",
        "files": files,
        "processes": [INIT, own, *rows],
        "now": BOOT + 7300,
        "euid": 0,
        **more,
    }
    context = example_context(example)
    (check,) = [check for check in load().checks if check.id == "PROC001"]
    return make_plan(examine(check, context), load().playbooks, context, options)


def test_the_plan_says_who_how_old_and_started_by_whom() -> None:
    (change,) = planned(row(77, argv=["python3", "train.py", "--token=secret"])).changes
    assert (
        change.before
        == "pid 77 of root, 1 h old, parent 1 (systemd), its parent has ended, systemd adopted it: python3 train.py"
    )
    assert change.operations == ({"op": "signal", "pid": 77, "started": 50000, "uid": 0, "grace": 10, "kill": True},)
    assert (change.safety, change.disruption, change.undoable, change.root) == ("confirm", "job", False, False)


def test_every_process_is_a_change_of_its_own() -> None:
    assert [c.target for c in planned(row(77), row(78, devices=["/dev/davinci0", "/dev/davinci1"])).changes] == [
        "process 77",
        "process 78",
    ]


def test_another_users_process_needs_its_number_and_its_owner() -> None:
    li = row(77, user="li")
    plan = planned(li, uids={77: 1000})
    assert not plan.changes and "--pid 77 --owner li" in plan.skipped[0].reason.en
    assert not planned(li, uids={77: 1000}, options=FixOptions(pid=78, owner="li")).changes
    assert not planned(li, uids={77: 1000}, options=FixOptions(pid=77, owner="wang")).changes
    (change,) = planned(li, uids={77: 1000}, options=FixOptions(pid=77, owner="li")).changes
    assert change.root and change.operations[0]["uid"] == 1000


def test_without_root_only_ones_own() -> None:
    mine, other = row(77, user="li"), row(78, user="wang")
    plan = planned(mine, other, uids={77: 1000, 78: 1001}, euid=1000, options=FixOptions(pid=78, owner="wang"))
    assert not plan.changes
    (change,) = planned(mine, other, uids={77: 1000, 78: 1001}, euid=1000).changes
    assert change.target == "process 77" and not change.root
    assert change.note is not None and "pid 78 (wang): another user's" in change.note.en


def test_a_zombie_cannot_be_ended() -> None:
    plan = planned(row(77, state="Z"))
    assert not plan.changes and "zombie" in plan.skipped[0].reason.en


def test_never_what_started_envtune() -> None:
    shell = row(998, name="bash", state="T")
    plan = planned(shell)
    assert not plan.changes and "envtune itself or started it" in plan.skipped[0].reason.en


def test_another_process_under_the_number_is_left() -> None:
    plan = planned(row(77, started=BOOT + 700))
    assert not plan.changes and "another process by now" in plan.skipped[0].reason.en


def test_a_recording_does_not_tell_enough_and_nothing_is_said_to_have_ended() -> None:
    bare = {f"/proc/77{name}": None for name in ("", "/stat", "/cgroup")}
    own = {"pid": 999, "ppid": 998, "user": "root", "name": "envtune", "started": BOOT + 900}
    example = {"arch": "aarch64", "files": {"/dev/davinci0": {"char": True}, **bare}, "now": BOOT + 7300, "euid": 0}
    context = example_context({**example, "processes": [INIT, own, row(77)]})
    (check,) = [check for check in load().checks if check.id == "PROC001"]
    plan = make_plan(examine(check, context), load().playbooks, context, NOTHING)
    (skipped,) = plan.skipped
    assert not plan.changes and skipped.steps == ()
    assert "pid 77 (root): a recording does not hold" in skipped.reason.en and "on the host itself" in skipped.reason.en


# ---------------------------------------------------------------------- real processes

# Process 1 of a namespace of its own: what adopts orphans, as systemd does.
REAL = """
import json, os, signal, subprocess, sys, time
from helpers import fixing
from envtune.executor.common import failpoint_hooks
from envtune.model import FixOptions

state = sys.argv[1]
with open("/proc/self/comm", "w") as file:
    file.write("systemd")
subprocess.run(["mount", "-t", "tmpfs", "none", "/dev"], check=True)
os.mknod("/dev/null", 0o666 | 0o020000, os.makedev(1, 3))
os.mknod("/dev/davinci0", 0o666 | 0o020000, os.makedev(1, 3))

def orphan(uid=0, deaf=False):
    '''A process without a parent that holds the device; its number.'''
    back, front = os.pipe()
    if os.fork() == 0:
        if os.fork() == 0:
            os.open("/dev/davinci0", os.O_RDWR)
            os.setuid(uid)
            if deaf:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.write(front, str(os.getpid()).encode())
            time.sleep(600)
        os._exit(0)
    os.wait()
    return int(os.read(back, 20))

def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass

def alive(pid):
    reap()
    return os.path.exists("/proc/%d" % pid)

def context():
    return fixing.local_context({"ascend": "true", "container": "false"})

def plan(**options):
    return fixing.plan(context(), "PROC001", options=FixOptions(**options))

def reuse(pid):
    '''Another process under the same number.'''
    os.kill(pid, signal.SIGKILL)
    while alive(pid):
        time.sleep(0.01)
    for _ in range(50):
        with open("/proc/sys/kernel/ns_last_pid", "w") as file:
            file.write(str(pid - 1))
        child = os.fork()
        if child == 0:
            time.sleep(600)
        if child == pid:
            return
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    raise AssertionError("the number did not come again")

said = {}
one = orphan()
made = plan()
said["listed"] = [c.before for c in made.changes]
said["one"] = one
watch = os.fork()
if watch == 0:  # process 1 must collect its children while the signal is waited for
    os._exit(0)
signal.signal(signal.SIGCHLD, lambda *_: reap())
said["ended"] = [r["status"] for r in fixing.apply(made, state)[1].values()]
said["gone"] = not alive(one)
said["again"] = [f.outcome.value for f in fixing.find(context(), "PROC001")]

deaf = orphan(deaf=True)
made = plan()
operation = dict(made.changes[0].operations[0], grace=0.3)
from dataclasses import replace
made = replace(made, changes=(made.changes[0]._replace(operations=(operation,)),))
said["deaf"] = [r["status"] for r in fixing.apply(made, state)[1].values()] + [alive(deaf)]

two = orphan()
made = plan()
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
reuse(two)
fixing.apply(made, state)
time.sleep(0.2)
said["reused before"] = alive(two)
os.kill(two, signal.SIGKILL)
os.waitpid(two, 0)

three = orphan()
made = plan()
def swap(name):
    if name == "before-signal":
        failpoint_hooks.clear()
        reuse(three)
failpoint_hooks.append(swap)
fixing.apply(made, state)
time.sleep(0.2)
said["reused at the signal"] = alive(three)
os.kill(three, signal.SIGKILL)
os.waitpid(three, 0)

four = orphan(uid=65534)
signal.signal(signal.SIGCHLD, lambda *_: reap())
made = plan()
said["another user's"] = [len(made.changes), made.skipped[0].reason.en, alive(four)]
said["owner"] = [len(plan(pid=four, owner="root").changes), alive(four)]
name = made.skipped[0].reason.en.split("--owner ")[1].split()[0].strip(";")
said["named"] = [r["status"] for r in fixing.apply(plan(pid=four, owner=name), state)[1].values()] + [alive(four)]
print(json.dumps(said))
"""


@pytest.mark.root
def test_a_real_orphan_on_a_device_node(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    argv = ["unshare", "-m", "-p", "-f", "--mount-proc", sys.executable, "-c", REAL, str(tmp_path / "state")]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    done = subprocess.run(argv, capture_output=True, text=True, env=env, check=False, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout)
    (line,) = said["listed"]
    assert line.startswith(f"pid {said['one']} of root, ") and " s old, parent 1 (systemd), " in line
    assert said["ended"] == ["done"] and said["gone"] is True and said["again"] == ["pass"]
    assert said["deaf"] == ["done", False], "KILL after the grace period"
    assert said["reused before"] is True and said["reused at the signal"] is True, "another process is not touched"
    count, why, there = said["another user's"]
    assert (count, there) == (0, True) and "another user's: ask them; root can end it with --pid" in why
    assert said["owner"] == [0, True], "not the owner that was named"
    assert said["named"] == ["done", False]
