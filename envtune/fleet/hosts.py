"""Which hosts are selected: a node set, a file of names, an inventory or Slurm's nodes."""

from __future__ import annotations

import re
from typing import Any, Iterable, Optional, Sequence

from envtune.errors import UsageError, require_package
from envtune.messages import Message, enumerated, nearest

MOST_HOSTS = 100_000
# No leading `-`: ssh would parse it as an option.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:%-]{0,253}")
_SECTION = re.compile(r"\[([^\]:]+)(?::(\w+))?\]")


def node_set(text: str) -> tuple[str, ...]:
    """Return the hosts of a node set, which may name groups of the site (`node[1-9],@gpu`); raises UsageError."""
    require_package("ClusterShell")
    from ClusterShell.NodeSet import NodeSet, NodeSetException

    try:
        return tuple(NodeSet(text))
    except NodeSetException as error:
        raise UsageError(Message("{nodes}: not a node set: {reason}", nodes=text, reason=str(error))) from None


def listed_hosts(text: str) -> tuple[str, ...]:
    """Return the hosts of a list with a name or node set on each line; `#` begins a comment."""
    rows = (line.partition("#")[0].split() for line in text.splitlines())
    return tuple(host for row in rows if row for host in node_set(row[0]))


def inventory_hosts(text: str, group: Optional[str] = None) -> tuple[str, ...]:
    """Return the hosts of an Ansible inventory (INI or YAML), or of one group of it; raises UsageError."""
    groups = _yaml_groups(text) if _is_yaml(text) else _ini_groups(text)
    if group is not None and group not in groups:
        near = nearest(group, tuple(groups))
        known = enumerated(near or tuple(groups)[:5])
        raise UsageError(Message("the inventory has no group {group}; it has {groups}", group=group, groups=known))
    found = groups[group] if group is not None else [host for hosts in groups.values() for host in hosts]
    return tuple(dict.fromkeys(found))


def _is_yaml(text: str) -> bool:
    first = next((line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")), "")
    return first.strip() in ("---", "{}") or re.fullmatch(r"[\w.-]+:\s*", first) is not None


def _ini_groups(text: str) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    children: dict[str, list[str]] = {}
    name, kind = "ungrouped", ""
    for line in text.splitlines():
        line = line.partition(" #")[0].strip()
        if not line or line[0] in "#;":
            continue
        section = _SECTION.fullmatch(line)
        if section is not None:
            name, kind = section[1], section[2] or ""
        elif kind == "children":
            children.setdefault(name, []).append(line)
        elif kind != "vars":
            groups.setdefault(name, []).extend(node_set(_ansible_range(line.split()[0])))
    return _with_children(groups, children)


def _with_children(groups: dict[str, list[str]], children: dict[str, list[str]]) -> dict[str, list[str]]:
    def members(name: str, above: tuple[str, ...]) -> list[str]:
        own = list(groups.get(name, ()))
        for child in children.get(name, ()):
            if child not in above:
                own += members(child, (*above, name))
        return own

    return {
        name: list(dict.fromkeys(members(name, ()))) for name in (*groups, *(n for n in children if n not in groups))
    }


def _ansible_range(pattern: str) -> str:
    """Return `node[01:20]` as ClusterShell writes it."""
    return re.sub(r"\[(\d+):(\d+)\]", r"[\1-\2]", pattern)


def _yaml_groups(text: str) -> dict[str, list[str]]:
    import yaml

    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UsageError(Message("the inventory is not valid YAML: {reason}", reason=str(error))) from None
    groups: dict[str, list[str]] = {}

    def read(name: str, body: Any) -> list[str]:
        body = body if isinstance(body, dict) else {}
        hosts = body.get("hosts") or {}
        own = [host for word in hosts for host in node_set(_ansible_range(str(word)))]
        for child, inner in (body.get("children") or {}).items():
            own += read(str(child), inner)
        groups.setdefault(name, []).extend(own)
        return own

    for name, body in (data if isinstance(data, dict) else {}).items():
        read(str(name), body)
    return groups


def slurm_hosts(partition: Optional[str] = None) -> tuple[str, ...]:
    """Return the nodes that Slurm knows (`sinfo`), or those of a partition; raises UsageError."""
    from envtune.collector.commands import run_command

    words = ["sinfo", "--noheader", "--Node", "--format=%N"]
    if partition is not None:
        words.append(f"--partition={partition}")
    row = run_command(words, 30.0)
    if row.get("error") or row.get("rc"):
        reason = str(row.get("error") or row.get("stderr", "")).strip()
        raise UsageError(Message("{command}: {reason}", command="sinfo", reason=reason))
    return tuple(dict.fromkeys(str(row["stdout"]).split()))


def required_hosts(hosts: Iterable[str]) -> tuple[str, ...]:
    """Return the hosts, each once; raises UsageError for none, too many, or an invalid name."""
    found = tuple(dict.fromkeys(hosts))
    wrong = next((host for host in found if not _NAME.fullmatch(host)), None)
    if wrong is not None:
        raise UsageError(Message("{name}: not a host name", name=wrong))
    if not found:
        raise UsageError(Message("no hosts specified: use -w, --hosts-from, --inventory or --slurm"))
    if len(found) > MOST_HOSTS:
        raise UsageError(Message("{count} hosts, but the limit is {most}", count=len(found), most=MOST_HOSTS))
    return found


def chunks(hosts: Sequence[str], size: int) -> list[Sequence[str]]:
    """Return the hosts in batches of at most this size."""
    return [hosts[start : start + size] for start in range(0, len(hosts), size)]
