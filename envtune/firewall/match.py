"""The conditions of firewall rules, evaluated for a whole set of connections at once.

A `Condition` returns two regions: the connections it certainly matches, and those it possibly matches. Both are exact
if the rule tests what is known (our port, the peer's address, TCP, the state of a new connection, the interface); if a
rule tests what cannot be known (a rate, the time, a byte of the payload), nothing is certain and everything is
possible.
"""

from __future__ import annotations

from typing import Any, Callable, Iterable, NamedTuple, Optional, Sequence

from envtune import intervals
from envtune.firewall import regions
from envtune.firewall.regions import Region
from envtune.intervals import Intervals

Match = tuple[Region, Region]  # certainly, possibly


class Packet(NamedTuple):
    """One packet of each connection between a peer and a port of this host, for every peer and port at once."""

    connections: Region  # our ports x the peers' addresses
    family: int  # 4 or 6
    interface: Optional[str] = None  # by which the peers arrive; None: any but loopback
    local_addresses: Optional[Intervals] = None  # addresses of this host the peers may use; None: any
    reply: bool = False  # from us to the peer: our port is the source port
    flags: frozenset[str] = frozenset()  # of the TCP header
    state: Optional[str] = "new"  # new | established | invalid | untracked; None: not known
    mark: Optional[int] = 0  # None: some rule has set it to a value that is not tracked
    connection_mark: Optional[int] = 0

    def all(self) -> Match:
        """Return a match of every connection."""
        return self.connections, self.connections

    def none(self) -> Match:
        """Return a match of no connection."""
        return (), ()

    def unknown(self) -> Match:
        """Return a possible match of every connection."""
        return (), self.connections

    def of(self, matches: Optional[bool]) -> Match:
        """Return all, none, or unknown for None."""
        return self.unknown() if matches is None else self.all() if matches else self.none()

    def exactly(self, part: Region) -> Match:
        """Return a match of this part and nothing else."""
        return part, part


Condition = Callable[[Packet], Match]

CLIENT_PORTS = (1024, 65535)  # a client's own port; the kernel picks from ip_local_port_range, never below 1024
TCP = 6


# ---------------------------------------------------------------------- combinations


def negate(condition: Condition) -> Condition:
    """Match what `condition` does not."""

    def match(packet: Packet) -> Match:
        certain, possible = condition(packet)
        return regions.difference(packet.connections, possible), regions.difference(packet.connections, certain)

    return match


def negate_if(negated: bool, condition: Condition) -> Condition:
    """Match what `condition` does, or the opposite if `negated`."""
    return negate(condition) if negated else condition


def all_of(conditions: Sequence[Condition]) -> Condition:
    """Match what all of the conditions match."""

    def match(packet: Packet) -> Match:
        certain = possible = packet.connections
        for condition in conditions:
            certainly, possibly = condition(packet)
            if not possibly:
                return packet.none()
            certain = _intersection(certain, certainly, packet)
            possible = _intersection(possible, possibly, packet)
        return certain, possible

    return match


def any_of(conditions: Sequence[Condition]) -> Condition:
    """Match what at least one of the conditions matches."""

    def match(packet: Packet) -> Match:
        matches = [condition(packet) for condition in conditions]
        return regions.union(*(certain for certain, _ in matches)), regions.union(
            *(possible for _, possible in matches)
        )

    return match


def _intersection(left: Region, right: Region, packet: Packet) -> Region:
    """Return the intersection, without work if one is everything."""
    if right is packet.connections:
        return left
    return right if left is packet.connections else regions.intersection(left, right)


def always(packet: Packet) -> Match:
    """Match every connection."""
    return packet.all()


def never(packet: Packet) -> Match:
    """Match no TCP connection between a peer and this host."""
    return packet.none()


def unknown(packet: Packet) -> Match:
    """Match possibly: the rule tests something that cannot be known."""
    return packet.unknown()


# ---------------------------------------------------------------------- addresses and ports


def port(side: str, values: Intervals) -> Condition:
    """Match the `source` or `destination` port of TCP."""

    def match(packet: Packet) -> Match:
        if (side == "source") == packet.reply:
            return packet.exactly(_on_ports(packet, values))
        shared = intervals.intersection(values, (CLIENT_PORTS,))
        return packet.of(False if not shared else True if shared == (CLIENT_PORTS,) else None)

    return match


