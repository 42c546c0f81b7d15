"""The rank table that a job names with RANK_TABLE_FILE: its form, its ranks, and this host's devices in it.

Source: HCCL user guide, "rank table" for Atlas training servers, A2 and A3 (versions 1.0 and 1.2; status, server_count,
server_list, device, device_id, device_ip, rank_id), and hccl.json of MindCluster, which has no version.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Optional, Sequence

from envtune.collector.sources.npu import HCCN_CONF
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, NotApplicable, Undetermined, host_error_text
from envtune.host.json import parse_json
from envtune.messages import N_, Literal, Message, Text, clauses
from envtune.model import Evidence, Reading
from envtune.resources.network.names import host_addresses, variables_source
from envtune.resources.npu.devices import NODES, device_nodes, in_container, runs_elsewhere
from envtune.resources.npu.hccn import addresses, family_of, hccn_conf, same_address

NAME = "RANK_TABLE_FILE"
VERSIONS = ("1.0", "1.2")
COMPLETED = "completed"
DEVICES_LIMIT = 100_000  # of all servers
SHOWN = 8  # names in one line


class RankedDevice(NamedTuple):
    """One device of a rank table; None for what is missing or not a number."""

    server: str
    device: Optional[int]
    rank: Optional[int]
    address: str
    place: str  # server_list[0].device[1]
    port: str = ""


class RankTable(NamedTuple):
    """A rank table as far as its form is valid: the whole, its devices, and what is wrong with the form."""

    path: str
    data: Mapping[str, Any]
    devices: tuple[RankedDevice, ...]
    faults: tuple[Text, ...]
    hosts: Mapping[str, tuple[str, ...]]  # server id -> what names the server: its id, host_ip, ...


def rank_table(context: Context) -> RankTable:
    """Return the job's rank table; raises NotApplicable if it names none, Undetermined if it is not a JSON object."""
    return context.cached(_read_table)


def _read_table(context: Context) -> RankTable:
    value = context.target.variables().get(NAME, "")
    if not value:
        raise NotApplicable(Message("{name} is not set", name=NAME), variables_source(context))
    path = value if value.startswith("/") else f"{context.host.cwd.rstrip('/')}/{value}"
    try:
        data = parse_json(context.host.read(path))
    except HostError as error:
        raise Undetermined(host_error_text(error), path) from None
    except ValueError:
        raise Undetermined(Message("{path} is not JSON", path=path), path) from None
    if not isinstance(data, Mapping):
        raise Undetermined(Message("{path} is not a JSON object", path=path), path)
    return parse_table(path, data)


def parse_table(path: str, data: Mapping[str, Any]) -> RankTable:
    """Return the devices of a rank table and what is wrong with its form."""
    faults = list(_head_faults(data))
    servers = data.get("server_list")
    listed = [server for server in servers if isinstance(server, Mapping)] if isinstance(servers, list) else []
    devices: list[RankedDevice] = []
    hosts: dict[str, tuple[str, ...]] = {}
    for index, server in enumerate(listed):
        name = server.get("server_id")
        if not isinstance(name, str) or not name:
            faults.append(Message("{place} has no server_id", place=f"server_list[{index}]"))
        names = (server.get(key) for key in ("server_id", "host_ip", "container_ip", "host_nic_ip"))
        hosts[str(name)] = tuple(one for one in names if isinstance(one, str))
        devices += _devices(server, f"server_list[{index}]", str(name))
        if len(devices) > DEVICES_LIMIT:
            faults.append(Message("more than {limit} devices", limit=DEVICES_LIMIT))
            break
    for device in devices:
        for key, value in (("device_id", device.device), ("rank_id", device.rank)):
            if value is None:
                faults.append(Message("{place} has no number as {key}", place=device.place, key=key))
    if listed and not devices:
        faults.append(Message("no server has a device"))
    return RankTable(path, data, tuple(devices[:DEVICES_LIMIT]), tuple(faults), hosts)


def _head_faults(data: Mapping[str, Any]) -> Iterator[Text]:
    """Yield what is wrong above the servers."""
    status, version = data.get("status"), data.get("version")
    if status != COMPLETED:
        yield Message("status is {value}, not completed", value=repr(status))
    if version is not None and version not in VERSIONS:
        yield Message("version is {value}, not 1.0 or 1.2", value=repr(version))
    servers = data.get("server_list")
    if not isinstance(servers, list) or not servers:
        yield Message("it has no server_list")
        return
    count = data.get("server_count")
    if count is not None and str(count) != str(len(servers)):
        yield Message("server_count is {count}, but server_list has {found}", count=str(count), found=len(servers))


def _devices(server: Mapping[str, Any], place: str, name: str) -> Iterator[RankedDevice]:
    rows = server.get("device")
    for index, row in enumerate(rows if isinstance(rows, list) else []):
        if isinstance(row, Mapping):
            where = f"{place}.device[{index}]"
            address = str(row.get("device_ip") or "").strip()
            port = str(row.get("device_port") or "")
            yield RankedDevice(name, _number(row.get("device_id")), _number(row.get("rank_id")), address, where, port)


def _number(value: Any) -> Optional[int]:
    if isinstance(value, int) and not isinstance(value, bool):
        return value if 0 <= value < 1 << 31 else None
    return int(value) if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 10 else None


@probe("network.rank_table_form")
def form(context: Context) -> Iterable[Reading]:
    """Format errors in the job's rank table; empty if the format is valid."""
    table = rank_table(context)
    return [_faulty(table, table.faults, Message("status completed, version 1.0 or 1.2, a number for each device"))]


