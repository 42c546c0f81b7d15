"""The evaluator and the kernel give the same answer: for the rule sets that fool a simple reader, and for random ones."""

# ruff: noqa: E501  (a rule set or a question of one is a line of a table)

from __future__ import annotations

import itertools
import random
from typing import Iterator

import pytest
from helpers.namespaces import PEERS, PORTS, SERVER, Pair, disagreement, needs, told, verdicts

from envtune.firewall.nft.json import parse_json
from envtune.firewall.nft.text import parse_text

pytestmark = [pytest.mark.firewall, pytest.mark.root]


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    needs("nft", "iptables", "iptables-legacy")
    with Pair() as both:
        yield both


@pytest.fixture(autouse=True)
def clean(pair: Pair) -> Iterator[None]:
    yield
    pair.run(["nft", "flush", "ruleset"])
    for table in ("filter", "raw", "mangle"):
        pair.run(["iptables-legacy", "-t", table, "-F"])
    for chain in ("INPUT", "OUTPUT"):
        pair.run(["iptables-legacy", "-P", chain, "ACCEPT"])


PEER = f"ip saddr {PEERS[0]} tcp dport 29688 accept"


def chain(table: str, priority: int, policy: str, *rules: str) -> str:
    body = "\n".join(rules)
    return (
        f"table inet {table} {{\n chain input {{\n type filter hook input priority {priority}; policy {policy};\n"
        f" {body}\n }}\n}}\n"
    )


TRAPS = {
    "accept appended after a final reject": chain("f", 0, "accept", "iif lo accept", "ct state established accept", "reject", PEER),
    "accept inserted before it": chain("f", 0, "accept", PEER, "iif lo accept", "ct state established accept", "reject"),
    "accept in a table of one's own": chain("f", 0, "drop", "ct state established accept") + chain("own", -10, "drop", PEER),
    "open by verdict map and jump": (
        "table inet f {\n chain ours {\n" + PEER + "\n }\n chain input {\n type filter hook input priority 0; policy drop;\n"
        " ct state established accept\n tcp dport vmap { 22 : accept, 29688 : jump ours }\n }\n}\n"
    ),
    "only new connections accepted, their answers dropped": chain("f", 0, "drop", "ct state new accept"),
    "answers dropped on the way out": (
        "table ip f {\n chain output {\n type filter hook output priority 0; policy accept;\n tcp sport 60000-60031 drop\n }\n}\n"
    ),
    "invalid before connection tracking": (
        "table ip f {\n chain pre {\n type filter hook prerouting priority raw; policy accept;\n"
        " tcp dport 29688 ct state invalid drop\n }\n}\n"
    ),
    "dropped before routing": (
        "table ip f {\n chain pre {\n type filter hook prerouting priority -300; policy accept;\n"
        f" ip saddr {PEERS[1]} tcp dport 60000-60015 drop\n }}\n}}\n"
    ),
    "untracked, then only established accepted": (
        "table ip f {\n chain pre {\n type filter hook prerouting priority -300; policy accept;\n tcp dport 29688 notrack\n }\n"
        " chain input {\n type filter hook input priority 0; policy drop;\n ct state new,established accept\n }\n}\n"
    ),
    "marked, and the marked dropped": (
        "table ip f {\n chain pre {\n type filter hook prerouting priority -150; policy accept;\n"
        " tcp dport 29688 meta mark set 0x8000\n }\n"
        " chain input {\n type filter hook input priority 0; policy accept;\n meta mark & 0x8000 == 0x8000 drop\n }\n}\n"
    ),
    "concatenated set": (
        "table inet f {\n set allowed {\n type ipv4_addr . inet_service\n flags interval\n"
        f" elements = {{ {PEERS[0]} . 60000-60031, 10.77.0.0/30 . 22 }}\n }}\n"
        " chain input {\n type filter hook input priority 0; policy drop;\n ct state established accept\n"
        " ip saddr . tcp dport @allowed accept\n }\n}\n"
    ),
    "dormant table": "table inet f {\n flags dormant;\n chain input {\n type filter hook input priority 0; policy drop;\n }\n}\n",
    "handshake flags": chain(
        "f", 0, "drop", "tcp flags & (fin|syn|rst|ack) == syn tcp dport 60000-60031 accept", "ct state established accept"
    ),
    "not loopback": chain("f", 0, "accept", 'iifname != "lo" tcp dport 29688 drop'),
    "by interface": chain("f", 0, "drop", "ct state established accept", 'iifname "eth*" tcp dport { 22, 60000-60015 } accept'),
    "by address of ours": chain("f", 0, "drop", "ct state established accept", f"ip daddr {SERVER} tcp dport >= 60000 accept"),
    "by type of address": chain("f", 0, "accept", "fib daddr type local tcp dport 29688 drop", "fib daddr type broadcast drop"),
}  # fmt: skip


