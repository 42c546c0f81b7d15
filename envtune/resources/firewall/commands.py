"""An opening as a change: the commands of the tool that owns the rules, how to check their effect, and the undo.

Each rule has its own id (in a comment, if the tool has comments), so that undo removes exactly this rule. firewalld
gets it in both views and is never reloaded. rules.py writes the rules.
"""

from __future__ import annotations

import re
from typing import Any, Mapping, Optional, Sequence

from envtune.errors import HostError, Missing, Skipped
from envtune.executor.files import digest
from envtune.host import Host, exists
from envtune.messages import Message, Text
from envtune.model import Change
from envtune.resources.firewall.placement import Opening
from envtune.resources.firewall.precondition import chain_precondition
from envtune.resources.firewall.rules import (
    AcceptRule,
    iptables_command,
    iptables_rules,
    nft_rule,
    port_spans,
    rich_rule_command,
    rich_rules,
    ufw_rules,
)

Operation = Mapping[str, Any]
_UFW_FILES = ["/etc/ufw/user.rules", "/etc/ufw/user6.rules"]
# System programs, independent of the caller's PATH.
PATH = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
# What restores the administrator's own rules at boot, by tool.
_BOOT_FILES = {
    "nftables": ("/etc/nftables.conf", "/etc/sysconfig/nftables.conf"),
    "iptables": ("/etc/iptables/rules.v4", "/etc/sysconfig/iptables", "/etc/iptables.rules"),
    "ip6tables": ("/etc/iptables/rules.v6", "/etc/sysconfig/ip6tables", "/etc/ip6tables.rules"),
}


def changes_of(host: Host, opening: Opening, rule: AcceptRule, listing: str) -> list[Change]:
    """Return the changes that insert the rule into an opening, one for each scope that is written.

    `listing` is the text that shows the table. The action fills in the check, its subject and the playbook. Raises
    Skipped if the tool that owns the rules is missing or not running.
    """
    if opening.owner == "firewalld":
        return _firewalld(host, opening, rule)
    if opening.owner == "ufw":
        return [_ufw(rule)]
    by_tool = _iptables if opening.owner == "iptables" else _nftables
    return [by_tool(host, opening, rule, listing)]


def _with_id(rule: AcceptRule, where: str) -> AcceptRule:
    """Return the rule with its id for that place: equal for equal ports and peers, so that it is added only once."""
    content = f"{where} {rule.family} {','.join(rule.sources)} {port_spans(rule.ports, '-')}"
    return rule._replace(comment="envtune:" + digest(content.encode()).partition(":")[2][:12])


def _run(
    argv: Sequence[str], check: Mapping[str, Any], undo: Mapping[str, Any], precondition: Optional[Operation] = None
) -> Operation:
    operation = {"op": "run", "argv": list(argv), "check": check, "undo": undo, "env": PATH}
    return operation if precondition is None else {**operation, "given": precondition}


def _change(
    target: str,
    rules: Sequence[str],
    operations: Sequence[Operation],
    note: Text,
    scope: str = "live",
    following: str = "",
    other_owners: tuple[Text, ...] = (),
) -> Change:
    """Return a change; `following` is the rule before which the new ones are inserted."""
    return Change(
        finding="",
        subject="",
        playbook="",
        action="firewall.allow",
        target=target,
        before=following,
        after="\n".join([*rules, *([following] if following else [])]),
        scope=scope,
        operations=tuple(operations),
        safety="confirm",
        note=note,
        other_owners=other_owners,
    )


# ---------------------------------------------------------------------- firewalld


def _firewalld(host: Host, opening: Opening, rule: AcceptRule) -> list[Change]:
    """Return the same rich rules for runtime and permanent; no reload, so other programs' rules are kept."""
    _check_firewalld_runs(host)
    now = Message("the rules in force; firewalld is not reloaded")
    later = Message("firewalld's configuration at the next boot or reload")
    rules = rich_rules(rule)
    return [
        _change(
            f"firewalld zone {opening.zone} ({mode})",
            rules,
            [_rich_rule(opening.zone, rich_rule, mode == "permanent") for rich_rule in rules],
            note,
            scope,
        )
        for mode, note, scope in (("runtime", now, "live"), ("permanent", later, "boot"))
    ]


def _rich_rule(zone: str, rich_rule: str, permanent: bool) -> Operation:
    """Return the operation for one rule; a rich rule has no comment, so only firewall-cmd's output tells whose it is.

    The first permanent rule copies the vendor's zone to /etc, and each one keeps the previous text as `.old`.
    """
    add, query, remove = (rich_rule_command(zone, verb, rich_rule, permanent) for verb in ("add", "query", "remove"))
    operation = {**_run(add, {"argv": query}, {"argv": remove}), "unchanged": "ALREADY_ENABLED"}
    path = f"/etc/firewalld/zones/{zone}.xml"
    return {**operation, "files": [path, f"{path}.old"]} if permanent else operation


def _check_firewalld_runs(host: Host) -> None:
    """Raise Skipped if firewalld's rules outlive it: then it accepts none."""
    try:
        state = host.run(("firewall-cmd", "--state"))
    except HostError as error:
        if isinstance(error, Missing):
            raise Skipped(Message("the rules are managed by firewalld, but firewall-cmd is missing")) from None
        return  # not recorded, or no answer now
    if state.returncode != 0:
        said = (state.stdout + state.stderr).strip().partition("\n")[0]
        raise Skipped(Message("the rules are managed by firewalld, which is not running: {said}", said=said))


# ---------------------------------------------------------------------- ufw


