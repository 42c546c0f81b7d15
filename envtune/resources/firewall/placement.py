"""Where an accept rule has to go so that the peers get in, found out by trying it on the rules that were read.

The rule goes to the tool that owns the rules: into firewalld's zone, among ufw's own rules, else into the base chain
that lets the packets down, just before the rule that leads to the drop. What the evaluator then does not call open is
not opened: the rule that stands in the way is named instead.
"""

from __future__ import annotations

import re
from typing import Iterator, NamedTuple, Optional, Sequence

from envtune import intervals as regions
from envtune.errors import Skipped
from envtune.intervals import Intervals, Region
from envtune.messages import Literal, Message, Text
from envtune.resources.firewall.evaluate import Outcome, TooLarge, connect
from envtune.resources.firewall.match import Packet, address, port
from envtune.resources.firewall.model import ACCEPT, GOTO, JUMP, NOTHING, BaseChain, Chain, Rule, Table, owner_of
from envtune.resources.firewall.peers import Peers, Way

ROUNDS = 32  # openings tried in one table
_ZONE = re.compile(r"(?:filter_)?IN_(?!policy_)(.+)_allow")
_USER_CHAINS = ("ufw-user-input", "ufw6-user-input", "input")  # the last: of `ufw status`, on recorded hosts
# Programs that write and rewrite chains of their own: what they drop is to be changed in their settings.
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


class Case(NamedTuple):
    """Ports that are to be open to the peers, whatever way they come."""

    ports: Intervals
    peers: Peers
    ways: Sequence[Way]

    def outcomes(self, tables: Sequence[Table]) -> list[Outcome]:
        """What becomes of the connections."""
        everything = regions.box(self.ports, self.peers.addresses)
        packet = Packet(everything, self.peers.family, False, frozenset(), "new")
        return [one for way in self.ways for one in connect(tables, packet._replace(interface=way.name, own=way.own))]

    def accept(self, where: str) -> Rule:
        """The rule that lets them in."""
        conditions = (address("source", self.peers.addresses, self.peers.family), port("destination", self.ports))
        return Rule("accept of envtune", where, conditions, ACCEPT)


def openings(tables: Sequence[Table], case: Case) -> list[Opening]:
    """The fewest openings after which every connection of the case works, none where no peer is kept out.

    Raises Skipped with the rule in the way.
    """
    try:
        if not _shut(tables, case):
            return []
        found = {}
        for table in tables:
            for one in _openings_in(table, case):
                found[id(table), one.chain, one.zone] = one
        return _needed(tables, list(found.values()), case)
    except TooLarge:
        reason = Message("the rule set is too large to follow every way through it")
        raise Skipped(reason) from None


def _needed(tables: Sequence[Table], found: list[Opening], case: Case) -> list[Opening]:
    """The openings without those that all works without."""
    _must_be_open(case.outcomes(_opened(tables, found, case)))
    for one in list(found):
        rest = [other for other in found if other is not one]
        if all(outcome.verdict == "open" for outcome in case.outcomes(_opened(tables, rest, case))):
            found = rest
    return found


def _must_be_open(outcomes: Sequence[Outcome]) -> None:
    for one in outcomes:
        if one.verdict != "open":
            raise in_the_way(one.rule)


_NO_MORE = Literal("")


def in_the_way(rule: Optional[Rule], why: Text = _NO_MORE) -> Skipped:
    """The refusal to open, naming the rule that an accept rule would not get past."""
    by = f"`{rule.text}` ({rule.where})" if rule is not None else "-"
    return Skipped(
        Message(
            "an accept rule alone would not surely open the ports; this rule stands in the way: {by}{why}",
            by=by,
            why=why,
        )
    )


def _openings_in(table: Table, case: Case) -> list[Opening]:
    """Openings after which this table by itself keeps no peer out."""
    done: list[Opening] = []
    shut = _shut([table], case)
    for _ in range(ROUNDS):
        if not shut:
            return done
        rule = shut[0].rule
        if rule is None:
            raise in_the_way(rule)
        done, shut = _one_more(table, done, rule, shut, case)
    raise in_the_way(shut[0].rule)


def _one_more(
    table: Table, done: list[Opening], rule: Rule, shut: list[Outcome], case: Case
) -> tuple[list[Opening], list[Outcome]]:
    """The first further opening that lets more through."""
    for one in _candidates(table, rule):
        before = next((old for old in done if (old.chain, old.zone) == (one.chain, one.zone)), None)
        if before is not None and before.at <= one.at:
            continue
        tried = [*(old for old in done if old is not before), one]
        left = _shut(_opened([table], tried, case), case)
        if _size(left) < _size(shut) or (left and left[0].rule != rule):
            return tried, left
    raise in_the_way(rule)