@pytest.mark.parametrize("name", TRAPS)
def test_trap(pair: Pair, name: str) -> None:
    pair.nft(TRAPS[name])
    found = told(pair)
    assert not found.gaps
    doubt = name == "untracked, then only established accepted"
    assert disagreement(pair, verdicts(found.tables), doubt) == ""


def test_nft_open_and_iptables_legacy_closed(pair: Pair) -> None:
    pair.nft(chain("f", 0, "drop", PEER, "ct state established accept"))
    before = verdicts(told(pair).tables)
    assert before[PEERS[0], 29688] == "open"
    assert disagreement(pair, before) == ""
    pair.run(["iptables-legacy", "-P", "INPUT", "DROP"])
    assert disagreement(pair, verdicts(told(pair).tables)) == ""
    assert set(verdicts(told(pair).tables).values()) == {"closed"}


@pytest.mark.parametrize("command", ["iptables", "iptables-legacy"])
def test_iptables(pair: Pair, command: str) -> None:
    for line in (
        "-P INPUT DROP",
        "-N ours",
        "-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
        "-A INPUT -i lo -j ACCEPT",
        "-A INPUT -p udp --dport 60000:60031 -j ACCEPT",
        "-A INPUT -p tcp -m addrtype --dst-type LOCAL -m multiport --dports 29688,60000:60031 -g ours",
        "-A INPUT -p tcp --dport 29688 -j ACCEPT",
        f"-A ours -s {PEERS[0]} -m comment --comment -j --dport -j ACCEPT".replace(
            "--comment -j --dport", "--comment x"
        ),
        "-A ours -p tcp ! --dport 60000:60030 -m iprange --src-range 10.77.0.3-10.77.0.9 -j ACCEPT",
        "-t raw -A PREROUTING -p tcp --dport 60015 -j MARK --set-xmark 0x1/0xf",
        "-A INPUT -m mark --mark 0x1/0x1 -j DROP",
    ):
        pair.run([command, *line.split()])
    assert disagreement(pair, verdicts(told(pair).tables)) == ""
    assert {"open", "closed"} == set(verdicts(told(pair).tables).values())


def random_rules(dice: random.Random) -> str:
    """A rule set of two base chains and two chains of its own, from questions that have an answer."""
    ports = [
        "22",
        "29688",
        "60000-60015",
        "60000-60031",
        "{ 22, 60031-60040 }",
        "!= 60000",
        "!= { 22, 29688 }",
        "@ports",
    ]
    sources = [
        PEERS[0],
        f"!= {PEERS[0]}",
        "10.77.0.0/31",
        "10.77.0.0/24",
        "@hosts",
        "!= @hosts",
        "{ 10.77.0.3-10.77.0.9, 8.8.8.8 }",
    ]
    extras = [
        "ct state new", "ct state established,related", "ct state { new, invalid }", "ct state != new", "meta l4proto tcp",
        "meta l4proto { tcp, udp }", "udp dport 60000", "tcp flags syn", "tcp flags & (syn|ack) == syn", 'iifname "eth0"',
        "iif != lo", f"ip daddr {SERVER}", "ip daddr != 10.0.0.9", "meta mark 0x1", "meta mark & 0x2 == 0x0", "ip protocol tcp",
        f"ip saddr . tcp dport {{ {PEERS[0]} . 22, {PEERS[1]} . 60000-60031 }}", "fib daddr type local", "ip6 saddr != fe80::1",
        "th dport 60000-60031", "tcp dport < 30000", "ct direction original", "meta nfproto ipv4",
    ]  # fmt: skip
    verdicts_ = (
        ["accept"] * 5
        + ["drop"] * 4
        + ["reject", "jump c1", "jump c2", "goto c2", "return", "counter", "meta mark set 0x1"]
    )

    def rule(level: int) -> str:
        parts = []
        if dice.random() < 0.6:
            parts.append(f"tcp dport {dice.choice(ports)}")
        if dice.random() < 0.4:
            parts.append(f"ip saddr {dice.choice(sources)}")
        if dice.random() < 0.45:
            parts.append(dice.choice(extras))
        if dice.random() < 0.12:
            return " ".join([*parts[1:], "tcp dport vmap { 22 : accept, 29688 : drop, 60000-60015 : continue }"])
        choices = [
            v for v in verdicts_ if not (level >= 1 and v in ("jump c1", "goto c1")) and not (level == 2 and "c2" in v)
        ]
        return " ".join([*parts, dice.choice(choices)])

    def rules(level: int, count: int) -> str:
        return "\n".join(f"  {rule(level)}" for _ in range(count))

    first = "  ct state established accept\n" if dice.random() < 0.8 else ""
    return (
        "table inet t {\n"
        f" set ports {{\n type inet_service\n flags interval\n elements = {{ 22, 60000-60031 }}\n }}\n"
        f" set hosts {{\n type ipv4_addr\n elements = {{ {PEERS[1]}, 192.0.2.1 }}\n }}\n"
        f" chain c2 {{\n{rules(2, 3)}\n }}\n chain c1 {{\n{rules(1, 3)}\n }}\n"
        f" chain pre {{\n  type filter hook prerouting priority {dice.choice([-300, -150])}; policy accept;\n{rules(2, 1)}\n }}\n"
        f" chain input {{\n  type filter hook input priority 0; policy {dice.choice(['drop', 'accept'])};\n{first}{rules(0, 6)}\n }}\n"
        "}\n"
    )  # fmt: skip


