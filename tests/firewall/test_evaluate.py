"""What a rule set lets through: real listings of firewalld, ufw, Docker and Kubernetes, and single questions of rules."""
# ruff: noqa: E501  (a rule set or a question of one is a line of a table)

from __future__ import annotations

import json
import random
import time
from typing import Any, Callable, Sequence

import pytest
from helpers.rule_walks import ALL, recorded, walk

from envtune.firewall import ListingError, Table, TooLargeError
from envtune.firewall.iptables.save import parse_listing, parse_save
from envtune.firewall.nft.json import parse_json
from envtune.firewall.nft.text import items, parse_text


def nft(*rules: str, policy: str = "drop", more: str = "", head: str = "") -> list[Table]:
    """An nftables input chain, from text."""
    body = "\n".join(("ct state established accept", *rules))
    text = f"table inet t {{\n{head}{more}chain input {{\ntype filter hook input priority filter; policy {policy};\n{body}\n}}\n}}\n"
    return parse_text(text, 4)


def iptables(*rules: str, policy: str = "DROP") -> list[Table]:
    """An iptables INPUT chain, from the text of iptables-save."""
    lines = [f":INPUT {policy} [0:0]", "-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT", *rules]
    chains = sorted({line.split()[1] for line in rules} - {"INPUT"})
    return parse_save("\n".join(["*filter", lines[0], *(f":{c} - [0:0]" for c in chains), *lines[1:], "COMMIT"]), 4)


# ------------------------------------------------------------------ front ends, as they really write


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        (parse_json(recorded("firewalld-public.json"), 4), {"closed": ALL}),
        (parse_json(recorded("firewalld-ports.json"), 4), {"open": ALL}),
        (parse_json(recorded("firewalld-rich.json"), 4), {"part": ALL}),
        (parse_text(recorded("firewalld-rich.nft"), 4), {"part": ALL}),
        (parse_save(recorded("firewalld-rich.iptables-save"), 4), {"part": ALL}),
        (parse_save(recorded("ufw-drop.iptables-save"), 4), {"closed": ALL}),
        (parse_save(recorded("ufw-peer.iptables-save"), 4), {"part": ALL}),
        (parse_text(recorded("ufw-peer.nft"), 4), {"part": ALL}),
        (parse_save(recorded("ufw-any.iptables-save"), 4), {"open": ALL}),
        (parse_save(recorded("docker.iptables-save"), 4), {"open": ALL}),
        (parse_save(recorded("kubernetes.iptables-save"), 4), {"open": ALL}),
    ],
)
def test_front_end(tables: Sequence[Table], expected: dict[str, str]) -> None:
    assert walk(tables) == expected


@pytest.mark.parametrize(
    "tables",
    [
        parse_json(recorded("firewalld-rich.json"), 4),
        parse_save(recorded("firewalld-rich.iptables-save"), 4),
        parse_save(recorded("ufw-peer.iptables-save"), 4),
    ],
)
def test_open_for_the_peer_that_was_named(tables: Sequence[Table]) -> None:
    assert walk(tables, peer="10.77.0.1") == {"open": ALL}
    assert "open" not in walk(tables, peer="10.77.0.9")


def test_ufw_in_nft_json_names_matches_it_cannot_show() -> None:
    """iptables-nft's own words are `xt` in JSON: nothing is concluded from them."""
    assert walk(parse_json(recorded("ufw-peer.json"), 4)) == {"unknown": ALL}


def test_a_port_published_by_docker_leads_elsewhere() -> None:
    assert walk(parse_save(recorded("docker.iptables-save"), 4), ports=[(8080, 8080)]) == {"unknown": "8080"}
    assert walk(parse_save(recorded("kubernetes.iptables-save"), 4), ports=[(30080, 30080)]) == {"unknown": "30080"}


# ------------------------------------------------------------------ single questions, in both languages

