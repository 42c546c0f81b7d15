"""Two hosts: what differs, and what is unknown and therefore does not."""

from __future__ import annotations

from typing import Mapping, Optional, Sequence

import pytest
from helpers import fleet

from envtune import catalog
from envtune.audit import check_host
from envtune.audit.settings import read_settings
from envtune.compare.difference import Difference, difference
from envtune.compare.hosts import labelled, lean
from envtune.context.open import UNNAMED
from envtune.messages import Literal
from envtune.model import Check, Evidence, Fact, Finding, Outcome, Report, Severity
from envtune.snapshot.host import SnapshotHost

PASS, FAIL, UNKNOWN, NOT = Outcome.PASS, Outcome.FAIL, Outcome.UNKNOWN, Outcome.NOTAPPLICABLE


def report(name: str, facts: Mapping[str, Optional[str]], findings: Sequence[Finding] = ()) -> tuple[str, Report]:
    rows = tuple(Fact(key, value, "", None if value is not None else Literal("no")) for key, value in facts.items())
    return f"{name}.json", Report(name, "2026-01-01T00:00:00Z", 0.0, {}, rows, tuple(findings))


def finding(outcome: Outcome, subject: str = "", needs_privilege: bool = False) -> Finding:
    check = Check("CPU001", "name", Literal("t"), "stable", Severity.LOW, Literal(""), "seed", "probe", {}, {})
    reason = Literal("why") if outcome in (UNKNOWN, NOT) else None
    actual = None if reason is not None else Literal("what")
    return Finding(check, outcome, Severity.LOW, subject, actual, None, reason, Evidence(""), needs_privilege)


def compared(left: tuple[str, Report], right: tuple[str, Report]) -> Difference:
    return difference(*labelled([left, right]))


@pytest.mark.slow
def test_a_host_that_deviates_beside_one_that_does_not() -> None:
    hosts = fleet.deviating()
    checks = catalog.load().checks
    read = {
        name: (name, lean(check_host(SnapshotHost(hosts[name]), UNNAMED, checks, more_facts=read_settings)))
        for name in ("node2", "node3", "node7", "c76-2", "c76-3", "pod3-node2", "pod3-node9")
    }
    for name, other in (("node7", "node2"), ("c76-3", "c76-2"), ("pod3-node9", "pod3-node2")):
        found = compared(read[other], read[name])
        assert ({pair.name for pair in found.facts}, {pair.check.id for pair in found.checks}) == fleet.DEVIATIONS[name]
    assert not compared(read["node2"], read["node3"]).differs


@pytest.mark.parametrize(
    ("left", "right", "differs", "status"),
    [
        ([finding(PASS)], [finding(PASS)], False, 0),
        ([finding(PASS, "cpu0")], [finding(PASS, "cpu0-7")], False, 0),
        ([finding(PASS)], [finding(FAIL)], True, 1),
        ([finding(FAIL, "npu1")], [finding(FAIL, "npu1")], False, 0),
        ([finding(FAIL, "npu1")], [finding(FAIL, "npu2")], True, 1),
        ([finding(FAIL, "/logs/a1")], [finding(FAIL, "/logs/b2")], False, 0),  # each its own
        ([finding(PASS)], [finding(NOT)], True, 1),
        ([finding(NOT)], [finding(UNKNOWN)], False, 3),
        ([finding(FAIL)], [finding(UNKNOWN)], False, 3),
        ([finding(UNKNOWN)], [finding(UNKNOWN)], False, 3),
        ([finding(FAIL)], [finding(UNKNOWN, needs_privilege=True)], False, 0),
        ([finding(FAIL)], [finding(FAIL), finding(UNKNOWN, "npu7")], False, 0),
        ([finding(FAIL)], [], False, 0),  # not checked there
    ],
)
def test_checks(left: list[Finding], right: list[Finding], differs: bool, status: int) -> None:
    found = compared(report("a1", {}, left), report("b2", {}, right))
    assert (found.differs, found.exit_code()) == (differs, status)


@pytest.mark.parametrize(
    ("left", "right", "facts", "unknown"),
    [
        ({"driver": "25"}, {"driver": "25"}, [], []),
        ({"driver": "25"}, {"driver": "24"}, ["driver"], []),
        ({"driver": "25"}, {"driver": None}, [], ["driver"]),
        ({"driver": None}, {"driver": None}, [], ["driver"]),
        ({"os": "a", "os_version": "1"}, {"os": "a", "os_version": "2"}, ["os"], []),
        ({"variable:X": "1"}, {}, ["variable:X"], []),
        ({"variable:X": "1"}, {"variables": None}, [], ["variable:X"]),
        ({"variable:X": "1"}, {"variables": None, "variable:X": "2"}, ["variable:X"], []),
        ({"package:numpy": "1"}, {"packages": None}, [], ["package:numpy"]),
        ({"user": "root"}, {"user": "li"}, [], []),  # who looked
        (
            {"variable:HCCL_IF_IP": "10.0.0.1", "addresses": "10.0.0.1"},
            {"variable:HCCL_IF_IP": "10.0.0.2", "addresses": "10.0.0.2 fe80::1"},
            [],
            [],
        ),
        (
            {"variable:MASTER_ADDR": "10.0.0.1", "addresses": "10.0.0.1"},
            {"variable:MASTER_ADDR": "10.0.0.2", "addresses": "10.0.0.2"},
            ["variable:MASTER_ADDR"],
            [],
        ),
    ],
)
def test_facts(
    left: Mapping[str, Optional[str]], right: Mapping[str, Optional[str]], facts: list[str], unknown: list[str]
) -> None:
    found = compared(report("a", left), report("b", right))
    assert [pair.name for pair in found.facts] == facts
    assert [pair.name for pair in found.unknown_facts] == unknown
    assert found.exit_code() == (1 if facts else 3 if unknown else 0)


@pytest.mark.parametrize(
    ("left", "right", "severity"),
    [
        ((FAIL, "low"), (PASS, "low"), "low"),
        ((PASS, "critical"), (FAIL, "medium"), "medium"),
        ((FAIL, "medium"), (FAIL, "high"), "high"),
        ((PASS, "low"), (NOT, "high"), "high"),
    ],
)
def test_the_severity_is_that_of_the_host_on_which_it_fails(
    left: tuple[Outcome, str], right: tuple[Outcome, str], severity: str
) -> None:
    sides = [
        (finding(outcome, f"x{n}")._replace(severity=Severity(word)),)
        for n, (outcome, word) in enumerate((left, right))
    ]
    (pair,) = compared(report("a", {}, sides[0]), report("b", {}, sides[1])).checks
    assert pair.severity is Severity(severity) and pair.check.severity is Severity.LOW
