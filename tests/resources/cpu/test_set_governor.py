"""Writing the governor of 192 policies against the kernel's own refusals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.examples import ROOT

# In a mount namespace of its own: 192 policies at the real path on a tmpfs, three of them with a kernel's refusal.
TREE = """
import ctypes, json, os, subprocess, sys

def run(*argv): subprocess.run(argv, check=True)
libc = ctypes.CDLL(None, use_errno=True)
assert libc.unshare(0x40000000) == 0, os.strerror(ctypes.get_errno())  # CLONE_NEWNET: ip_forward is of this test alone
run("mount", "--make-rprivate", "/")
top = sys.argv[1]
run("mount", "-t", "tmpfs", "none", top)
for number in range(192):
    folder = f"{top}/cpufreq/policy{number}"
    os.makedirs(folder)
    for name, text in (("scaling_governor", "powersave"), ("scaling_available_governors", "performance powersave")):
        with open(f"{folder}/{name}", "w") as file:
            file.write(text + "\\n")
    with open(f"{folder}/related_cpus", "w") as file:
        file.write(f"{number}\\n")
run("mount", "--bind", "/proc/sys/net/ipv4/ip_forward", f"{top}/cpufreq/policy7/scaling_governor")  # EINVAL on a word
locked = f"{top}/cpufreq/policy9/scaling_governor"
run("mount", "--bind", locked, locked)
run("mount", "-o", "remount,bind,ro", locked)  # EROFS
run("chattr", "+i", f"{top}/cpufreq/policy11/scaling_governor")  # EPERM
run("mount", "--rbind", top, "/sys/devices/system/cpu")
"""
FIX = """
import errno
from helpers import fixing
from envtune.executor.history import RecordedRun

state = sys.argv[2]
context = fixing.local_context({"container": "false", "vm": "false", "arch": "x86_64"})
def read():
    found = {}
    for number in range(192):
        with open(f"/sys/devices/system/cpu/cpufreq/policy{number}/scaling_governor") as file:
            found[number] = file.read().strip()
    return found
before = read()
made = fixing.plan(context, "CPU001", "CPU002")
opened = os.open
def busy(path, flags, *more, **named):
    folder = os.readlink("/proc/self/fd/%d" % named["dir_fd"]) if named.get("dir_fd") is not None else ""
    if f"{folder}/{path}".endswith("policy13/scaling_governor") and flags & os.O_WRONLY:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), path)
    return opened(path, flags, *more, **named)
os.open = busy
run_name, results = fixing.apply(made, state)
os.open = opened
told = {target.split("policy")[1].split("/")[0]: [row["status"], row["error"]] for target, row in results.items()}
after = read()
later = fixing.local_context({"container": "false", "vm": "false"})
again = [(f.id, f.outcome.value, f.subject) for f in fixing.find(later, "CPU001")]
kept = sum(len(step["kept"]["original"]) > 0 for step in RecordedRun(state, run_name).steps.values())
past = RecordedRun(state, run_name).status
wrong = fixing.undo(run_name, state)
rivals = [str(c.other_owners) for c in made.changes if "policy9/" in c.target]
print(json.dumps({"before": before, "after": after, "told": told, "again": again, "kept": kept, "past": past,
                  "wrong": wrong, "back": read(), "rivals": rivals}))
"""


@pytest.mark.root
def test_192_policies_some_of_which_refuse(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    (tmp_path / "tree").mkdir()
    code = TREE + FIX
    argv = ["unshare", "-m", sys.executable, "-c", code, str(tmp_path / "tree"), str(tmp_path / "state")]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    done = subprocess.run(argv, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout)
    refused = {"7": "Invalid argument", "9": "Read-only file system", "11": "Operation not permitted", "13": "busy"}
    assert len(said["told"]) == 192
    for number, (status, error) in said["told"].items():
        if number in refused:
            assert status == "failed" and refused[number] in error and f"policy{number}/scaling_governor" in error
        else:
            assert (status, error) == ("done", None)
    for number, governor in said["after"].items():
        assert governor == (said["before"][number] if number in refused else "performance")
    assert said["past"] == "partly"
    failed = [subject for id_, outcome, subject in said["again"] if outcome == "fail"]
    assert sorted(", ".join(failed).split(", ")) == ["cpu11", "cpu13", "cpu7", "cpu9"]
    assert said["kept"] >= 188, "the journal has every old value"
    assert said["wrong"] == [] and said["back"] == said["before"], "undone exactly"
    assert "read-only" in said["rivals"][0]