NFT_QUESTIONS: list[tuple[str, dict[str, str]]] = [
    ("tcp dport { 29688, 60000-60031 } accept", {"open": ALL}),
    ("tcp dport 60000-60015 accept", {"closed": "29688, 60016-60031", "open": "60000-60015"}),
    ("tcp dport != 29688 accept", {"open": "60000-60031", "closed": "29688"}),
    ("tcp dport > 60000 accept", {"open": "60001-60031", "closed": "29688, 60000"}),
    ("udp dport { 29688, 60000-60031 } accept", {"closed": ALL}),
    ("udp dport != 29688 accept", {"closed": ALL}),
    ("meta l4proto { tcp, udp } th dport 29688 accept", {"open": "29688", "closed": "60000-60031"}),
    ("ip protocol tcp accept", {"open": ALL}),
    ("ip saddr 10.0.0.0/8 accept", {"part": ALL}),
    ("ip6 saddr != fe80::1 accept", {"closed": ALL}),
    ("ct state new accept", {"open": ALL}),
    ("ct state { invalid, untracked } accept", {"closed": ALL}),
    ("ct status dnat accept", {"closed": ALL}),
    ("iif lo accept", {"closed": ALL}),
    ('iifname "eth*" accept', {"open": ALL}),
    ('iifname { "eth1", "bond0" } accept', {"closed": ALL}),
    ('iifname "eth0" ip daddr 192.0.2.10 accept', {"open": ALL}),
    ("ip daddr 192.0.2.11 accept", {"closed": ALL}),
    ("fib daddr type local accept", {"open": ALL}),
    ("fib daddr . iif type != { local, broadcast, multicast } drop\naccept", {"open": ALL}),
    ("fib saddr . iif oif missing drop\naccept", {"open": ALL}),
    ("meta pkttype { broadcast, multicast } drop\naccept", {"open": ALL}),
    ("meta mark 0x1 accept", {"closed": ALL}),
    ("meta mark set 0x1\nmeta mark & 0x3 == 0x1 accept", {"open": ALL}),
    ("meta mark set meta mark | 0x1\nmeta mark 0x1 accept", {"unknown": ALL}),
    ("limit rate 10/second accept", {"unknown": ALL}),
    ("limit rate 10/second accept\naccept", {"open": ALL}),
    ("limit rate 10/second drop", {"closed": ALL}),
    ("tcp dport 22 limit rate 10/second accept", {"closed": ALL}),
    ("tcp flags & (fin | syn | rst | ack) == syn accept", {"open": ALL}),
    ("tcp flags syn / fin,syn,rst,ack accept", {"open": ALL}),
    ("tcp flags ! syn / x y accept", {"unknown": ALL}),
    ("tcp option maxseg size set 1460\naccept", {"open": ALL}),
    ("log prefix \"a # b\" counter packets 3 bytes 4\naccept comment \"drop\"", {"open": ALL}),
    ("tcp dport 22 meta hour 8-9 drop\naccept", {"open": ALL}),
    ("meta hour 8-9 drop\naccept", {"unknown": ALL}),
    ("jump nowhere\naccept", {"unknown": ALL}),
    ("tcp dport 29688 redirect to :22\naccept", {"unknown": "29688", "open": "60000-60031"}),
    ("tcp dport vmap { 29688 : accept, 60000-60003 : drop }\naccept", {"open": "29688, 60004-60031", "closed": "60000-60003"}),
    ("ct state vmap { established : accept, new : continue, invalid : drop }\naccept", {"open": ALL}),
    ("ip saddr . tcp dport { 10.0.0.1 . 29688, 10.0.0.0/24 . 60000-60031 } accept", {"part": ALL}),
    ("iifname . tcp dport { \"eth0\" . 29688, \"eth1\" . 60000 } accept", {"open": "29688", "closed": "60000-60031"}),
    ("meta l4proto . th dport vmap { tcp . 29688 : accept, udp . 60000 : accept }", {"open": "29688", "closed": "60000-60031"}),
    ("tcp dport 22 # xt_recent accept", {"closed": ALL}),
    ("tcp dport 29688 # xt_recent accept", {"unknown": "29688", "closed": "60000-60031"}),
    ("accept # handle 7", {"open": ALL}),
]  # fmt: skip


@pytest.mark.parametrize(("rules", "expected"), NFT_QUESTIONS)
def test_nft_question(rules: str, expected: dict[str, str]) -> None:
    assert walk(nft(rules)) == expected


