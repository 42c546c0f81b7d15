"""What a firewall rule may ask of a packet, answered for a whole set of connections at once.

A `Condition` answers with two regions: the connections it surely matches, and those it possibly matches. Both are exact
when the rule asks for what we know (our port, the peer's address, TCP, the state of a new connection, the interface);
where a rule asks for what cannot be known (a rate, the time, a byte of the payload), nothing is sure and all is
possible.
"""

from __future__ import annotations

from typing import Any, Callable, Iterable, NamedTuple, Optional, Sequence

from envtune import intervals as regions
from envtune.intervals import Intervals, Region

Answer = tuple[Region, Region]  # surely, possibly


class Packet(NamedTuple):
    """One packet of a new TCP connection between a peer and a port of this host, for every peer and port at once."""

    everything: Region  # our ports x the peers' addresses
    family: int  # 4 or 6
    reply: bool  # from us to the peer: our port is the source port
    flags: frozenset[str]  # of the TCP header
    state: Optional[str]  # new | established | invalid | untracked; None: cannot be told
    interface: Optional[str] = None  # the peers come by; None: any but loopback
    own: Optional[Intervals] = None  # the addresses of this host the peers may use; None: any
    mark: Optional[int] = 0  # None: some rule has set it to something we do not follow
    ctmark: Optional[int] = 0

    def yes(self) -> Answer:
        """Matches for every connection."""
        return self.everything, self.everything

    def no(self) -> Answer:
        """Matches for none."""
        return (), ()

    def maybe(self) -> Answer:
        """Cannot be told for any."""
        return (), self.everything

    def told(self, matches: Optional[bool]) -> Answer:
        """yes, no, or maybe for None."""
        return self.maybe() if matches is None else self.yes() if matches else self.no()

    def exactly(self, part: Region) -> Answer:
        """Matches this part and nothing else."""
        return part, part


Condition = Callable[[Packet], Answer]

CLIENT_PORTS = (1024, 65535)  # a client's own port; the kernel picks from ip_local_port_range, never below 1024
TCP = 6


def negate(condition: Condition) -> Condition:
    """Matches what `condition` does not."""

    def answer(packet: Packet) -> Answer:
        surely, possibly = condition(packet)
        return regions.minus(packet.everything, possibly), regions.minus(packet.everything, surely)

    return answer


def unless(negated: bool, condition: Condition) -> Condition:
    """`condition`, or its contrary when `negated`."""
    return negate(condition) if negated else condition


def both(conditions: Sequence[Condition]) -> Condition:
    """Matches what all of them match."""

    def answer(packet: Packet) -> Answer:
        surely = possibly = packet.everything
        for condition in conditions:
            sure, possible = condition(packet)
            if not possible:
                return packet.no()
            surely = _meet(surely, sure, packet)
            possibly = _meet(possibly, possible, packet)
        return surely, possibly

    return answer


def either(conditions: Sequence[Condition]) -> Condition:
    """Matches what at least one of them matches."""

    def answer(packet: Packet) -> Answer:
        surely: Region = ()
        possibly: Region = ()
        for condition in conditions:
            sure, possible = condition(packet)
            surely, possibly = regions.join(surely, sure), regions.join(possibly, possible)
        return surely, possibly

    return answer


def _meet(one: Region, two: Region, packet: Packet) -> Region:
    if two is packet.everything:
        return one
    return two if one is packet.everything else regions.meet(one, two)


def always(packet: Packet) -> Answer:
    """Matches every connection."""
    return packet.yes()


def never(packet: Packet) -> Answer:
    """Matches no TCP connection between a peer and this host."""
    return packet.no()


def unknown(packet: Packet) -> Answer:
    """Asks for something that cannot be known."""
    return packet.maybe()


def port(side: str, values: Intervals) -> Condition:
    """The `source` or `destination` port of TCP."""

    def answer(packet: Packet) -> Answer:
        if (side == "source") == packet.reply:
            return packet.exactly(_on_ports(packet, values))
        hit = regions.common(values, (CLIENT_PORTS,))
        return packet.told(False if not hit else True if hit == (CLIENT_PORTS,) else None)

    return answer


