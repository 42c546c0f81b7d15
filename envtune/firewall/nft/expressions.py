"""The conditions of nftables expressions: left side, operator, right side, sets and concatenations.

Whatever is not listed here possibly matches; it never counts as a definite yes or no. Source: libnftables-json(5),
nft(8).
"""

from __future__ import annotations

from typing import Any, Callable, Mapping, NamedTuple, Optional, Sequence

from envtune import intervals
from envtune.firewall import match
from envtune.firewall.match import Condition
from envtune.intervals import Intervals

Membership = Callable[[Sequence[Any]], Condition]  # values -> whether the packet's value is one of them


class Listing(NamedTuple):
    """The named sets and maps of a table; `dynamic` are those that packets add elements to."""

    sets: Mapping[str, Mapping[str, Any]]
    dynamic: frozenset[str] = frozenset()


# Ports that old nft prints by name; any other name may be any port. Source: IANA service names.
SERVICES = {
    "ssh": 22,
    "telnet": 23,
    "smtp": 25,
    "domain": 53,
    "http": 80,
    "kerberos": 88,
    "sunrpc": 111,
    "ntp": 123,
    "snmp": 161,
    "ldap": 389,
    "https": 443,
    "ldaps": 636,
    "nfs": 2049,
    "mysql": 3306,
    "postgresql": 5432,
    "http-alt": 8080,
}
OTHER_PROTOCOLS = frozenset({"udp", "udplite", "icmp", "icmpv6", "igmp", "sctp", "dccp", "esp", "ah", "comp", "arp"})


def match_condition(body: Mapping[str, Any], listing: Listing) -> Condition:
    """Return the condition of a `match`."""
    try:
        left, right, op = body["left"], body["right"], str(body.get("op", "=="))
        masked = _masked(left, right, op)
        if masked is not None:
            return masked
        if op in ("<", ">", "<=", ">="):
            return _ordered(left, right, op)
        if op not in ("==", "!=", "in") or (op == "!=" and isinstance(right, list)):
            return match.unknown  # the meaning of `!= a,b` for bits differs between releases
        values, growing = _values(right, listing)
        condition = membership(left, values)
        if growing:
            condition = match.any_of([condition, match.unknown])
        return match.all_of([_present(left), match.negate(condition)]) if op == "!=" else condition
    except (ValueError, TypeError, KeyError, AttributeError, IndexError):
        return match.unknown


def _values(right: Any, listing: Listing) -> tuple[Sequence[Any], bool]:
    """Return the values on the right side, and whether packets may add more."""
    if isinstance(right, str) and right.startswith("@"):
        return as_list(listing.sets[right[1:]].get("elem")), right[1:] in listing.dynamic
    if isinstance(right, dict) and "set" in right:
        return as_list(right["set"]), False
    return as_list(right), False


def as_list(value: Any) -> list[Any]:
    """Return as a list what nft's JSON contains as a list, as a single value or not at all."""
    return value if isinstance(value, list) else [] if value is None else [value]


def _present(left: Any) -> Condition:
    """Match if the packet has the field at all: without it, `!=` does not match either."""
    protocol = left["payload"].get("protocol") if isinstance(left, dict) and "payload" in left else None
    if protocol in OTHER_PROTOCOLS:
        return match.never
    if protocol in ("ip", "ip6"):
        return match.ip_version([4 if protocol == "ip" else 6])
    return match.always


def membership(left: Any, values: Sequence[Any]) -> Condition:
    """Match if the packet's `left` is one of `values`."""
    values = [_bare(value) for value in values]
    if isinstance(left, dict) and "concat" in left:
        return _tuples(left["concat"], values)
    field = _field(left)
    return match.unknown if field is None else field(values)


def _bare(value: Any) -> Any:
    """Return an element without its comment, timeout and counters."""
    if isinstance(value, dict) and "elem" in value:
        return _bare(value["elem"].get("val"))
    return value


