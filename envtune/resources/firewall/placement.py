"""Where to insert an accept rule so that the peers get in, determined by trying it on the rules that were read.

The rule goes to the tool that owns the rules: into firewalld's zone, among ufw's own rules, else into the base chain
that drops the packets, just before the rule that leads to the drop. If the evaluator then does not report it as open,
nothing is opened: the blocking rule is named instead.
"""

from __future__ import annotations

from functools import partial
from typing import Iterator, NamedTuple, Optional, Sequence

from envtune.errors import Skipped
from envtune.firewall import CLOSED, OPEN, Connections, Outcome, Rule, Table, TooLargeError, reachability, regions
from envtune.firewall.match import address, port
from envtune.firewall.model import Action, BaseChain, Chain, owner_of
from envtune.intervals import Intervals
from envtune.messages import Literal, Message, Text
from envtune.resources.firewall.listings import TOO_LARGE
from envtune.resources.firewall.peers import Ingress, Peers
from envtune.resources.firewall.rules import zone_of

ROUNDS = 32  # openings tried in one table
_USER_CHAINS = ("ufw-user-input", "ufw6-user-input", "input")  # the last: from `ufw status`, on recorded hosts
# Programs that write and rewrite their own chains: what they drop must be changed in their settings.
_AGENTS = (
    ("f2b-", "fail2ban"),
    ("fail2ban", "fail2ban"),
    ("cali-", "Calico"),
    ("CILIUM", "Cilium"),
    ("KUBE-", "kube-proxy"),
    ("DOCKER", "Docker"),
    ("LIBVIRT", "libvirt"),
    ("CSF", "csf"),
)


class Opening(NamedTuple):
    """A place for an accept rule: before rule number `at` of a chain (its length: at the end)."""

    owner: str  # firewalld | ufw | iptables | nftables
    table: Table
    chain: str
    at: int
    closes: Rule  # what keeps the peers out without it
    zone: str = ""  # firewalld's

    @property
    def next(self) -> Optional[Rule]:
        """The rule that will follow; None at the end of the chain."""
        rules = self.table.chains[self.chain].rules
        return rules[self.at] if self.at < len(rules) else None


class Access(NamedTuple):
    """Ports that must be open to the peers, whatever interface they use."""

    ports: Intervals
    peers: Peers
    ingresses: Sequence[Ingress]

    def outcomes(self, tables: Sequence[Table]) -> list[Outcome]:
        """Return the outcome of the connections."""
        start = Connections(self.ports, self.peers.addresses, self.peers.family)
        return [outcome for ingress in self.ingresses for outcome in reachability(tables, ingress.applied_to(start))]

    def rule(self, where: str) -> Rule:
        """Return the rule that lets them in."""
        conditions = (address("source", self.peers.addresses, self.peers.family), port("destination", self.ports))
        return Rule("accept of envtune", where, conditions, Action.ACCEPT)


def find_openings(tables: Sequence[Table], access: Access) -> list[Opening]:
    """Return the fewest openings after which every connection works, none if no peer is kept out.

    Raises Skipped with the blocking rule.
    """
    try:
        if not _closed(tables, access):
            return []
        by_place = {}
        for table in tables:
            for opening in _openings_in(table, access):
                by_place[id(table), opening.chain, opening.zone] = opening
        return _needed(tables, list(by_place.values()), access)
    except TooLargeError:
        raise Skipped(TOO_LARGE) from None


def _needed(tables: Sequence[Table], openings: list[Opening], access: Access) -> list[Opening]:
    """Return the openings without superfluous ones."""
    for outcome in access.outcomes(_opened(tables, openings, access)):
        if outcome.verdict != OPEN:
            raise _blocked_by(outcome.rule)
    for opening in list(openings):
        others = [other for other in openings if other is not opening]
        if all(outcome.verdict == OPEN for outcome in access.outcomes(_opened(tables, others, access))):
            openings = others
    return openings


_NO_MORE = Literal("")


def _blocked_by(rule: Optional[Rule], why: Text = _NO_MORE) -> Skipped:
    """Return the refusal to open, naming the rule that an accept rule cannot bypass."""
    by = f"`{rule.text}` ({rule.where})" if rule is not None else "-"
    return Skipped(
        Message(
            "an accept rule alone may not open the ports, because of this rule: {by}{why}",
            by=by,
            why=why,
        )
    )


def _openings_in(table: Table, access: Access) -> list[Opening]:
    """Return openings after which this table alone keeps no peer out."""
    openings: list[Opening] = []
    closed = _closed([table], access)
    for _ in range(ROUNDS):
        if not closed:
            return openings
        rule = closed[0].rule
        if rule is None:
            raise _blocked_by(rule)
        openings, closed = _with_one_more(table, openings, rule, closed, access)
    raise _blocked_by(closed[0].rule)