def _on_ports(packet: Packet, values: Intervals) -> Region:
    done = []
    for low, high, addresses in packet.everything:
        done += [(first, last, addresses) for first, last in regions.common(((low, high),), values)]
    return tuple(done)


def address(side: str, values: Intervals, family: int) -> Condition:
    """The `source` or `destination` address; a packet of the other family never has it."""

    def answer(packet: Packet) -> Answer:
        if packet.family != family:
            return packet.no()
        if (side == "source") != packet.reply:
            return packet.exactly(_from_addresses(packet, values))
        own = packet.own if packet.own is not None else regions.peers(family)
        hit = regions.common(own, values)
        return packet.told(False if not hit else True if hit == own else None)

    return answer


def _from_addresses(packet: Packet, values: Intervals) -> Region:
    rows = ((low, high, regions.common(addresses, values)) for low, high, addresses in packet.everything)
    return tuple(row for row in rows if row[2])


def interface(side: str, names: Iterable[str], wildcard: str = "*") -> Condition:
    """The interface a packet came `in` by or goes `out` by; a name may end in the wildcard."""
    wanted = tuple(names)

    def answer(packet: Packet) -> Answer:
        if (side == "in") == packet.reply:
            return packet.no()  # the input hook has no output interface, and the other way round
        if packet.interface is not None:
            return packet.told(any(named(packet.interface, name, wildcard) for name in wanted))
        if any(name == wildcard for name in wanted):
            return packet.yes()
        return packet.told(None if any(name != "lo" for name in wanted) else False)

    return answer


def named(name: str, pattern: str, wildcard: str) -> bool:
    """Whether an interface has that name, or begins like it when it ends in the wildcard."""
    if pattern.endswith(wildcard):
        return name.startswith(pattern[:-1])
    return name == pattern


def protocol(values: Iterable[Any]) -> Condition:
    """The layer 4 protocol, by number or name."""
    wanted = {str(value).lower() for value in values}
    return always if wanted & {"tcp", str(TCP), "all", "0"} else never


def ip_version(versions: Iterable[int]) -> Condition:
    """IPv4 or IPv6."""
    wanted = set(versions)
    return lambda packet: packet.told(packet.family in wanted)


def state(values: Iterable[str]) -> Condition:
    """The state of connection tracking; a new connection is neither related nor translated."""
    wanted = {value.lower() for value in values}
    return lambda packet: packet.told(None if packet.state is None else packet.state in wanted)


def flags(mask: Iterable[str], value: Iterable[str]) -> Condition:
    """Of the flags in `mask`, exactly those in `value` are set."""
    watched, wanted = frozenset(mask), frozenset(value)
    return lambda packet: packet.told(packet.flags & watched == wanted)


def any_flag(values: Iterable[str]) -> Condition:
    """At least one of these flags is set."""
    wanted = frozenset(values)
    return lambda packet: packet.told(bool(packet.flags & wanted))


def mark(which: str, mask: int, accept: Callable[[int], bool]) -> Condition:
    """The packet's `mark`, or the connection's `ctmark`, under a mask."""

    def answer(packet: Packet) -> Answer:
        value = packet.mark if which == "mark" else packet.ctmark
        return packet.told(None if value is None else accept(value & mask))

    return answer


def addressed(side: str, kinds: Iterable[str]) -> Condition:
    """The kernel's type of an address: ours is `local`, a peer's `unicast`."""
    wanted = {kind.lower() for kind in kinds}

    def answer(packet: Packet) -> Answer:
        kind = "unicast" if (side == "source") != packet.reply else "local"
        return packet.told(kind in wanted)

    return answer


def reply_direction(wanted: bool) -> Condition:
    """Whether the packet is from the answering side of the connection, which is ours."""
    return lambda packet: packet.told(packet.reply is wanted)


def addressed_to_us(wanted: bool) -> Condition:
    """The link layer's packet type: a frame for this host, not a broadcast; of our own packets it is not known."""
    return lambda packet: packet.told(None if packet.reply else wanted)
