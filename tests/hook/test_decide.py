"""slurm-health's table: each row of tests/cases/hook/after_check.yaml is a test."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.examples import ROOT
from helpers.scontrol import stamped, verdict_outcomes
from helpers.yaml_text import load_yaml

from envtune.hook.decide import after_check
from envtune.hook.records import SEVERITIES, Drain, Node, Verdict, reason_for
from envtune.model import Severity

ROWS = load_yaml((ROOT / "tests/cases/hook/after_check.yaml").read_text("utf-8"))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["case"])
def test_after_a_check(row: dict[str, Any]) -> None:
    verdict = Verdict(verdict_outcomes(row["verdict"]), row.get("complete", True))
    node = Node(frozenset(row["state"].split("+")), *stamped(row.get("node")))
    drain = None
    if "ours" in row:
        reason, stamp = stamped(row["ours"])
        drain = Drain("node1", reason, ("NET003",), stamp)
    found = after_check(node, drain, verdict, verdict.problems())
    assert found.action.value == row["action"], found
    assert found.reason == row.get("reason", found.reason)


def test_a_reason_names_no_more_than_fits() -> None:
    assert reason_for(f"NET{n:03}" for n in range(12)).endswith("NET009 and 2 more")
    assert reason_for(["NET003", "x; reboot"]) == "envtune: NET003"


def test_severities_are_those_of_the_checks() -> None:
    assert tuple(severity.value for severity in Severity) == SEVERITIES


@pytest.mark.parametrize(
    "reason, stamp, own",
    [
        ("envtune: NET003", "root@2026-11-23T03:00:05", True),
        ("envtune: NET003", "root@2026-11-23T02:59:00", True),
        ("envtune: NET003", "root@2026-11-23T03:30:00", False),
        ("envtune: NET003", "", False),
        ("envtune: NET003", "root@Unknown", False),
        ("envtune: CPU001", "root@2026-11-23T03:00:05", False),
    ],
)
def test_a_drain_whose_time_was_not_read(reason: str, stamp: str, own: bool) -> None:
    """The hook was ended after Slurm had taken the drain: 1795402800 is 2026-11-23T03:00:00Z."""
    node = Node(frozenset(["IDLE", "DRAIN"]), reason, stamp)
    drain = Drain("node1", "envtune: NET003", ("NET003",), began=1795402800.0)
    assert drain.with_stamp_of(node).is_of(node) is own