def _tuples(fields: Sequence[Any], values: Sequence[Any]) -> Condition:
    """Match a concatenation: elements that differ only in the last field are one condition."""
    rows: dict[str, tuple[list[Any], list[Any]]] = {}
    for value in values:
        if not (isinstance(value, dict) and len(value.get("concat", ())) == len(fields)):
            return match.unknown
        *head, last = value["concat"]
        rows.setdefault(repr(head), (head, []))[1].append(last)
    if len(rows) > 5000:
        return match.unknown  # too many to evaluate quickly
    parts = []
    for head, tails in rows.values():
        columns = [[_bare(part)] for part in head] + [[_bare(part) for part in tails]]
        parts.append(match.all_of([membership(field, column) for field, column in zip(fields, columns)]))
    return match.any_of(parts)


def _field(left: Any) -> Optional[Membership]:
    """Return how to match the packet's `left`; None if it cannot be known."""
    if not isinstance(left, dict) or len(left) != 1:
        return None
    ((kind, body),) = left.items()
    if not isinstance(body, dict):
        return None
    if kind == "payload":
        return _payload(str(body.get("protocol")), str(body.get("field")))
    if kind == "meta":
        return _meta(str(body.get("key")))
    if kind == "ct":
        return _ct(str(body.get("key")))
    if kind == "fib":
        return _fib(str(body.get("result")), body.get("flags"))
    return None


def _payload(protocol: str, field: str) -> Optional[Membership]:
    if protocol in OTHER_PROTOCOLS:
        return lambda values: match.never
    if protocol in ("tcp", "th") and field in ("dport", "sport"):
        side = "destination" if field == "dport" else "source"
        return lambda values: _ports(side, values)
    if protocol == "tcp" and field == "flags":
        return lambda values: match.any_flag(str(value) for value in values)
    if protocol in ("ip", "ip6") and field in ("saddr", "daddr"):
        family = 4 if protocol == "ip" else 6
        side = "source" if field == "saddr" else "destination"
        return lambda values: match.address(side, _addresses(values, family), family)
    if (protocol, field) in (("ip", "protocol"), ("ip6", "nexthdr")):
        version = 4 if protocol == "ip" else 6
        return lambda values: match.all_of([match.ip_version([version]), match.protocol(_numbers(values))])
    if (protocol, field) == ("ip", "version"):
        return lambda values: match.ip_version(int(value) for value in values)
    return None


def _meta(key: str) -> Optional[Membership]:
    if key in ("iif", "iifname", "oif", "oifname"):
        side = "in" if key.startswith("i") else "out"
        return lambda values: match.interface(side, [str(value) for value in values])
    if key == "l4proto":
        return lambda values: match.protocol(_numbers(values))
    if key in ("nfproto", "protocol"):
        return lambda values: match.ip_version(_VERSIONS.get(str(value).lower(), 0) for value in values)
    if key == "mark":
        return lambda values: _mark("mark", 0xFFFFFFFF, values)
    if key == "pkttype":
        return lambda values: match.packet_type(str(value) for value in values)
    return None


_VERSIONS = {"ipv4": 4, "ip": 4, "0x0800": 4, "2048": 4, "2": 4, "ipv6": 6, "ip6": 6, "0x86dd": 6, "34525": 6, "10": 6}


def _ct(key: str) -> Optional[Membership]:
    if key == "state":
        return lambda values: match.state(str(value) for value in values)
    if key == "mark":
        return lambda values: _mark("connection_mark", 0xFFFFFFFF, values)
    if key == "status":  # a translated connection is already uncertain since the rule that translated it
        return lambda values: match.never if set(values) <= {"dnat", "snat", "expected"} else match.unknown
    if key == "direction":
        return lambda values: match.any_of([match.reply_direction(str(v) in ("reply", "1")) for v in values])
    if key == "l3proto":
        return lambda values: match.ip_version(_VERSIONS.get(str(value).lower(), 0) for value in values)
    if key == "protocol":
        return lambda values: match.protocol(_numbers(values))
    return None


def _fib(result: str, flags: Any) -> Optional[Membership]:
    """Read `fib daddr type local`, and the reverse path, which exists for a peer that can reach us."""
    keys = as_list(flags)
    if result == "type" and ("daddr" in keys) != ("saddr" in keys):
        side = "source" if "saddr" in keys else "destination"
        return lambda values: match.address_type(side, [str(value) for value in values])
    if result in ("oif", "oifname", "check") and "saddr" in keys:
        return lambda values: match.never if values and not any(values) else match.unknown
    return None


