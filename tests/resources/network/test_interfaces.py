"""The four forms of HCCL_SOCKET_IFNAME, and what the job's variables name for its traffic."""

from __future__ import annotations

from typing import Any, Mapping, Optional

import pytest
from helpers.examples import example_context

from envtune.audit import examine
from envtune.catalog import load
from envtune.model import Outcome
from envtune.resources.network.interfaces import selects


@pytest.mark.parametrize(
    ("pattern", "taken"),
    [
        ("eth", {"eth0", "eth1"}),
        ("eth0,enp", {"eth0", "enp3s0"}),
        ("=eth0", {"eth0"}),
        ("=eth,enp3s0", {"enp3s0"}),
        ("^eth", {"enp3s0", "docker0"}),
        ("^=eth0,enp3s0", {"eth1", "docker0"}),
        ("^=", set()),
        ("=", set()),
    ],
)
def test_the_four_forms(pattern: str, taken: set[str]) -> None:
    assert {name for name in ("eth0", "eth1", "enp3s0", "docker0") if selects(pattern, name)} == taken


INTERFACES = [
    {"name": "lo", "addresses": ["127.0.0.1", "::1"]},
    {"name": "eth0", "addresses": ["192.0.2.10", "2001:db8::1"]},
    {"name": "enp3s0", "addresses": [], "up": False},
]
TABLE = "/job/table.json"
PASS, FAIL, UNKNOWN = Outcome.PASS, Outcome.FAIL, Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("name", "value", "outcome", "words"),
    [
        ("HCCL_IF_IP", "192.0.2.10", PASS, ""),
        ("HCCL_IF_IP", "2001:db8:0:0::1", PASS, ""),  # the same address in another form
        ("HCCL_IF_IP", "192.0.2.99", FAIL, "not an address of this host"),
        ("HCCL_IF_IP", " 192.0.2.10", FAIL, "' 192.0.2.10': not an address of this host"),
        ("HCCL_IF_IP", "192.0.2.10\r", FAIL, "'192.0.2.10\\r': not an address of this host"),
        ("HCCL_IF_IP", "eth0", FAIL, "not an address of this host"),
        ("HCCL_IF_IP", "127.0.0.1", FAIL, "a loopback address"),
        ("HCCL_SOCKET_IFNAME", "eth", PASS, ""),
        ("HCCL_SOCKET_IFNAME", "=eth0", PASS, ""),
        ("HCCL_SOCKET_IFNAME", "^enp,docker", PASS, ""),
        ("HCCL_SOCKET_IFNAME", "^=enp3s0", PASS, ""),
        ("HCCL_SOCKET_IFNAME", "ens", FAIL, "ens: no interface of this host"),
        ("HCCL_SOCKET_IFNAME", "=eth", FAIL, "=eth: no interface of this host"),
        ("HCCL_SOCKET_IFNAME", "^eth,enp", FAIL, "no interface of this host"),
        ("HCCL_SOCKET_IFNAME", "^=eth0,enp3s0", FAIL, "no interface of this host"),
        ("HCCL_SOCKET_IFNAME", "enp3s0", FAIL, "enp3s0: without an address"),
        ("HCCL_SOCKET_IFNAME", "eth0\r", FAIL, "'eth0\\r': no interface"),
        ("GLOO_SOCKET_IFNAME", "eth0", PASS, ""),
        ("GLOO_SOCKET_IFNAME", "eth0,eth9", FAIL, "'eth9': no such interface"),
        ("GLOO_SOCKET_IFNAME", "=eth0", FAIL, "'=eth0': no such interface"),  # forms are HCCL's alone
        ("TP_SOCKET_IFNAME", "eth0", PASS, ""),
        ("TP_SOCKET_IFNAME", "eth", FAIL, "'eth': no such interface"),
        ("TP_SOCKET_IFNAME", "eth0,lo", FAIL, "'eth0,lo': no such interface"),
    ],
)
def test_what_the_job_names_is_on_this_host(name: str, value: str, outcome: Outcome, words: str) -> None:
    told, text = judged({name: value}, None)
    assert (told, (words or f"{value}: on this host") in text) == (outcome, True), text


@pytest.mark.parametrize(
    ("table", "outcome", "words"),
    [
        (None, FAIL, "does not exist"),
        ("[", FAIL, "is not JSON"),
        ('{"server_list": [{"server_id": "192.0.2.10"}, {"server_id": "192.0.2.11"}]}', PASS, "on this host"),
        ('{"server_list": [{"server_id": "a", "host_ip": "192.0.2.10"}]}', PASS, "on this host"),
        ('{"server_list": [{"server_id": "node1"}]}', PASS, "on this host"),
        ('{"server_list": [{"server_id": "192.0.2.11"}]}', FAIL, "lists 192.0.2.11, not this host"),
        ('{"server_list": [{"server_id": "server0"}]}', UNKNOWN, "whether it includes this host is unknown"),
        ("{}", UNKNOWN, "whether it includes this host is unknown"),
    ],
)
def test_the_rank_table_names_this_host(table: Optional[str], outcome: Outcome, words: str) -> None:
    told, text = judged({"RANK_TABLE_FILE": TABLE}, table)
    assert (told, words in text) == (outcome, True), text


def judged(environ: Mapping[str, str], table: Optional[str]) -> tuple[Outcome, str]:
    """The outcome of NET101, and its words."""
    files: dict[str, Any] = {TABLE: table} if "RANK_TABLE_FILE" in environ else {}
    example = {"like": "net", "interfaces": INTERFACES, "environ": {"NNODES": "2", **environ}, "files": files}
    (found,) = examine(next(one for one in load().checks if one.id == "NET101"), example_context(example))
    return found.outcome, str(found.actual if found.reason is None else found.reason)
