"""Writing the governor: on a recorded host as a plan, and on 192 policies against the kernel's own refusals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.examples import ROOT, example_context

from envtune.audit import examine
from envtune.catalog import load
from envtune.fix.plan import Plan, make_plan
from envtune.model import Finding

POLICIES = "/sys/devices/system/cpu/cpufreq"


def planned(**example: Any) -> Plan:
    context = example_context({"arch": "x86_64", **example})
    return make_plan(found(context), load().playbooks, context)


def found(context: Any) -> list[Finding]:
    checks = [check for check in load().checks if check.id in ("CPU001", "CPU002")]
    return [finding for check in checks for finding in examine(check, context)]


def governors(*names: str, offered: str = "performance powersave") -> dict[str, Any]:
    rows: dict[str, Any] = {}
    for number, name in enumerate(names):
        rows[f"{POLICIES}/policy{number}/scaling_governor"] = name + "\n"
        rows[f"{POLICIES}/policy{number}/scaling_available_governors"] = offered + "\n"
    return rows


def test_one_change_per_policy_that_is_not_performance() -> None:
    plan = planned(files=governors("performance", "powersave", "ondemand"))
    assert [(c.subject, c.before, c.after, c.view) for c in plan.changes] == [
        ("cpu1", "powersave", "performance", "live"),
        ("cpu2", "ondemand", "performance", "live"),
    ]
    assert {c.finding for c in plan.changes} == {"CPU001"} and {c.cures for c in plan.changes} == {("CPU002",)}
    assert {c.safety for c in plan.changes} == {"confirm"} and all(c.root and c.undoable for c in plan.changes)
    assert plan.changes[0].operations[0]["path"] == f"{POLICIES}/policy1/scaling_governor"


def test_policies_are_planned_in_the_order_of_their_numbers() -> None:
    plan = planned(files=governors(*["powersave"] * 12))
    assert [c.subject for c in plan.changes] == [f"cpu{number}" for number in range(12)]


def test_a_kernel_without_policy_folders() -> None:
    path = "/sys/devices/system/cpu/cpu0/cpufreq"
    files = {f"{path}/scaling_governor": "ondemand\n", f"{path}/scaling_available_governors": "ondemand performance\n"}
    (change,) = planned(files=files).changes
    assert change.target == f"{path}/scaling_governor"


def test_a_policy_that_does_not_offer_it_is_named_and_left() -> None:
    files = governors("powersave", "powersave")
    files[f"{POLICIES}/policy1/scaling_available_governors"] = "ondemand powersave\n"
    (change,) = planned(files=files).changes
    assert change.subject == "cpu0"
    assert change.note is not None and "cpu1: performance is not offered (ondemand powersave)" in change.note.en
    assert "cpu1：不提供 performance" in change.note.zh


def test_nothing_offers_it() -> None:
    plan = planned(files=governors("powersave", offered="ondemand powersave"))
    assert not plan.changes
    assert {s.finding for s in plan.skipped} == {"CPU001"}
    assert "not offered" in plan.skipped[0].reason.en


def test_who_else_owns_the_governor() -> None:
    wants = "/etc/systemd/system/multi-user.target.wants"
    files = governors("powersave")
    files |= {
        f"{wants}/tuned.service": {"link": "/usr/lib/systemd/system/tuned.service"},
        "/etc/tuned/active_profile": "powersave\n",
        "/usr/lib/tuned/powersave/tuned.conf": "[cpu]\ngovernor=ondemand|powersave\n",
        f"{wants}/power-profiles-daemon.service": {"link": "/usr/lib/systemd/system/power-profiles-daemon.service"},
        f"{wants}/cpupower.service": {"link": "/usr/lib/systemd/system/cpupower.service"},
        "/etc/sysconfig/cpupower": 'CPUPOWER_START_OPTS="frequency-set -g powersave"\n',
        f"{wants}/thermald.service": {"link": "/usr/lib/systemd/system/thermald.service"},
    }
    (change,) = planned(files=files).changes
    words = " | ".join(rival.en for rival in change.rivals)
    for name in (
        "tuned (powersave) sets ondemand",
        "power-profiles-daemon",
        "cpupower.service sets powersave",
        "thermald",
    ):
        assert name in words


def test_a_tuned_profile_that_is_gone_is_named_and_stops_nothing() -> None:
    files = governors("powersave")
    files["/etc/systemd/system/multi-user.target.wants/tuned.service"] = {
        "link": "/usr/lib/systemd/system/tuned.service"
    }
    files["/etc/tuned/active_profile"] = "lost\n"
    (change,) = planned(files=files).changes
    assert "lost" in change.rivals[0].en


def test_a_container_that_mounts_sys_read_only_says_so() -> None:
    mounts = "22 1 0:21 / / rw - overlay overlay rw\n23 22 0:22 / /sys ro,nosuid - sysfs sysfs ro\n"
    (change,) = planned(files={**governors("powersave"), "/proc/self/mountinfo": mounts}).changes
    assert change.rivals[-1].en.startswith("/sys is mounted read-only here")


# ---------------------------------------------------------------------- the kernel

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
    if str(path).endswith("policy13/scaling_governor") and flags & os.O_WRONLY:
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
rivals = [str(c.rivals) for c in made.changes if "policy9/" in c.target]
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
