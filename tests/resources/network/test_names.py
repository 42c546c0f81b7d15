"""MASTER_ADDR and the host's own name: what one host alone can say about them."""

from __future__ import annotations

from typing import Any, Optional

import pytest
from helpers.examples import example_context

from envtune.audit import examine
from envtune.catalog import load
from envtune.model import Finding, Outcome
from envtune.resources.network.names import hosts_file_addresses, is_host_name, job_nodes, resolve_name

TWO = {"NNODES": "2"}


def check(name: str, **example: Any) -> tuple[Finding, ...]:
    return examine(next(one for one in load().checks if one.id == name), example_context({"like": "net", **example}))


def judged(master: str, getent: Optional[Any] = None, **variables: str) -> tuple[Outcome, str]:
    commands = {f"getent ahosts {master}": getent} if getent is not None else {}
    (found,) = check("NET001", environ={"MASTER_ADDR": master, **variables}, commands=commands)
    words = found.actual or found.reason
    assert words is not None
    return found.outcome, words.en


@pytest.mark.parametrize(
    ("master", "variables", "outcome"),
    [
        ("192.0.2.10", {}, Outcome.PASS),
        ("192.0.2.10", {"NNODES": "2", "NODE_RANK": "0"}, Outcome.PASS),
        ("192.0.2.10", {"NNODES": "2", "NODE_RANK": "1"}, Outcome.FAIL),
        ("192.0.2.10", {"RANK": "9", "WORLD_SIZE": "16"}, Outcome.PASS),
        ("127.0.0.1", {}, Outcome.PASS),
        ("127.0.0.1", TWO, Outcome.FAIL),
        ("::1", TWO, Outcome.FAIL),
        ("192.0.2.11", {}, Outcome.UNKNOWN),
        ("192.0.2.11", {"NNODES": "1"}, Outcome.FAIL),
        ("192.0.2.11", {"WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "8"}, Outcome.FAIL),
        ("192.0.2.11", {"WORLD_SIZE": "16", "LOCAL_WORLD_SIZE": "8"}, Outcome.UNKNOWN),
        ("192.0.2.11", {"NODE_RANK": "1"}, Outcome.UNKNOWN),
        ("192.0.2.11", {"NODE_RANK": "0"}, Outcome.FAIL),
        ("192.0.2.11", {"RANK": "3"}, Outcome.UNKNOWN),
        ("192.0.2.11", {"NNODES": "1:4"}, Outcome.UNKNOWN),
        ("10.136.181.115", TWO, Outcome.FAIL),
        ("1.1.1.1", {}, Outcome.FAIL),
        ("", {}, Outcome.FAIL),
        ("   ", {}, Outcome.FAIL),
        ("0.0.0.0", TWO, Outcome.FAIL),
        ("255.255.255.255", TWO, Outcome.FAIL),
        ("224.0.0.1", TWO, Outcome.FAIL),
        ("192.0.2", {}, Outcome.FAIL),
        ("--help", {}, Outcome.FAIL),
        ("a b", {}, Outcome.FAIL),
        ("192.0.2.10\r", {}, Outcome.FAIL),
        (" 192.0.2.10", {}, Outcome.FAIL),
        ("192.0.2.11\n", {"NODE_RANK": "1"}, Outcome.FAIL),
        ("node1;reboot", {}, Outcome.FAIL),
    ],
)
def test_addresses(master: str, variables: dict[str, str], outcome: Outcome) -> None:
    assert judged(master, **variables)[0] is outcome


def test_the_sample_address_is_right_on_the_host_that_has_it() -> None:
    (found,) = check(
        "NET001",
        environ={"MASTER_ADDR": "10.136.181.115"},
        interfaces=[{"name": "eth0", "addresses": ["10.136.181.115"]}],
    )
    assert found.outcome is Outcome.PASS


def test_names() -> None:
    own = "192.0.2.10      STREAM node1.example.org\n192.0.2.10      DGRAM  \n192.0.2.10      RAW    \n"
    assert judged("node1.example.org", own) == (Outcome.PASS, "node1.example.org: an address of this host")
    assert judged("node7", {"rc": 2})[0] is Outcome.FAIL
    assert judged("node7", {"error": "timeout"})[0] is Outcome.UNKNOWN
    assert judged("node7")[0] is Outcome.UNKNOWN, "a snapshot that does not say is no answer"
    assert judged("node7", "192.0.2.17  STREAM node7\n", NNODES="4")[0] is Outcome.UNKNOWN


def test_interfaces_that_cannot_be_read() -> None:
    (found,) = check("NET001", environ={"MASTER_ADDR": "192.0.2.10"}, interfaces={"error": "EIO"})
    assert found.outcome is Outcome.UNKNOWN


def test_node_counts() -> None:
    assert job_nodes({"NNODES": "2", "NODE_RANK": "1"})[:2] == (2, 1)
    assert job_nodes({"WORLD_SIZE": "1"})[:2] == (1, None)
    assert job_nodes({"WORLD_SIZE": "10", "LOCAL_WORLD_SIZE": "8"})[:2] == (None, None)
    assert job_nodes({"GROUP_RANK": "0", "GROUP_WORLD_SIZE": "3"})[:2] == (3, 0)
    assert job_nodes({"NNODES": "two", "NODE_RANK": "-1"})[:2] == (None, None)


@pytest.mark.parametrize("name", ["", "-x", ".x", "10.0.0.1", "10", "a b", "a;b", "ö", "a/b"])
def test_no_is_host_name(name: str) -> None:
    assert not is_host_name(name)


def test_own_name_by_either_database_of_getent() -> None:
    files = {"/etc/hosts": "127.0.0.1 localhost\n"}
    both = {"getent hosts node1": {"error": "missing"}, "getent ahosts node1": "192.0.2.10  STREAM node1\n"}
    host = example_context({"like": "net", "files": files, "commands": both}).host
    assert resolve_name(host, "node1", "ahosts")[0] == ("192.0.2.10",)


def test_hosts_file_layouts() -> None:
    text = "# 10.0.0.1 node1\n\n::1 localhost node1x\n10.0.0.2\tNODE1.example.org  Node1 # node2\nnonsense node1\n"
    host = example_context({"like": "net", "files": {"/etc/hosts": text}}).host
    assert hosts_file_addresses(host, "node1")[0] == ("10.0.0.2",)
    assert hosts_file_addresses(host, "node2")[0] == ()


@pytest.mark.parametrize(
    ("hosts", "getent", "outcomes"),
    [
        ("192.0.2.10 node1\n", "192.0.2.10 node1\n", {Outcome.PASS}),
        ("127.0.1.1 node1\n", "127.0.1.1 node1\n", {Outcome.FAIL}),
        ("198.51.100.9 node1\n", "198.51.100.9 node1\n", {Outcome.FAIL}),
        ("127.0.0.1 localhost\n", "fe80::1%eth0 node1\n", {Outcome.FAIL}),
        ("127.0.0.1 localhost\n", "fe80::1 node1\n192.0.2.10 node1\n", {Outcome.PASS}),
        ("", {"rc": 2}, {Outcome.FAIL}),
        ("127.0.0.1 localhost\n", {"error": "timeout"}, {Outcome.UNKNOWN}),
        ("192.0.2.10 node1\n", {"error": "missing"}, {Outcome.PASS}),
    ],
)
def test_own_name(hosts: str, getent: Any, outcomes: set[Outcome]) -> None:
    found = check("NET007", files={"/etc/hosts": hosts}, commands={"getent hosts node1": getent})
    assert {one.outcome for one in found} == outcomes


def test_own_name_that_is_no_name() -> None:
    found = check("NET007", uname={"nodename": "(none)"}, files={"/etc/hosts": ""})
    assert {one.outcome for one in found} == {Outcome.FAIL}


@pytest.mark.parametrize(
    ("order", "hosts", "outcomes"),
    [
        ("hosts: files dns", "192.0.2.10 node1", {Outcome.PASS}),
        ("# hosts: dns\nhosts:\tfiles mdns4_minimal [NOTFOUND=return] dns # site", "127.0.1.1 node1", {Outcome.FAIL}),
        ("hosts: files myhostname dns", "fe80::1 node1\n192.0.2.10 node1", {Outcome.PASS}),
        # another service is asked, so that getent has to say what it answers
        ("hosts: myhostname files dns", "192.0.2.10 node1", {Outcome.UNKNOWN}),
        ("hosts: files dns", "fe80::1 node1", {Outcome.FAIL, Outcome.UNKNOWN}),
        ("hosts: files dns", "192.0.2.10 another", {Outcome.UNKNOWN}),
        ("passwd: files", "192.0.2.10 node1", {Outcome.UNKNOWN}),
    ],
)
def test_own_name_without_getent_where_the_file_decides(order: str, hosts: str, outcomes: set[Outcome]) -> None:
    files = {"/etc/nsswitch.conf": order + "\n", "/etc/hosts": hosts + "\n"}
    found = check("NET007", files=files, commands={"getent hosts node1": {"error": "timeout"}})
    assert {one.outcome for one in found} == outcomes
