"""Hosts compared: forty of four kinds, three of which deviate, and small groups that show one rule each."""

from __future__ import annotations

from functools import cache
from typing import Any, Callable, Mapping, Optional, Sequence

import pytest
from helpers import fleet

from envtune import catalog
from envtune.audit import check_host
from envtune.audit.settings import read_settings
from envtune.audit.verdict import Verdict
from envtune.compare.comparison import Comparison, compare
from envtune.compare.hosts import HostReport, Unread, labelled, lean
from envtune.context.open import UNNAMED
from envtune.messages import Literal
from envtune.model import Check, Evidence, Fact, Finding, Outcome, Report, Severity
from envtune.snapshot.host import SnapshotHost

HOST = {"npu": "910B", "arch": "aarch64", "os": "openEuler", "os_version": "22.03", "container": "false", "vm": "false"}
WHY = Literal("not recorded")


def host(name: str, findings: Sequence[Finding] = (), **facts: Optional[str]) -> tuple[str, Report]:
    """A report made of facts alone; `variable__X` is the variable X, None what is unknown."""
    values = {**HOST, **{key.replace("__", ":"): value for key, value in facts.items()}}
    rows = tuple(Fact(key, value, "", None if value is not None else WHY) for key, value in values.items())
    return f"{name}.json", Report(name, "2026-01-01T00:00:00Z", 0.0, {}, rows, tuple(findings))


def finding(identifier: str, outcome: Outcome, severity: Severity = Severity.HIGH, subject: str = "") -> Finding:
    check = Check(identifier, "name", Literal("title"), "stable", severity, Literal(""), "seed", "probe", {}, {})
    return Finding(check, outcome, severity, subject, None, None, WHY, Evidence(""))


def differing(comparison: Comparison) -> dict[str, dict[str, list[Any]]]:
    """Fact -> value -> hosts, over all groups."""
    return {
        row.name: {str(shared.value): list(shared.hosts) for shared in row.values} for row in comparison.differences
    }


# ------------------------------------------------------------------ the fleet


@cache
def checked(deviating: bool) -> Comparison:
    chosen = fleet.deviating() if deviating else fleet.fleet()
    checks = catalog.load().checks
    read = [
        (f"{name}.json", lean(check_host(SnapshotHost(data), UNNAMED, checks, more_facts=read_settings)))
        for name, data in chosen.items()
    ]
    return compare(labelled(read))


@pytest.mark.slow
def test_what_every_host_has_of_its_own_is_no_difference() -> None:
    found = checked(deviating=False)
    assert [len(group.hosts) for group in found.groups] == [fleet.OF_EACH] * len(fleet.KINDS)
    assert differing(found) == {}
    assert not [row for row in found.hosts if row.facts or row.few]


@pytest.mark.slow
def test_exactly_the_hosts_that_deviate_are_named_and_in_what() -> None:
    found = checked(deviating=True)
    apart = {row.host.label: (set(row.facts), set(row.few)) for row in found.hosts if row.facts or row.few}
    assert apart == fleet.DEVIATIONS
    for row in found.differences:
        assert row.majority and len(row.values[0].hosts) == fleet.OF_EACH - 1
    assert found.verdict is Verdict.NOT_READY and found.exit_code(Severity.MEDIUM) == 1


# ------------------------------------------------------------------ facts


def test_majority_and_minority() -> None:
    versions = ["24.1.0" if number in (7, 19) else "25.0.rc1.1" for number in range(40)]
    found = compare(labelled([host(f"node{n}", driver=version) for n, version in enumerate(versions)]))
    (row,) = found.differences
    assert (row.name, row.severity, row.majority, len(row.values[0].hosts)) == ("driver", Severity.HIGH, True, 38)
    assert row.minority[0].value == "24.1.0" and row.minority[0].hosts == ("node7", "node19")
    assert [row.host.label for row in found.hosts if row.facts] == ["node7", "node19"]


def test_where_nobody_has_the_majority_nobody_deviates() -> None:
    found = compare(labelled([host(f"n{n}", kernel="a" if n < 2 else "b") for n in range(4)]))
    (row,) = found.differences
    assert not row.majority and row.minority == () and not [row for row in found.hosts if row.facts]


def test_what_is_unknown_is_no_difference() -> None:
    found = compare(labelled([host("n1", driver="25.0"), host("n2", driver="25.0"), host("n3", driver=None)]))
    assert differing(found) == {}
    (row,) = [row for row in found.groups[0].rows if row.unknown]
    assert row.name == "driver" and row.unknown == ((WHY, ("n3",)),)
    passed = [finding("SYS001", Outcome.PASS)]
    ready = compare(labelled([host("n1", passed, driver="25.0"), host("n2", passed, driver=None)]))
    assert ready.exit_code(Severity.MEDIUM) == 3


