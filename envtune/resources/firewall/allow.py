"""Let the peers of the job, and nobody else, reach its ports through this host's own packet filters.

Only ports that NET004 finds closed are opened, for peers that are known by address. Where no peer is named the finding
is skipped: a port is never opened to everybody.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Iterable, Optional, Sequence

from envtune import intervals as regions
from envtune.context import Context
from envtune.context.registry import action
from envtune.errors import NotApplicable, Skipped
from envtune.messages import Message, Text
from envtune.model import Change, Finding, FixOptions
from envtune.resources.firewall.commands import Wanted, changes_of
from envtune.resources.firewall.listings import RuleSets, rule_sets, without_dormant
from envtune.resources.firewall.model import Table
from envtune.resources.firewall.peers import Peers, peers_of, questions, ways
from envtune.resources.firewall.placement import Case, Opening, openings

WIDEST = 8  # bits of the widest network that can still be a cluster's


@action("firewall.allow")
def allow(context: Context, findings: Sequence[Finding], *, options: FixOptions) -> Iterable[Change]:
    """Open the ports that are closed to the peers, in every packet filter on their way; one change a place and view."""
    context = _with_peers(context, options.peers)
    done: list[Change] = []
    for peers in _known_peers(context):
        done += _changes(context, findings, peers)
    if not done:
        raise Skipped(Message("the ports are open to these peers"))
    return done


def _with_peers(context: Context, peers: tuple[str, ...]) -> Context:
    if not peers or context.target.options.peers == peers:
        return context
    options = context.target.options._replace(peers=peers)
    return replace(context, target=context.target._replace(options=options))


def _known_peers(context: Context) -> tuple[Peers, ...]:
    try:
        found = peers_of(context)
    except NotApplicable as verdict:
        raise Skipped(verdict.reason) from None
    if not all(peers.complete for peers in found):
        raise Skipped(
            Message(
                "the ports are opened for named peers only: give --peer ADDRESS, --hostfile FILE, or run it "
                "inside the Slurm job"
            )
        )
    for peers in found:
        for network in regions.networks(peers.addresses, peers.family):
            if int(network.partition("/")[2] or WIDEST) < WIDEST:
                raise Skipped(Message("{network} is nearly everybody; name the peers' own network", network=network))
    return found


def _changes(context: Context, findings: Sequence[Finding], peers: Peers) -> list[Change]:
    sets = rule_sets(context.host, peers.family)
    without_dormant(context.host, sets)
    tables = _once_each(sets)
    places: dict[tuple[int, str, str], tuple[Opening, regions.Intervals, list[str]]] = {}
    for question in questions(context):
        if question.hccl is not None and question.hccl.fault is not None:
            continue
        case = Case(question.ports, peers, ways(context, peers.family, question.hccl))
        for one in openings(tables, case):
            key = (id(one.table), one.chain, one.zone)
            before, ports, subjects = places.get(key, (one, (), []))
            first = min(before, one, key=lambda opening: opening.at)
            places[key] = (first, regions.intervals((*ports, *case.ports)), [*subjects, question.subject])
    id_ = findings[0].id
    doubt, told = _unread(sets), dict(sets.told)
    return [
        change._replace(finding=id_, subject=", ".join(subjects), rivals=(*change.rivals, *doubt))
        for opening, ports, subjects in places.values()
        for change in changes_of(context.host, opening, Wanted(ports, peers), told.get(opening.table.source, ""))
    ]


def _once_each(sets: RuleSets) -> list[Table]:
    """The tables, none told twice: where iptables-save is the legacy one, iptables-legacy-save says the same."""
    told = dict(sets.told)
    legacy = [_words(table) for table in sets.tables if "-legacy-save" in table.source]

    def twice(table: Table) -> bool:
        plain = table.source in ("iptables-save", "ip6tables-save") and "nf_tables" not in told.get(table.source, "")
        return plain and _words(table) in legacy

    return [table for table in sets.tables if not twice(table)]


def _words(table: Table) -> tuple[str, dict[str, list[str]]]:
    return table.name, {name: [rule.text for rule in chain.rules] for name, chain in table.chains.items()}


def _unread(sets: RuleSets) -> tuple[Text, ...]:
    """Rule sets that were not read may close the ports all the same."""
    reason: Optional[Text] = sets.gaps[0].reason if sets.gaps else None
    if reason is None:
        return ()
    return (Message("other rules may close them, too: {reason}", reason=reason),)
