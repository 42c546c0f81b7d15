"""The rule sets of a host, from the commands that list them; what they do not show is unknown, never open.

Read in this order, through `Host.run`:

1. `nft -j list ruleset`; `nft list ruleset` if the first is not recorded or this nft has no JSON output;
2. `iptables-save` (IPv6: `ip6tables-save`) if nft showed nothing, or shows rules that only iptables can express;
   `iptables -S` if that is not recorded;
   (`nft list ruleset` once more, for dormant tables, if a rule of nftables closes ports);
3. `iptables-legacy-save` (`ip6tables-legacy-save`) if the kernel lists tables in /proc/net/ip_tables_names;
4. only if none of these is recorded: `firewall-cmd --state` and `--list-all`, `ufw status verbose`. They can prove a
   port closed; they cannot prove it open, because other rule sets may exist.

firewall-cmd (a Python program, 300 ms) and ufw are never started: their rules appear in 1 to 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional, Sequence, Union

from envtune.errors import Denied, HostError, Missing, NotRecorded, host_error_text
from envtune.host import Host, exists
from envtune.host.json import parse_json
from envtune.messages import Message, Text
from envtune.model import CommandResult
from envtune.records import NamedTuple

if TYPE_CHECKING:
    from envtune.firewall import Table

NFT_JSON, NFT_TEXT = ("nft", "-j", "list", "ruleset"), ("nft", "list", "ruleset")
DEADLINE = 10.0  # seconds
_DENIED = ("not permitted", "permission denied", "must be root")
TOO_LARGE = Message("the rule set is too large to evaluate completely")


class Gap(NamedTuple):
    """Rules that may exist but were not read; `needs_privilege` if only a privilege is missing."""

    reason: Text
    source: str
    text: str = ""
    needs_privilege: bool = False


class RuleSets:
    """Every table that was read, and the gaps; `sources` are the commands and files that were read, with their text."""

    def __init__(self) -> None:
        self.tables: list[Table] = []
        self.gaps: list[Gap] = []
        self.sources: list[tuple[str, str]] = []
        self.listed = False  # a listing of rules was read, not only the absence of a program or a module


def rule_sets(host: Host, family: int) -> RuleSets:
    """Return what could be read about the packet filters of this host, for IPv4 (4) or IPv6 (6)."""
    sets = RuleSets()
    nft = _read_nft(host, family, sets)
    _read_iptables(host, family, sets, nft)
    if not sets.listed and not host.live:
        _read_front_ends(host, family, sets)
    return sets


def _read_front_ends(host: Host, family: int, sets: RuleSets) -> None:
    """Add what firewalld and ufw report about themselves if no listing is recorded: it may be incomplete."""
    from envtune.resources.firewall.frontends import frontend_tables

    for table in frontend_tables(host, family):
        sets.tables.append(table)
        reason = Message(
            "{family} is running, and the kernel's rules are not recorded: there may be rules other than its own",
            family=table.family,
        )
        sets.gaps.append(Gap(reason, table.source))


def _parse(command: str, text: str, family: int) -> list[Table]:
    """Return the tables of a listing; without any, as on most hosts, the parser is not even imported."""
    if command == " ".join(NFT_JSON) and '"chain"' not in text:  # no chain, no rule: it only has to be complete
        _check_is_json(text)
        return []
    if not text.strip() and not command.endswith("-S"):
        return []
    from envtune.firewall import parse

    return parse(command, text, family)


def _check_is_json(text: str) -> None:
    try:
        if not isinstance(parse_json(text)["nftables"], list):
            raise ValueError("no list of nftables")
    except (KeyError, TypeError) as error:
        raise ValueError(str(error)) from None


def _read_nft(host: Host, family: int, sets: RuleSets) -> bool:
    """Add nftables' rules; return whether they are known."""
    answer = _list_tables(host, NFT_JSON, family)
    if isinstance(answer, Gap):
        ask_for_text = not host.live or "JSON" in answer.text
    else:
        ask_for_text = _has_empty_set(answer[0].stdout)
    if ask_for_text:
        second = _list_tables(host, NFT_TEXT, family)
        answer = answer if isinstance(second, Gap) else second
    if not isinstance(answer, Gap):
        _add(sets, *answer)
        return True
    absence = _without_nft(host) if answer.reason is _MISSING else None
    if absence is not None:
        sets.sources.append(absence)
        return True
    reason = _NFT_MISSING if answer.reason is _MISSING else answer.reason
    sets.gaps.append(Gap(reason, answer.source, answer.text, answer.needs_privilege))
    return False


