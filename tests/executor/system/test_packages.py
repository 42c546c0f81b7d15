"""A package manager that is killed in the middle: undo and history say what is left, and what is printed ends clean."""

from __future__ import annotations

import os
import shlex
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from helpers.executor_runs import last
from helpers.killed_runs import change
from helpers.package_sandbox import Repository, call, in_package_sandbox

from envtune.executor.recover import undo_run
from envtune.executor.run import apply_plan
from envtune.resources.packages.install import COMMANDS

WAIT = "if test -e {gate}; then touch {gate}.reached; sleep 300; fi"


def installing(name: str) -> dict[str, Any]:
    """What packages.install proposes for apt."""
    apt = COMMANDS["apt-get"]
    return {
        "op": "run",
        "argv": [*apt.install, "-o", "APT::Sandbox::User=root", name],
        "check": {"argv": [*apt.check, name], "contains": f"{name}=installed;"},
        "census": {"argv": list(apt.inventory), "pattern": apt.pattern},
        "undo": {"argv": list(apt.remove)},
        "env": dict(apt.environ),
    }


def versions(*names: str) -> dict[str, str]:
    rows = call("dpkg-query", "-W", "-f=${Package} ${Version} ${db:Status-Status}\n").splitlines()
    found = {words[0]: f"{words[1]} {words[2]}" for words in map(str.split, rows) if len(words) == 3}
    return {name: found[name] for name in names if name in found and "config-files" not in found[name]}


def repository(folder: Path, gate: Path, where: str) -> None:
    """et-app, which is new, needs et-lib 2; et-lib 1 is there. `where` is the script that can be killed."""
    offered = Repository(folder / "debs")
    call("dpkg", "-i", str(offered.add("et-lib", "1", {})))
    scripts: dict[str, dict[str, str]] = {"et-lib": {}, "et-app": {}}
    package, script = where.split("/")
    scripts[package][script] = WAIT.format(gate=gate)
    offered.add("et-lib", "2", scripts["et-lib"])
    offered.add("et-app", "1", scripts["et-app"], Depends="et-lib (>= 2)")
    offered.publish()


@pytest.mark.root
def test_what_stays_after_undo_is_said(tmp_path: Path, state: str) -> None:
    def work() -> None:
        repository(tmp_path, tmp_path / "gate", "et-app/postinst")
        name, (result,) = apply_plan({"changes": [change("C01", installing("et-app"))]}, state)
        assert result["status"] == "done", result
        (undone,) = undo_run(state, name)
        assert undone["status"] == "undone" and undone["upgraded"] == {"et-lib": ["1", "2"]}
        assert versions("et-app", "et-lib") == {"et-lib": "2 installed"}

    in_package_sandbox(tmp_path, work)


@pytest.mark.root
@pytest.mark.parametrize("where", ["et-app/postinst", "et-app/preinst", "et-lib/postinst", "et-lib/preinst"])
def test_killed_in_the_middle(tmp_path: Path, state: str, where: str) -> None:
    """As Ctrl-C does: apt, dpkg and the script end at once."""
    gate = tmp_path / "gate"

    def stop(kind: str, record: Any) -> None:
        if kind == "start" and os.fork() == 0:
            while not os.path.exists(f"{gate}.reached"):
                time.sleep(0.02)
            os.kill(os.getppid(), signal.SIGTERM)
            os._exit(0)

    def work() -> None:
        repository(tmp_path, gate, where)
        gate.touch()
        name, (result,) = apply_plan({"changes": [change("C01", installing("et-app"))]}, state, stop)
        gate.unlink()
        assert result["status"] == "stopped", result
        left = versions("et-app", "et-lib")
        if left == {"et-lib": "1 installed"} or left == {"et-lib": "2 installed"}:
            assert ("these packages stay upgraded: et-lib 1 -> 2" in result["error"]) == ("2" in left["et-lib"])
            assert result["state"] == "failed-restored" and last(state).end_state("C01") == "failed-restored"
        else:
            (problem,) = [row for row in result["problems"] if row["code"] == "packages-unfinished"]
            assert result["state"] == "failed-left" == last(state).end_state("C01") and last(state).status == "left"
            assert all(package in problem["fields"]["packages"] for package in left)
            for line in problem["fields"]["commands"].split("; "):
                call(*shlex.split(line)[1:], *(["-y"] if "apt-get" in line else []))
            assert {row["status"] for row in undo_run(state, name)} == {"undone"}
        assert call("dpkg", "--audit") == "" and "et-app" not in versions("et-app")
        assert versions("et-lib")["et-lib"].endswith(" installed")

    in_package_sandbox(tmp_path, work)
