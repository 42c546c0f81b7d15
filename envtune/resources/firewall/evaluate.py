"""The walk of a new connection through a rule set: the kernel's semantics, for all peers and ports at once.

A connection works when its three kinds of packet get through: the first one in, our answer out, and those that follow
in. Every base chain of every table on the way has a say: `drop` is final, `accept` ends only that base chain. A rule
that cannot be followed does not stop the walk: the connections it may concern go on with a doubt, and the doubt counts
only where the other answer would have changed the outcome. Source: nft(8), iptables-extensions(8), netfilter's hooks.
"""

from __future__ import annotations

from typing import NamedTuple, Optional, Sequence

from envtune import intervals as regions
from envtune.intervals import Region
from envtune.resources.firewall.match import Packet
from envtune.resources.firewall.model import (
    ACCEPT,
    DROP,
    ELSEWHERE,
    GOTO,
    JUMP,
    NOTHING,
    RETURN,
    UNKNOWN,
    BaseChain,
    Chain,
    Rule,
    Table,
)

CONNTRACK = -200  # the priority at which connection tracking sees a packet (NF_IP_PRI_CONNTRACK)
DEPTH = 64  # nested jumps; nftables allows 16
STEPS = 1_000_000  # rules looked at before a rule set is called too large
SYN, ANSWER, DATA = frozenset({"syn"}), frozenset({"syn", "ack"}), frozenset({"ack"})


class TooLarge(Exception):
    """The walk looked at more rules than it may."""


class Outcome(NamedTuple):
    """What becomes of a part of the connections: `verdict` open, closed or unknown, and the rule that decides."""

    verdict: str
    part: Region
    rule: Optional[Rule] = None


class Piece(NamedTuple):
    """Connections that met the same rules so far. `accept` and `drop` are rules that may have ended their way."""

    part: Region
    packet: Packet
    accept: Optional[Rule] = None
    drop: Optional[Rule] = None
    by: Optional[Rule] = None  # what let it pass at the input hook


class _End(NamedTuple):
    verdict: str  # accept | drop
    piece: Piece
    rule: Rule


INWARD, OUTWARD = ("ingress", "prerouting", "input"), ("output", "postrouting", "egress")


def connect(tables: Sequence[Table], packet: Packet) -> list[Outcome]:
    """What becomes of every new connection that `packet` stands for; raises TooLarge when a rule set is absurd."""
    first = _Walk(tables, packet._replace(reply=False, flags=SYN, state="new"), INWARD, True)
    outcomes = first.run()
    later = packet._replace(
        state=None if first.untracked else "established",
        ctmark=None if first.marked else packet.ctmark,
    )
    answer = _Walk(tables, later._replace(reply=True, flags=ANSWER), OUTWARD, False)
    outcomes = _narrow(outcomes, answer.run())
    return _narrow(outcomes, _Walk(tables, later._replace(reply=False, flags=DATA), INWARD, False).run())


def _narrow(before: list[Outcome], after: list[Outcome]) -> list[Outcome]:
    """Both must be open; closed wins over unknown."""
    done = [o for o in before if o.verdict == "closed"]
    for one in before:
        if one.verdict == "closed":
            continue
        for two in after:
            part = regions.meet(one.part, two.part)
            if part:
                worse = two if two.verdict == "closed" or (two.verdict == "unknown" and one.verdict == "open") else one
                done.append(Outcome(worse.verdict, part, worse.rule))
    return done