IPTABLES_QUESTIONS: list[tuple[str, dict[str, str]]] = [
    ("-A INPUT -p tcp -m tcp --dport 29688 -j ACCEPT", {"open": "29688", "closed": "60000-60031"}),
    ("-A INPUT -p tcp -m multiport --dports 29688,60000:60031 -j ACCEPT", {"open": ALL}),
    ("-A INPUT -p tcp -m multiport ! --dports 1:1023 -j ACCEPT", {"open": ALL}),
    ("-A INPUT -p udp -m udp --dport 60000:60031 -j ACCEPT", {"closed": ALL}),
    ("-A INPUT ! -p tcp -j ACCEPT", {"closed": ALL}),
    ("-A INPUT -s 10.0.0.0/255.0.0.0 -j ACCEPT", {"part": ALL}),
    ("-A INPUT -i eth+ -j ACCEPT", {"open": ALL}),
    ("-A INPUT ! -i lo -j ACCEPT", {"open": ALL}),
    ("-A INPUT -p tcp --sport 1:1023 -j ACCEPT", {"closed": ALL}),
    ("-A INPUT -p tcp --sport 1024:65535 -j ACCEPT", {"open": ALL}),
    ("-A INPUT -p tcp --sport 40000:50000 -j ACCEPT", {"unknown": ALL}),
    ("-A INPUT -p tcp ! --sport 40000:50000 -j ACCEPT", {"unknown": ALL}),
    ("-A INPUT -m state --state NEW -j ACCEPT", {"open": ALL}),
    ("-A INPUT -m conntrack --ctstate DNAT -j ACCEPT", {"closed": ALL}),
    ("-A INPUT -p tcp -m tcp --tcp-flags FIN,SYN,RST,PSH,ACK,URG NONE -j DROP\n-A INPUT -j ACCEPT", {"open": ALL}),
    ("-A INPUT -p tcp -m tcp ! --tcp-flags FIN,SYN,RST,ACK SYN -m conntrack --ctstate NEW -j DROP\n-A INPUT -j ACCEPT", {"open": ALL}),
    ("-A INPUT -m set --match-set peers src -j ACCEPT", {"unknown": ALL}),
    ("-A INPUT -m set --match-set banned src -j DROP\n-A INPUT -j ACCEPT", {"unknown": ALL}),
    ("-A INPUT -p tcp --dport 22 -m recent --update --seconds 60 --hitcount 4 --name DEFAULT --mask 255.255.255.255 --rsource -j DROP\n-A INPUT -j ACCEPT", {"open": ALL}),
    ("-A INPUT -m rpfilter --invert -j DROP\n-A INPUT -j ACCEPT", {"open": ALL}),
    ("-A INPUT -m comment --comment \"-j DROP all\" -j ACCEPT", {"open": ALL}),
    ("-A INPUT -m connmark --mark 0x1 -j ACCEPT", {"closed": ALL}),
    ("-A INPUT -j CONNMARK --set-mark 0x1\n-A INPUT -m connmark --mark 0x1 -j ACCEPT", {"unknown": ALL}),
    ("-A INPUT -f -j ACCEPT", {"closed": ALL}),
    ("-A INPUT -j LOG --log-prefix \"a b\"\n-A INPUT -j ACCEPT", {"open": ALL}),
    ("-A INPUT -j NFQUEUE --queue-num 1", {"unknown": ALL}),
    ("-A INPUT -j NEWTARGET --x 1\n-A INPUT -j ACCEPT", {"unknown": ALL}),
    ("-A INPUT -m newmatch --x 1 -j LOG\n-A INPUT -j ACCEPT", {"open": ALL}),
    ("-A INPUT -p tcp --dport 29688 -g ours\n-A INPUT -j ACCEPT\n-A ours -s 10.0.0.1 -j RETURN", {"open": "60000-60031", "closed": "29688"}),
    ("-A INPUT -p tcp --dport 29688 -j ours\n-A INPUT -j ACCEPT\n-A ours -j RETURN\n-A ours -j DROP", {"open": ALL}),
]  # fmt: skip


@pytest.mark.parametrize(("rules", "expected"), IPTABLES_QUESTIONS)
def test_iptables_question(rules: str, expected: dict[str, str]) -> None:
    assert walk(iptables(*rules.split("\n"))) == expected


