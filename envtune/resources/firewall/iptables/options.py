"""What the options of an iptables rule ask of a packet. Whatever is not listed here answers "perhaps"."""

from __future__ import annotations

from typing import Callable, Sequence

from envtune import intervals as regions
from envtune.intervals import Intervals
from envtune.resources.firewall import match
from envtune.resources.firewall.match import Condition

Reader = Callable[[Sequence[str], int], Condition]  # the option's values, the IP version

FLAGS = ("FIN", "SYN", "RST", "PSH", "ACK", "URG")


def conditions_of(words: Sequence[str], family: int) -> tuple[Condition, ...]:
    """The conditions between `-A chain` and `-j target`."""
    done: list[Condition] = []
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
        done += _condition(option, module, words[at + 1 : end], negated, family)
        at = end
    return tuple(done)


def _condition(option: str, module: str, values: Sequence[str], negated: bool, family: int) -> list[Condition]:
    if option in _NOTHING_ASKED or (option in ("-m", "--match") and module in _MODULES):
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
    return regions.intervals(pairs)


def _port(side: str) -> Reader:
    return lambda values, family: match.port(side, _ports(values))


def _any_port(values: Sequence[str], family: int) -> Condition:
    ports = _ports(values)
    return match.either([match.port("source", ports), match.port("destination", ports)])


def _address(side: str) -> Reader:
    def read(values: Sequence[str], family: int) -> Condition:
        pairs = [regions.network(part, family) for part in values[0].split(",")]
        return match.address(side, regions.intervals(pairs), family)

    return read


def _address_range(side: str) -> Reader:
    def read(values: Sequence[str], family: int) -> Condition:
        first, _, last = values[0].partition("-")
        pair = (regions.number(first, family), regions.number(last or first, family))
        return match.address(side, (pair,), family)

    return read


def _interface(side: str) -> Reader:
    return lambda values, family: match.interface(side, [values[0]], "+")


def _protocol(values: Sequence[str], family: int) -> Condition:
    return match.protocol(values[0].split(","))


def _state(values: Sequence[str], family: int) -> Condition:
    return match.state(values[0].split(","))


def _flags(values: Sequence[str], family: int) -> Condition:
    return match.flags(_flag_names(values[0]), _flag_names(values[1]))


def _flag_names(text: str) -> list[str]:
    if text == "NONE":
        return []
    names = FLAGS if text == "ALL" else text.split(",")
    if not set(names) <= set(FLAGS):
        raise ValueError(text)
    return [name.lower() for name in names]


def _syn(values: Sequence[str], family: int) -> Condition:
    return match.flags(("fin", "rst", "syn", "ack"), ("syn",))


def _mark(values: Sequence[str], family: int, which: str = "mark") -> Condition:
    want, _, mask = values[0].partition("/")
    wanted, masked = int(want, 0), int(mask or "0xffffffff", 0)
    return match.mark(which, masked, lambda found: found == wanted)


def _connmark(values: Sequence[str], family: int) -> Condition:
    return _mark(values, family, "ctmark")


def _addressed(side: str) -> Reader:
    return lambda values, family: match.addressed(side, values[0].split(","))


def _packet_type(values: Sequence[str], family: int) -> Condition:
    return match.addressed_to_us(values[0].lower() in ("host", "unicast"))


def _direction(values: Sequence[str], family: int) -> Condition:
    return match.reply_direction(values[0].upper() == "REPLY")


def _never(values: Sequence[str], family: int) -> Condition:
    return match.never


_READERS: dict[str, Reader] = {
    "--dport": _port("destination"),
    "--dports": _port("destination"),
    "--destination-port": _port("destination"),
    "--destination-ports": _port("destination"),
    "--sport": _port("source"),
    "--sports": _port("source"),
    "--source-port": _port("source"),
    "--source-ports": _port("source"),
    "--ports": _any_port,
    "-s": _address("source"),
    "--source": _address("source"),
    "-d": _address("destination"),
    "--destination": _address("destination"),
    "--src-range": _address_range("source"),
    "--dst-range": _address_range("destination"),
    "-i": _interface("in"),
    "--in-interface": _interface("in"),
    "-o": _interface("out"),
    "--out-interface": _interface("out"),
    "-p": _protocol,
    "--protocol": _protocol,
    "--ctstate": _state,
    "--state": _state,
    "--ctproto": _protocol,
    "--ctdir": _direction,
    "--tcp-flags": _flags,
    "--syn": _syn,
    "--mark": _mark,
    "--src-type": _addressed("source"),
    "--dst-type": _addressed("destination"),
    "--pkt-type": _packet_type,
    "-f": _never,
    "--fragment": _never,
    "--icmp-type": _never,
    "--icmpv6-type": _never,
}
_NOTHING_ASKED = frozenset({"--comment", "--limit-iface-in", "--limit-iface-out", "-4", "-6", "--ipv4", "--ipv6"})
_REVERSE_PATH = frozenset({"-m", "--match", "--invert", "--loose", "--validmark", "--accept-local"})
# Match modules whose every question is an option read above; naming another module leaves its answer open.
_MODULES = frozenset(
    {
        "tcp",
        "udp",
        "multiport",
        "conntrack",
        "state",
        "comment",
        "mark",
        "connmark",
        "addrtype",
        "pkttype",
        "iprange",
        "icmp",
        "icmp6",
        "icmpv6",
    }
)
