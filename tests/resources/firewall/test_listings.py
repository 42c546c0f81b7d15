"""Which commands are believed, in which order, and what a missing right or program leaves unknown."""

# ruff: noqa: E501  (a rule set is a line of a table)

from __future__ import annotations

from typing import Any, Mapping, Optional

import pytest
from helpers.examples import shared_host
from helpers.rule_walks import recorded

from envtune.audit import examine
from envtune.catalog import load
from envtune.catalog.examples import example_data
from envtune.context import Context
from envtune.context.open import open_context, recorded_options
from envtune.model import Finding, Outcome
from envtune.snapshot.host import SnapshotHost

EMPTY = '{"nftables": [{"metainfo": {"version": "1.0.6", "json_schema_version": 1}}]}'
DROPS = "table inet f {\n\tchain input {\n\t\ttype filter hook input priority filter; policy drop;\n\t}\n}\n"
DROPS_JSON = (
    '{"nftables": [{"metainfo": {"version": "1.0.6"}}, {"table": {"family": "inet", "name": "f", "handle": 1}}, {"chain":'
    ' {"family": "inet", "table": "f", "name": "input", "handle": 1, "type": "filter", "hook": "input", "prio": 0,'
    ' "policy": "drop"}}]}'
)
SAVE_DROPS = "*filter\n:INPUT DROP [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n"
NFT, TEXT, SAVE, LEGACY = "nft -j list ruleset", "nft list ruleset", "iptables-save", "iptables-legacy-save"
BUILTIN = "/lib/modules/4.19.90-2003.4.0.0036.oe1.aarch64/modules.builtin"
MODULAR = {BUILTIN: "kernel/net/netfilter/xt_tcpudp.ko\n"}
NO_RIGHT = {"rc": 1, "stderr": "Operation not permitted (you must be root)\n"}
CHECK = next(check for check in load().checks if check.id == "NET004")


def finding(commands: Mapping[str, Any], files: Optional[Mapping[str, Any]] = None, **host: Any) -> Finding:
    """NET004 on a host that holds these commands and nothing else about packet filters."""
    data = {
        "like": "net",
        "commands": [{"argv": line.split(), **({"rc": 0} if "error" not in row else {}), **row} for line, row in _rows(commands)],
        "files": {"/proc/modules": "nf_tables 303104 0 - Live 0x0\n", "/proc/net/ip_tables_names": None, **(files or {})},
        **host,
    }  # fmt: skip
    (found,) = examine(CHECK, _scene(data))
    return found


def _rows(commands: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(line, {"stdout": row} if isinstance(row, str) else dict(row)) for line, row in commands.items()]


def _scene(data: Mapping[str, Any]) -> Context:
    whole = example_data({key: value for key, value in data.items() if key != "commands"}, shared_host)
    options = recorded_options(whole.get("target") or {})
    return open_context(SnapshotHost({**whole, "commands": data["commands"]}), options)


def test_nothing_recorded_is_unknown() -> None:
    found = finding({})
    assert found.outcome is Outcome.UNKNOWN and not found.needs_privilege
    assert found.reason is not None and "nft -j list ruleset is not in the snapshot" in found.reason.en


def test_json_alone_tells_all_when_the_kernel_lists_no_legacy_table() -> None:
    assert finding({NFT: EMPTY}).outcome is Outcome.PASS
    assert finding({NFT: DROPS_JSON}).outcome is Outcome.FAIL


def test_text_where_this_nft_writes_no_json() -> None:
    no_json = {"rc": 1, "stderr": "Error: JSON support not compiled-in\n"}
    assert finding({NFT: no_json, TEXT: DROPS}).outcome is Outcome.FAIL
    assert finding({NFT: no_json, TEXT: ""}).outcome is Outcome.PASS
    assert finding({TEXT: DROPS}).outcome is Outcome.FAIL


def test_a_table_that_is_switched_off_does_not_count() -> None:
    dormant = DROPS.replace("{\n\tchain", "{\n\tflags dormant\n\n\tchain", 1)
    assert finding({NFT: DROPS_JSON, TEXT: DROPS}).outcome is Outcome.FAIL
    assert finding({NFT: DROPS_JSON, TEXT: dormant}).outcome is Outcome.PASS


def test_legacy_tables_beside_nft() -> None:
    names = {"/proc/net/ip_tables_names": "filter\n"}
    assert finding({NFT: EMPTY, LEGACY: SAVE_DROPS}, names).outcome is Outcome.FAIL
    found = finding({NFT: EMPTY, LEGACY: {"error": "missing"}}, names)
    assert found.outcome is Outcome.UNKNOWN
    assert found.reason is not None and "legacy" in found.reason.en


def test_an_old_host_has_iptables_only() -> None:
    old = {"/proc/modules": "ip_tables 27126 1 iptable_filter, Live 0x0\n", "/proc/net/ip_tables_names": "filter\n"}
    old.update(MODULAR)
    missing = {NFT: {"error": "missing"}, LEGACY: {"error": "missing"}}
    assert finding({**missing, SAVE: SAVE_DROPS}, old).outcome is Outcome.FAIL
    assert finding({**missing, SAVE: SAVE_DROPS.replace("DROP", "ACCEPT")}, old).outcome is Outcome.PASS
    assert finding({**missing, SAVE: SAVE_DROPS[:-7]}, old).outcome is Outcome.UNKNOWN, "cut off before COMMIT"


