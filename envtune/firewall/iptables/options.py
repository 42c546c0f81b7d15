"""What the options of an iptables rule require of a packet. Any option not listed here may or may not match."""

from __future__ import annotations

from typing import Callable, Sequence

from envtune import intervals
from envtune.firewall import match
from envtune.firewall.match import Condition
from envtune.intervals import Intervals

Reader = Callable[[Sequence[str], int], Condition]  # the option's values, the IP version

FLAGS = ("FIN", "SYN", "RST", "PSH", "ACK", "URG")


def conditions_of(words: Sequence[str], family: int) -> tuple[Condition, ...]:
    """Return the conditions between `-A chain` and `-j target`."""
    conditions: list[Condition] = []
    module, at = "", 0
    while at < len(words):
        negated = words[at] == "!"
        at += negated
        option = words[at] if at < len(words) else ""
        end = min(at + 2, len(words)) if option == "--comment" else at + 1
        while end < len(words) and not words[end].startswith("-") and words[end] != "!":
            end += 1
        if option in ("-m", "--match"):
            module = words[at + 1] if end > at + 1 else ""
        conditions += _condition(option, module, words[at + 1 : end], negated, family)
        at = end
    return tuple(conditions)


def _condition(option: str, module: str, values: Sequence[str], negated: bool, family: int) -> list[Condition]:
    if option in _NO_CONDITION or (option in ("-m", "--match") and module in _MODULES):
        return []
    if module == "rpfilter" and option in _REVERSE_PATH:
        return [match.never] if option == "--invert" else []  # a peer that can reach us is routed back the same way
    reader = _connmark if (option, module) == ("--mark", "connmark") else _READERS.get(option)
    if reader is None:
        return [match.unknown]
    try:
        condition = reader(values, family)
    except (ValueError, IndexError, TypeError):
        return [match.unknown]
    return [match.negate(condition) if negated else condition]


def _ports(values: Sequence[str]) -> Intervals:
    pairs = []
    for part in values[0].split(","):
        low, colon, high = part.partition(":")
        first = int(low or 0)
        pairs.append((first, int(high or 65535) if colon else first))
    return intervals.union(pairs)


def _any_port(values: Sequence[str], family: int) -> Condition:
    ports = _ports(values)
    return match.any_of([match.port("source", ports), match.port("destination", ports)])


def _addresses(values: Sequence[str], family: int) -> Intervals:
    return intervals.union(intervals.network_range(part, family) for part in values[0].split(","))


def _address_range(values: Sequence[str], family: int) -> Intervals:
    first, _, last = values[0].partition("-")
    return ((intervals.address_number(first, family), intervals.address_number(last or first, family)),)


def _flags(values: Sequence[str], family: int) -> Condition:
    return match.flags(_flag_names(values[0]), _flag_names(values[1]))


def _flag_names(text: str) -> list[str]:
    if text == "NONE":
        return []
    names = FLAGS if text == "ALL" else text.split(",")
    if not set(names) <= set(FLAGS):
        raise ValueError(text)
    return [name.lower() for name in names]


def _mark(values: Sequence[str], family: int, field: str = "mark") -> Condition:
    value, _, mask = values[0].partition("/")
    wanted = int(value, 0)
    return match.mark(field, int(mask or "0xffffffff", 0), lambda mark: mark == wanted)


def _connmark(values: Sequence[str], family: int) -> Condition:
    return _mark(values, family, "connection_mark")


_BY_OPTIONS: dict[str, Reader] = {
    "--dport --dports --destination-port --destination-ports": lambda v, _: match.port("destination", _ports(v)),
    "--sport --sports --source-port --source-ports": lambda v, _: match.port("source", _ports(v)),
    "--ports": _any_port,
    "-s --source": lambda v, family: match.address("source", _addresses(v, family), family),
    "-d --destination": lambda v, family: match.address("destination", _addresses(v, family), family),
    "--src-range": lambda v, family: match.address("source", _address_range(v, family), family),
    "--dst-range": lambda v, family: match.address("destination", _address_range(v, family), family),
    "-i --in-interface": lambda v, _: match.interface("in", [v[0]], "+"),
    "-o --out-interface": lambda v, _: match.interface("out", [v[0]], "+"),
    "-p --protocol --ctproto": lambda v, _: match.protocol(v[0].split(",")),
    "--ctstate --state": lambda v, _: match.state(v[0].split(",")),
    "--ctdir": lambda v, _: match.reply_direction(v[0].upper() == "REPLY"),
    "--tcp-flags": _flags,
    "--syn": lambda v, _: match.flags(("fin", "syn", "rst", "ack"), ("syn",)),
    "--mark": _mark,
    "--src-type": lambda v, _: match.address_type("source", v[0].split(",")),
    "--dst-type": lambda v, _: match.address_type("destination", v[0].split(",")),
    "--pkt-type": lambda v, _: match.packet_type([v[0]]),
    "-f --fragment --icmp-type --icmpv6-type": lambda v, _: match.never,
}
_READERS = {option: reader for options, reader in _BY_OPTIONS.items() for option in options.split()}
_NO_CONDITION = frozenset({"--comment", "--limit-iface-in", "--limit-iface-out", "-4", "-6", "--ipv4", "--ipv6"})
_REVERSE_PATH = frozenset({"-m", "--match", "--invert", "--loose", "--validmark", "--accept-local"})
# Match modules all of whose options are handled above; with another module the match is unknown.
_MODULES = frozenset(
    {"tcp", "udp", "multiport", "conntrack", "state", "comment", "mark", "connmark", "addrtype", "pkttype", "iprange"}
    | {"icmp", "icmp6", "icmpv6"}
)
