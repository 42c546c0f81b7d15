"""The interfaces and addresses that the job's variables name for its traffic, and the rank table.

Sources: hicann/hccl docs/zh/user_guide/hccl_env (HCCL_IF_IP, HCCL_SOCKET_IFNAME with its four forms, RANK_TABLE_FILE);
Gloo and TensorPipe of PyTorch take interface names.
"""

from __future__ import annotations

from typing import Any, Iterable, Iterator, Mapping, Optional, Sequence

from envtune import intervals
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Missing, NotApplicable, Undetermined, host_error_text
from envtune.host import Host
from envtune.host.json import parse_json
from envtune.messages import Message, Text, enumerated
from envtune.model import Evidence, Reading
from envtune.resources.network.names import host_addresses, is_address, is_loopback, job_nodes, variables_source
from envtune.resources.npu.devices import ELSEWHERE, runs_elsewhere

NAMES = ("HCCL_IF_IP", "HCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "RANK_TABLE_FILE")
# Keys of a rank table whose value names a host. Source: rank table 1.0 and 1.2 of the HCCL user guide.
HOST_KEYS = ("server_id", "host_ip", "host_nic_ip", "container_ip", "pod_name")


@probe("network.job_interfaces")
def job_interfaces(context: Context) -> Iterable[Reading]:
    """Whether the interfaces and addresses in the job's variables exist on this host: `right` or `wrong`."""
    variables = context.target.variables()
    named = [(name, variables[name]) for name in NAMES if variables.get(name)]
    if not named:
        reason = Message("none of {names} is set for this job", names=enumerated(NAMES))
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
    if runs_elsewhere(context) and (name != "HCCL_IF_IP" or is_address(value)):
        return Reading(name, None, setting, reason=ELSEWHERE)
    try:
        fault, expected = _fault(context, name, value)
    except Undetermined as error:
        return Reading(name, None, setting, reason=error.reason)
    except HostError as error:
        return Reading(name, None, setting, reason=host_error_text(error))
    shown = value if value == value.strip() else repr(value)
    if fault is None:
        return Reading(name, "right", setting, Message("{value}: on this host", value=shown), expected)
    return Reading(name, "wrong", setting, Message("{value}: {why}", value=shown, why=fault), expected)


def _fault(context: Context, name: str, value: str) -> tuple[Optional[Text], Text]:
    """Return why the value cannot be right on this host, and what would be; raises Undetermined."""
    host = context.host
    if name == "RANK_TABLE_FILE":
        return _rank_table_fault(host, value), Message("a rank table that lists this host")
    if name == "HCCL_IF_IP":
        own = host_addresses(host)
        return _address_fault(context, value, own), Message("one of {names}", names=enumerated(own))
    interfaces = host.interfaces()
    expected = Message("one of {names}", names=enumerated(interface.name for interface in interfaces))
    if name == "HCCL_SOCKET_IFNAME":
        taken = [one for one in interfaces if selects(value, one.name) and (one.name != "lo" or value in ("lo", "=lo"))]
        gone = "" if taken else value
        fault: Text = Message("no interface of this host")
    else:
        wanted = value.split(",") if name == "GLOO_SOCKET_IFNAME" else [value]  # TensorPipe accepts one name
        taken = [one for one in interfaces if one.name in wanted]
        missing = [repr(part) for part in wanted if part not in [one.name for one in taken]]
        gone, fault = ", ".join(missing), Message("{names}: no such interface", names=enumerated(missing))
    if gone:
        return fault, expected
    if any(one.addresses for one in taken):
        return None, expected
    return Message("{names}: without an address", names=enumerated(one.name for one in taken)), expected


def _address_fault(context: Context, value: str, own: Sequence[str]) -> Optional[Text]:
    if not is_address(value) or not any(_is_same(value, one) for one in own):
        return Message("not an address of this host")
    if is_loopback(value) and (job_nodes(context.target.variables()).size or 1) > 1:
        return Message("a loopback address, which the other nodes cannot reach")
    return None


def _is_same(one: str, other: str) -> bool:
    family = intervals.address_family(one)
    if family != intervals.address_family(other):
        return False
    return intervals.address_number(one, family) == intervals.address_number(other, family)


def _rank_table_fault(host: Host, path: str) -> Optional[Text]:
    """Return what is wrong with the rank table; raises Undetermined if it names hosts in its own way."""
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
    if any(one in own for one in named):
        return None
    if not any(is_address(one) for one in named):
        reason = Message(
            "the rank table lists neither addresses nor this host; whether it includes this host is unknown"
        )
        raise Undetermined(reason, path, ", ".join(named))
    return Message("lists {hosts}, not this host", hosts=enumerated(named[:8]))


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
