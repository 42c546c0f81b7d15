"""Packet filters, evaluated without a packet: which connections a host's rules admit, and which rule decides.

The package is self-contained: texts of rule sets in, verdicts out; it starts no command and reads no file. `parse`
reads what nft and iptables list. `reachability` follows new TCP connections, all ports and all peers at once, through
every table as the kernel would. If a rule depends on what cannot be known (a rate, the time, a set filled by packets),
the verdict is `unknown` instead of a guess.

>>> from envtune.firewall import Connections, parse, reachability
>>> from envtune.intervals import address_text, network_range, port_text
>>> tables = parse("nft list ruleset", '''table inet filter {
...     chain input {
...         type filter hook input priority 0; policy drop;
...         ct state established accept
...         tcp dport 22 accept
...         ip saddr 10.0.0.8 tcp dport 60000-60031 accept
...         tcp dport 8080 limit rate 10/second accept
...     }
... }''', family=4)
>>> peers = network_range("10.0.0.0/24", family=4)
>>> ports = ((22, 22), (8080, 8080), (60000, 60031))
>>> for outcome in reachability(tables, Connections(ports, (peers,), family=4, interface="eth0")):
...     for low, high, addresses in outcome.part:
...         print(outcome.verdict, port_text(((low, high),)), "from", address_text(addresses, 4), end=": ")
...         print(outcome.rule.text, f"({outcome.rule.where})")
closed 60000-60031 from 10.0.0.0/29, 10.0.0.9-10.0.0.255: policy drop (inet filter input)
open 22 from 10.0.0.0/24: tcp dport 22 accept (inet filter input)
open 60000-60031 from 10.0.0.8: ip saddr 10.0.0.8 tcp dport 60000-60031 accept (inet filter input)
unknown 8080 from 10.0.0.0/24: tcp dport 8080 limit rate 10/second accept (inet filter input)
"""

from __future__ import annotations

from envtune.firewall.evaluate import CLOSED, OPEN, UNKNOWN, Connections, Outcome, TooLargeError, reachability
from envtune.firewall.model import ListingError, Rule, Table
from envtune.firewall.regions import Region

__all__ = [
    "CLOSED",
    "OPEN",
    "UNKNOWN",
    "Connections",
    "ListingError",
    "Outcome",
    "Region",
    "Rule",
    "Table",
    "TooLargeError",
    "parse",
    "reachability",
]


def parse(command: str, text: str, family: int) -> list[Table]:
    """Return the tables that a packet of IPv4 (4) or IPv6 (6) passes, from the output of a command.

    `command` is `nft -j list ruleset`, `nft list ruleset`, `iptables-save` (and its kin: ip6tables, -nft, -legacy) or
    `iptables -S`, which lists the filter table only. Raises ListingError if the text is incomplete.
    """
    if command.startswith("nft -j"):
        from envtune.firewall.nft.json import parse_json as parser
    elif command.startswith("nft"):
        from envtune.firewall.nft.text import parse_text as parser
    elif command.endswith("-save"):
        from envtune.firewall.iptables.save import parse_save as parser
    else:
        from envtune.firewall.iptables.save import parse_listing as parser
    return parser(text, family)
