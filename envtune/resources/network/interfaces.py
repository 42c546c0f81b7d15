"""The interfaces and addresses that the job's variables name for its traffic, and the rank table.

Sources: hicann/hccl docs/zh/user_guide/hccl_env (HCCL_IF_IP, HCCL_SOCKET_IFNAME with its four forms, RANK_TABLE_FILE);
Gloo and TensorPipe of PyTorch take interface names.
"""

from __future__ import annotations

from typing import Any, Iterable, Iterator, Mapping, Optional, Sequence

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Missing, NotApplicable, host_error_text
from envtune.host import Host
from envtune.host.json import parse_json
from envtune.messages import Message, Text
from envtune.model import Evidence, Reading
from envtune.resources.network.names import host_addresses, is_address, variables_source

NAMES = ("HCCL_IF_IP", "HCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "RANK_TABLE_FILE")
# Keys of a rank table whose value names a host. Source: rank table 1.0 and 1.2 of the HCCL user guide.
HOST_KEYS = ("server_id", "host_ip", "host_nic_ip", "container_ip", "pod_name")


@probe("network.job_interfaces")
def job_interfaces(context: Context) -> Iterable[Reading]:
    """Read whether what the job's variables name for its traffic is on this host."""
    variables = context.target.variables()
    named = [(name, variables[name]) for name in NAMES if variables.get(name)]
    if not named:
        reason = Message("none of {names} is set for this job", names=", ".join(NAMES))
        raise NotApplicable(reason, variables_source(context))
    return [_reading(context, name, value) for name, value in named]


def selects(pattern: str, name: str) -> bool:
    """Return whether HCCL_SOCKET_IFNAME takes an interface.

    `eth,en` are prefixes, `=eth0,eth1` names, `^eth` all but these prefixes, `^=eth0` all but these names.
    """
    excluding = pattern.startswith("^")
    rest = pattern[1:] if excluding else pattern
    exact, rest = rest.startswith("="), rest.lstrip("=")
    parts = [part for part in rest.split(",") if part]
    hit = any(name == part if exact else name.startswith(part) for part in parts)
    return bool(parts) and hit is not excluding


def _reading(context: Context, name: str, value: str) -> Reading:
    setting = Evidence(variables_source(context), f"{name}={value}")
    try:
        fault, expected = _fault(context.host, name, value)
    except HostError as error:
        return Reading(name, None, setting, reason=host_error_text(error))
    if fault is None:
        return Reading(name, "right", setting, Message("{value}: on this host", value=value), expected)
    return Reading(name, "wrong", setting, Message("{value}: {why}", value=value, why=fault), expected)


def _fault(host: Host, name: str, value: str) -> tuple[Optional[Text], Text]:
    """Return why the value cannot be right on this host, and what would be."""
    if name == "RANK_TABLE_FILE":
        return _rank_table_fault(host, value), Message("a rank table that names this host")
    if name == "HCCL_IF_IP":
        own = host_addresses(host)
        fault = None if value in own else Message("not an address of this host")
        return fault, Message("one of {names}", names=", ".join(own))
    names = [interface.name for interface in host.interfaces()]
    expected = Message("one of {names}", names=", ".join(names))
    if name == "HCCL_SOCKET_IFNAME":
        taken = any(selects(value, one) for one in names if one != "lo" or value in ("lo", "=lo"))
        return (None if taken else Message("no interface of this host")), expected
    gone = ", ".join(repr(part) for part in value.split(",") if part not in names)
    return (Message("{names}: no such interface", names=gone) if gone else None), expected


def _rank_table_fault(host: Host, path: str) -> Optional[Text]:
    if not path.startswith("/"):
        path = f"{host.cwd.rstrip('/')}/{path}"
    try:
        text = host.read(path)
    except Missing:
        return Message("does not exist")
    try:
        table = parse_json(text)
    except ValueError:
        return Message("is not JSON")
    named = list(dict.fromkeys(_hosts(table)))
    own: Sequence[str] = (*host_addresses(host), host.uname.get("nodename", ""))
    if any(one in own for one in named) or not any(is_address(one) for one in named):
        return None
    return Message("names {hosts}, not this host", hosts=", ".join(named[:8]))


def _hosts(table: Any) -> Iterator[str]:
    """Yield what names a host in a rank table, at any depth."""
    waiting = [table]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Mapping):
            yield from (node[key] for key in HOST_KEYS if isinstance(node.get(key), str))
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)