def test_random_rule_sets(pair: Pair) -> None:
    """Sixty rule sets, twelve connections each: the same answer as the kernel's, from JSON and from text."""
    dice = random.Random(20231114)
    seen = set()
    sets = (random_rules(dice) for _ in range(1000))
    for text in itertools.islice((text for text in sets if pair.takes(text)), 60):
        by_json = verdicts(parse_json(pair.run(["nft", "-j", "list", "ruleset"]).stdout, 4))
        by_text = verdicts(parse_text(pair.run(["nft", "list", "ruleset"]).stdout, 4))
        assert disagreement(pair, by_json) == "", text
        assert by_text == by_json, text
        seen |= {frozenset(by_json.values())}
    assert len(seen) >= 3, "some sets open everything, some nothing, some a part"


def random_iptables(dice: random.Random) -> list[str]:
    asks = [
        "-p tcp --dport 60000:60031", "-p tcp -m multiport --dports 22,29688", "-p tcp ! --dport 29688", f"-s {PEERS[0]}",
        f"! -s {PEERS[1]}", "-s 10.77.0.0/30", "-i eth0", "! -i lo", "-i eth+", "-m conntrack --ctstate NEW", "-m state --state ESTABLISHED",
        "-m conntrack ! --ctstate ESTABLISHED", "-p tcp --syn", "-p tcp --tcp-flags SYN,ACK SYN", "-p udp", "-m addrtype --dst-type LOCAL",
        "-m mark --mark 0x1/0x1", f"-d {SERVER}", "-m pkttype --pkt-type unicast", "-m iprange --src-range 10.77.0.2-10.77.0.3", "",
    ]  # fmt: skip
    acts = ["ACCEPT"] * 4 + ["DROP"] * 3 + ["REJECT", "c1", "RETURN", "MARK --set-mark 0x1", "LOG"]
    lines = [f"-P INPUT {dice.choice(['ACCEPT', 'DROP'])}", "-N c1"]
    if dice.random() < 0.8:
        lines.append("-A INPUT -m conntrack --ctstate ESTABLISHED -j ACCEPT")
    lines += [f"-A INPUT {dice.choice(asks)} -j {dice.choice(acts)}" for _ in range(6)]
    lines += [f"-A c1 {dice.choice(asks)} -j {dice.choice([a for a in acts if a != 'c1'])}" for _ in range(3)]
    return [line for line in lines if "MARK" not in line]


@pytest.mark.parametrize("command", ["iptables", "iptables-legacy"])
def test_random_iptables(pair: Pair, command: str) -> None:
    dice = random.Random(5)
    for _ in range(20):
        lines = random_iptables(dice)
        for table in (["-F"], ["-X"]):
            pair.run([command, *table], check=False)
        for line in sorted(lines, key=lambda one: not one.startswith(("-N", "-P"))):
            pair.run([command, *line.split()])
        found = told(pair)
        assert not found.gaps
        assert disagreement(pair, verdicts(found.tables)) == "", "\n".join(lines)
    assert PORTS
