"""Which hosts are fixed together, and when it stops."""

from __future__ import annotations

import pytest

from envtune.fleet.fix.stages import BUSY, CHANGED, HostOutcome, Stage, make_stages, why_stop

GOOD = HostOutcome(CHANGED)


def names(count: int) -> list[str]:
    return [f"h{number:05d}" for number in range(count)]


@pytest.mark.parametrize(
    ("count", "sizes"),
    [
        (0, []),
        (1, [1]),
        (2, [1, 1]),
        (8, [1, 1, 1, 2, 3]),
        (64, [1, 1, 6, 16, 40]),
        (10_000, [1, 100, 1000, 2500, 6399]),
    ],
)
def test_sizes(count: int, sizes: list[int]) -> None:
    hosts = names(count)
    stages = make_stages(hosts, dict.fromkeys(hosts, ("910b",)))
    assert [len(stage.hosts) for stage in stages] == sizes
    assert [host for stage in stages for host in stage.hosts] == hosts
    assert [stage.canary for stage in stages] == [number == 0 for number in range(len(stages))]


def test_the_first_stage_has_a_host_of_each_group() -> None:
    hosts = names(100)
    groups = {host: ("910b", "x86_64", "ubuntu", f"25.{number % 3}") for number, host in enumerate(hosts)}
    stages = make_stages(hosts, groups)
    assert stages[0] == Stage(("h00000", "h00001", "h00002"), canary=True)
    assert sorted(host for stage in stages for host in stage.hosts) == hosts


STAGE = Stage(tuple(names(20)))
CANARY = Stage(tuple(names(2)), canary=True)


@pytest.mark.parametrize(
    ("stage", "bad", "stops"),
    [
        (STAGE, [], ""),
        (STAGE, [HostOutcome("refused")] * 2, ""),
        (STAGE, [HostOutcome("refused")] * 3, "3 of 20 hosts"),
        (STAGE, [HostOutcome("begun"), HostOutcome("failed"), HostOutcome("unreachable")], "3 of 20 hosts"),
        (STAGE, [HostOutcome(BUSY)] * 20, ""),
        (STAGE, [HostOutcome("planned")] * 3, "3 of 20 hosts"),
        (STAGE, [HostOutcome(CHANGED, newly_failing=("CPU001",))], "checks fail that passed before: CPU001"),
        (STAGE, [HostOutcome(CHANGED, still_failing=("C01",))] * 3, "3 of 20 hosts"),
        (STAGE, [HostOutcome(CHANGED, collected=False)] * 3, "3 of 20 hosts"),
        (CANARY, [HostOutcome("failed")], "the first host of a group failed: h00000"),
        (CANARY, [HostOutcome(CHANGED, still_failing=("C01",))], "the first host"),
        (CANARY, [HostOutcome(BUSY)], ""),
    ],
)
def test_when_it_stops(stage: Stage, bad: list[HostOutcome], stops: str) -> None:
    outcomes = {host: bad[number] if number < len(bad) else GOOD for number, host in enumerate(stage.hosts)}
    reason = why_stop(stage, outcomes)
    assert (reason is None) == (stops == "")
    assert reason is None or stops in reason.en


def test_a_host_of_the_first_stage_that_fails_later_stops_it() -> None:
    outcomes = {**dict.fromkeys(STAGE.hosts, GOOD), "h99": HostOutcome(CHANGED, newly_failing=("NET001",))}
    reason = why_stop(STAGE, outcomes)
    assert reason is not None and "NET001" in reason.en
