"""slurm-health with a node of Slurm, and what scontrol prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from helpers.rows import sampled
from helpers.scontrol import FakeNode

from envtune.hook.limits import Ended
from envtune.hook.node import verdict_of
from envtune.hook.records import Node
from envtune.hook.slurm import SlurmError, node_name, parse_node

SHOWN = """\
NodeName=node1 Arch=x86_64 CoresPerSocket=1 
   CPUAlloc=0 CPUTot=1 CPULoad=0.40
   OS=Linux 6.1.0 #1 SMP
   RealMemory=1 AllocMem=0 FreeMem=900 Sockets=1 Boards=1
   State={state} ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions=all 
   Reason={reason}

"""
DRAINED = frozenset(["IDLE", "DRAIN"])


@pytest.mark.parametrize(
    "state, reason, node",
    [
        ("IDLE", None, Node(frozenset(["IDLE"]))),
        ("IDLE*+DRAIN", "disk [root@2026-11-23T03:00:00]", Node(DRAINED, "disk", "root@2026-11-23T03:00:00")),
        ("IDLE+DRAIN~", "a [b] c [u@T]", Node(DRAINED, "a [b] c", "u@T")),
        ("DOWN", "one\n       two [u@T]", Node(frozenset(["DOWN"]), "one", "")),
        ("IDLE", "State=DOWN [u@T]", Node(frozenset(["IDLE"]), "State=DOWN", "u@T")),
    ],
)  # fmt: skip
def test_what_scontrol_shows(state: str, reason: Any, node: Node) -> None:
    text = SHOWN.format(state=state, reason=reason)
    if reason is None:
        text = "".join(line for line in text.splitlines(True) if "Reason" not in line)
    assert parse_node(text) == node


def test_what_is_no_node() -> None:
    with pytest.raises(SlurmError):
        parse_node("Node node1 not found")


@pytest.mark.parametrize("name", ["ALL", "all", "node[1-9]", "a,b", "-x", "a b", "node1\nnode2"])
def test_a_hook_is_about_one_node(name: str) -> None:
    with pytest.raises(SlurmError):
        node_name(name)


def test_a_name_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURMD_NODENAME", "rack1-node7")
    assert (node_name(""), node_name("n1.example.com")) == ("rack1-node7", "n1.example.com")


def health(hook: Any, node: FakeNode, site: Path, *words: str, **variables: str) -> Any:
    options = ("--scontrol", str(node.scontrol), "--catalog", str(site), "--select", "SITE101")
    return hook("slurm-health", *options, *words, **variables)


def test_a_node_is_drained_and_resumed(tmp_path: Path, hook: Any, site: Path) -> None:
    node, sick = FakeNode(tmp_path / "slurm"), tmp_path / "sick"
    assert health(hook, node, site).stdout == "envtune: leave node1 as it is: no problems\n"
    sick.touch()
    assert health(hook, node, site, "--dry-run").stdout == "envtune: would drain node1: envtune: SITE101\n"
    assert node.changes == []
    assert health(hook, node, site).stdout == "envtune: drained node1: envtune: SITE101\n"
    assert (node.state, node.reason) == ("IDLE+DRAIN", "envtune: SITE101")
    assert "already drained" in health(hook, node, site).stdout
    sick.unlink()
    assert health(hook, node, site, "--dry-run").stdout == "envtune: would resume node1: fixed: SITE101\n"
    done = health(hook, node, site)
    assert (done.stdout, done.stderr, done.returncode) == ("envtune: resumed node1: fixed: SITE101\n", "", 0)
    assert (node.state, len(node.changes)) == ("IDLE", 2)
    assert not (tmp_path / "state" / "scheduler" / "drain.json").exists()


def test_a_dry_run_writes_nothing(tmp_path: Path, hook: Any, site: Path) -> None:
    node = FakeNode(tmp_path / "slurm")
    (tmp_path / "sick").touch()
    assert health(hook, node, site, "--dry-run").returncode == 0
    assert not (tmp_path / "state").exists()


def test_the_verdict_serves_the_prolog(tmp_path: Path, hook: Any, site: Path) -> None:
    """Also its threshold: what is no problem for the one is none for the other."""
    node = FakeNode(tmp_path / "slurm")
    (tmp_path / "sick").touch()
    health(hook, node, site, "--fail-on", "critical")
    words = ("slurm-prolog", "--scontrol", str(node.scontrol))
    assert (hook(*words).returncode, hook(*words, "--fail-on", "high").returncode) == (0, 20)
    assert node.reason == "envtune: SITE101"
    (tmp_path / "sick").unlink()
    assert "resumed node1" in health(hook, node, site).stdout  # also what a prolog has drained
    assert hook(*words).returncode == 0


FAULTS = {
    "no scontrol": ({}, ["--scontrol", "/nowhere/scontrol"]),
    "no slurmctld": ({"show": "echo 'Unable to contact slurm controller'; exit 1"}, []),
    "the drain is refused": ({"update": "exit 1"}, []),
    "scontrol update does not end": ({"update": "sleep 100"}, ["--timeout", "1"]),
    "scontrol does not end": ({"show": "sleep 100"}, ["--timeout", "1"]),
    "two nodes": ({}, ["--node", "node[1-2]"]),
    "a policy that is missing": ({}, ["--policy", "/nowhere/policy.yaml"]),
    "a check that is missing": ({}, ["--select", "NOSUCH1"]),
}


@pytest.mark.parametrize("name", sampled(FAULTS, 3))
def test_a_fault_drains_nothing(name: str, tmp_path: Path, hook: Any, site: Path) -> None:
    made, words = FAULTS[name]
    node = FakeNode(tmp_path / "slurm", **made)
    (tmp_path / "sick").touch()
    done = health(hook, node, site, *words)
    assert done.returncode == 0 and "Traceback" not in done.stderr
    assert done.stderr.startswith("envtune: slurm-health: ") and done.stderr.endswith(
        ("; the node is left as it is\n", "; whether Slurm has changed the node is unknown\n")
    )
    assert node.state == "IDLE"
    assert not (tmp_path / "state" / "scheduler" / "drain.json").exists() or "does not end" in name


@pytest.mark.parametrize("part", ["drain.json", "directory"])
def test_a_state_that_cannot_be_used_drains_nothing(part: str, tmp_path: Path, hook: Any, site: Path) -> None:
    """Without it the drain could not be undone."""
    node, state = FakeNode(tmp_path / "slurm"), tmp_path / "state" / "scheduler"
    state.mkdir(parents=True, mode=0o700)
    if part == "directory":
        state.chmod(0o777)
    else:
        (state / part).write_text("{")
    (tmp_path / "sick").touch()
    done = health(hook, node, site)
    assert done.returncode == 0 and "the node is left as it is" in done.stderr
    assert node.changes == []


def test_what_was_found_before_time_was_up_counts() -> None:
    row = {"check": "NET003", "outcome": "fail", "severity": "high"}
    verdict = verdict_of(Ended(({"step": "NET003"}, row, {"step": "CPU001"}), "no answer within 9 s", timed_out=True))
    assert verdict is not None and verdict.problems() == ("NET003",) and not verdict.complete
    assert verdict_of(Ended(({"step": "NET003"},), "no answer within 9 s", timed_out=True)) is None
    assert verdict_of(Ended((row,), "MemoryError: ")) is None


def test_the_environment_of_a_daemon_is_no_job(tmp_path: Path, hook: Any) -> None:
    node = FakeNode(tmp_path / "slurm")
    done = hook("slurm-health", "--scontrol", str(node.scontrol), ASCEND_GLOBAL_LOG_LEVEL="0", TASK_QUEUE_ENABLE="0")
    assert done.returncode == 0, done
    kept = json.loads((tmp_path / "state/scheduler/verdict.json").read_text())
    assert {row[0] for name, row in kept["outcomes"].items() if name.startswith("ENV")} <= {"unknown", "notapplicable"}