def test_the_interface_is_not_known() -> None:
    rules = nft('iifname "eth0" accept')
    assert walk(rules, interface=None) == {"unknown": ALL}
    assert walk(nft("iif lo accept"), interface=None) == {"closed": ALL}
    assert walk(nft('iifname != "lo" accept'), interface=None) == {"open": ALL}


def test_our_address_is_not_known() -> None:
    assert walk(nft("ip daddr 192.0.2.10 accept"), own=None) == {"unknown": ALL}
    assert walk(nft("ip daddr != 192.0.2.10 accept"), own=None) == {"unknown": ALL}
    assert walk(nft("ip daddr 224.0.0.0/4 drop", "accept"), own=None) == {"open": ALL}


def test_a_set_that_packets_add_to_may_hold_anybody_in_a_moment() -> None:
    more = "set banned {\ntype ipv4_addr\nsize 65535\nflags dynamic,timeout\nelements = { 10.0.0.1 timeout 1h expires 3m }\n}\n"
    rules = nft("ip saddr @banned drop", "accept", more=more)
    assert walk(rules, peer="10.0.0.1") == {"closed": ALL}
    assert walk(rules, peer="10.0.0.2") == {"unknown": ALL}


@pytest.mark.parametrize("size", [2_000, pytest.param(50_000, marks=pytest.mark.slow)])
def test_a_set_of_many_addresses_is_fast(size: int) -> None:
    """A country block list: 50,000 elements."""
    elements = [f"{1 + n // 65536 % 200}.{n // 256 % 256}.{n % 256}.7" for n in range(0, 2 * size, 2)]
    body: list[dict[str, Any]] = [
        {"chain": {"family": "ip", "table": "t", "name": "input", "type": "filter", "hook": "input", "prio": 0}},
        {"set": {"family": "ip", "table": "t", "name": "block", "type": "ipv4_addr", "elem": elements}},
    ]
    field = {"payload": {"protocol": "ip", "field": "saddr"}}
    rule = [{"match": {"op": "==", "left": field, "right": "@block"}}, {"drop": None}]
    body.append({"rule": {"family": "ip", "table": "t", "chain": "input", "expr": rule}})
    text = json.dumps({"nftables": body})
    start = time.process_time()
    assert walk(parse_json(text, 4)) == {"part": ALL}
    assert time.process_time() - start < 60, "a quadratic way takes minutes"
    assert walk(parse_json(text, 4), peer=elements[77]) == {"closed": ALL}
    assert walk(parse_json(text, 4), peer="203.0.113.9") == {"open": ALL}


def test_ipv6_follows_its_own_tables() -> None:
    text = (
        "table ip a {\nchain input {\ntype filter hook input priority 0; policy drop;\n}\n}\n"
        "table ip6 b {\nchain input {\ntype filter hook input priority 0; policy accept;\nip6 saddr 2001:db8::/32 drop\n}\n}\n"
    )
    peer = {"family": 6, "own": "2001:db9::1", "interface": "eth0"}
    assert walk(parse_text(text, 6), peer="2001:db8::7", **peer) == {"closed": ALL}  # type: ignore[arg-type]
    assert walk(parse_text(text, 6), peer="2001:db9::7", **peer) == {"open": ALL}  # type: ignore[arg-type]
    assert walk(parse_text(text, 4)) == {"closed": ALL}


def test_families_that_see_frames_count_only_when_they_drop() -> None:
    frame = 'table netdev n {\nchain ingress {\ntype filter hook ingress device "eth0" priority 0; policy accept;\n%s\n}\n}\n'
    assert walk(parse_text(frame % "counter", 4)) == {"open": ALL}
    assert walk(parse_text(frame % "ip saddr 10.0.0.1 drop", 4)) == {"unknown": ALL}
    arp = "table arp a {\nchain input {\ntype filter hook input priority filter; policy drop;\n}\n}\n"
    assert walk(parse_text(arp, 4)) == {"unknown": ALL}


# ------------------------------------------------------------------ broken and hostile rule sets


def test_a_circle_of_jumps_ends() -> None:
    more = "chain a {\njump b\n}\nchain b {\njump a\n}\n"
    assert walk(nft("jump a", "accept", more=more)) == {"unknown": ALL}


