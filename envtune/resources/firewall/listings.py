"""The rule sets of a host, from the commands that tell them; what they cannot tell is a gap, never an open door.

Read in this order, through `Host.run`:

1. `nft -j list ruleset`; `nft list ruleset` where the first is not recorded or this nft writes no JSON;
2. `iptables-save` (IPv6: `ip6tables-save`) where nft told nothing, or where nft shows rules in iptables' own words;
   `iptables -S` where it is not recorded;
   (`nft list ruleset` once more, for dormant tables, where a rule of nftables stands in the way);
3. `iptables-legacy-save` (`ip6tables-legacy-save`) where the kernel lists tables in /proc/net/ip_tables_names;
4. only where none of these is recorded: `firewall-cmd --state` and `--list-all`, `ufw status verbose`. They can prove a
   port closed; they cannot prove it open, because other rule sets may exist.

firewall-cmd (a Python program, 300 ms) and ufw are never started: what they set ends in 1 to 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, NamedTuple, Optional, Sequence, Union

from envtune.errors import Denied, HostError, Missing, NotRecorded, host_error_text
from envtune.host import Host, exists
from envtune.messages import Message, Text
from envtune.model import CommandResult

if TYPE_CHECKING:
    from envtune.resources.firewall.model import Table

NFT_JSON, NFT_TEXT = ("nft", "-j", "list", "ruleset"), ("nft", "list", "ruleset")
DEADLINE = 10.0  # seconds
_NO_RIGHT = ("not permitted", "permission denied", "must be root")

Parse = Callable[[str, int], "list[Table]"]


class Gap(NamedTuple):
    """Rules that may exist and were not read; `needs_privilege` when only a privilege is missing."""

    reason: Text
    source: str
    text: str = ""
    needs_privilege: bool = False


class RuleSets:
    """Every table that was read, and the gaps. `told` are the commands and files that said so."""

    def __init__(self) -> None:
        self.tables: list[Table] = []
        self.gaps: list[Gap] = []
        self.told: list[tuple[str, str]] = []
        self.listed = False  # a listing of rules was read, not only the absence of a program or a module


def rule_sets(host: Host, family: int) -> RuleSets:
    """What could be read about the packet filters of this host, for IPv4 (4) or IPv6 (6)."""
    found = RuleSets()
    nft = _nft(host, family, found)
    _iptables(host, family, found, nft)
    if not found.listed and not host.live:
        _front_ends(host, family, found)
    return found


def _front_ends(host: Host, family: int, found: RuleSets) -> None:
    """What firewalld and ufw say of themselves, where no listing is recorded: it is not all there may be."""
    from envtune.resources.firewall.frontends import frontend_tables

    for table in frontend_tables(host, family):
        found.tables.append(table)
        reason = Message(
            "{family} runs, and the kernel's own rules are not recorded: others may stand beside its settings",
            family=table.family,
        )
        found.gaps.append(Gap(reason, table.source))


# The parsers are imported when there is something to parse: most hosts have no rules at all.


def _nft_json(text: str, family: int) -> list[Table]:
    if '"chain"' not in text:  # no chain, no rule: it only has to be whole
        return _no_chain(text)
    from envtune.resources.firewall.nft.json import parse_json

    return parse_json(text, family)


def _no_chain(text: str) -> list[Table]:
    import json

    try:
        if isinstance(json.loads(text)["nftables"], list):
            return []
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(str(error)) from None
    raise ValueError("no list of nftables")


def _nft_text(text: str, family: int) -> list[Table]:
    if not text.strip():
        return []
    from envtune.resources.firewall.nft.text import parse_text

    return parse_text(text, family)


def _save(text: str, family: int) -> list[Table]:
    if not text.strip():
        return []
    from envtune.resources.firewall.iptables.save import parse_save

    return parse_save(text, family)


def _listing(text: str, family: int) -> list[Table]:
    from envtune.resources.firewall.iptables.save import parse_listing

    return parse_listing(text, family)


def _nft(host: Host, family: int, found: RuleSets) -> bool:
    """Whether nftables' rules are known."""
    answer = _ask(host, NFT_JSON, family, _nft_json)
    if isinstance(answer, Gap) and (not host.live or "JSON" in answer.text):
        second = _ask(host, NFT_TEXT, family, _nft_text)
        answer = answer if isinstance(second, Gap) else second
    if not isinstance(answer, Gap):
        _take(found, *answer)
        return True
    known = _without_nft(host) if answer.reason is MISSING else None
    if known is not None:
        found.told.append(known)
        return True
    reason = _NFT_MISSING if answer.reason is MISSING else answer.reason
    found.gaps.append(Gap(reason, answer.source, answer.text, answer.needs_privilege))
    return False


