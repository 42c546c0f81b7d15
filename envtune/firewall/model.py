"""A rule set as data, whoever wrote it: tables of chains of rules, and the chains the kernel itself calls."""

from __future__ import annotations

from typing import Callable, NamedTuple, Optional, Sequence

from envtune.firewall.match import Condition, Packet


class Action:
    """What a rule does to a packet that meets its conditions."""

    ACCEPT = "accept"  # ends this base chain
    DROP = "drop"  # final; reject too
    RETURN = "return"
    JUMP = "jump"
    GOTO = "goto"
    CONTINUE = "continue"  # counts, logs, marks
    DIVERTED = "diverted"  # redirected, or handed to a program: whether a connection works is not for the rules to say
    UNKNOWN = "unknown"  # not followed


class ListingError(ValueError):
    """The text is not a whole listing of rules as the command writes it."""


class Rule(NamedTuple):
    """One rule: when all conditions hold, the action. `text` is the rule as a person would type it."""

    text: str
    where: str  # "inet filter input": family, table, chain
    conditions: tuple[Condition, ...] = ()
    action: str = Action.CONTINUE
    target: str = ""  # of jump and goto
    changes: Optional[Callable[[Packet], Packet]] = None  # what later rules can ask for: mark, notrack
    handle: int = 0  # nftables' number of the rule; 0 where the listing does not show it


class Chain:
    """A chain; `load` compiles its rules when a packet first gets here."""

    def __init__(self, name: str, load: Callable[[], Sequence[Rule]]) -> None:
        self.name = name
        self._load = load
        self._rules: Optional[Sequence[Rule]] = None

    @property
    def rules(self) -> Sequence[Rule]:
        """The rules in their order."""
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
    opaque: bool = False  # of a family or hook that sees other packets than ours: arp, bridge, netdev, ingress


class Table:
    """The chains of one table; jumps stay inside it."""

    def __init__(self, family: str, name: str) -> None:
        self.family = family
        self.name = name
        self.chains: dict[str, Chain] = {}
        self.bases: list[BaseChain] = []
        self.foreign = False  # nftables shows it, iptables wrote it, in words only iptables knows
        self.source = ""  # the command whose output this is; the caller's to set


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
    """Return whether the base chains are called INPUT, OUTPUT, ... as iptables on nftables does; nft's users do not."""
    return bool(table.bases) and all(base.chain.name.isupper() for base in table.bases)
