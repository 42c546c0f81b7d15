"""The path of a new connection through a rule set: the kernel's semantics, for all peers and ports at once.

A connection works if its three kinds of packet get through: the first one in, our reply out, and the following ones in.
Every base chain of every table on the path takes part: `drop` is final, `accept` ends only that base chain. A rule that
cannot be evaluated does not stop the evaluation: the connections it may affect continue as uncertain, which matters
only if the other answer would have changed the outcome. Source: nft(8), iptables-extensions(8), netfilter's hooks.
"""

from __future__ import annotations

from typing import Mapping, NamedTuple, Optional, Sequence

from envtune.firewall import regions
from envtune.firewall.match import Packet
from envtune.firewall.model import Action, BaseChain, Chain, Rule, Table
from envtune.firewall.regions import Region
from envtune.intervals import Intervals

CONNTRACK = -200  # the priority at which connection tracking sees a packet (NF_IP_PRI_CONNTRACK)
DEPTH = 64  # nested jumps; nftables allows 16
STEPS = 1_000_000  # rules evaluated before a rule set is considered too large
SYN, SYN_ACK, ACK = frozenset({"syn"}), frozenset({"syn", "ack"}), frozenset({"ack"})
OPEN, CLOSED, UNKNOWN = "open", "closed", "unknown"  # verdicts


class TooLargeError(Exception):
    """The evaluation exceeded its limit of rules."""


class Connections(NamedTuple):
    """New TCP connections from any of `sources` to any of `ports` of this host."""

    ports: Intervals
    sources: Intervals
    family: int  # of IP: 4 or 6
    interface: Optional[str] = None  # by which they arrive; None: unknown, any but loopback
    destinations: Optional[Intervals] = None  # addresses of this host they are sent to; None: unknown, any


class Outcome(NamedTuple):
    """The outcome for a part of the connections: `verdict` open, closed or unknown, and the rule that decides."""

    verdict: str
    part: Region
    rule: Optional[Rule] = None  # None: no rule applied


class PacketSet(NamedTuple):
    """Packets that matched the same rules so far. `accept` and `drop` are rules that may have ended their path."""

    part: Region
    packet: Packet
    accept: Optional[Rule] = None
    drop: Optional[Rule] = None
    admitted_by: Optional[Rule] = None  # at the input hook


class _End(NamedTuple):
    action: str  # Action.ACCEPT | Action.DROP
    packets: PacketSet
    rule: Rule


INWARD, OUTWARD = ("ingress", "prerouting", "input"), ("output", "postrouting", "egress")


def reachability(tables: Sequence[Table], connections: Connections) -> list[Outcome]:
    """Return what the rule sets do to the connections, as disjoint parts that cover all of them.

    Raises TooLargeError if there are more paths through the rules than can be evaluated.
    """
    everything = regions.product(connections.ports, connections.sources)
    packet = Packet(everything, connections.family, connections.interface, connections.destinations)
    first = _Evaluation(tables, packet._replace(flags=SYN), INWARD, nat=True)
    outcomes = first.run()
    later = packet._replace(
        state=None if first.may_untrack else "established",
        connection_mark=None if first.may_mark else packet.connection_mark,
    )
    answer = _Evaluation(tables, later._replace(reply=True, flags=SYN_ACK), OUTWARD)
    outcomes = _worst(outcomes, answer.run())
    return _worst(outcomes, _Evaluation(tables, later._replace(flags=ACK), INWARD).run())


def _worst(before: list[Outcome], after: list[Outcome]) -> list[Outcome]:
    """Return the outcomes of connections that require both: closed wins over unknown, unknown over open."""
    combined = [outcome for outcome in before if outcome.verdict == CLOSED]
    for one in before:
        if one.verdict == CLOSED:
            continue
        for two in after:
            part = regions.intersection(one.part, two.part)
            if part:
                worse = two if two.verdict == CLOSED or (two.verdict == UNKNOWN and one.verdict == OPEN) else one
                combined.append(Outcome(worse.verdict, part, worse.rule))
    return combined


class _Flow:
    """The packets in a chain, by how far they have come."""

    def __init__(self, going: list[tuple[PacketSet, Optional[Rule]]]) -> None:
        self.ended: list[_End] = []  # their path through the base chain has ended
        self.through: list[PacketSet] = []  # at the end of this chain
        self.going = going  # at the next rule; with the rule that makes reaching it uncertain