class _Walk:
    """One packet's way through all base chains of a rule set."""

    def __init__(self, tables: Sequence[Table], packet: Packet, hooks: Sequence[str], nat: bool) -> None:
        self.packet = packet
        self.hooks = hooks
        self.bases = sorted(
            ((t, b) for t in tables for b in t.bases if b.hook in hooks and (nat or not b.nat)),
            key=lambda one: (hooks.index(one[1].hook), one[1].priority),
        )
        self.steps = 0
        self.untracked = False  # connection tracking may not know the connection
        self.marked = False  # the connection may carry a mark

    def run(self) -> list[Outcome]:
        pieces = [Piece(self.packet.everything, self.packet)]
        done: list[Outcome] = []
        for table, base in self.bases:
            ends = self._base(table, base, pieces)
            done += [Outcome("closed", end.piece.part, end.rule) for end in ends if end.verdict == DROP]
            pieces = [self._passed(base, end) for end in ends if end.verdict == ACCEPT]
        for piece in pieces:
            done.append(Outcome("unknown" if piece.drop else "open", piece.part, piece.drop or piece.by))
        return done

    def _base(self, table: Table, base: BaseChain, pieces: list[Piece]) -> list[_End]:
        if base.opaque:
            return [_End(ACCEPT, _blind(piece, table, base), Rule("", base.where)) for piece in pieces]
        entered = [piece._replace(packet=self._seen_at(piece.packet, base)) for piece in pieces]
        flow = self._chain(table, base.chain, entered, None, ())
        policy = Rule(f"policy {base.policy}", base.where)
        return flow.ended + [_end(base.policy, piece, policy) for piece in flow.through]

    def _seen_at(self, packet: Packet, base: BaseChain) -> Packet:
        """The packet as this base chain sees it: before connection tracking every state reads `invalid`."""
        if base.hook in ("prerouting", "output") and packet.state not in (None, "untracked"):
            if base.priority < CONNTRACK:
                return packet._replace(state="invalid")
            if base.priority == CONNTRACK:
                return packet._replace(state=None)
        return packet

    def _passed(self, base: BaseChain, end: _End) -> Piece:
        """An accepted piece, ready for the next base chain."""
        piece = end.piece
        state = self.packet.state if piece.packet.state == "invalid" else piece.packet.state
        by = piece.by
        if base.hook == "input" and not base.nat and not base.opaque and (by is None or not _is_policy(end.rule)):
            by = end.rule
        return piece._replace(packet=piece.packet._replace(state=state), accept=None, by=by)

    def _chain(
        self, table: Table, chain: Chain, pieces: Sequence[Piece], doubt: Optional[Rule], path: tuple[str, ...]
    ) -> _Flow:
        """Pieces through one chain. `doubt` is a rule that may or may not have led here: then nothing ends for sure."""
        flow = _Flow([(piece, doubt) for piece in pieces])
        path = (*path, chain.name)
        for rule in chain.rules:
            self.steps += len(flow.going)
            if self.steps > STEPS:
                raise TooLarge
            going, flow.going = flow.going, []
            for piece, unsure in going:
                self._step(table, rule, piece, unsure, path, flow)
            if not flow.going:
                break
        flow.through += [piece for piece, _ in flow.going]
        return flow

    def _step(
        self, table: Table, rule: Rule, piece: Piece, unsure: Optional[Rule], path: tuple[str, ...], flow: _Flow
    ) -> None:
        """One piece at one rule."""
        surely, perhaps, rest = _split(rule, piece)
        if surely is not None and unsure is None:
            self._certain(table, rule, surely, path, flow)
        elif surely is not None:
            self._doubtful(table, rule, surely, unsure, path, flow)
        if perhaps is not None:
            self._doubtful(table, rule, perhaps, unsure, path, flow)
        if rest is not None:
            flow.going.append((rest, unsure))

    def _changed(self, before: Packet, after: Packet) -> Packet:
        self.untracked = self.untracked or before.state != after.state
        self.marked = self.marked or before.ctmark != after.ctmark
        return after

    def _certain(self, table: Table, rule: Rule, piece: Piece, path: tuple[str, ...], flow: _Flow) -> None:
        """The rule applies to this piece."""
        if rule.changes is not None:
            piece = piece._replace(packet=self._changed(piece.packet, rule.changes(piece.packet)))
        if rule.action in (ACCEPT, DROP):
            flow.ended.append(_end(rule.action, piece, rule))
        elif rule.action == ELSEWHERE:
            flow.ended.append(_End(ACCEPT, piece._replace(drop=piece.drop or rule), rule))
        elif rule.action == RETURN:
            flow.through.append(piece)
        elif rule.action == NOTHING:
            flow.going.append((piece, None))
        elif rule.action in (JUMP, GOTO) and self._callable(table, rule, path):
            inner = self._chain(table, table.chains[rule.target], [piece], None, path)
            flow.ended += inner.ended
            if rule.action == GOTO:
                flow.through += inner.through
            else:
                flow.going += [(one, None) for one in inner.through]
        else:
            flow.going.append((_doubted(piece, rule), None))

    def _doubtful(
        self, table: Table, rule: Rule, piece: Piece, unsure: Optional[Rule], path: tuple[str, ...], flow: _Flow
    ) -> None:
        """The rule may apply to this piece, or may not even be reached (`unsure`): it goes on, with a doubt."""
        cause = unsure or rule
        if rule.changes is not None:
            changed = self._changed(piece.packet, rule.changes(piece.packet))
            piece = piece._replace(packet=_blurred(piece.packet, changed))
        if rule.action == ACCEPT:
            piece = piece._replace(accept=piece.accept or cause)
        elif rule.action in (DROP, ELSEWHERE):
            piece = piece._replace(drop=piece.drop or cause)
        elif rule.action in (JUMP, GOTO) and self._callable(table, rule, path):
            inner = self._chain(table, table.chains[rule.target], [piece], cause, path)
            after = cause if rule.action == GOTO else unsure
            flow.going += [(one, after) for one in inner.through]
            return
        elif rule.action not in (NOTHING, RETURN):
            piece = _doubted(piece, cause)
        flow.going.append((piece, cause if rule.action == RETURN else unsure))

    def _callable(self, table: Table, rule: Rule, path: tuple[str, ...]) -> bool:
        """Whether the chain is there and not already being walked (the kernel refuses circles)."""
        return rule.target in table.chains and rule.target not in path and len(path) < DEPTH


