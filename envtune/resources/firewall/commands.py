"""An opening as a change: the commands of the tool that owns the rules, how to see their effect, and the way back.

The rule names the peers and the ports and nothing wider, and carries an id of its own (in a comment, where the tool
has comments), so that the way back takes out this very rule. firewalld gets it in both views and is never reloaded.
Sources: nft(8), iptables(8), iptables-extensions(8) (15 ports a multiport), ufw(8), firewall-cmd(1),
firewalld.richlanguage(5).
"""

from __future__ import annotations

from typing import Any, Iterator, Mapping, NamedTuple, Optional, Sequence

from envtune import intervals as regions
from envtune.errors import HostError, Missing, Skipped
from envtune.executor.files import digest
from envtune.host import Host, exists
from envtune.intervals import Intervals
from envtune.messages import Message, Text
from envtune.model import Change
from envtune.resources.firewall.peers import Peers
from envtune.resources.firewall.placement import Opening
from envtune.resources.firewall.precondition import chain_given

Operation = Mapping[str, Any]
MULTIPORT = 15  # ports one rule of iptables or ufw may name; a range counts as two
# Programs of the system, wherever the caller's PATH leads.
PATH = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
# What puts the administrator's own rules back at the next boot, by the tool.
_BOOT_FILES = {
    "nftables": ("/etc/nftables.conf", "/etc/sysconfig/nftables.conf"),
    "iptables": ("/etc/iptables/rules.v4", "/etc/sysconfig/iptables", "/etc/iptables.rules"),
    "ip6tables": ("/etc/iptables/rules.v6", "/etc/sysconfig/ip6tables", "/etc/ip6tables.rules"),
}


class Wanted(NamedTuple):
    """What is to be let in."""

    ports: Intervals
    peers: Peers

    @property
    def sources(self) -> tuple[str, ...]:
        """The peers as networks and addresses."""
        return regions.networks(self.peers.addresses, self.peers.family)

    def mark(self, where: str) -> str:
        """The id of our rule at that place: the same for the same ports and peers, so that it is added once."""
        told = f"{where} {self.peers.family} {','.join(self.sources)} {spans(self.ports, '-')}"
        return "envtune:" + digest(told.encode()).partition(":")[2][:12]


def spans(ports: Intervals, mark: str, between: str = ",") -> str:
    """`29688,60000-60031`."""
    return between.join(str(low) if low == high else f"{low}{mark}{high}" for low, high in ports)


def port_groups(ports: Intervals) -> Iterator[Intervals]:
    """The ports in as few groups as a multiport match takes."""
    group: list[tuple[int, int]] = []
    for pair in ports:
        if sum(1 if low == high else 2 for low, high in [*group, pair]) > MULTIPORT:
            yield tuple(group)
            group = []
        group.append(pair)
    if group:
        yield tuple(group)


def changes_of(host: Host, opening: Opening, wanted: Wanted, listing: str) -> list[Change]:
    """The changes that make an opening, without the finding they cure: one for each view that is written.

    `listing` is the text that told the table.
    """
    if opening.owner == "firewalld":
        return _firewalld(host, opening, wanted)
    if opening.owner == "ufw":
        return [_ufw(opening, wanted)]
    by_tool = _iptables if opening.owner == "iptables" else _nftables
    return [by_tool(host, opening, wanted, listing)]


def _run(
    argv: Sequence[str], check: Mapping[str, Any], undo: Mapping[str, Any], given: Optional[Operation] = None
) -> Operation:
    operation = {"op": "run", "argv": list(argv), "check": check, "undo": undo, "env": PATH}
    return operation if given is None else {**operation, "given": given}


def _change(
    target: str,
    rules: Sequence[str],
    operations: Sequence[Operation],
    note: Text,
    view: str = "live",
    following: str = "",
    rivals: tuple[Text, ...] = (),
) -> Change:
    """`following` is the rule in front of which ours go; the check and its subject are put in by the action."""
    return Change(
        finding="",
        subject="",
        playbook="",
        action="firewall.allow",
        target=target,
        before=following,
        after="\n".join([*rules, *([following] if following else [])]),
        view=view,
        operations=tuple(operations),
        safety="confirm",
        note=note,
        rivals=rivals,
    )


# ---------------------------------------------------------------------- firewalld


def _firewalld(host: Host, opening: Opening, wanted: Wanted) -> list[Change]:
    """The same rich rules in the running rules and in the permanent ones; other programs' rules stay: no reload."""
    _must_run(host)
    rules = [
        f'rule family="ipv{wanted.peers.family}" source address="{source}" '
        f'port port="{spans((pair,), "-")}" protocol="tcp" accept'
        for source in wanted.sources
        for pair in wanted.ports
    ]
    now = Message("the rules in force; firewalld is not reloaded")
    later = Message("what firewalld loads at the next boot or reload")
    return [
        _change(
            f"firewalld zone {opening.zone} ({word})",
            rules,
            [_rich_rule(opening.zone, rule, mode) for rule in rules],
            note,
            view,
        )
        for word, mode, note, view in (("runtime", [], now, "live"), ("permanent", ["--permanent"], later, "boot"))
    ]


def _rich_rule(zone: str, rule: str, mode: Sequence[str]) -> Operation:
    line = ["firewall-cmd", *mode, f"--zone={zone}"]
    return _run(
        [*line, f"--add-rich-rule={rule}"],
        {"argv": [*line, f"--query-rich-rule={rule}"]},
        {"argv": [*line, f"--remove-rich-rule={rule}"]},
    )