@pytest.mark.slow
def test_chains_that_call_each_other_many_times_are_given_up() -> None:
    more = "".join(f"chain c{n} {{\n" + f"jump c{n + 1}\n" * 9 + "}\n" for n in range(12)) + "chain c12 {\ncounter\n}\n"
    with pytest.raises(TooLargeError):
        walk(nft("jump c0", more=more))


@pytest.mark.parametrize("cut", [0, 1, 40, 400, 4000, -2])
def test_truncated_listings_are_refused(cut: int) -> None:
    with pytest.raises(ListingError):
        parse_json(recorded("firewalld-rich.json")[:cut], 4)
    if cut > 1:
        with pytest.raises(ListingError):
            parse_text(recorded("firewalld-rich.nft")[:cut], 4)
    if cut > 100:
        with pytest.raises(ListingError):
            parse_save(recorded("ufw-peer.iptables-save")[:cut], 4)


@pytest.mark.parametrize(
    "text", ["[]", "{}", '{"nftables": 3}', '{"nftables": [{"chain": {}}]}', "\0\1", "[" * 100_000]
)
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(ListingError):
        parse_json(text, 4)


@pytest.mark.parametrize(
    "expr",
    [
        [{"match": None}, {"accept": None}],
        [{"match": {"left": 3, "right": {"set": {"x": 1}}, "op": "=="}}, {"accept": None}],
        [{"vmap": {"key": {"meta": {"key": "l4proto"}}, "data": "@gone"}}],
        [{"vmap": {}}],
        [{"jump": {}}],
        [{"xt": None}],
        [{"unheard": {"of": 1}}],
        [{}],
    ],
)
def test_expressions_that_make_no_sense_leave_a_doubt(expr: list[Any]) -> None:
    body = [
        {"chain": {"family": "inet", "table": "t", "name": "i", "type": "filter", "hook": "input", "prio": 0, "policy": "accept"}},
        {"rule": {"family": "inet", "table": "t", "chain": "i", "expr": [*expr]}},
        {"rule": {"family": "inet", "table": "t", "chain": "i", "expr": [{"drop": None}]}},
    ]  # fmt: skip
    assert walk(parse_json(json.dumps({"nftables": body}), 4)) == {"unknown": ALL}


def test_iptables_listing_of_one_table() -> None:
    tables = parse_listing(
        "-P INPUT DROP\n-P FORWARD ACCEPT\n-N ours\n-A INPUT -p tcp --dport 29688 -j ours\n-A ours -j ACCEPT\n", 4
    )
    assert walk(tables) == {"open": "29688", "closed": "60000-60031"}
    with pytest.raises(ListingError):
        parse_listing("iptables: command failed\n", 4)


def test_items_of_text_and_json_are_of_one_form() -> None:
    found = [item for item in items(recorded("firewalld-rich.nft")) if "chain" in item and item["chain"].get("hook")]
    told = [
        item for item in json.loads(recorded("firewalld-rich.json"))["nftables"] if item.get("chain", {}).get("hook")
    ]
    assert [item["chain"]["name"] for item in found] == [item["chain"]["name"] for item in told]


@pytest.mark.parametrize(
    ("name", "parse"),
    [
        ("firewalld-rich.json", parse_json),
        ("firewalld-rich.nft", parse_text),
        ("ufw-peer.nft", parse_text),
        ("kubernetes.iptables-save", parse_save),
        ("ufw-peer.iptables-save", parse_save),
    ],
)
@pytest.mark.parametrize("rounds", [10, pytest.param(200, marks=pytest.mark.slow)])
def test_damaged_listings(name: str, parse: Callable[[str, int], list[Table]], rounds: int) -> None:
    """Bytes lost, doubled or changed: refused or walked, no other error, no hang."""
    dice = random.Random(name)
    text = recorded(name)
    refused = 0
    for _ in range(rounds):
        damaged = list(text)
        for _ in range(dice.choice([1, 3, 20])):
            at = dice.randrange(len(damaged))
            damaged[at] = dice.choice(["", damaged[at] * 2, chr(dice.choice([0, 9, 34, 45, 123, 125, 178, 0x4E00]))])
        try:
            assert walk(parse("".join(damaged), 4)) is not None
        except (ListingError, TooLargeError):
            refused += 1
    assert refused < rounds, "some damage is harmless"
