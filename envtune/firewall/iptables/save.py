"""iptables: the text of `iptables-save` (either back end) and of `iptables -S` as tables of rules.

Both print rules as the command line that created them. Source: iptables(8), iptables-extensions(8).
"""

from __future__ import annotations

from typing import Callable, Optional, Sequence

from envtune.firewall.iptables.options import conditions_of
from envtune.firewall.match import Packet, unknown
from envtune.firewall.model import Action, BaseChain, Chain, ListingError, Rule, Table

LONGEST_RULE = 1 << 16  # characters; a comment has 256, and shlex is quadratic in the length of a word
HOOKS = {name.upper(): name for name in ("prerouting", "input", "forward", "output", "postrouting")}
# The priority at which each table's chains are called; for nat it differs before and after routing.
PRIORITIES = {"raw": -300, "mangle": -150, "nat": -100, "filter": 0, "security": 50}
TARGETS = {
    "ACCEPT": Action.ACCEPT,
    "DROP": Action.DROP,
    "REJECT": Action.DROP,
    "RETURN": Action.RETURN,
    **dict.fromkeys(("MASQUERADE", "SNAT"), Action.ACCEPT),
    **dict.fromkeys(("DNAT", "REDIRECT", "NETMAP", "TPROXY", "SYNPROXY"), Action.DIVERTED),
    **dict.fromkeys(("NFQUEUE", "QUEUE", "TARPIT"), Action.DIVERTED),
}
# Targets after which the packet continues to the next rule.
PASSING = frozenset(
    {
        *("LOG", "NFLOG", "ULOG", "AUDIT", "TRACE", "LED", "SET", "TEE", "RATEEST", "IDLETIMER", "CHECKSUM"),
        *("CT", "NOTRACK", "MARK", "CONNMARK", "HMARK", "SECMARK", "CONNSECMARK"),
        *("TOS", "DSCP", "ECN", "TTL", "HL", "TCPMSS", "TCPOPTSTRIP", "CLASSIFY"),
    }
)


def parse_save(text: str, family: int) -> list[Table]:
    """Return the tables of `iptables-save`; raises ListingError if a table lacks COMMIT (truncated text)."""
    tables: list[Table] = []
    lines: dict[str, list[str]] = {}
    table: Optional[Table] = None
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("*"):
            if table is not None:
                raise ListingError(f"table {table.name} has no COMMIT")
            table, lines = Table("iptables", line[1:].strip()), {}
        elif not line or line.startswith("#"):
            continue
        elif table is None:
            raise ListingError(line)
        elif line == "COMMIT":
            tables.append(table)
            table = None
        else:
            _line(table, line, lines, family)
    if table is not None:
        raise ListingError(f"table {table.name} has no COMMIT")
    return tables


def parse_listing(text: str, family: int) -> list[Table]:
    """Return the filter table of `iptables -S`; raises ListingError if it is not one."""
    table = Table("iptables", "filter")
    lines: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            _line(table, line.strip(), lines, family)
    if not table.bases:
        raise ListingError("no policy of a chain")
    return [table]


def _line(table: Table, line: str, lines: dict[str, list[str]], family: int) -> None:
    """Read `:INPUT DROP [0:0]`, `-P INPUT DROP`, `-N chain` or `-A chain ...`."""
    if line.startswith("["):  # iptables-save -c writes the counters first
        line = line.partition("] ")[2]
    words = line.split(None, 2)
    if not words:
        raise ListingError(line)
    if line.startswith(":") and len(words) >= 2:
        _chain(table, words[0][1:], words[1], lines, family)
    elif words[0] == "-P" and len(words) == 3:
        _chain(table, words[1], words[2].split()[0], lines, family)
    elif words[0] == "-N" and len(words) == 2:
        _chain(table, words[1], "-", lines, family)
    elif words[0] == "-A" and len(words) >= 2:
        if words[1] not in table.chains:
            raise ListingError(line)
        lines[words[1]].append(line)
    else:
        raise ListingError(line)


def _chain(table: Table, name: str, policy: str, lines: dict[str, list[str]], family: int) -> None:
    inside = lines.setdefault(name, [])
    where = f"{table.family} {table.name} {name}"
    chain = table.chains[name] = Chain(name, lambda: [compile_rule(line, where, table, family) for line in inside])
    if policy != "-" and name in HOOKS:
        priority = PRIORITIES.get(table.name, 0)
        if table.name == "nat" and name in ("INPUT", "POSTROUTING"):
            priority = 100
        base = BaseChain(chain, HOOKS[name], priority, policy.lower(), where, nat=table.name == "nat")
        table.bases.append(base)


def compile_rule(line: str, where: str, table: Table, family: int) -> Rule:
    """Return the rule of an `-A` line; what is not understood becomes a condition that may match."""
    try:
        words = split_words(line)[2:]
    except ValueError:
        return Rule(line, where, (unknown,), Action.UNKNOWN)
    flag = next((word for word in words if word in ("-j", "--jump", "-g", "--goto")), "")
    at = words.index(flag) if flag else len(words)
    conditions = conditions_of(words[:at], family)
    target = words[at + 1] if flag and at + 1 < len(words) else ""
    options = words[at + 2 :]
    if target in table.chains:
        return Rule(line, where, conditions, Action.GOTO if flag in ("-g", "--goto") else Action.JUMP, target)
    if target in PASSING or not target:
        return Rule(line, where, conditions, Action.CONTINUE, "", _changes(target, options))
    return Rule(line, where, conditions, TARGETS.get(target, Action.UNKNOWN))


def split_words(line: str) -> list[str]:
    """Return the words of a saved rule; values with blanks are in double quotes. ValueError if unclosed."""
    if len(line) > LONGEST_RULE:
        raise ValueError(f"a rule of {len(line)} characters")
    if '"' not in line and "'" not in line:
        return line.split()
    import shlex

    return shlex.split(line)


def _changes(target: str, options: Sequence[str]) -> Optional[Callable[[Packet], Packet]]:
    """Return what a non-terminating target changes for later rules."""
    if target == "NOTRACK" or (target == "CT" and "--notrack" in options):
        return lambda packet: packet._replace(state="untracked")
    if target == "HMARK":
        return lambda packet: packet._replace(mark=None)
    if target == "MARK":
        return _marked(options)
    if target == "CONNMARK":
        if "--restore-mark" in options:
            return lambda packet: packet._replace(
                mark=packet.mark if packet.connection_mark == packet.mark == 0 else None
            )
        return lambda packet: packet._replace(
            connection_mark=0 if "--save-mark" in options and packet.mark == 0 else None
        )
    return None


def _marked(options: Sequence[str]) -> Callable[[Packet], Packet]:
    try:
        low, high = (int(part, 0) for part in (options[1] + "/0xffffffff").split("/")[:2])
    except (ValueError, IndexError):
        return lambda packet: packet._replace(mark=None)
    rules: dict[str, Callable[[int], int]] = {
        "--set-xmark": lambda mark: (mark & ~high) ^ low,
        "--set-mark": lambda mark: (mark & ~(high | low)) | low,
        "--or-mark": lambda mark: mark | low,
        "--and-mark": lambda mark: mark & low,
        "--xor-mark": lambda mark: mark ^ low,
    }
    rule = rules.get(options[0])
    return lambda packet: packet._replace(mark=None if rule is None or packet.mark is None else rule(packet.mark))