@pytest.mark.parametrize(
    ("values", "differs"),
    [
        ({"n1": "10.0.0.1", "n2": "10.0.0.2", "n3": "10.0.0.3"}, {}),  # each its own
        ({"n1": "10.0.0.1", "n2": "10.0.0.2", "n3": "10.0.0.2"}, {"<address>": ["n1", "n2"], "10.0.0.2": ["n3"]}),
        ({"n1": "10.0.0.1", "n2": "10.0.0.1", "n3": "10.0.0.1"}, {}),  # a list of all hosts names each of them
        ({"n1": "/logs/n1", "n2": "/logs/n2", "n3": "/logs/n3"}, {}),
        ({"n1": "/logs/n1", "n2": "/logs/n2", "n3": "/logs/n1"}, {"/logs/<host>": ["n1", "n2"], "/logs/n1": ["n3"]}),
    ],
)
def test_what_names_the_host_itself(values: Mapping[str, str], differs: Mapping[str, list[str]]) -> None:
    hosts = [
        host(name, variable__HCCL_IF_IP=value, addresses=f"127.0.0.1 10.0.0.{name[1:]}")
        for name, value in values.items()
    ]
    assert differing(compare(labelled(hosts))) == ({"variable:HCCL_IF_IP": differs} if differs else {})


def test_the_address_of_the_master_is_no_address_of_ones_own() -> None:
    hosts = [
        host(f"n{n}", variable__MASTER_ADDR="10.0.0.1" if n < 4 else "10.0.0.4", addresses=f"10.0.0.{n}")
        for n in range(1, 5)
    ]
    assert differing(compare(labelled(hosts))) == {
        "variable:MASTER_ADDR": {"10.0.0.1": ["n1", "n2", "n3"], "10.0.0.4": ["n4"]}
    }


def test_several_jobs_are_no_mistake() -> None:
    hosts = [host(f"n{n}", variable__MASTER_ADDR=f"10.0.{n // 2}.1") for n in range(4)]
    (row,) = compare(labelled(hosts)).differences
    assert row.severity is Severity.INFO and not row.majority


def test_a_variable_that_is_not_set() -> None:
    hosts = [host("n1", variable__TASK_QUEUE_ENABLE="1"), host("n2", variable__TASK_QUEUE_ENABLE="1"), host("n3")]
    assert differing(compare(labelled(hosts))) == {"variable:TASK_QUEUE_ENABLE": {"1": ["n1", "n2"], "None": ["n3"]}}
    unread = compare(labelled([*hosts[:2], host("n3", variables=None)]))  # of which no variable is known
    assert differing(unread) == {}


# ------------------------------------------------------------------ kinds and jobs


def hosts_of(comparison: Comparison) -> list[list[str]]:
    return [[host.label for host in group.hosts] for group in comparison.groups]


@pytest.mark.parametrize(
    ("facts", "groups"),
    [
        ({"os_version": "24.03"}, [["n1", "n2", "n3", "other"]]),  # another system on the same machine
        ({"npu": "none"}, [["n1", "n2", "n3", "other"]]),  # its NPUs are gone
        ({"npu": None}, [["n1", "n2", "n3", "other"]]),
        ({"npu": "none", "arch": "x86_64"}, [["n1", "n2", "n3"], ["other"]]),  # a file server
        ({"npu": "A3"}, [["n1", "n2", "n3"], ["other"]]),  # the same system on other hardware
        ({"arch": "x86_64"}, [["n1", "n2", "n3"], ["other"]]),
        ({"container": "true"}, [["n1", "n2", "n3"], ["other"]]),
    ],
)
def test_a_host_that_deviates_and_one_of_another_kind(
    facts: Mapping[str, Optional[str]], groups: list[list[str]]
) -> None:
    found = compare(labelled([host("n1"), host("n2"), host("n3"), host("other", **facts)]))
    assert hosts_of(found) == groups


def test_two_hosts_of_the_same_hardware_are_compared() -> None:
    found = compare(labelled([host("a", driver="1"), host("b", driver="2", npu="none", os="ubuntu")]))
    assert hosts_of(found) == [["a", "b"]] and set(differing(found)) == {"driver", "npu", "os"}


