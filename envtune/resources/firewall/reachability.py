"""Whether a new TCP connection from a cluster peer gets through this host's packet filters.

The rule sets themselves are evaluated (envtune.firewall), not their front ends' settings; listings.py says which
commands are read, in which order. A verdict holds for every port in question and for every address a peer can have, or
for the peers' addresses if the user or the job names them (peers.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterable, Optional, Sequence

from envtune import intervals
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import NotApplicable
from envtune.messages import Message, Text
from envtune.model import Evidence, Reading
from envtune.resources.firewall.listings import TOO_LARGE, RuleSets, remove_dormant, rule_sets
from envtune.resources.firewall.peers import Ingress, Peers, RequiredPorts, ingresses, peers_of, required_ports
from envtune.resources.network.names import address_fault, master_address, single_node

if TYPE_CHECKING:
    from envtune.firewall import Outcome, Region, Rule


@probe("firewall.peers")
def from_peers(context: Context) -> Iterable[Reading]:
    """Whether the peers can reach the job's ports through this host's firewall: `open`, `closed` or `unknown`."""
    try:
        every = peers_of(context)
    except NotApplicable:
        closed = _closed_to_itself(context)
        if not closed:
            raise
        yield from closed
        return
    for peers in every:
        mark = " (IPv6)" if len(every) > 1 and peers.family == 6 else ""
        sets = rule_sets(context.host, peers.family)
        readings = _readings(context, peers, sets)
        if any(reading.value != "open" for reading in readings) and remove_dormant(context.host, sets):
            readings = _readings(context, peers, sets)
        yield from (_repairable(context, reading._replace(subject=reading.subject + mark)) for reading in readings)


def _repairable(context: Context, reading: Reading) -> Reading:
    """Return the reading without lines that open the ports to an invalid MASTER_ADDR.

    If the user names more peers than fit on a line, `envtune fix` opens the ports to them.
    """
    named = ",".join(context.target.options.peers)
    if named or not reading.commands:
        return reading._replace(fields={"peers": named} if named else {})
    master = master_address(context)
    return reading._replace(commands=()) if master is not None and address_fault(master) is not None else reading


def _closed_to_itself(context: Context) -> list[Reading]:
    """Return the ports of a single-node job that are closed even over lo, through which its ranks connect."""
    if context.target.environment.variables is None or not single_node(context):
        return []
    own = ((intervals.address_number("127.0.0.1", 4),) * 2,)
    sets, over_lo = rule_sets(context.host, 4), [Ingress("lo", own)]
    readings = _readings(context, Peers(4, own, own, True), sets, over_lo)
    return [reading._replace(subject=f"{reading.subject} (lo)") for reading in readings if reading.value == "closed"]


def _readings(
    context: Context, peers: Peers, sets: RuleSets, ways: Optional[Sequence[Ingress]] = None
) -> list[Reading]:
    return [
        Reading(required.subject, None, required.hccl.evidence, reason=required.hccl.fault)
        if required.hccl is not None and required.hccl.fault is not None
        else _reading(context, required, peers, sets, ways)
        for required in required_ports(context)
    ]


def _reading(
    context: Context, required: RequiredPorts, peers: Peers, sets: RuleSets, ways: Optional[Sequence[Ingress]]
) -> Reading:
    judge = _Judge(required, peers, sets)
    if not sets.tables:
        return judge.reading([(Ingress(None, None), [])])
    from envtune.firewall import Connections, TooLargeError, reachability

    start = Connections(required.ports, peers.addresses, peers.family)
    try:
        outcomes = [
            (ingress, reachability(sets.tables, ingress.applied_to(start)))
            for ingress in ways or ingresses(context, peers.family, required.hccl)
        ]
    except TooLargeError:
        return judge.unknown(TOO_LARGE, _evidence(sets, None))
    return judge.reading(outcomes)


class _Judge:
    """Turns the outcomes on every interface into one reading."""

    def __init__(self, required: RequiredPorts, peers: Peers, sets: RuleSets) -> None:
        self.required = required
        self.peers = peers
        self.sets = sets

    def reading(self, outcomes: Sequence[tuple[Ingress, list[Outcome]]]) -> Reading:
        """Return the one reading: closed on every interface, unknown on some, or open."""
        closed = [self._closed(by_ingress) for _, by_ingress in outcomes]
        if all(reading is not None for reading in closed) and closed[0] is not None:
            return closed[0]
        for (ingress, _), reading in zip(outcomes, closed):
            if reading is not None:  # another interface is not closed: it is unknown which one peers use
                name = ingress.interface or "-"
                return self.unknown(
                    Message("blocked by {name}, but not on every interface", name=name), reading.evidence
                )
        for _, by_ingress in outcomes:
            unknown = self._unknown(by_ingress)
            if unknown is not None:
                return unknown
        return self._open(outcomes[0][1])

    def unknown(self, reason: Text, evidence: Evidence, needs_privilege: bool = False) -> Reading:
        """Return a reading that says it is unknown, and why."""
        return Reading(
            self.required.subject,
            None,
            evidence,
            expected=_expected(self.sets),
            reason=reason,
            needs_privilege=needs_privilege,
        )

    def _closed(self, outcomes: Sequence[Outcome]) -> Optional[Reading]:
        """Return a failing reading if some port is closed to every possible peer, or to one the job names."""
        if not outcomes:
            return None
        from envtune.firewall import regions

        closed = [outcome for outcome in outcomes if outcome.verdict == "closed"]
        part = regions.union(*(outcome.part for outcome in closed))
        known, everybody = self.peers.known, self.peers.addresses
        fatal = tuple(row for row in part if row[2] == everybody or intervals.intersection(row[2], known))
        if not fatal:
            return None
        from envtune.resources.firewall.rules import AcceptRule, lines_to_type

        rule = _deciding(closed, fatal)
        family, by = self.peers.family, _rule_text(rule) or "-"
        ports = intervals.port_text(regions.ports_of(fatal))
        named = intervals.intersection(regions.addresses_of(fatal), known)
        shown = Message("{ports} blocked by {by}", ports=ports, by=by)
        if named:
            peers = intervals.address_text(named, family)
            shown = Message("{ports} blocked for {peers} by {by}", ports=ports, peers=peers, by=by)
        wanted = AcceptRule(self.required.ports, intervals.network_texts(known, family), family)
        lines = lines_to_type(self.sets.tables, rule, _front_end(self.sets), wanted)
        evidence = _evidence(self.sets, rule)
        return Reading(self.required.subject, "closed", evidence, shown, _expected(self.sets), commands=lines)

    def _unknown(self, outcomes: Sequence[Outcome]) -> Optional[Reading]:
        """Return why it is unknown, if it is."""
        for outcome in outcomes:
            if outcome.verdict == "unknown" and outcome.rule is not None:
                by = _rule_text(outcome.rule)
                reason = Message("the effect of this rule on a peer's connection is unknown: {by}", by=by)
                return self.unknown(reason, _evidence(self.sets, outcome.rule))
        closed = [outcome for outcome in outcomes if outcome.verdict == "closed"]
        if closed:
            return self._partly_open(outcomes, closed)
        gaps = self.sets.gaps
        if not gaps:
            return None
        gap = next((gap for gap in gaps if not gap.needs_privilege), gaps[0])
        return self.unknown(gap.reason, Evidence(gap.source, gap.text), all(gap.needs_privilege for gap in gaps))

    def _partly_open(self, outcomes: Sequence[Outcome], closed: Sequence[Outcome]) -> Reading:
        """Return the text that some addresses get in and some do not, naming the smaller group."""
        opened = [outcome for outcome in outcomes if outcome.verdict == "open"]
        inside, outside = _addresses(opened), _addresses(closed)
        if len(inside) <= len(outside):
            rule, names = opened[0].rule if opened else None, intervals.address_text(inside, self.peers.family)
            reason = Message("open only for {names}; whether these are all peers is unknown", names=names)
        else:
            rule, names = closed[0].rule, intervals.address_text(outside, self.peers.family)
            reason = Message("open except for {names}; whether these include a peer is unknown", names=names)
        return self.unknown(reason, _evidence(self.sets, rule))

    def _open(self, outcomes: Sequence[Outcome]) -> Reading:
        rule = next((outcome.rule for outcome in outcomes if outcome.rule is not None), None)
        shown = (
            Message("allowed by {by}", by=_rule_text(rule)) if rule is not None else Message("open: no firewall rules")
        )
        return Reading(self.required.subject, "open", _evidence(self.sets, rule), shown, _expected(self.sets))


def _addresses(outcomes: Sequence[Outcome]) -> intervals.Intervals:
    return intervals.union(pair for o in outcomes for _, _, addresses in o.part for pair in addresses)


def _rule_text(rule: Optional[Rule]) -> str:
    return f"`{rule.text}` ({rule.where})" if rule is not None else ""


def _deciding(closed: Sequence[Outcome], fatal: Region) -> Optional[Rule]:
    """Return the rule that closes `fatal` to the most addresses."""
    from envtune.firewall import regions

    hits = [
        (sum(high - low + 1 for low, high in regions.addresses_of(outcome.part)), at)
        for at, outcome in enumerate(closed)
        if regions.intersection(outcome.part, fatal)
    ]
    return closed[max(hits)[1]].rule if hits else None


def _evidence(sets: RuleSets, rule: Optional[Rule]) -> Evidence:
    """Return the rule, and the command that shows it; without a rule, what shows that there is none."""
    if rule is not None:
        from envtune.resources.firewall.rules import table_of

        table = table_of(sets.tables, rule)
        if table is not None:
            return Evidence(table.source, f"{rule.where}: {rule.text}")
    return Evidence(*sets.sources[0]) if sets.sources else Evidence("nft -j list ruleset")


def _expected(sets: RuleSets) -> Text:
    """Return what is expected, and who owns these rules: a change elsewhere would not last."""
    front = _front_end(sets)
    if not front:
        return Message("open to the peers")
    return Message("open to the peers (rules managed by {front})", front=front)


def _front_end(sets: RuleSets) -> str:
    """Return firewalld or ufw if one of them created the rules; empty if neither did."""
    if not sets.tables:
        return ""
    from envtune.firewall.model import owner_of

    owners = map(owner_of, sets.tables)
    return next((owner for owner in owners if owner in ("firewalld", "ufw")), "")
