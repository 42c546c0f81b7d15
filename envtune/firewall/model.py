"""A rule set as data, whichever tool wrote it: tables of chains of rules, and the chains called by the kernel."""

from __future__ import annotations

from typing import Callable, NamedTuple, Optional, Sequence

from envtune.firewall.match import Condition, Packet


class Action:
    """What a rule does to a packet that matches its conditions."""

    ACCEPT = "accept"  # ends this base chain
    DROP = "drop"  # final; reject too
    RETURN = "return"
    JUMP = "jump"
    GOTO = "goto"
    CONTINUE = "continue"  # counts, logs, marks
    DIVERTED = "diverted"  # redirected, or passed to a program: the rules do not decide whether a connection works
    UNKNOWN = "unknown"  # not modeled


class ListingError(ValueError):
    """The text is not a complete listing of rules in the command's format."""


class Rule(NamedTuple):
    """One rule: if all conditions hold, the action. `text` is the rule as a person would type it."""

    text: str
    where: str  # "inet filter input": family, table, chain
    conditions: tuple[Condition, ...] = ()
    action: str = Action.CONTINUE
    target: str = ""  # of jump and goto
    changes: Optional[Callable[[Packet], Packet]] = None  # what later rules can test: mark, notrack
    handle: int = 0  # nftables' number of the rule; 0 if the listing does not show it


class Chain:
    """A chain; `load` compiles its rules when a packet first reaches it."""

    def __init__(self, name: str, load: Callable[[], Sequence[Rule]]) -> None:
        self.name = name
        self._load = load
        self._rules: Optional[Sequence[Rule]] = None

    @property
    def rules(self) -> Sequence[Rule]:
        """The rules in order."""
        if self._rules is None:
            self._rules = tuple(self._load())
        return self._rules


class BaseChain(NamedTuple):
    """Where packets enter a table: `hook` is prerouting, input, output, postrouting, ingress or egress."""

    chain: Chain
    hook: str
    priority: int
    policy: str  # accept | drop
    where: str
    nat: bool = False  # sees only the first packet of a connection
    opaque: bool = False  # of a family or hook for packets that are not modeled: arp, bridge, netdev, ingress


class Table:
    """The chains of one table; jumps stay inside it."""

    def __init__(self, family: str, name: str) -> None:
        self.family = family
        self.name = name
        self.chains: dict[str, Chain] = {}
        self.bases: list[BaseChain] = []
        self.foreign = False  # shown by nft, but written by iptables in terms only iptables understands
        self.source = ""  # the command whose output this is; set by the caller


_BUILT_IN = frozenset({"filter", "nat", "mangle", "raw", "security"})


def owner_of(table: Table) -> str:
    """Return whose rules these are, by the chains and tables each tool makes: firewalld, ufw, iptables or nftables."""
    if table.name == "firewalld" or table.family == "firewalld" or "INPUT_ZONES" in table.chains:
        return "firewalld"
    if table.family == "ufw" or any(name.startswith(("ufw-", "ufw6-")) for name in table.chains):
        return "ufw"
    if table.family == "iptables" or (table.family in ("ip", "ip6") and table.name in _BUILT_IN and _is_upper(table)):
        return "iptables"
    return "nftables"


def _is_upper(table: Table) -> bool:
    """Return whether the base chains are named INPUT, OUTPUT, ... as by iptables-nft; users of nft choose others."""
    return bool(table.bases) and all(base.chain.name.isupper() for base in table.bases)