class _Flow:
    def __init__(self, going: list[tuple[Piece, Optional[Rule]]]) -> None:
        self.ended: list[_End] = []  # their way through the base chain is over
        self.through: list[Piece] = []  # at the end of this chain
        self.going = going  # at the next rule; with the doubt whether they get there


def _split(rule: Rule, piece: Piece) -> tuple[Optional[Piece], Optional[Piece], Optional[Piece]]:
    """The parts of a piece that surely meet the rule's conditions, perhaps do, and do not."""
    everything = piece.packet.everything
    sure = possible = piece.part
    for condition in rule.conditions:
        surely, possibly = condition(piece.packet)
        if not possibly:
            return None, None, piece
        if possibly is not everything:
            possible = regions.meet(possible, possibly)
            if not possible:
                return None, None, piece
        if surely is not everything and sure:
            sure = regions.meet(sure, surely)
    if sure is piece.part:
        return piece, None, None
    perhaps = possible if not sure else regions.minus(possible, sure)
    rest = () if possible is piece.part else regions.minus(piece.part, possible)
    return _part(piece, sure), _part(piece, perhaps), _part(piece, rest)


def _part(piece: Piece, part: Region) -> Optional[Piece]:
    return piece._replace(part=part) if part else None


def _end(verdict: str, piece: Piece, rule: Rule) -> _End:
    """The end of a base chain: a drop after what may have been an accept is itself only a doubt."""
    if verdict == DROP and piece.accept is not None:
        return _End(ACCEPT, piece._replace(drop=piece.drop or piece.accept), rule)
    return _End(verdict, piece, rule)


def _is_policy(rule: Rule) -> bool:
    return rule.text.startswith("policy ")


def _doubted(piece: Piece, rule: Rule) -> Piece:
    """After an action that may have been any."""
    return piece._replace(accept=piece.accept or rule, drop=piece.drop or rule)


def _blurred(before: Packet, after: Packet) -> Packet:
    """What is known when a change may or may not have happened."""
    return before._replace(
        mark=before.mark if before.mark == after.mark else None,
        ctmark=before.ctmark if before.ctmark == after.ctmark else None,
        state=before.state if before.state == after.state else None,
    )


def _blind(piece: Piece, table: Table, base: BaseChain) -> Piece:
    """A family whose packets are not modelled: harmless unless something in it can drop."""
    if base.policy == DROP:
        return piece._replace(drop=piece.drop or Rule("policy drop", base.where))
    for chain in table.chains.values():
        for rule in chain.rules:
            if rule.action in (DROP, ELSEWHERE, UNKNOWN):
                return piece._replace(drop=piece.drop or rule)
    return piece
