"""Staged fixes as text: hosts with the same changes together, who is left out, and how a run ended."""

from __future__ import annotations

from envtune.fix.consent import Withheld
from envtune.fleet.collected import Collection
from envtune.fleet.fix.plan import HostPlan
from envtune.fleet.fix.stages import HostOutcome, Stage
from envtune.fleet.record import HostRecord
from envtune.fleet.store.fixes import FixHost, FixRun
from envtune.messages import Message
from envtune.model import Change
from envtune.report.fleet.fix_text import outcome_lines, plan_lines, run_lines, stage_text
from envtune.report.fleet.text import Settings

CHANGE = Change(
    "CPU001", "cpu0", "set-cpu-governor", "cpu.set_governor", "/sys/gov", "powersave", "performance", "live", ()
)
SETTINGS = Settings("en")


def plan(host: str, after: str = "performance") -> HostPlan:
    return HostPlan(HostRecord(host, Collection.OK), changes=(CHANGE._replace(id="C01", after=after),))


def text(*plans: HostPlan, diffs: bool = False, lang: str = "en") -> str:
    stages = (Stage(("node1",), canary=True), Stage(("node2", "node3")))
    return "\n".join(plan_lines(plans, stages, Settings(lang), diffs))


def test_hosts_with_the_same_changes_are_one_row() -> None:
    shown = text(plan("node1"), plan("node2"), plan("node3", "schedutil"))
    assert "  node[1-2] (2 hosts)\n" in shown and "  node3 (1 host)\n" in shown
    assert "Stages: 1 host; 2 hosts;" in shown
    assert "-powersave" not in shown and "+performance" in text(plan("node1"), diffs=True)
    assert "node[1-2]（2 台主机）" in text(plan("node1"), plan("node2"), lang="zh")


def test_who_is_left_out_and_why() -> None:
    lost = HostPlan(HostRecord("node4", Collection.REFUSED, "ssh: connect to \x1b[31mhost"))
    busy = HostPlan(
        HostRecord("node5", Collection.OK), reason=Message("jobs use its NPUs: {processes}", processes="7 x")
    )
    withheld = HostPlan(HostRecord("node6", Collection.OK), withheld=(Withheld(CHANGE, "root", Message("needs root")),))
    shown = text(lost, busy, withheld)
    assert "Nothing to change." in shown
    assert "connection refused or closed: ssh: connect to" in shown and "\x1b" not in shown
    assert "jobs use its NPUs: 7 x" in shown and "CPU001: needs root" in shown


def test_how_a_run_ended() -> None:
    run = FixRun(1, "fleet-20260102-030405", 0.0, 1.0, "", {}, ("3 of 20 hosts", "20 台中 3 台"))
    hosts = [
        FixHost("node1", 0, "changed"),
        FixHost("node2", 1, "refused", "", "no room"),
        FixHost("node3", 2, "planned"),
    ]
    shown = "\n".join(run_lines(run, hosts, SETTINGS))
    assert "stopped: 3 of 20 hosts" in shown and "changed: node1 (1 host)" in shown
    assert "refused by the host: node2 (1 host)\n    no room" in shown and "not started: node3" in shown


def test_how_a_stage_ended() -> None:
    outcomes = {
        "node1": HostOutcome("changed"),
        "node2": HostOutcome("changed", newly_failing=("NET001",)),
        "node3": HostOutcome("busy"),
        "node4": HostOutcome("changed", collected=False),
    }
    assert stage_text(1, 5, outcomes).en == "stage 2 of 5: 1 fixed, 2 failed, 1 left alone"
    lines = "\n".join(outcome_lines(outcomes, SETTINGS))
    assert "node2: fails now, passed before: NET001" in lines and "node4: changed; the result is unknown" in lines