def test_iptables_save_says_that_legacy_tables_are_hidden() -> None:
    files = {"/proc/net/ip_tables_names": {"error": "EIO"}}
    warning = {
        "stdout": "",
        "stderr": "# Warning: iptables-legacy tables present, use iptables-legacy-save to see them\n",
    }
    missing = {"error": "missing"}
    assert finding({NFT: EMPTY, SAVE: warning, LEGACY: missing}, files).outcome is Outcome.UNKNOWN
    assert finding({NFT: EMPTY, SAVE: "", LEGACY: missing}, files).outcome is Outcome.PASS


@pytest.mark.parametrize(
    ("files", "outcome"),
    [
        ({"/proc/modules": "nf_tables 303104 12 nft_ct,nft_reject, Live 0x0\n"}, Outcome.UNKNOWN),
        ({"/proc/modules": "veth 32768 0 - Live 0x0\n", **MODULAR}, Outcome.PASS),
        ({"/proc/modules": "veth 32768 0 - Live 0x0\n", BUILTIN: None}, Outcome.UNKNOWN),
        ({"/proc/modules": "veth 32768 0 - Live 0x0\n", BUILTIN: ""}, Outcome.UNKNOWN),
        (
            {"/proc/modules": "veth 32768 0 - Live 0x0\n", BUILTIN: "kernel/net/netfilter/nf_tables.ko\n"},
            Outcome.UNKNOWN,
        ),
        ({"/proc/modules": ""}, Outcome.UNKNOWN),
        ({"/proc/modules": None}, Outcome.UNKNOWN),
        ({"/proc/modules": None, "/proc/net/netfilter": None}, Outcome.PASS),
    ],
)
def test_no_program_at_all(files: Mapping[str, Any], outcome: Outcome) -> None:
    missing = {line: {"error": "missing"} for line in (NFT, SAVE, LEGACY)}
    assert finding(missing, files).outcome is outcome


def test_what_a_user_may_not_read_is_a_missing_right() -> None:
    user = {"euid": 1000}
    denied = {"/proc/net/ip_tables_names": {"error": "EACCES"}}
    found = finding({NFT: NO_RIGHT, SAVE: NO_RIGHT, LEGACY: NO_RIGHT}, denied, **user)
    assert (found.outcome, found.needs_privilege) == (Outcome.UNKNOWN, True)
    found = finding({NFT: NO_RIGHT, SAVE: {"error": "missing"}, LEGACY: {"error": "missing"}}, denied, **user)
    assert (found.outcome, found.needs_privilege) == (Outcome.UNKNOWN, True)


@pytest.mark.parametrize(
    "row", [{"error": "timeout"}, {"rc": 1, "stderr": "netlink: Error: Invalid argument\n"}, EMPTY[:-9], ""]
)
def test_a_listing_that_failed_is_unknown(row: Any) -> None:
    found = finding({NFT: row})
    assert (found.outcome, found.needs_privilege) == (Outcome.UNKNOWN, False)
    assert found.evidence.source == NFT


def test_iptables_in_its_own_words_where_nft_has_none() -> None:
    """The same table from both: nft shows `xt`, iptables-save says what it is."""
    both = {NFT: recorded("ufw-peer.json"), SAVE: recorded("ufw-peer.iptables-save")}
    found = finding(both)
    assert found.outcome is Outcome.UNKNOWN
    assert found.reason is not None and "open only for 10.77.0.1" in found.reason.en
    found = finding({NFT: recorded("ufw-peer.json")})
    assert found.reason is not None and "xt match" in found.reason.en, "without iptables-save nothing is concluded"


def test_front_ends_prove_closed_and_never_open() -> None:
    closed = {"ufw status verbose": recorded("ufw-drop.status")}
    found = finding(closed)
    assert found.outcome is Outcome.FAIL
    assert found.expected is not None and "ufw" in found.expected.en
    assert (found.evidence.source, found.commands) == ("ufw status verbose", ()), "nobody is named to let in"
    named = finding(closed, target={"peers": ["192.0.2.11"]})
    assert [str(one.line) for one in named.commands] == [
        "sudo ufw allow proto tcp from 192.0.2.11 to any port 60000:60031"
    ]
    assert finding({"ufw status verbose": recorded("ufw-any.status")}).outcome is Outcome.UNKNOWN
    assert finding({"ufw status verbose": "Status: inactive\n"}).outcome is Outcome.UNKNOWN
    zone = "public (active)\n  target: default\n  interfaces: eth0\n  services: ssh\n  ports: %s\n  rich rules: \n"
    state = {"firewall-cmd --state": "running\n"}
    found = finding({**state, "firewall-cmd --list-all": zone % ""}, target={"peers": ["192.0.2.11"]})
    assert found.outcome is Outcome.FAIL
    assert found.evidence.source == "firewall-cmd --list-all"
    assert [str(one.line).split(" --add")[0] for one in found.commands] == [
        "sudo firewall-cmd --zone=public",
        "sudo firewall-cmd --permanent --zone=public",
    ]
    assert finding({**state, "firewall-cmd --list-all": zone % "60000-60015/tcp"}).outcome is Outcome.FAIL
    assert finding({**state, "firewall-cmd --list-all": zone % "60000-60031/tcp"}).outcome is Outcome.UNKNOWN
    assert finding({"firewall-cmd --state": {"rc": 252, "stderr": "not running\n"}}).outcome is Outcome.UNKNOWN