def _must_run(host: Host) -> None:
    """firewalld's rules may outlive it; then nobody takes ours."""
    try:
        state = host.run(("firewall-cmd", "--state"))
    except HostError as error:
        if isinstance(error, Missing):
            raise Skipped(Message("the rules are firewalld's, but firewall-cmd is missing")) from None
        return  # not recorded, or no answer now
    if state.returncode != 0:
        said = (state.stdout + state.stderr).strip().partition("\n")[0]
        raise Skipped(Message("the rules are firewalld's, and it does not run now: {said}", said=said))


# ---------------------------------------------------------------------- ufw


def _ufw(opening: Opening, wanted: Wanted) -> Change:
    operations, rules = [], []
    for source in wanted.sources:
        for group in port_groups(wanted.ports):
            words = ["allow", "from", source, "to", "any", "port", spans(group, ":"), "proto", "tcp"]
            mark = wanted.mark("ufw")
            rules.append(f"ufw {' '.join(words)} comment '{mark}'")
            check = {"argv": ["ufw", "show", "added"], "contains": rules[-1]}
            operations.append(_run(["ufw", *words, "comment", mark], check, {"argv": ["ufw", "delete", *words]}))
    note = Message("ufw keeps the rule for the next boot, too")
    return _change("ufw", rules, operations, note)


# ---------------------------------------------------------------------- nftables


def _nftables(host: Host, opening: Opening, wanted: Wanted, listing: str) -> Change:
    """One rule, with sets, in front of the rule that leads to the drop; taken out by the number its comment finds."""
    table, following = opening.table, opening.next
    place = [table.family, table.name, opening.chain]
    mark = wanted.mark(" ".join(place))
    source = _one_or_set(", ".join(wanted.sources), len(wanted.sources))
    ports = _one_or_set(spans(wanted.ports, "-", ", "), len(wanted.ports))
    ip = "ip" if wanted.peers.family == 4 else "ip6"
    rule = [ip, "saddr", source, "tcp", "dport", ports, "accept", "comment", f'"{mark}"']
    given = chain_given(opening, listing)
    if given is None:  # a listing without handles: at the head of the chain, which is right whatever follows
        argv = ["nft", "insert", "rule", *place, *rule]
    elif following is None:
        argv = ["nft", "add", "rule", *place, *rule]
    else:
        argv = ["nft", "insert", "rule", *place, "position", str(following.handle), *rule]
    numbered = ["nft", "-a", "list", "chain", *place]
    undo = {
        "argv": ["nft", "delete", "rule", *place, "handle", "{handle}"],
        "find": {"argv": numbered, "pattern": f'comment "{mark}" # handle (?P<handle>[0-9]+)'},
    }
    operation = _run(argv, {"argv": numbered, "contains": f'comment "{mark}"'}, undo, given)
    note, rivals = _until_boot(host, "nftables")
    shown = _next_shown(opening)
    return _change(f"nftables {' '.join(place)}", [" ".join(rule)], [operation], note, "live", shown, rivals)


def _one_or_set(words: str, count: int) -> str:
    return words if count == 1 else "{ " + words + " }"


def _next_shown(opening: Opening) -> str:
    """What follows our rule, for the diff: a rule, or the policy at the end of the chain."""
    following = opening.next
    return following.text if following is not None else opening.closes.text


# ---------------------------------------------------------------------- iptables


def _iptables(host: Host, opening: Opening, wanted: Wanted, listing: str) -> Change:
    """A rule for each peer in front of the rule that leads to the drop, by the iptables that made the chain."""
    program = _program(host, opening, wanted.peers.family)
    base = [program, "-w", *([] if opening.table.name == "filter" else ["-t", opening.table.name])]
    mark = wanted.mark(f"{program} {opening.table.name} {opening.chain}")
    given = chain_given(opening, listing, program, mark)
    where = ["-A", opening.chain] if opening.next is None else ["-I", opening.chain, str(opening.at + 1)]
    where = ["-I", opening.chain, "1"] if given is None else where  # the head is right whatever follows
    operations, rules = [], []
    for source in wanted.sources:
        for group in port_groups(wanted.ports):
            rule = ["-p", "tcp", "-s", source, "-m", "multiport", "--dports", spans(group, ":")]
            rule += ["-m", "comment", "--comment", mark, "-j", "ACCEPT"]
            found = {"argv": [*base, "-C", opening.chain, *rule]}
            undo = {"argv": [*base, "-D", opening.chain, *rule]}
            operations.append(_run([*base, *where, *rule], found, undo, given))
            rules.append(" ".join(["-A", opening.chain, *rule]))
    note, rivals = _until_boot(host, "iptables" if wanted.peers.family == 4 else "ip6tables")
    target = f"{program} {opening.table.name} {opening.chain}"
    return _change(target, rules, operations, note, "live", _next_shown(opening), rivals)


def _program(host: Host, opening: Opening, family: int) -> str:
    """The iptables whose table this is: the kernel keeps those of iptables-legacy apart."""
    prefix = "iptables" if family == 4 else "ip6tables"
    table = opening.table
    if table.family == "iptables":  # told by a command of that very iptables
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
            "the chain {chain} was made by {prefix} on nftables, which is not installed now",
            chain=opening.chain,
            prefix=prefix,
        )
    )


# ---------------------------------------------------------------------- the next boot


def _until_boot(host: Host, tool: str) -> tuple[Text, tuple[Text, ...]]:
    """That the rule is gone then, and the administrator's own file, which envtune does not edit."""
    paths = [path for path in _BOOT_FILES[tool] if _there(host, path)]
    where = paths[0] if paths else _BOOT_FILES[tool][0]
    note = Message(
        "the rule lives until the next boot; to keep it, add it to your own {where}, which envtune does not edit",
        where=where,
    )
    rivals = tuple(Message("{path}: its rules replace these when they are loaded", path=path) for path in paths)
    return note, rivals


def _there(host: Host, path: str) -> bool:
    try:
        return exists(host, path)
    except HostError:
        return False
