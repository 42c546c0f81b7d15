"""Let the peers of the job, and nobody else, reach its ports through this host's own packet filters.

Only ports that were found closed are opened, for peers that are known by address. If no peer is named the finding is
skipped: a port is never opened to everybody.
"""

from __future__ import annotations

from typing import Iterable, Sequence

from envtune import intervals
from envtune.context import Context
from envtune.context.registry import action
from envtune.errors import NotApplicable, Skipped
from envtune.firewall import Table
from envtune.intervals import Intervals
from envtune.messages import Message, Text
from envtune.model import Change, Finding, FixOptions
from envtune.resources.firewall.commands import changes_of
from envtune.resources.firewall.listings import RuleSets, remove_dormant, rule_sets
from envtune.resources.firewall.peers import Peers, ingresses, peers_of, required_ports
from envtune.resources.firewall.placement import Access, Opening, find_openings
from envtune.resources.firewall.rules import WIDEST, AcceptRule


@action("firewall.allow")
def allow(context: Context, findings: Sequence[Finding], *, options: FixOptions) -> Iterable[Change]:
    """Open the ports closed to the peers, in every packet filter on their path; one change per place and view."""
    context = _with_peers(context, options.peers)
    every = _known_peers(context)
    changes = [change for peers in every for change in _changes(context, findings, peers)]
    if not changes:
        gaps = [gap for peers in every for gap in rule_sets(context.host, peers.family).gaps]
        if gaps:
            raise Skipped(Message("it is unknown whether the ports are open: {reason}", reason=gaps[0].reason))
        raise Skipped(Message("the ports are open to these peers"))
    return changes


def _with_peers(context: Context, peers: tuple[str, ...]) -> Context:
    if not peers or context.target.options.peers == peers:
        return context
    options = context.target.options._replace(peers=peers)
    return context.with_target(context.target._replace(options=options))


def _known_peers(context: Context) -> tuple[Peers, ...]:
    try:
        every = peers_of(context)
    except NotApplicable as verdict:
        raise Skipped(verdict.reason) from None
    if not all(peers.complete for peers in every):
        raise Skipped(
            Message(
                "the ports are opened for named peers only: give --peer ADDRESS, --hostfile FILE, or run it "
                "inside the Slurm job"
            )
        )
    for peers in every:
        for network in intervals.network_texts(peers.addresses, peers.family):
            if int(network.partition("/")[2] or WIDEST) < WIDEST:
                raise Skipped(
                    Message("{network} covers nearly all addresses; specify the peers' own network", network=network)
                )
    return every


def _changes(context: Context, findings: Sequence[Finding], peers: Peers) -> list[Change]:
    sets = rule_sets(context.host, peers.family)
    remove_dormant(context.host, sets)
    tables = _once_each(sets)
    places: dict[tuple[int, str, str], tuple[Opening, Intervals, list[str]]] = {}
    for required in required_ports(context):
        if required.hccl is not None and required.hccl.fault is not None:
            continue
        access = Access(required.ports, peers, ingresses(context, peers.family, required.hccl))
        for opening in find_openings(tables, access):
            key = (id(opening.table), opening.chain, opening.zone)
            before, ports, subjects = places.get(key, (opening, (), []))
            first = min(before, opening, key=lambda opening: opening.at)
            places[key] = (first, intervals.union((*ports, *access.ports)), [*subjects, required.subject])
    sources = intervals.network_texts(peers.addresses, peers.family)
    unread, listings = _unread(sets), dict(sets.sources)
    return [
        change._replace(
            finding=findings[0].id, subject=", ".join(subjects), other_owners=(*change.other_owners, *unread)
        )
        for opening, ports, subjects in places.values()
        for change in changes_of(
            context.host,
            opening,
            AcceptRule(ports, sources, peers.family),
            listings.get(opening.table.source, ""),
        )
    ]


def _once_each(sets: RuleSets) -> list[Table]:
    """Return the tables without duplicates: if iptables-save is the legacy one, iptables-legacy-save is the same."""
    listings = dict(sets.sources)
    legacy = [_texts(table) for table in sets.tables if "-legacy-save" in table.source]

    def is_repeated(table: Table) -> bool:
        plain = table.source in ("iptables-save", "ip6tables-save") and "nf_tables" not in listings.get(
            table.source, ""
        )
        return plain and _texts(table) in legacy

    return [table for table in sets.tables if not is_repeated(table)]


def _texts(table: Table) -> tuple[str, dict[str, list[str]]]:
    return table.name, {name: [rule.text for rule in chain.rules] for name, chain in table.chains.items()}


def _unread(sets: RuleSets) -> tuple[Text, ...]:
    """Return the note that rule sets which were not read may still close the ports."""
    return tuple(Message("other rules may also block them: {reason}", reason=gap.reason) for gap in sets.gaps[:1])
