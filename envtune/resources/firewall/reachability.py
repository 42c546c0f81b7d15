"""Whether a new TCP connection from a cluster peer gets through this host's packet filters.

The rule sets themselves are evaluated (firewall_walk.py), not their front ends' settings; firewall_sources.py says
which commands are read, in which order. A verdict holds for every port asked about and for every address a peer can
have, or for the peers' addresses where the user or the job names them (firewall_peers.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterable, Optional, Sequence

from envtune import intervals as regions
from envtune.context import Context
from envtune.context.registry import probe
from envtune.intervals import Intervals, Region
from envtune.messages import Bilingual, Message, Text
from envtune.model import Evidence, Reading
from envtune.resources.firewall.listings import RuleSets, rule_sets, without_dormant
from envtune.resources.firewall.peers import Peers, Way, peers_of, questions, ways
from envtune.resources.network.ports import HcclPorts

if TYPE_CHECKING:
    from envtune.resources.firewall.evaluate import Outcome
    from envtune.resources.firewall.model import Rule


@probe("firewall.peers")
def from_peers(context: Context) -> Iterable[Reading]:
    """MASTER_PORT (where this host is the master) and HCCL's ports: open to the peers, closed, or cannot be told."""
    everybody = peers_of(context)
    for peers in everybody:
        mark = " (IPv6)" if len(everybody) > 1 and peers.family == 6 else ""
        sets = rule_sets(context.host, peers.family)
        readings = _readings(context, peers, sets)
        if any(reading.value != "open" for reading in readings) and without_dormant(context.host, sets):
            readings = _readings(context, peers, sets)
        yield from (reading._replace(subject=reading.subject + mark) for reading in readings)


def _readings(context: Context, peers: Peers, sets: RuleSets) -> list[Reading]:
    return [
        Reading(one.subject, None, one.hccl.evidence, reason=one.hccl.fault)
        if one.hccl is not None and one.hccl.fault is not None
        else _reading(context, one.subject, one.ports, peers, sets, one.hccl)
        for one in questions(context)
    ]


def _reading(
    context: Context, subject: str, ports: Intervals, peers: Peers, sets: RuleSets, hccl: Optional[HcclPorts]
) -> Reading:
    judge = _Judge(subject, ports, peers, sets, hccl)
    if not sets.tables:
        return judge.reading([(Way(None, None), [])])
    from envtune.resources.firewall.evaluate import TooLarge, connect
    from envtune.resources.firewall.match import Packet

    packet = Packet(regions.box(ports, peers.addresses), peers.family, False, frozenset(), "new")
    try:
        outcomes = [
            (way, connect(sets.tables, packet._replace(interface=way.name, own=way.own)))
            for way in ways(context, peers.family, hccl)
        ]
    except TooLarge:
        return Reading(subject, None, _evidence(sets, None), expected=_wanted(sets), reason=_TOO_LARGE)
    return judge.reading(outcomes)


_TOO_LARGE = Message("the rule set is too large to follow every way through it")