def test_a_front_end_that_runs_is_not_overlooked_for_want_of_a_program() -> None:
    missing = {line: {"error": "missing"} for line in (NFT, SAVE, LEGACY)}
    files = {"/proc/modules": None, "/proc/net/netfilter": None}
    assert finding(missing, files).outcome is Outcome.PASS
    assert finding({**missing, "ufw status verbose": recorded("ufw-drop.status")}, files).outcome is Outcome.FAIL
    assert finding({**missing, "ufw status verbose": recorded("ufw-any.status")}, files).outcome is Outcome.UNKNOWN


def test_the_rules_owner_is_named() -> None:
    found = finding({NFT: recorded("firewalld-public.json")})
    assert found.outcome is Outcome.FAIL
    assert found.actual is not None and "`reject` (inet firewalld filter_IN_public)" in found.actual.en
    assert found.expected is not None and "firewalld" in found.expected.en
    assert found.evidence.text == "inet firewalld filter_IN_public: reject"


def test_peers_the_job_names() -> None:
    rich = {NFT: recorded("firewalld-rich.json")}
    two = {"MASTER_ADDR": "10.77.0.1", "NNODES": "2", "NODE_RANK": "1"}
    assert finding(rich, environ=two).outcome is Outcome.PASS
    assert finding(rich, environ={**two, "MASTER_ADDR": "10.77.0.9"}).outcome is Outcome.FAIL
    assert finding(rich, environ={**two, "NNODES": "3"}).outcome is Outcome.UNKNOWN
    listed = {"/etc/peers.json": '{"host_ip": ["10.77.0.1", "192.0.2.10"], "device_ip": []}'}
    environ = {"HCCL_WHITELIST_DISABLE": "0", "HCCL_WHITELIST_FILE": "/etc/peers.json"}
    assert finding(rich, listed, environ=environ).outcome is Outcome.PASS
    assert finding(rich, listed, environ={**environ, "HCCL_WHITELIST_DISABLE": "1"}).outcome is Outcome.UNKNOWN


def test_interfaces_that_differ_are_not_a_verdict() -> None:
    rules = DROPS.replace("drop;\n", 'drop;\n\t\tct state established accept\n\t\tiifname "eth1" accept\n')
    two = [
        {"name": "eth0", "addresses": ["192.0.2.10"]},
        {"name": "eth1", "addresses": ["198.51.100.1"]},
        {"name": "docker0", "addresses": ["172.17.0.1"]},
    ]
    found = finding({TEXT: rules}, interfaces=two)
    assert found.outcome is Outcome.UNKNOWN
    assert found.reason is not None and "blocked by eth0" in found.reason.en
    assert finding({TEXT: rules}, interfaces=two, environ={"HCCL_SOCKET_IFNAME": "=eth1"}).outcome is Outcome.PASS
    assert finding({TEXT: rules}, interfaces=two, environ={"HCCL_IF_IP": "192.0.2.10"}).outcome is Outcome.FAIL
    assert finding({TEXT: rules}, interfaces=two[1:]).outcome is Outcome.PASS, "docker0 is inside"


def test_an_ipv6_master_is_judged_by_ipv6_tables() -> None:
    text = DROPS.replace("inet", "ip6").replace("policy drop", "policy accept")
    hosts = [{"name": "eth0", "addresses": ["192.0.2.10", "2001:db8::10"]}]
    six = {"MASTER_ADDR": "2001:db8::10"}
    assert finding({TEXT: text}, interfaces=hosts, environ=six).outcome is Outcome.PASS
    assert finding({TEXT: text.replace("accept", "drop")}, interfaces=hosts, environ=six).outcome is Outcome.FAIL
    assert finding({TEXT: text.replace("accept", "drop")}, interfaces=hosts).outcome is Outcome.PASS


def test_every_port_of_the_range_counts() -> None:
    rules = DROPS.replace("drop;\n", "drop;\n\t\tct state established accept\n\t\ttcp dport 60000-60015 accept\n")
    found = finding({TEXT: rules})
    assert found.outcome is Outcome.FAIL
    assert found.actual is not None and found.actual.en.startswith("60016-60031 blocked")
    assert finding({TEXT: rules}, environ={"HCCL_HOST_SOCKET_PORT_RANGE": "60000-60015"}).outcome is Outcome.PASS