class _Evaluation:
    """One packet's path through all base chains of a rule set."""

    def __init__(self, tables: Sequence[Table], packet: Packet, hooks: Sequence[str], nat: bool = False) -> None:
        self.packet = packet
        self.bases = sorted(
            ((t, b) for t in tables for b in t.bases if b.hook in hooks and (nat or not b.nat)),
            key=lambda pair: (hooks.index(pair[1].hook), pair[1].priority),
        )
        self.chains: Mapping[str, Chain] = {}  # of the table being evaluated
        self.path: list[str] = []  # the chains being evaluated, from the base chain on
        self.steps = 0
        self.may_untrack = False  # connection tracking may not know the connection
        self.may_mark = False  # the connection may carry a mark

    def run(self) -> list[Outcome]:
        """Return the outcomes of this packet."""
        passing = [PacketSet(self.packet.connections, self.packet)]
        outcomes: list[Outcome] = []
        for table, base in self.bases:
            ends = self._base_chain(table, base, passing)
            outcomes += [Outcome(CLOSED, end.packets.part, end.rule) for end in ends if end.action == Action.DROP]
            passing = [self._passed(base, end) for end in ends if end.action == Action.ACCEPT]
        for packets in passing:
            verdict = UNKNOWN if packets.drop else OPEN
            outcomes.append(Outcome(verdict, packets.part, packets.drop or packets.admitted_by))
        return outcomes

    def _base_chain(self, table: Table, base: BaseChain, passing: list[PacketSet]) -> list[_End]:
        if base.opaque:
            rule = Rule("", base.where)
            return [_End(Action.ACCEPT, _opaque_family(packets, table, base), rule) for packets in passing]
        self.chains = table.chains
        entered = [packets._replace(packet=_seen_at(packets.packet, base)) for packets in passing]
        flow = self._chain(base.chain, entered, None)
        policy = Rule(f"policy {base.policy}", base.where)
        return flow.ended + [_end(base.policy, packets, policy) for packets in flow.through]

    def _passed(self, base: BaseChain, end: _End) -> PacketSet:
        """Return accepted packets, ready for the next base chain."""
        packets = end.packets
        state = self.packet.state if packets.packet.state == "invalid" else packets.packet.state
        rule = packets.admitted_by
        if base.hook == "input" and not base.nat and not base.opaque and (rule is None or not _is_policy(end.rule)):
            rule = end.rule
        return packets._replace(packet=packets.packet._replace(state=state), accept=None, admitted_by=rule)

    def _chain(self, chain: Chain, entered: Sequence[PacketSet], cause: Optional[Rule]) -> _Flow:
        """Take packets through a chain. `cause` is a rule that possibly jumped here: then no verdict is certain."""
        flow = _Flow([(packets, cause) for packets in entered])
        self.path.append(chain.name)
        for rule in chain.rules:
            self.steps += len(flow.going)
            if self.steps > STEPS:
                raise TooLargeError
            going, flow.going = flow.going, []
            for packets, uncertain_by in going:
                self._rule(rule, packets, uncertain_by, flow)
            if not flow.going:
                break
        self.path.pop()
        flow.through += [packets for packets, _ in flow.going]
        return flow

    def _rule(self, rule: Rule, packets: PacketSet, uncertain_by: Optional[Rule], flow: _Flow) -> None:
        """Take packets past one rule."""
        certain, possible, others = _split(rule, packets)
        if certain is not None and uncertain_by is None:
            self._apply(rule, certain, flow)
        elif certain is not None:
            self._may_apply(rule, certain, uncertain_by, flow)
        if possible is not None:
            self._may_apply(rule, possible, uncertain_by, flow)
        if others is not None:
            flow.going.append((others, uncertain_by))

    def _changed(self, packets: PacketSet, rule: Rule, certain: bool) -> PacketSet:
        """Return the packets with what the rule changes in them, or may change."""
        if rule.changes is None:
            return packets
        before, after = packets.packet, rule.changes(packets.packet)
        self.may_untrack = self.may_untrack or before.state != after.state
        self.may_mark = self.may_mark or before.connection_mark != after.connection_mark
        return packets._replace(packet=after if certain else _merge_unknown(before, after))

    def _apply(self, rule: Rule, packets: PacketSet, flow: _Flow) -> None:
        """Apply the rule's action to the packets."""
        packets = self._changed(packets, rule, certain=True)
        if rule.action in (Action.ACCEPT, Action.DROP):
            flow.ended.append(_end(rule.action, packets, rule))
        elif rule.action == Action.DIVERTED:
            flow.ended.append(_End(Action.ACCEPT, packets._replace(drop=packets.drop or rule), rule))
        elif rule.action == Action.RETURN:
            flow.through.append(packets)
        elif rule.action == Action.CONTINUE:
            flow.going.append((packets, None))
        elif self._calls(rule):
            inner = self._chain(self.chains[rule.target], [packets], None)
            flow.ended += inner.ended
            if rule.action == Action.GOTO:
                flow.through += inner.through
            else:
                flow.going += [(one, None) for one in inner.through]
        else:
            flow.going.append((_uncertain(packets, rule), None))

    def _may_apply(self, rule: Rule, packets: PacketSet, uncertain_by: Optional[Rule], flow: _Flow) -> None:
        """Let the packets continue as uncertain: the rule may apply to them, or may not even be reached."""
        cause = uncertain_by or rule
        packets = self._changed(packets, rule, certain=False)
        if rule.action == Action.ACCEPT:
            packets = packets._replace(accept=packets.accept or cause)
        elif rule.action in (Action.DROP, Action.DIVERTED):
            packets = packets._replace(drop=packets.drop or cause)
        elif self._calls(rule):
            inner = self._chain(self.chains[rule.target], [packets], cause)
            after = cause if rule.action == Action.GOTO else uncertain_by
            flow.going += [(one, after) for one in inner.through]
            return
        elif rule.action not in (Action.CONTINUE, Action.RETURN):
            packets = _uncertain(packets, cause)
        flow.going.append((packets, cause if rule.action == Action.RETURN else uncertain_by))

    def _calls(self, rule: Rule) -> bool:
        """Return whether the rule jumps to an existing chain that is not being evaluated (the kernel refuses loops)."""
        if rule.action not in (Action.JUMP, Action.GOTO) or len(self.path) >= DEPTH:
            return False
        return rule.target in self.chains and rule.target not in self.path