MISSING = Message("command not found")
_NFT_MISSING = Message("nft is not installed, so the kernel's nftables rules, if there are any, cannot be read")


def _without_nft(host: Host) -> Optional[tuple[str, str]]:
    """The file that shows that there are no nftables rules: no netfilter, or nf_tables neither loaded nor built in."""
    path = "/proc/net/netfilter"
    try:
        if not exists(host, path):
            # Only where /proc/net itself can be seen: its absence from a bare recording proves nothing.
            return (path, "this kernel has no netfilter") if exists(host, "/proc/net/dev") else None
        path = "/proc/modules"
        loaded = {line.split(" ", 1)[0] for line in host.read(path).splitlines()}
        # What is part of the kernel itself is not among the loaded modules; kbuild lists it in a file of its own.
        inside = host.read(f"/lib/modules/{host.uname['release']}/modules.builtin").split()
    except HostError:
        return None
    if not loaded or not inside or "nf_tables" in loaded or any(line.endswith("/nf_tables.ko") for line in inside):
        return None
    return path, "nf_tables is not loaded, and not built into the kernel"


def without_dormant(host: Host, found: RuleSets) -> bool:
    """Take out the tables that are switched off (`flags dormant`), which nft 1.0.6 shows in text only; whether any was.

    Asked only where a rule stands in the way, because such tables are rare and the text costs a command more.
    """
    if not any(" ".join(NFT_JSON) == table.source and table.bases for table in found.tables):
        return False
    try:
        text = host.run(NFT_TEXT, timeout=DEADLINE).stdout
    except HostError:
        return False
    words = [line.split() for line in text.splitlines()]
    asleep = {
        (first[1], first[2])
        for first, second in zip(words, words[1:])
        if first[:1] == ["table"] and len(first) > 2 and second[:2] == ["flags", "dormant"]
    }
    before = len(found.tables)
    found.tables = [table for table in found.tables if (table.family, table.name) not in asleep]
    return len(found.tables) < before


def _iptables(host: Host, family: int, found: RuleSets, nft: bool) -> None:
    if host.live and any(gap.needs_privilege for gap in found.gaps):
        return  # the missing privilege is missing here, too
    prefix = "iptables" if family == 4 else "ip6tables"
    foreign = any(table.foreign for table in found.tables)
    warned = False
    saved: Optional[CommandResult] = None
    if foreign or not nft or not host.live:
        answer = _ask(host, (f"{prefix}-save",), family, _save)
        if isinstance(answer, Gap) and not host.live:
            second = _ask(host, (prefix, "-S"), family, _listing)
            if not isinstance(second, Gap):
                _take(found, *second)  # of the filter table only
        if not isinstance(answer, Gap):
            saved, tables = answer
            warned = "legacy tables present" in saved.stdout + saved.stderr
            _take(found, saved, _merge(found, tables))
    _legacy(host, family, prefix, found, saved is not None and not warned)


def _legacy_tables(host: Host, family: int) -> tuple[Optional[frozenset[str]], bool]:
    """The tables iptables-legacy has in the kernel, None when it cannot be told; whether only a right is missing."""
    try:
        return frozenset(host.read(_names_file(family)).split()), False
    except Missing:
        return frozenset(), False
    except HostError as error:
        return None, isinstance(error, Denied)