def test_hosts_of_different_hardware_are_not() -> None:
    found = compare(labelled([host("a", driver="1"), host("b", driver="2", npu="A3"), host("c", npu="none")]))
    assert hosts_of(found) == [["a"], ["b"], ["c"]] and differing(found) == {}


def test_many_hosts_that_are_all_different_are_not() -> None:
    found = compare(labelled([host(f"n{number}", npu=f"9{number}", arch=f"a{number}") for number in range(4)]))
    assert hosts_of(found) == [["n0"], ["n1"], ["n2"], ["n3"]] and differing(found) == {}


def test_one_job_on_two_kinds_needs_the_same_versions() -> None:
    job = {"variable__MASTER_ADDR": "10.0.0.1", "variable__MASTER_PORT": "29500"}
    hosts = [host(f"a{n}", cann="8.2", kernel="5", **job) for n in range(3)]
    hosts += [host(f"b{n}", cann="8.5", kernel="6", arch="x86_64", os="ubuntu", **job) for n in range(3)]
    found = compare(labelled(hosts))
    assert [group.job.master for group in found.groups if group.job is not None] == ["10.0.0.1:29500"]
    assert set(differing(found)) == {"arch", "cann"}  # each may have a kernel of its own
    assert differing(compare(labelled(hosts[:3]))) == {}


# ------------------------------------------------------------------ checks, labels, the whole


def test_what_fails_on_most_hosts_of_a_kind_is_not_what_sets_one_apart() -> None:
    common, rare = finding("CPU004", Outcome.FAIL, Severity.LOW), finding("CANN007", Outcome.FAIL, subject="npu3")
    found = compare(labelled([host("n1", [common]), host("n2", [common]), host("n3", [common, rare])]))
    assert [(row.check.id, row.hosts, row.few) for row in found.failures] == [
        ("CANN007", ("n3",), frozenset({"n3"})),
        ("CPU004", ("n1", "n2", "n3"), frozenset()),
    ]
    assert [row.few for row in found.hosts] == [(), (), ("CANN007",)]
    assert found.verdict is Verdict.NOT_READY


@pytest.mark.parametrize(
    ("findings", "unread", "verdict", "status"),
    [
        ([Outcome.PASS, Outcome.PASS], (), Verdict.READY, 0),
        ([Outcome.PASS, Outcome.UNKNOWN], (), Verdict.NOT_SURE, 3),
        ([Outcome.PASS, Outcome.FAIL], (), Verdict.NOT_READY, 1),
        ([Outcome.NOTAPPLICABLE, Outcome.NOTAPPLICABLE], (), Verdict.NOTHING_CHECKED, 3),
        ([Outcome.PASS, Outcome.PASS], (Unread("c.json", WHY),), Verdict.NOT_SURE, 3),
    ],
)
def test_verdict(findings: list[Outcome], unread: tuple[Unread, ...], verdict: Verdict, status: int) -> None:
    hosts = [host(f"n{number}", [finding("SYS001", outcome)]) for number, outcome in enumerate(findings)]
    found = compare(labelled(hosts), unread)
    assert (found.verdict, found.exit_code(Severity.MEDIUM)) == (verdict, status)


def test_hosts_of_one_name_are_told_apart() -> None:
    read: list[tuple[str, Report]] = [(path, host("n1")[1]) for path in ("a/x.json", "b/x.json", "b/y.json")]
    assert [one.label for one in labelled(read)] == ["n1 (a/x.json)", "n1 (b/x.json)", "n1 (y.json)"]


def test_the_order_of_the_hosts_changes_nothing_but_the_order() -> None:
    def values(order: Callable[[list[HostReport]], list[HostReport]]) -> dict[str, dict[str, set[str]]]:
        hosts = list(labelled([host(f"n{n}", driver="a" if n < 3 else "b") for n in range(5)]))
        found = differing(compare(order(hosts)))
        return {name: {value: set(labels) for value, labels in row.items()} for name, row in found.items()}

    assert values(lambda hosts: hosts) == values(lambda hosts: hosts[::-1])


def test_a_check_has_the_severity_that_it_has_on_each_host() -> None:
    rows = compare(
        labelled(
            [
                host("node1", [finding("CANN003", Outcome.FAIL, Severity.LOW)]),
                host("node2", [finding("CANN003", Outcome.FAIL, Severity.CRITICAL), finding("CANN003", Outcome.FAIL)]),
            ]
        )
    ).failures
    assert [(row.severity, dict(row.severities)) for row in rows] == [
        (Severity.CRITICAL, {"node1": Severity.LOW, "node2": Severity.CRITICAL})
    ]