def _shut(tables: Sequence[Table], case: Case) -> list[Outcome]:
    return [one for one in case.outcomes(tables) if one.verdict == "closed"]


def _size(outcomes: Sequence[Outcome]) -> int:
    part: Region = ()
    for one in outcomes:
        part = regions.join(part, one.part)
    return sum((high - low + 1) * sum(b - a + 1 for a, b in addresses) for low, high, addresses in part)


# ---------------------------------------------------------------------- places


def _candidates(table: Table, rule: Rule) -> Iterator[Opening]:
    """Places at which an accept rule may get the peers past `rule`, the likeliest first."""
    chain = rule.where.split(" ", 2)[2]
    owner = owner_of(table)
    agent = next((name for start, name in _AGENTS if chain.startswith(start)), "")
    if agent:
        raise in_the_way(rule, Message(", which is {agent}'s: allow it there", agent=agent))
    if owner == "firewalld":
        yield from _zones(table, rule, chain)
    elif owner == "ufw" and _user_chains(table):
        for name in _user_chains(table):
            yield Opening(owner, table, name, len(table.chains[name].rules), rule)
    else:
        owner = "iptables" if owner == "ufw" else owner  # chains that ufw left behind when it was switched off
        for base in sorted(table.bases, key=lambda one: one.hook != "input"):
            at = _before(table, base, rule, chain)
            if at is not None and base.hook in ("input", "prerouting") and not base.nat and not base.opaque:
                yield Opening(owner, table, base.chain.name, at, rule)


def _user_chains(table: Table) -> list[str]:
    """The chains for ufw's own rules that packets still reach."""
    bases = {base.chain.name for base in table.bases}
    return [name for name in _USER_CHAINS if name in table.chains and bases & _leading_to(table, name)]


def _zones(table: Table, rule: Rule, chain: str) -> Iterator[Opening]:
    if table.family == "firewalld":  # told by `firewall-cmd --list-all`
        yield Opening("firewalld", table, table.name, len(table.chains[table.name].rules), rule, table.name)
        return
    names = [(found[1], name) for name in table.chains if (found := _ZONE.fullmatch(name))]
    for zone, name in sorted(names, key=lambda one: (f"IN_{one[0]}" not in chain, one[0])):
        yield Opening("firewalld", table, name, len(table.chains[name].rules), rule, zone)


def _before(table: Table, base: BaseChain, rule: Rule, chain: str) -> Optional[int]:
    """The number of the rule in a base chain that is, or leads to, the rule which closes; None when none does."""
    leading, rules = _leading_to(table, chain), base.chain.rules
    leads = (one == rule or (one.action in (JUMP, GOTO) and one.target in leading) for one in rules)
    at = next((number for number, hit in enumerate(leads) if hit), len(rules) if base.chain.name == chain else None)
    while at and rules[at - 1].action == NOTHING and rules[at - 1].changes is None:
        at -= 1  # the log of what is dropped
    return at


def _leading_to(table: Table, chain: str) -> set[str]:
    """The chain and every chain that jumps to it, directly or by others."""
    found, before = {chain}, 0
    while len(found) != before:
        before = len(found)
        for name, one in table.chains.items():
            if any(rule.action in (JUMP, GOTO) and rule.target in found for rule in one.rules):
                found.add(name)
    return found


def _opened(tables: Sequence[Table], found: Sequence[Opening], case: Case) -> list[Table]:
    """The tables as they would be with the openings."""
    return [_with_rules(table, [one for one in found if one.table is table], case) for table in tables]


def _with_rules(table: Table, found: Sequence[Opening], case: Case) -> Table:
    if not found:
        return table
    copy = Table(table.family, table.name)
    copy.foreign, copy.source, copy.chains, copy.bases = table.foreign, table.source, dict(table.chains), []
    for one in found:
        rules = list(table.chains[one.chain].rules)
        rules.insert(one.at, case.accept(f"{table.family} {table.name} {one.chain}"))
        copy.chains[one.chain] = Chain(one.chain, lambda rules=rules: rules)  # type: ignore[misc]
    copy.bases = [base._replace(chain=copy.chains[base.chain.name]) for base in table.bases]
    return copy