def _has_empty_set(text: str) -> bool:
    """Return whether a named set is empty: the JSON of nft 1.0.6 omits `dynamic`, the text has it."""
    if '"set": {"family"' not in text:
        return False
    items = parse_json(text)["nftables"]
    return any("family" in item["set"] and not item["set"].get("elem") for item in items if "set" in item)


_MISSING = Message("command not found")
_NFT_MISSING = Message("nft is not installed, so the kernel's nftables rules, if any, cannot be read")


def _without_nft(host: Host) -> Optional[tuple[str, str]]:
    """Return the file that shows that there are no nftables rules, and why: no netfilter, or no nf_tables."""
    path = "/proc/net/netfilter"
    try:
        if not exists(host, path):
            # Only where /proc/net itself can be seen: its absence from a bare recording proves nothing.
            return (path, "this kernel has no netfilter") if exists(host, "/proc/net/dev") else None
        path = "/proc/modules"
        loaded = {line.split(" ", 1)[0] for line in host.read(path).splitlines()}
        # What is built into the kernel is not among the loaded modules; kbuild lists it in a separate file.
        builtin = host.read(f"/lib/modules/{host.uname['release']}/modules.builtin").split()
    except HostError:
        return None
    if not loaded or not builtin or "nf_tables" in loaded or any(line.endswith("/nf_tables.ko") for line in builtin):
        return None
    return path, "nf_tables is not loaded, and not built into the kernel"


def remove_dormant(host: Host, sets: RuleSets) -> bool:
    """Remove the tables that are switched off (`flags dormant`), which nft 1.0.6 shows in text only.

    Return whether any was. Called only if a rule closes ports, because such tables are rare and the text takes another
    command.
    """
    if not any(" ".join(NFT_JSON) == table.source and table.bases for table in sets.tables):
        return False
    try:
        text = host.run(NFT_TEXT, timeout=DEADLINE).stdout
    except HostError:
        return False
    words = [line.split() for line in text.splitlines()]
    dormant = {
        (first[1], first[2])
        for first, second in zip(words, words[1:])
        if first[:1] == ["table"] and len(first) > 2 and second[:2] == ["flags", "dormant"]
    }
    before = len(sets.tables)
    sets.tables = [table for table in sets.tables if (table.family, table.name) not in dormant]
    return len(sets.tables) < before


def _read_iptables(host: Host, family: int, sets: RuleSets, nft: bool) -> None:
    """Add the rules of iptables, of either back end; `nft`: those of nftables are known."""
    if host.live and any(gap.needs_privilege for gap in sets.gaps):
        return  # the privilege is missing here, too
    prefix = "iptables" if family == 4 else "ip6tables"
    foreign = any(table.foreign for table in sets.tables)
    warned = False
    saved: Optional[CommandResult] = None
    if foreign or not nft or not host.live:
        answer = _list_tables(host, (f"{prefix}-save",), family)
        if isinstance(answer, Gap) and not host.live:
            second = _list_tables(host, (prefix, "-S"), family)
            if not isinstance(second, Gap):
                _add(sets, *second)  # of the filter table only
        if not isinstance(answer, Gap):
            saved, tables = answer
            warned = "legacy tables present" in saved.stdout + saved.stderr
            _add(sets, saved, _merge(sets, tables))
    _read_legacy(host, family, prefix, sets, saved is not None and not warned)


