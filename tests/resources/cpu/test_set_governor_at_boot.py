"""The governor at boot: a unit of our own through systemctl, or a child of the tuned profile that rules."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.examples import ROOT, example_context

from envtune.audit import examine
from envtune.catalog import load
from envtune.fix.plan import Plan, make_plan
from envtune.resources.cpu.set_governor_at_boot import unit_text

POLICY = {"/sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "performance\n"}
WANTS = "/etc/systemd/system/multi-user.target.wants"
UNIT = "/etc/systemd/system/envtune-governor.service"


def planned(**files: Any) -> Plan:
    context = example_context({"arch": "aarch64", "files": {**POLICY, "/etc/systemd/system": {"dir": []}, **files}})
    (check,) = [check for check in load().checks if check.id == "CPU005"]
    return make_plan(examine(check, context), load().playbooks, context)


def link(name: str) -> dict[str, Any]:
    return {f"{WANTS}/{name}": {"link": f"/usr/lib/systemd/system/{name}"}}


def test_the_check_knows_our_unit() -> None:
    plan = planned(**{UNIT: unit_text(), f"{WANTS}/envtune-governor.service": {"link": UNIT}})
    assert not plan.changes and not plan.skipped


def test_the_check_knows_the_profile_that_extends_tuned() -> None:
    files = {
        **link("tuned.service"),
        "/etc/tuned/active_profile": "throughput-training\n",
        "/etc/tuned/throughput-training/tuned.conf": "[cpu]\ngovernor=ondemand\n",
    }
    (change,) = planned(**files).changes
    after = {**files, change.target: change.after, "/etc/tuned/active_profile": "envtune\n"}
    assert not planned(**after).changes and not planned(**after).skipped


# ---------------------------------------------------------------------- systemctl itself, without a running systemd

REAL = """
import json, os, subprocess, sys
from helpers import fixing

subprocess.run(["mount", "--make-rprivate", "/"], check=True)
for place in ("/etc/systemd/system", "/sys/devices/system/cpu"):
    subprocess.run(["mount", "-t", "tmpfs", "none", place], check=True)
os.makedirs("/sys/devices/system/cpu/cpufreq/policy0")
with open("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "w") as file:
    file.write("performance\\n")
facts = {"container": "false", "vm": "false"}

def tree():
    found = {}
    for folder, _, names in os.walk("/etc/systemd/system"):
        for name in [*names, "."]:
            path = os.path.join(folder, name)
            found[path] = os.readlink(path) if os.path.islink(path) else os.path.isdir(path) or open(path).read()
    return found

def is_enabled():
    argv = ["systemctl", "is-enabled", "envtune-governor.service"]
    return subprocess.run(argv, capture_output=True, text=True).stdout.strip()

before = tree()
made = fixing.plan(fixing.local_context(facts), "CPU005")
run, results = fixing.apply(made, sys.argv[1])
after, enabled = tree(), is_enabled()
unit = "/etc/systemd/system/envtune-governor.service"
verify = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True).stderr
again = [f.outcome.value for f in fixing.find(fixing.local_context(facts), "CPU005")]
wrong = fixing.undo(run, sys.argv[1])
told = [row["status"] for row in results.values()]
print(json.dumps({"results": told, "after": after, "enabled": enabled, "again": again, "wrong": wrong,
                  "same": tree() == before, "then": is_enabled(), "verify": verify}))