def _names_file(family: int) -> str:
    return "/proc/net/ip_tables_names" if family == 4 else "/proc/net/ip6_tables_names"


def _legacy(host: Host, family: int, prefix: str, found: RuleSets, saved: bool) -> None:
    """The legacy tables. `saved`: iptables-save answered, and did not warn that there are any."""
    names, denied = _legacy_tables(host, family)
    if host.live and names is not None and not names:
        found.told.append((_names_file(family), "(empty)"))
        return
    answer = _ask(host, (f"{prefix}-legacy-save",), family, _save)
    if not isinstance(answer, Gap):
        _take(found, *answer)
    elif names or (names is None and not saved):
        reason = answer.reason if answer.reason is not MISSING else _LEGACY_MISSING
        if not (names and saved and names <= _saved_names(found)):
            source = _names_file(family) if denied else answer.source
            found.gaps.append(Gap(reason, source, answer.text, answer.needs_privilege or denied))


def _saved_names(found: RuleSets) -> frozenset[str]:
    """The tables that iptables-save told and nft does not know: it was the legacy one that answered."""
    nft = {table.name for table in found.tables if table.family in ("ip", "ip6")}
    return frozenset(table.name for table in found.tables if table.family == "iptables") - nft


_LEGACY_MISSING = Message(
    "iptables-legacy-save is not there, so the legacy tables of the kernel, if there are any, cannot be read"
)


def _merge(found: RuleSets, tables: Sequence[Table]) -> list[Table]:
    """Of a table that both nft and iptables-save show, keep one view: iptables' where nft lacks the words for it."""
    kept = list(tables)
    for table in list(found.tables):
        twin = next((one for one in tables if table.family in ("ip", "ip6") and _twins(table, one)), None)
        if twin is not None and table.foreign:
            found.tables.remove(table)
        elif twin is not None:
            kept.remove(twin)
    return kept


def _twins(shown: Table, saved: Table) -> bool:
    """One table seen twice: the same name, chains and numbers of rules. (iptables-save adds empty built-in chains.)"""
    if shown.name != saved.name or not set(shown.chains) <= set(saved.chains):
        return False
    return all(
        len(chain.rules) == (len(shown.chains[name].rules) if name in shown.chains else 0)
        for name, chain in saved.chains.items()
    )


def _take(found: RuleSets, result: CommandResult, tables: Sequence[Table]) -> None:
    for table in tables:
        table.source = result.line
    found.tables += tables
    found.told.append((result.line, result.stdout))
    found.listed = True


def _ask(host: Host, argv: Sequence[str], family: int, parse: Parse) -> Union[tuple[CommandResult, list[Table]], Gap]:
    """The tables a command tells, or why it does not."""
    line = " ".join(argv)
    try:
        result = host.run(argv, timeout=DEADLINE)
    except (Missing, NotRecorded) as error:
        reason = MISSING if isinstance(error, Missing) else host_error_text(error)
        return Gap(reason, line, str(error))
    except HostError as error:
        return Gap(host_error_text(error), line, str(error), isinstance(error, Denied))
    if result.returncode != 0:
        said = result.stderr.strip() or result.stdout.strip()
        needs_privilege = host.euid != 0 or any(word in said.lower() for word in _NO_RIGHT)
        return Gap(_failed(line, said, needs_privilege), line, said, needs_privilege)
    try:
        return result, parse(result.stdout, family)
    except ValueError as error:  # Malformed, or nothing of the kind
        reason = Message("the output of `{line}` is not a whole rule set", line=line)
        return Gap(reason, line, str(error))


def _failed(line: str, said: str, needs_privilege: bool) -> Text:
    if needs_privilege:
        return Message("`{line}` needs root", line=line)
    first = said.partition("\n")[0] or "no message"
    return Message("`{line}` failed: {first}", line=line, first=first)
