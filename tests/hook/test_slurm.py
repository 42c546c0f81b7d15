"""The hooks with a real slurmctld and slurmd."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Iterator

import pytest
from helpers.examples import ROOT
from helpers.slurm_cluster import Cluster, cluster, wait

pytestmark = [pytest.mark.root, pytest.mark.slow]
DRAINED = "drained envtune: SITE101"


@pytest.fixture
def slurm(tmp_path: Path) -> Iterator[Cluster]:
    if any(shutil.which(name) is None for name in ("slurmctld", "slurmd", "munged", "srun")):
        pytest.skip("no Slurm here")
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), "LC_ALL": "C.UTF-8"}
    with cluster(tmp_path, "", environ) as started:
        yield started


class Hooks:
    """The hooks on the node of a cluster; their state is in its directory."""

    def __init__(self, slurm: Cluster, site: Path) -> None:
        self._slurm = slurm
        self._site = site

    def __call__(self, verb: str, *words: str) -> str:
        done = self.run(verb, *words)
        assert done.returncode == 0, done
        return str(done.stdout + done.stderr)

    def run(self, verb: str, *words: str):  # type: ignore[no-untyped-def]
        variables = [
            f"PYTHONPATH={ROOT}",
            f"ENVTUNE_STATE={self._slurm.folder}/envtune",
            f"XDG_CACHE_HOME={self._slurm.folder}/cache",
        ]
        select = ["--catalog", str(self._site), "--select", "SITE101"]
        return self._slurm.command(
            "env", *variables, sys.executable, "-m", "envtune", "hook", verb, *select, *words, seconds=120
        )


@pytest.fixture
def hooks(slurm: Cluster, site: Path) -> Hooks:
    return Hooks(slurm, site)


def drain(slurm: Cluster, reason: str) -> None:
    done = slurm.command("scontrol", "update", f"nodename={slurm.node}", "state=drain", f"reason={reason}")
    assert done.returncode == 0, done


def is_idle(slurm: Cluster) -> None:
    """A node that was resumed is `idle*` until it has registered again."""
    wait(lambda: slurm.state() == "idle none", slurm.logs)


def test_a_bad_node_is_drained_and_comes_back(slurm: Cluster, hooks: Hooks, tmp_path: Path) -> None:
    assert "no problems" in hooks("slurm-health")
    assert slurm.state().startswith("idle")
    (tmp_path / "sick").touch()
    hooks("slurm-health")
    assert slurm.state() == DRAINED
    hooks("slurm-health")
    assert slurm.state() == DRAINED
    (tmp_path / "sick").unlink()
    assert "resumed" in hooks("slurm-health")
    is_idle(slurm)
    assert slurm.command("srun", "echo", "ran").stdout == "ran\n"


def test_a_drain_of_an_administrator_stays(slurm: Cluster, hooks: Hooks, tmp_path: Path) -> None:
    drain(slurm, "disk")
    hooks("slurm-health")
    (tmp_path / "sick").touch()
    hooks("slurm-health")
    assert slurm.state() == "drained disk"
    (tmp_path / "sick").unlink()
    hooks("slurm-health")
    assert slurm.state() == "drained disk"


@pytest.mark.parametrize("reason", ["envtune: SITE101, and the disk", "disk"])
def test_a_drain_on_top_of_ours_stays(slurm: Cluster, hooks: Hooks, tmp_path: Path, reason: str) -> None:
    """With exactly our words Slurm notes neither the time nor the user anew: that one alone is taken for ours."""
    (tmp_path / "sick").touch()
    hooks("slurm-health")
    assert slurm.state() == DRAINED
    drain(slurm, reason)
    hooks("slurm-health")
    (tmp_path / "sick").unlink()
    hooks("slurm-health")
    hooks("slurm-health")
    assert slurm.state() == f"drained {reason}"


def test_our_words_in_a_drain_of_an_administrator(slurm: Cluster, hooks: Hooks) -> None:
    drain(slurm, "envtune: SITE101")
    hooks("slurm-health")
    assert slurm.state() == DRAINED


def test_a_drain_whose_time_was_not_read(slurm: Cluster, hooks: Hooks, tmp_path: Path) -> None:
    """As after an end of the hook between the drain and the look at it."""
    (tmp_path / "sick").touch()
    hooks("slurm-health")
    path = tmp_path / "envtune" / "scheduler" / "drain.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "stamp": ""}))
    (tmp_path / "sick").unlink()
    hooks("slurm-health")
    is_idle(slurm)


def test_a_changed_reason_makes_it_the_administrators(slurm: Cluster, hooks: Hooks, tmp_path: Path) -> None:
    (tmp_path / "sick").touch()
    hooks("slurm-health")
    slurm.command("scontrol", "update", f"nodename={slurm.node}", "reason=envtune: SITE101 (RMA 4711)")
    (tmp_path / "sick").unlink()
    hooks("slurm-health")
    assert slurm.state() == "drained envtune: SITE101 (RMA 4711)"


def test_a_node_that_was_resumed_by_hand_is_drained_again(slurm: Cluster, hooks: Hooks, tmp_path: Path) -> None:
    (tmp_path / "sick").touch()
    hooks("slurm-health")
    slurm.command("scontrol", "update", f"nodename={slurm.node}", "state=resume")
    is_idle(slurm)
    hooks("slurm-health")
    assert slurm.state() == DRAINED
    (tmp_path / "sick").unlink()
    hooks("slurm-health")
    is_idle(slurm)


def test_a_down_node_is_not_brought_up(slurm: Cluster, hooks: Hooks, tmp_path: Path) -> None:
    slurm.command("scontrol", "update", f"nodename={slurm.node}", "state=down", "reason=replace the fan")
    (tmp_path / "sick").touch()
    hooks("slurm-health")
    (tmp_path / "sick").unlink()
    hooks("slurm-health")
    assert slurm.state() == "down replace the fan"


def test_a_fault_drains_nothing(slurm: Cluster, hooks: Hooks, tmp_path: Path) -> None:
    (tmp_path / "sick").touch()
    for words in (
        ["--scontrol", "/nowhere/scontrol"],
        ["--node", "no-such-node"],
        ["--node", "ALL"],
        ["--policy", "/nowhere/policy.yaml"],
        ["--dry-run"],
    ):
        hooks("slurm-health", *words)
        assert slurm.state() == "idle none", words
    assert hooks.run("slurm-prolog", "--node", "no-such-node").returncode == 0
    state = tmp_path / "envtune" / "scheduler"
    (state / "drain.json").write_text("{")
    hooks("slurm-health")
    assert hooks.run("slurm-prolog").returncode == 0
    assert slurm.state() == "idle none"


def test_a_job_is_refused_by_a_verdict(slurm: Cluster, hooks: Hooks, tmp_path: Path) -> None:
    (tmp_path / "sick").touch()
    hooks("slurm-health", "--scontrol", "/nowhere/scontrol")  # keeps a verdict, drains nothing
    assert slurm.state() == "idle none"
    assert hooks.run("slurm-prolog", "--dry-run").returncode == 0
    assert slurm.state() == "idle none"
    assert hooks.run("slurm-prolog").returncode == 20
    assert slurm.state() == DRAINED
    (tmp_path / "sick").unlink()
    hooks("slurm-health")
    is_idle(slurm)


def test_a_slurmctld_that_does_not_answer(slurm: Cluster, hooks: Hooks, tmp_path: Path) -> None:
    """It is stopped: scontrol would wait for it. What is drained when it goes on is nothing."""
    (tmp_path / "sick").touch()
    slurm.server.send_signal(19)  # SIGSTOP
    try:
        text = hooks("slurm-health", "--timeout", "10")
    finally:
        slurm.server.send_signal(18)  # SIGCONT
    assert "no answer within" in text and "during: scontrol show node" in text
    is_idle(slurm)