def _legacy_tables(host: Host, family: int) -> tuple[Optional[frozenset[str]], bool]:
    """Return the tables iptables-legacy has in the kernel, None if unknown; whether only a privilege is missing."""
    try:
        return frozenset(host.read(_names_file(family)).split()), False
    except Missing:
        return frozenset(), False
    except HostError as error:
        return None, isinstance(error, Denied)


def _names_file(family: int) -> str:
    return "/proc/net/ip_tables_names" if family == 4 else "/proc/net/ip6_tables_names"


def _read_legacy(host: Host, family: int, prefix: str, sets: RuleSets, saved: bool) -> None:
    """Add the legacy tables. `saved`: iptables-save answered, and did not warn that there are any."""
    names, denied = _legacy_tables(host, family)
    if host.live and names is not None and not names:
        sets.sources.append((_names_file(family), "(empty)"))
        return
    answer = _list_tables(host, (f"{prefix}-legacy-save",), family)
    if not isinstance(answer, Gap):
        _add(sets, *answer)
    elif names or (names is None and not saved):
        reason = answer.reason if answer.reason is not _MISSING else _LEGACY_MISSING
        if not (names and saved and names <= _saved_names(sets)):
            source = _names_file(family) if denied else answer.source
            sets.gaps.append(Gap(reason, source, answer.text, answer.needs_privilege or denied))


def _saved_names(sets: RuleSets) -> frozenset[str]:
    """Return the tables that iptables-save shows but nft does not: then it was the legacy one."""
    nft = {table.name for table in sets.tables if table.family in ("ip", "ip6")}
    return frozenset(table.name for table in sets.tables if table.family == "iptables") - nft


_LEGACY_MISSING = Message("iptables-legacy-save is missing, so the kernel's legacy tables, if any, cannot be read")


def _merge(sets: RuleSets, tables: Sequence[Table]) -> list[Table]:
    """Return the tables of iptables-save to add: for one also shown by nft, iptables' view if nft cannot express it."""
    kept = list(tables)
    for table in list(sets.tables):
        twin = next((saved for saved in tables if table.family in ("ip", "ip6") and _is_same(table, saved)), None)
        if twin is not None and table.foreign:
            sets.tables.remove(table)
        elif twin is not None:
            kept.remove(twin)
    return kept


def _is_same(shown: Table, saved: Table) -> bool:
    """Return whether name, chains and numbers of rules are the same; iptables-save adds empty built-in chains."""
    if shown.name != saved.name or not set(shown.chains) <= set(saved.chains):
        return False
    return all(
        len(chain.rules) == (len(shown.chains[name].rules) if name in shown.chains else 0)
        for name, chain in saved.chains.items()
    )


def _add(sets: RuleSets, result: CommandResult, tables: Sequence[Table]) -> None:
    for table in tables:
        table.source = result.line
    sets.tables += tables
    sets.sources.append((result.line, result.stdout))
    sets.listed = True


def _list_tables(host: Host, argv: Sequence[str], family: int) -> Union[tuple[CommandResult, list[Table]], Gap]:
    """Return the tables a command lists, or why it does not."""
    line = " ".join(argv)
    try:
        result = host.run(argv, timeout=DEADLINE)
    except (Missing, NotRecorded) as error:
        reason = _MISSING if isinstance(error, Missing) else host_error_text(error)
        return Gap(reason, line, str(error))
    except HostError as error:
        return Gap(host_error_text(error), line, str(error), isinstance(error, Denied))
    if result.returncode != 0:
        said = result.stderr.strip() or result.stdout.strip()
        needs_privilege = host.euid != 0 or any(word in said.lower() for word in _DENIED)
        return Gap(_failed(line, said, needs_privilege), line, said, needs_privilege)
    try:
        return result, _parse(line, result.stdout, family)
    except ValueError as error:  # ListingError or a plain ValueError
        reason = Message("the output of `{line}` is not a complete rule set", line=line)
        return Gap(reason, line, str(error))


def _failed(line: str, said: str, needs_privilege: bool) -> Text:
    if needs_privilege:
        return Message("`{line}` needs root", line=line)
    first = said.partition("\n")[0] or "no message"
    return Message("`{line}` failed: {first}", line=line, first=first)