def _ports(side: str, values: Sequence[Any]) -> Condition:
    known: list[tuple[int, int]] = []
    uncertain = False
    for value in values:
        try:
            known.append(_port_pair(value))
        except (ValueError, TypeError):
            uncertain = True
    condition = match.port(side, intervals.union(known))
    return match.any_of([condition, match.unknown]) if uncertain else condition


def _port_pair(value: Any) -> tuple[int, int]:
    if isinstance(value, dict) and "range" in value:
        low, high = value["range"]
        return _port(low), _port(high)
    return _port(value), _port(value)


def _port(value: Any) -> int:
    if value in SERVICES:
        return SERVICES[value]
    return int(value)


def _addresses(values: Sequence[Any], family: int) -> Intervals:
    """Return addresses, prefixes and ranges as intervals; ValueError for anything else."""
    pairs = []
    for value in values:
        if isinstance(value, str):
            pairs.append(intervals.network_range(value, family))
        elif "prefix" in value:
            pairs.append(intervals.network_range(f"{value['prefix']['addr']}/{value['prefix']['len']}", family))
        else:
            low, high = value["range"]
            pairs.append((intervals.address_number(low, family), intervals.address_number(high, family)))
    return intervals.union(pairs)


def _numbers(values: Sequence[Any]) -> list[Any]:
    numbers: list[Any] = []
    for value in values:
        if isinstance(value, dict):
            low, high = value["range"]
            numbers += range(int(low), int(high) + 1)
        else:
            numbers.append(value)
    return numbers


def _number(value: Any) -> int:
    return value if isinstance(value, int) else int(str(value), 0)


def _mark(field: str, mask: int, values: Sequence[Any]) -> Condition:
    pairs = []
    for value in values:
        low, high = value["range"] if isinstance(value, dict) else (value, value)
        pairs.append((_number(low), _number(high)))
    wanted = intervals.union(pairs)
    return match.mark(field, mask, lambda mark: any(low <= mark <= high for low, high in wanted))


def _ordered(left: Any, right: Any, op: str) -> Condition:
    """Read `tcp dport >= 1024` as a range of ports."""
    field = _field(left)
    if field is None or not (isinstance(left, dict) and left.get("payload", {}).get("field") in ("dport", "sport")):
        return match.unknown
    value = _port(right)
    low, high = {"<": (0, value - 1), "<=": (0, value), ">": (value + 1, 65535), ">=": (value, 65535)}[op]
    return field([{"range": [low, high]}]) if low <= high else match.never


def _masked(left: Any, right: Any, op: str) -> Optional[Condition]:
    """Read `tcp flags & (syn|ack) == syn`, `meta mark & 0x8000 == 0x8000`; None if nothing is masked."""
    if isinstance(left, dict) and "&" in left:
        field, mask = left["&"]
        if field == {"payload": {"protocol": "tcp", "field": "flags"}} and op in ("==", "!="):
            return match.negate_if(op == "!=", match.flags(_bits(mask), _bits(right)))
        which = {"meta": "mark", "ct": "connection_mark"}.get(next(iter(field)), "")
        if which and next(iter(field.values())).get("key") == "mark" and op in ("==", "!="):
            wanted = _number(right)
            return match.negate_if(op == "!=", match.mark(which, _number(mask), lambda mark: mark == wanted))
        return match.unknown
    if left == {"payload": {"protocol": "tcp", "field": "flags"}}:
        every = ("fin", "syn", "rst", "psh", "ack", "urg", "ecn", "cwr")
        if op == "in":
            return match.any_flag(_bits(right))
        if isinstance(right, dict) and "set" in right:
            return match.negate_if(op == "!=", match.any_of([match.flags(every, _bits(one)) for one in right["set"]]))
        return match.negate_if(op == "!=", match.flags(every, _bits(right)))
    return None


def _bits(value: Any) -> list[str]:
    """Return the flag names of a list, a single name, or an or-expression; 0 is none."""
    if isinstance(value, dict):
        return [bit for one in value["|"] for bit in _bits(one)]
    if isinstance(value, list):
        return [bit for one in value for bit in _bits(one)]
    if value in (0, "0", "0x0"):
        return []
    if not str(value).isalpha():
        raise ValueError(value)
    return [str(value)]