def _on_ports(packet: Packet, values: Intervals) -> Region:
    return tuple(
        (first, last, addresses)
        for low, high, addresses in packet.connections
        for first, last in intervals.intersection(((low, high),), values)
    )


def address(side: str, values: Intervals, family: int) -> Condition:
    """Match the `source` or `destination` address; a packet of the other family never has it."""

    def match(packet: Packet) -> Match:
        if packet.family != family:
            return packet.none()
        if (side == "source") != packet.reply:
            return packet.exactly(_from_addresses(packet, values))
        local = packet.local_addresses if packet.local_addresses is not None else intervals.unicast_addresses(family)
        shared = intervals.intersection(local, values)
        return packet.of(False if not shared else True if shared == local else None)

    return match


def _from_addresses(packet: Packet, values: Intervals) -> Region:
    rows = ((low, high, intervals.intersection(inside, values)) for low, high, inside in packet.connections)
    return tuple(row for row in rows if row[2])


def address_type(side: str, kinds: Iterable[str]) -> Condition:
    """Match the kernel's type of an address: ours is `local`, a peer's `unicast`."""
    wanted = {kind.lower() for kind in kinds}
    return lambda packet: packet.of(("unicast" if (side == "source") != packet.reply else "local") in wanted)


def ip_version(versions: Iterable[int]) -> Condition:
    """Match IPv4 or IPv6."""
    wanted = set(versions)
    return lambda packet: packet.of(packet.family in wanted)


# ---------------------------------------------------------------------- interface and link layer


def interface(side: str, names: Iterable[str], wildcard: str = "*") -> Condition:
    """Match the interface by which a packet comes `in` or goes `out`; a name may end in the wildcard."""
    patterns = tuple(names)

    def match(packet: Packet) -> Match:
        if (side == "in") == packet.reply:
            return packet.none()  # the input hook has no output interface, and the other way round
        if packet.interface is not None:
            return packet.of(any(_has_name(packet.interface, pattern, wildcard) for pattern in patterns))
        if wildcard in patterns:
            return packet.all()
        return packet.of(None if any(pattern != "lo" for pattern in patterns) else False)

    return match


def _has_name(name: str, pattern: str, wildcard: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith(wildcard) else name == pattern


def packet_type(kinds: Iterable[str]) -> Condition:
    """Match the link layer's packet type: a frame for this host, not a broadcast; of our own packets it is unknown."""
    matches = bool({"host", "unicast"} & {kind.lower() for kind in kinds})
    return lambda packet: packet.of(None if packet.reply else matches)


# ---------------------------------------------------------------------- TCP and connection tracking


def protocol(values: Iterable[Any]) -> Condition:
    """Match the layer 4 protocol, by number or name."""
    wanted = {str(value).lower() for value in values}
    return always if wanted & {"tcp", str(TCP), "all", "0"} else never


def flags(mask: Iterable[str], value: Iterable[str]) -> Condition:
    """Match if, of the flags in `mask`, exactly those in `value` are set."""
    watched, wanted = frozenset(mask), frozenset(value)
    return lambda packet: packet.of(packet.flags & watched == wanted)


def any_flag(values: Iterable[str]) -> Condition:
    """Match if at least one of these flags is set."""
    wanted = frozenset(values)
    return lambda packet: packet.of(bool(packet.flags & wanted))


def state(values: Iterable[str]) -> Condition:
    """Match the state of connection tracking; a new connection is neither related nor translated."""
    wanted = {value.lower() for value in values}
    return lambda packet: packet.of(None if packet.state is None else packet.state in wanted)


def reply_direction(wanted: bool) -> Condition:
    """Match whether the packet is from the replying side of the connection, which is ours."""
    return lambda packet: packet.of(packet.reply is wanted)


def mark(field: str, mask: int, accept: Callable[[int], bool]) -> Condition:
    """Match the packet's `mark` or its `connection_mark`, under a mask."""

    def match(packet: Packet) -> Match:
        value: Optional[int] = getattr(packet, field)
        return packet.of(None if value is None else accept(value & mask))

    return match