"""


@pytest.mark.root
def test_enabled_and_undone_by_systemctl(tmp_path: Path) -> None:
    if os.geteuid() != 0 or shutil.which("systemctl") is None:
        pytest.skip("needs root, and systemctl")
    argv = ["unshare", "-m", sys.executable, "-c", REAL, str(tmp_path / "state")]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    done = subprocess.run(argv, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout)
    assert said["results"] == ["done"] and said["enabled"] == "enabled" and said["again"] == ["pass"]
    assert said["after"][f"{WANTS}/envtune-governor.service"] == UNIT
    assert "envtune-governor" not in said["verify"], said["verify"]
    assert said["wrong"] == [] and said["same"] and said["then"] != "enabled", "undone exactly"


@pytest.mark.root
def test_what_the_unit_runs_sets_every_governor(tmp_path: Path) -> None:
    """The command line of the unit, as systemd would hand it to the shell, on a tree in a namespace."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    line = next(row for row in unit_text().splitlines() if row.startswith("ExecStart=/bin/sh -c '"))
    command = line.partition("'")[2].rstrip("'").replace("$$", "$")
    setup = (
        "mount --make-rprivate / && mount -t tmpfs none /sys/devices/system/cpu && cd /sys/devices/system/cpu"
        " && mkdir -p cpu0/cpufreq cpu1/cpufreq && echo powersave >cpu0/cpufreq/scaling_governor"
        " && echo ondemand >cpu1/cpufreq/scaling_governor"
    )
    code = f'{setup}; sh -c "$0" && cat /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor'
    done = subprocess.run(["unshare", "-m", "sh", "-c", code, command], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["performance", "performance"]
    refused = code.replace(
        "ondemand >cpu1/cpufreq/scaling_governor", "x >cpu1/cpufreq/y; mkdir cpu1/cpufreq/scaling_governor"
    )
    assert (
        subprocess.run(["unshare", "-m", "sh", "-c", refused, command], capture_output=True, check=False).returncode
        == 1
    )


TUNED = """#!/bin/sh
# A recorded tuned-adm: what it does to active_profile, and what it prints.
case $1 in
  profile) shift; echo "$*" > /etc/tuned/active_profile ;;
  active) echo "Current active profile: $(cat /etc/tuned/active_profile)" ;;
esac
"""
CHILD = """
import json, os, subprocess, sys
from helpers import fixing

subprocess.run(["mount", "--make-rprivate", "/"], check=True)
for place in ("/etc", "/sys/devices/system/cpu"):
    subprocess.run(["mount", "-t", "tmpfs", "none", place], check=True)
subprocess.run(["mount", "--bind", sys.argv[2], "/usr/local/sbin"], check=True)  # where root's programs are looked for
def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)
write("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "performance\\n")
write("/etc/tuned/active_profile", "site\\n")
write("/etc/tuned/site/tuned.conf", "[cpu]\\ngovernor=powersave\\n")
os.makedirs("/etc/systemd/system/multi-user.target.wants")
os.symlink("/usr/lib/systemd/system/tuned.service", "/etc/systemd/system/multi-user.target.wants/tuned.service")
facts = {"container": "false", "vm": "false"}
made = fixing.plan(fixing.local_context(facts), "CPU005")
run, results = fixing.apply(made, sys.argv[1])
active = open("/etc/tuned/active_profile").read()
again = [f.outcome.value for f in fixing.find(fixing.local_context(facts), "CPU005")]
wrong = fixing.undo(run, sys.argv[1])
print(json.dumps({"results": [r["status"] for r in results.values()], "active": active, "again": again, "wrong": wrong,
                  "then": open("/etc/tuned/active_profile").read(), "left": sorted(os.listdir("/etc/tuned"))}))
"""


@pytest.mark.root
def test_a_child_profile_by_a_recorded_tuned_adm(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    (tmp_path / "bin").mkdir()
    tool = tmp_path / "bin" / "tuned-adm"
    tool.write_text(TUNED)
    tool.chmod(0o755)
    argv = ["unshare", "-m", sys.executable, "-c", CHILD, str(tmp_path / "state"), str(tmp_path / "bin")]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    done = subprocess.run(argv, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout)
    assert (said["results"], said["active"], said["again"]) == (["done"], "envtune\n", ["pass"])
    assert (said["wrong"], said["then"], said["left"]) == ([], "site\n", ["active_profile", "site"])