def _ufw(rule: AcceptRule) -> Change:
    comment = _with_id(rule, "ufw").comment
    operations, rules = [], []
    for words in ufw_rules(rule):
        plain = f"{' '.join(words[2:])} proto tcp"  # as printed by `ufw show added`
        rules.append(f"ufw allow {plain} comment '{comment}'")
        added = ["ufw", "show", "added"]
        undo = {"argv": ["ufw", "delete", "allow", *words, "comment", comment]}
        operation = _run(["ufw", "allow", *words, "comment", comment], {"argv": added, "contains": rules[-1]}, undo)
        operations.append({**operation, **_of_the_administrator(added, re.escape(plain)), "files": _UFW_FILES})
    return _change("ufw", rules, operations, Message("ufw also keeps the rule after a reboot"))


def _of_the_administrator(added: Sequence[str], plain: str) -> Operation:
    """Return what prevents taking over the administrator's rule: `ufw allow` would replace it.

    An identical rule, whatever its comment, is enough; one with a different verdict must not have been added since.
    """
    return {
        "already": {"argv": added, "pattern": rf"(?m)^ufw allow (?:log-all |log )?{plain}(?: comment '.*')?$"},
        "given": {
            "argv": added,
            "pattern": rf"(?m)^ufw (?:deny|reject|limit) (?:log-all |log )?{plain}(?: comment '.*')?$",
            "digest": digest(b""),
        },
    }


# ---------------------------------------------------------------------- nftables


def _nftables(host: Host, opening: Opening, rule: AcceptRule, listing: str) -> Change:
    """Return one rule, with sets, before the one that leads to the drop; its comment identifies it for undo."""
    place = [opening.table.family, opening.table.name, opening.chain]
    rule = _with_id(rule, " ".join(place))
    words = nft_rule(rule)
    precondition = chain_precondition(opening, listing)
    if precondition is None:  # a listing without handles: at the head of the chain, which is right in any case
        argv = ["nft", "insert", "rule", *place, *words]
    elif opening.next is None:
        argv = ["nft", "add", "rule", *place, *words]
    else:
        argv = ["nft", "insert", "rule", *place, "position", str(opening.next.handle), *words]
    numbered = ["nft", "-a", "list", "chain", *place]
    undo = {
        "argv": ["nft", "delete", "rule", *place, "handle", "{handle}"],
        "find": {"argv": numbered, "pattern": f'[^\\n]*comment "{rule.comment}" # handle (?P<handle>[0-9]+)'},
    }
    operation = _run(argv, {"argv": numbered, "contains": f'comment "{rule.comment}"'}, undo, precondition)
    note, other_owners = _until_boot(host, "nftables")
    target = f"nftables {' '.join(place)}"
    return _change(target, [" ".join(words)], [operation], note, "live", _following(opening), other_owners)


def _following(opening: Opening) -> str:
    """Return what follows the new rule, for the diff: a rule, or the policy at the end of the chain."""
    return (opening.next if opening.next is not None else opening.closes).text


# ---------------------------------------------------------------------- iptables


def _iptables(host: Host, opening: Opening, rule: AcceptRule, listing: str) -> Change:
    """Return a rule for each peer before the one that leads to the drop, for the iptables that created the chain."""
    program, table, chain = _program(host, opening, rule.family), opening.table.name, opening.chain
    place = f"{program} {table} {chain}"
    rule = _with_id(rule, place)
    precondition = chain_precondition(opening, listing, program, rule.comment)
    if precondition is None:
        position = ["-I", chain, "1"]  # the head is right in any case
    else:
        position = ["-A", chain] if opening.next is None else ["-I", chain, str(opening.at + 1)]
    operations, rules = [], []
    for words in iptables_rules(rule):
        add, query, remove = (
            iptables_command(program, table, *start, *words) for start in (position, ["-C", chain], ["-D", chain])
        )
        operations.append(_run(add, {"argv": query}, {"argv": remove}, precondition))
        rules.append(" ".join(["-A", chain, *words]))
    note, other_owners = _until_boot(host, "iptables" if rule.family == 4 else "ip6tables")
    return _change(place, rules, operations, note, "live", _following(opening), other_owners)


def _program(host: Host, opening: Opening, family: int) -> str:
    """Return the iptables that owns this table: the kernel keeps those of iptables-legacy separate."""
    prefix = "iptables" if family == 4 else "ip6tables"
    table = opening.table
    if table.family == "iptables":  # listed by that iptables' own command
        return table.source.partition(" ")[0].replace("-save", "") or prefix
    for program in (f"{prefix}-nft", prefix):
        try:
            version = host.run((program, "-V")).stdout
        except Missing:
            continue
        except HostError:
            return prefix  # not recorded
        if "nf_tables" in version:
            return program
    raise Skipped(
        Message(
            "the chain {chain} was created by {prefix} on nftables, which is not installed now",
            chain=opening.chain,
            prefix=prefix,
        )
    )


# ---------------------------------------------------------------------- the next boot


def _until_boot(host: Host, tool: str) -> tuple[Text, tuple[Text, ...]]:
    """Return the note that the rule is then lost, and the administrator's own files, which envtune does not edit."""
    paths = [path for path in _BOOT_FILES[tool] if _is_there(host, path)]
    where = paths[0] if paths else _BOOT_FILES[tool][0]
    note = Message(
        "the rule lasts until the next boot; to keep it, add it to your own {where}, which envtune does not edit",
        where=where,
    )
    other_owners = tuple(Message("{path}: its rules replace these when they are loaded", path=path) for path in paths)
    return note, other_owners


def _is_there(host: Host, path: str) -> bool:
    try:
        return exists(host, path)
    except HostError:
        return False
