"""Ending real left-over processes: exactly those, by number and start time; others' only with their owner named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.examples import ROOT

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
made = made._replace(changes=(made.changes[0]._replace(operations=(operation,)),))
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
said["another user"] = [len(made.changes), made.skipped[0].reason.en, alive(four)]
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
    count, why, there = said["another user"]
    assert (count, there) == (0, True) and "belongs to another user: ask them; root can end it with --pid" in why
    assert said["owner"] == [0, True], "not the owner that was named"
    assert said["named"] == ["done", False]