def _seen_at(packet: Packet, base: BaseChain) -> Packet:
    """Return the packet as this base chain sees it: before connection tracking every state reads `invalid`."""
    if base.hook in ("prerouting", "output") and packet.state not in (None, "untracked"):
        if base.priority < CONNTRACK:
            return packet._replace(state="invalid")
        if base.priority == CONNTRACK:
            return packet._replace(state=None)
    return packet


def _split(rule: Rule, packets: PacketSet) -> tuple[Optional[PacketSet], Optional[PacketSet], Optional[PacketSet]]:
    """Return the packets that certainly match the rule's conditions, those that possibly do, and the others."""
    everything = packets.packet.connections
    certain = possible = packets.part
    for condition in rule.conditions:
        certainly, possibly = condition(packets.packet)
        if not possibly:
            return None, None, packets
        if possibly is not everything:
            possible = regions.intersection(possible, possibly)
            if not possible:
                return None, None, packets
        if certainly is not everything and certain:
            certain = regions.intersection(certain, certainly)
    if certain is packets.part:
        return packets, None, None
    uncertain = possible if not certain else regions.difference(possible, certain)
    others = () if possible is packets.part else regions.difference(packets.part, possible)
    return _part(packets, certain), _part(packets, uncertain), _part(packets, others)


def _part(packets: PacketSet, part: Region) -> Optional[PacketSet]:
    return packets._replace(part=part) if part else None


def _end(action: str, packets: PacketSet, rule: Rule) -> _End:
    """Return the verdict at the end of a base chain: a drop after a possible accept is itself uncertain."""
    if action == Action.DROP and packets.accept is not None:
        return _End(Action.ACCEPT, packets._replace(drop=packets.drop or packets.accept), rule)
    return _End(action, packets, rule)


def _is_policy(rule: Rule) -> bool:
    return rule.text.startswith("policy ")


def _uncertain(packets: PacketSet, rule: Rule) -> PacketSet:
    """Return the packets after an unknown action."""
    return packets._replace(accept=packets.accept or rule, drop=packets.drop or rule)


def _merge_unknown(before: Packet, after: Packet) -> Packet:
    """Return what is known if a change may or may not have happened."""
    return before._replace(
        mark=before.mark if before.mark == after.mark else None,
        connection_mark=before.connection_mark if before.connection_mark == after.connection_mark else None,
        state=before.state if before.state == after.state else None,
    )


def _opaque_family(packets: PacketSet, table: Table, base: BaseChain) -> PacketSet:
    """Return the packets after a family that is not modeled: unchanged unless something in it can drop."""
    if base.policy == Action.DROP:
        return packets._replace(drop=packets.drop or Rule("policy drop", base.where))
    for chain in table.chains.values():
        for rule in chain.rules:
            if rule.action in (Action.DROP, Action.DIVERTED, Action.UNKNOWN):
                return packets._replace(drop=packets.drop or rule)
    return packets
