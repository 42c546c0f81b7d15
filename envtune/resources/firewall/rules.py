"""Writes accept rules in the syntax of every tool: for the operations of a fix and for lines that people type.

A rule names the peers and the ports and nothing broader. Sources: nft(8), iptables(8), iptables-extensions(8) (15 ports
a multiport), ufw(8), firewall-cmd(1), firewalld.richlanguage(5).
"""

from __future__ import annotations

import re
from shlex import quote
from typing import TYPE_CHECKING, Iterator, NamedTuple, Optional, Sequence

from envtune.commandline import WithheldError, require_word
from envtune.intervals import Intervals
from envtune.model import Command

if TYPE_CHECKING:
    from envtune.firewall import Rule, Table

MULTIPORT = 15  # ports one rule of iptables or ufw may name; a range counts as two
WIDEST = 8  # prefix length of the widest network that can still be a cluster's
_MOST = 8  # peers that get their own command
_ZONE_CHAIN = re.compile(r"(?:filter_)?IN_(?!policy_)(.+?)(?:_(?:pre|log|deny|allow|post))?")


class AcceptRule(NamedTuple):
    """New TCP connections from `sources` (addresses and networks of one family) to `ports` are accepted."""

    ports: Intervals
    sources: Sequence[str]
    family: int
    comment: str = ""  # an id by which the rule is found again, if the tool has comments


def port_spans(ports: Intervals, dash: str, separator: str = ",") -> str:
    """Return ports in the tools' format: `29688,60000-60031`."""
    return separator.join(str(low) if low == high else f"{low}{dash}{high}" for low, high in ports)


def port_groups(ports: Intervals) -> Iterator[Intervals]:
    """Yield the ports in the fewest groups that a multiport match accepts."""
    group: list[tuple[int, int]] = []
    for pair in ports:
        if sum(1 if low == high else 2 for low, high in [*group, pair]) > MULTIPORT:
            yield tuple(group)
            group = []
        group.append(pair)
    if group:
        yield tuple(group)


# ---------------------------------------------------------------------- the rule in the words of each tool


def rich_rules(rule: AcceptRule) -> list[str]:
    """Return the rule as rich rules of firewalld."""
    return [
        f'rule family="ipv{rule.family}" source address="{source}" '
        f'port port="{port_spans((pair,), "-")}" protocol="tcp" accept'
        for source in rule.sources
        for pair in rule.ports
    ]


def rich_rule_command(zone: str, verb: str, rich_rule: str, permanent: bool) -> list[str]:
    """Return the command that adds, removes or queries (`verb`) a rich rule; an empty zone is the default one."""
    mode, where = ["--permanent"] * permanent, [f"--zone={zone}"] if zone else []
    return ["firewall-cmd", *mode, *where, f"--{verb}-rich-rule={rich_rule}"]


def ufw_rules(rule: AcceptRule) -> list[list[str]]:
    """Return what follows `ufw allow` and `ufw delete allow`; the caller adds the comment."""
    return [
        ["proto", "tcp", "from", source, "to", "any", "port", port_spans(group, ":")]
        for source in rule.sources
        for group in port_groups(rule.ports)
    ]


def nft_rule(rule: AcceptRule) -> list[str]:
    """Return one rule of nft, with sets if there are several addresses or ports."""
    source = _one_or_set(", ".join(rule.sources), len(rule.sources))
    ports = _one_or_set(port_spans(rule.ports, "-", ", "), len(rule.ports))
    comment = ["comment", f'"{rule.comment}"'] if rule.comment else []
    return ["ip" if rule.family == 4 else "ip6", "saddr", source, "tcp", "dport", ports, "accept", *comment]


def _one_or_set(words: str, count: int) -> str:
    return words if count == 1 else "{ " + words + " }"


def iptables_rules(rule: AcceptRule) -> list[list[str]]:
    """Return what follows the chain in a command of iptables."""
    comment = ["-m", "comment", "--comment", rule.comment] if rule.comment else []
    return [
        ["-p", "tcp", "-s", source, "-m", "multiport", "--dports", port_spans(group, ":"), *comment, "-j", "ACCEPT"]
        for source in rule.sources
        for group in port_groups(rule.ports)
    ]


def iptables_command(program: str, table: str, *arguments: str, wait: bool = True) -> list[str]:
    """Return a command on a table of iptables; with `wait` it waits for another process that holds the lock."""
    return [program, *(["-w"] if wait else []), *([] if table == "filter" else ["-t", table]), *arguments]


# ---------------------------------------------------------------------- lines to type


def lines_to_type(
    tables: Sequence[Table], closing: Optional[Rule], front_end: str, rule: AcceptRule
) -> tuple[Command, ...]:
    """Return what to type for the rule; nothing if the rule that closes the ports is not on the input path.

    Names of tables, chains and zones are words in the tools' own syntax: one that needs quoting is not used.

    `front_end` is firewalld or ufw if it created the rules. firewalld gets the rule twice, for runtime and permanent,
    without a reload, which would drop other programs' rules. Plain rule sets get it at the head of the chain that drops
    the packets: an accept in another table would not undo a drop.
    """
    table = table_of(tables, closing)
    if table is None or closing is None:
        return ()
    chain = closing.where.split(" ", 2)[2]
    if any(base.chain.name == chain and base.hook not in ("input", "prerouting") for base in table.bases):
        return ()
    if not 0 < len(rule.sources) <= _MOST:  # whom to let in is unknown, or would not fit on a line
        return ()
    try:
        lines = (" ".join(["sudo", *map(_quoted, argv)]) for argv in _commands(table, chain, front_end, rule))
        return tuple(Command("fix", line) for line in lines)
    except WithheldError as error:
        return (Command("fix", error.reason),)


def _commands(table: Table, chain: str, front_end: str, rule: AcceptRule) -> Iterator[list[str]]:
    if front_end == "firewalld":
        zone = table.name if table.family == "firewalld" else zone_of(chain)
        zone = zone and require_word(zone)
        for rich_rule in rich_rules(rule):
            yield from (rich_rule_command(zone, "add", rich_rule, permanent) for permanent in (False, True))
    elif front_end == "ufw":
        yield from (["ufw", "allow", *words] for words in ufw_rules(rule))
    elif table.family == "iptables":
        program = table.source.replace("-save", "").split(" ")[0]
        for words in iptables_rules(rule._replace(sources=(",".join(rule.sources),))):
            names = map(require_word, (program, table.name, chain))
            yield iptables_command(next(names), next(names), "-I", next(names), *words, wait=False)
    else:
        yield ["nft", "insert", "rule", *map(require_word, (table.family, table.name, chain)), *nft_rule(rule)]


def _quoted(word: str) -> str:
    """Return a word for the shell, with the value of an option quoted separately."""
    option, equals, value = word.partition("=")
    if equals and option.startswith("--"):
        return f"{option}={_quoted(value)}"
    return quote(word)


def table_of(tables: Sequence[Table], rule: Optional[Rule]) -> Optional[Table]:
    """Return the table that a rule is in."""
    if rule is None:
        return None
    return next((table for table in tables if rule.where.startswith(f"{table.family} {table.name} ")), None)


def zone_of(chain: str) -> str:
    """Return the zone that a chain of firewalld belongs to; empty for other chains."""
    zone = _ZONE_CHAIN.fullmatch(chain)
    return zone[1] if zone is not None else ""