def _with_one_more(
    table: Table, openings: list[Opening], rule: Rule, closed: list[Outcome], access: Access
) -> tuple[list[Opening], list[Outcome]]:
    """Return the openings plus the first one that lets more through, and what remains closed."""
    for candidate in _candidates(table, rule):
        place = (candidate.chain, candidate.zone)
        before = next((opening for opening in openings if (opening.chain, opening.zone) == place), None)
        if before is not None and before.at <= candidate.at:
            continue
        tried = [*(opening for opening in openings if opening is not before), candidate]
        remaining = _closed(_opened([table], tried, access), access)
        if _size(remaining) < _size(closed) or (remaining and remaining[0].rule != rule):
            return tried, remaining
    raise _blocked_by(rule)


def _closed(tables: Sequence[Table], access: Access) -> list[Outcome]:
    return [outcome for outcome in access.outcomes(tables) if outcome.verdict == CLOSED]


def _size(outcomes: Sequence[Outcome]) -> int:
    return regions.size_of(regions.union(*(outcome.part for outcome in outcomes)))


# ---------------------------------------------------------------------- places


def _candidates(table: Table, rule: Rule) -> Iterator[Opening]:
    """Yield places at which an accept rule may get the peers past `rule`, the likeliest first."""
    chain = rule.where.split(" ", 2)[2]
    owner = owner_of(table)
    agent = next((name for start, name in _AGENTS if chain.startswith(start)), "")
    if agent:
        raise _blocked_by(rule, Message(", managed by {agent}: allow the ports there", agent=agent))
    if owner == "firewalld":
        yield from _zone_openings(table, rule, chain)
    elif owner == "ufw" and _user_chains(table):
        for name in _user_chains(table):
            yield Opening(owner, table, name, len(table.chains[name].rules), rule)
    else:
        owner = "iptables" if owner == "ufw" else owner  # chains that ufw did not remove when it was disabled
        for base in sorted(table.bases, key=lambda base: base.hook != "input"):
            at = _position_before(table, base, rule, chain)
            if at is not None and base.hook in ("input", "prerouting") and not base.nat and not base.opaque:
                yield Opening(owner, table, base.chain.name, at, rule)


def _user_chains(table: Table) -> list[str]:
    """Return the chains for ufw's own rules that packets still reach."""
    bases = {base.chain.name for base in table.bases}
    return [name for name in _USER_CHAINS if name in table.chains and bases & _callers_of(table, name)]


def _zone_openings(table: Table, rule: Rule, chain: str) -> Iterator[Opening]:
    if table.family == "firewalld":  # listed by `firewall-cmd --list-all`
        yield Opening("firewalld", table, table.name, len(table.chains[table.name].rules), rule, table.name)
        return
    names = [(zone, name) for name in table.chains if name.endswith("_allow") and (zone := zone_of(name))]
    for zone, name in sorted(names, key=lambda pair: (f"IN_{pair[0]}" not in chain, pair[0])):
        yield Opening("firewalld", table, name, len(table.chains[name].rules), rule, zone)


def _position_before(table: Table, base: BaseChain, rule: Rule, chain: str) -> Optional[int]:
    """Return the position in a base chain of the rule that closes, or leads to the one that does; None if none."""
    callers, rules = _callers_of(table, chain), base.chain.rules
    leads = (one == rule or (one.action in (Action.JUMP, Action.GOTO) and one.target in callers) for one in rules)
    at = next((number for number, hit in enumerate(leads) if hit), len(rules) if base.chain.name == chain else None)
    while at and rules[at - 1].action == Action.CONTINUE and rules[at - 1].changes is None:
        at -= 1  # the rule that logs what is dropped
    return at


def _callers_of(table: Table, chain: str) -> set[str]:
    """Return the chain and every chain that jumps to it, directly or indirectly."""
    callers, before = {chain}, 0
    while len(callers) != before:
        before = len(callers)
        for name, other in table.chains.items():
            if any(rule.action in (Action.JUMP, Action.GOTO) and rule.target in callers for rule in other.rules):
                callers.add(name)
    return callers


def _opened(tables: Sequence[Table], openings: Sequence[Opening], access: Access) -> list[Table]:
    """Return the tables as they would be with the openings."""
    return [_with_rules(table, [one for one in openings if one.table is table], access) for table in tables]


def _with_rules(table: Table, openings: Sequence[Opening], access: Access) -> Table:
    if not openings:
        return table
    copy = Table(table.family, table.name)
    copy.foreign, copy.source, copy.chains, copy.bases = table.foreign, table.source, dict(table.chains), []
    for opening in openings:
        rules = list(table.chains[opening.chain].rules)
        rules.insert(opening.at, access.rule(f"{table.family} {table.name} {opening.chain}"))
        copy.chains[opening.chain] = Chain(opening.chain, partial(tuple, rules))
    copy.bases = [base._replace(chain=copy.chains[base.chain.name]) for base in table.bases]
    return copy