@probe("network.rank_table_ranks")
def ranks(context: Context) -> Iterable[Reading]:
    """Rank ids in the job's rank table that are missing, duplicate or mixed between servers; empty if all are valid."""
    table = _with_devices(context)
    return [
        _faulty(
            table, tuple(rank_faults(table.devices)), Message("each of 0 to {last} once", last=len(table.devices) - 1)
        )
    ]


def rank_faults(devices: Sequence[RankedDevice]) -> Iterator[Text]:
    """Yield what is wrong with the ranks: each of 0 to n-1 once, those of a server consecutive."""
    counts = Counter(device.rank for device in devices if device.rank is not None)
    twice = sorted(rank for rank, count in counts.items() if count > 1)
    if twice:
        yield Message("rank_id {ranks} more than once", ranks=_few(twice))
    missing = sorted(set(range(len(devices))) - set(counts))
    if missing:
        yield Message("no rank_id {ranks}", ranks=_few(missing))
    by_server: dict[str, list[int]] = {}
    for device in devices:
        if device.rank is not None:
            by_server.setdefault(device.server, []).append(device.rank)
    mixed = [server for server, own in by_server.items() if max(own) - min(own) >= len(set(own))]
    if mixed and not twice and not missing:
        yield Message(
            "the rank ids of {servers} are mixed with those of other servers", servers=", ".join(mixed[:SHOWN])
        )


@probe("network.rank_table_unique")
def unique(context: Context) -> Iterable[Reading]:
    """Duplicate devices, server ids and device addresses in the job's rank table; empty if all are unique."""
    table = _with_devices(context)
    return [_faulty(table, tuple(duplicates(table)), Message("each device, server_id and device_ip once"))]


def duplicates(table: RankTable) -> Iterator[Text]:
    """Yield what is in the table twice; several processes may share a device on different ports."""
    pairs = Counter((d.server, d.device, d.port) for d in table.devices if d.device is not None)
    for (server, device, _), count in pairs.items():
        if count > 1:
            yield Message("device_id {device} of {server} {count} times", device=device, server=server, count=count)
    owners: dict[str, set[tuple[str, Optional[int]]]] = {}
    for one in table.devices:
        if one.address:
            owners.setdefault(one.address, set()).add((one.server, one.device))
    shared = [address for address, devices in owners.items() if len(devices) > 1]
    if shared:
        yield Message("device_ip {addresses} of several devices", addresses=", ".join(shared[:SHOWN]))
    servers = table.data.get("server_list")
    names = (
        Counter(str(s.get("server_id")) for s in servers if isinstance(s, Mapping)) if isinstance(servers, list) else {}
    )
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        yield Message("server_id {names} more than once", names=", ".join(twice[:SHOWN]))


@probe("network.rank_table_devices")
def devices(context: Context) -> Iterable[Reading]:
    """Device ids of this host in the job's rank table that do not exist; empty if all exist."""
    table, own = _own_devices(context)
    nodes = device_nodes(context)
    if not nodes:
        raise NotApplicable(Message("no NPU device node"), NODES)
    missing = sorted({d.device for d in own if d.device is not None} - set(nodes))
    faults = (Message("device_id {ids} without /dev/davinciN", ids=_few(missing)),) if missing else ()
    return [_faulty(table, faults, Message("device ids of {nodes}", nodes=_few(nodes)))]


@probe("network.rank_table_addresses")
def device_addresses(context: Context) -> Iterable[Reading]:
    """Addresses of this host in the job's rank table that differ from /etc/hccn.conf; empty if all agree."""
    table, own = _own_devices(context)
    known = addresses(hccn_conf(context))
    rows = [(d, known.get(-1 if d.device is None else d.device, "")) for d in own if family_of(d.address)]
    rows = [(device, configured) for device, configured in rows if configured]
    if not rows:
        raise NotApplicable(Message("no device of this host has an address in both"), table.path)
    words = N_("device {device}: {address}, but {path} has {known}")
    faults = tuple(
        Message(words, device=device.device, address=device.address, path=HCCN_CONF, known=configured)
        for device, configured in rows
        if not same_address(device.address, configured)
    )
    return [_faulty(table, faults[:SHOWN], Message("the addresses of {path}", path=HCCN_CONF))]


def _own_devices(context: Context) -> tuple[RankTable, Sequence[RankedDevice]]:
    """Return the devices of the server that is this host; raises NotApplicable if the table does not name it."""
    table = _with_devices(context)
    if runs_elsewhere(context):
        raise NotApplicable(Message("this host has no NPU"), table.path)
    if in_container(context):
        raise NotApplicable(Message("a container may number its NPUs in another way than the rank table"), table.path)
    own: Sequence[str] = (*host_addresses(context.host), context.host.uname.get("nodename", ""))
    servers = [name for name, names in table.hosts.items() if set(names) & set(own)]
    if len(servers) != 1:
        raise NotApplicable(Message("the rank table does not name this host by address or name"), table.path)
    return table, [device for device in table.devices if device.server == servers[0]]


def _with_devices(context: Context) -> RankTable:
    table = rank_table(context)
    if not table.devices:
        raise NotApplicable(Message("the rank table has no devices"), table.path)
    return table


def _faulty(table: RankTable, faults: Sequence[Text], expected: Text) -> Reading:
    shown = clauses(faults[:SHOWN]) if faults else Message("{count} devices", count=len(table.devices))
    value = "; ".join(fault.en for fault in faults)
    return Reading(table.path, value, Evidence(table.path), shown, expected)


def _few(numbers: Sequence[int]) -> Text:
    listed = ", ".join(map(str, numbers[:SHOWN]))
    return Literal(listed if len(numbers) <= SHOWN else f"{listed}, ...")