class _Judge:
    """Outcomes on every way, as one reading."""

    def __init__(self, subject: str, ports: Intervals, peers: Peers, sets: RuleSets, hccl: Optional[HcclPorts]) -> None:
        self.subject = subject
        self.ports = ports
        self.peers = peers
        self.sets = sets
        self.why = hccl.why if hccl is not None else None

    def reading(self, outcomes: Sequence[tuple[Way, list[Outcome]]]) -> Reading:
        closed = [self._closed(way, found) for way, found in outcomes]
        if all(one is not None for one in closed) and closed[0] is not None:
            return closed[0]
        for at, one in enumerate(closed):
            if one is not None:  # another way is not closed: which one peers take is not known
                name = outcomes[at][0].name or "-"
                return self._untold(
                    Message("closed by {name}, not by every interface", name=name),
                    one.evidence,
                )
        for _, found in outcomes:
            doubt = self._doubt(found)
            if doubt is not None:
                return doubt
        return self._open(outcomes[0][1])

    def _closed(self, way: Way, found: Sequence[Outcome]) -> Optional[Reading]:
        """A failing reading when some port is closed to every peer there is, or to one the job names."""
        shut = [o for o in found if o.verdict == "closed"]
        part: Region = ()
        for one in shut:
            part = regions.join(part, one.part)
        fatal = tuple(row for row in part if row[2] == self.peers.addresses or regions.common(row[2], self.peers.known))
        if not fatal:
            return None
        rule = self._deciding(shut, fatal)
        ports = regions.port_text(regions.ports_of(fatal))
        who = regions.common(regions.addresses_of(fatal), self.peers.known)
        peers = f" to {regions.address_text(who, self.peers.family)}" if who else ""
        nodes_zh = f"对 {regions.address_text(who, self.peers.family)} " if who else ""
        by = f"`{rule.text}` ({rule.where})" if rule is not None else "-"
        shown = Bilingual(f"{ports} closed{peers} by {by}", f"{ports} {nodes_zh}被 {by} 拦截")
        from envtune.resources.firewall.remedy import opening

        front = front_end(self.sets)
        let_in = opening(self.sets.tables, rule, front, self.ports, self.peers.known, self.peers.family)
        return Reading(self.subject, "closed", _evidence(self.sets, rule), shown, _wanted(self.sets), commands=let_in)

    @staticmethod
    def _deciding(shut: Sequence[Outcome], fatal: Region) -> Optional[Rule]:
        """The rule that closes the most of it."""
        sizes = [(sum(high - low + 1 for low, high in regions.addresses_of(o.part)), at) for at, o in enumerate(shut)]
        hits = [size for size in sizes if regions.meet(shut[size[1]].part, fatal)]
        return shut[max(hits)[1]].rule if hits else None

    def _doubt(self, found: Sequence[Outcome]) -> Optional[Reading]:
        """Why it cannot be told, when it cannot."""
        for one in found:
            if one.verdict == "unknown" and one.rule is not None:
                by = f"`{one.rule.text}` ({one.rule.where})"
                reason = Message("what this rule does to a peer's connection cannot be told: {by}", by=by)
                return self._untold(reason, _evidence(self.sets, one.rule))
        shut = [o for o in found if o.verdict == "closed"]
        if shut:
            return self._untold(*self._partly(found, shut))
        if self.sets.gaps:
            gap = next((g for g in self.sets.gaps if not g.needs_privilege), self.sets.gaps[0])
            untold = self._untold(gap.reason, Evidence(gap.source, gap.text))
            return untold._replace(needs_privilege=all(g.needs_privilege for g in self.sets.gaps))
        return None

    def _partly(self, found: Sequence[Outcome], shut: Sequence[Outcome]) -> tuple[Text, Evidence]:
        let_in = [o for o in found if o.verdict == "open"]
        inside = regions.intervals(pair for o in let_in for pair in regions.addresses_of(o.part))
        outside = regions.intervals(pair for o in shut for pair in regions.addresses_of(o.part))
        family = self.peers.family
        if len(inside) <= len(outside):
            rule, names = let_in[0].rule if let_in else None, regions.address_text(inside, family)
            reason = Message("open only for {names}; whether that is every peer is not known", names=names)
        else:
            rule, names = shut[0].rule, regions.address_text(outside, family)
            reason = Message("open except for {names}; whether a peer is among them is not known", names=names)
        return reason, _evidence(self.sets, rule)

    def _untold(self, reason: Text, evidence: Evidence) -> Reading:
        return Reading(self.subject, None, evidence, None, _wanted(self.sets), reason)

    def _open(self, found: Sequence[Outcome]) -> Reading:
        rule = next((o.rule for o in found if o.rule is not None), None)
        by = f"`{rule.text}` ({rule.where})" if rule is not None else ""
        words = Message("open by {by}", by=by) if by else Message("open: no packet filter")
        return Reading(self.subject, "open", _evidence(self.sets, rule), words, _wanted(self.sets))


def _evidence(sets: RuleSets, rule: Optional[Rule]) -> Evidence:
    """The rule, and the command that shows it; without a rule, what told that there is none."""
    if rule is not None:
        for table in sets.tables:
            if rule.where.startswith(f"{table.family} {table.name} "):
                return Evidence(table.source, f"{rule.where}: {rule.text}")
    if sets.told:
        return Evidence(*sets.told[0])
    return Evidence("nft -j list ruleset")


def _wanted(sets: RuleSets) -> Text:
    """What should be, and whose rules these are: a change elsewhere would not last."""
    front = front_end(sets)
    if not front:
        return Message("open to the peers")
    return Message("open to the peers (the rules are {front}'s)", front=front)


def front_end(sets: RuleSets) -> str:
    """firewalld or ufw where one of them made the rules; empty when neither did."""
    if not sets.tables:
        return ""
    from envtune.resources.firewall.model import owner_of

    owners = map(owner_of, sets.tables)
    return next((owner for owner in owners if owner in ("firewalld", "ufw")), "")
