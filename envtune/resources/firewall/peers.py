"""Who connects to this host, to which ports, and through which interfaces: the input for judging packet filters.

The peers are those the user named (`--peer`, a hostfile, Slurm's node list), else those the job names
(HCCL_WHITELIST_FILE, two nodes with MASTER_ADDR), else any possible address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterable, Mapping, Optional, Sequence

from envtune import intervals
from envtune.context import Context
from envtune.errors import HostError, NotApplicable, Undetermined
from envtune.host import Host
from envtune.host.json import parse_json
from envtune.intervals import Intervals
from envtune.messages import Message
from envtune.model import Interface
from envtune.ranges import decimal
from envtune.records import NamedTuple
from envtune.resources.network.interfaces import selects
from envtune.resources.network.names import is_loopback, job_nodes, master_address, single_node
from envtune.resources.network.ports import HcclPorts, hccl_ports
from envtune.resources.npu.command import master_port_text

if TYPE_CHECKING:
    from envtune.firewall import Connections

# Interfaces of container and virtual machine software: no peer uses them.
VIRTUAL_PREFIXES = (
    "docker",
    "br-",
    "virbr",
    "cni",
    "flannel",
    "cali",
    "veth",
    "lxc",
    "lxdbr",
    "podman",
    "kube-",
    "tap",
)


class Peers(NamedTuple):
    """The addresses connections come from; `complete` if there are no others."""

    family: int
    addresses: Intervals
    known: Intervals  # peers named by the user or the job
    complete: bool


class Ingress(NamedTuple):
    """The interface by which peers arrive and the addresses of this host they use there; None: unknown."""

    interface: Optional[str]
    addresses: Optional[Intervals]

    def applied_to(self, connections: Connections) -> Connections:
        """Return the connections that arrive this way."""
        return connections._replace(interface=self.interface, destinations=self.addresses)


class RequiredPorts(NamedTuple):
    """Ports that must be open to the peers; `hccl` says why they are these, None for MASTER_PORT."""

    subject: str
    ports: Intervals
    hccl: Optional[HcclPorts] = None


def required_ports(context: Context) -> tuple[RequiredPorts, ...]:
    """Return MASTER_PORT (if this host is the master) and HCCL's ports."""
    port = _master_port(context)
    first = () if port is None else (RequiredPorts(f"MASTER_PORT {port}", ((port, port),)),)
    hccl = hccl_ports(context)
    return (*first, RequiredPorts(hccl.subject if hccl.fault is None else "HCCL", hccl.ports, hccl))


def _master_port(context: Context) -> Optional[int]:
    """Return the port peers connect to on this host; None on a worker, or if none is set."""
    try:
        variables = context.target.variables()
        text = (master_port_text(context) or "").strip()
        known = master_address(context)
    except Undetermined:
        return None
    port = decimal(text)
    if port is None or not 0 < port < 65536:
        return None
    away = (known is not None and known.is_own is False) or (job_nodes(variables).rank or 0) > 0
    return None if away else port


def peers_of(context: Context) -> tuple[Peers, ...]:
    """Return the peers, one entry for each version of IP that they use."""
    if context.target.options.peers:
        return _named_by_user(context)
    try:
        variables = context.target.variables()
        known = master_address(context)
    except Undetermined:
        return (Peers(4, intervals.unicast_addresses(4), (), False),)
    job, alone = job_nodes(variables), single_node(context)
    if alone:
        reason = Message("a job on a single node has no peers ({source})", source=alone)
        raise NotApplicable(reason, context.target.environment.source, alone)
    addresses = known.addresses if known is not None else ()
    version = 6 if addresses and all(":" in address for address in addresses) else 4
    listed = _whitelist(context.host, variables, version)
    if listed:
        return (Peers(version, listed, listed, True),)
    away = [a for a in addresses if (":" in a) == (version == 6)] if known is not None and known.is_own is False else []
    named = _as_intervals(away, version)
    complete = job.size == 2 and bool(named)
    return (Peers(version, named if complete else intervals.unicast_addresses(version), named, complete),)


def _as_intervals(addresses: Iterable[str], family: int) -> Intervals:
    return intervals.union((intervals.address_number(address, family),) * 2 for address in addresses)


def _named_by_user(context: Context) -> tuple[Peers, ...]:
    """Return the peers the user named, without this host itself: a hostfile and Slurm's list name every node."""
    words = context.target.options.peers
    by_family: dict[int, list[tuple[int, int]]] = {}
    for word in words:
        try:
            family = 6 if ":" in word else 4
            by_family.setdefault(family, []).append(intervals.network_range(word, family))
        except ValueError:
            reason = Message("{word} is not an address of a peer", word=word)
            raise Undetermined(reason, "--peer", word) from None
    rows = []
    for family, pairs in sorted(by_family.items()):
        others = intervals.difference(intervals.union(pairs), _host_addresses(context.host, family))
        peers = intervals.intersection(others, intervals.unicast_addresses(family))
        if peers:
            rows.append(Peers(family, peers, peers, True))
    if not rows:
        reason = Message("the given peers are only this host")
        raise NotApplicable(reason, "--peer", " ".join(words))
    return tuple(rows)


def _host_addresses(host: Host, family: int) -> Intervals:
    """Return this host's addresses; none if they cannot be read."""
    try:
        addresses = [address for interface in host.interfaces() for address in interface.addresses]
    except HostError:
        return ()
    return _as_intervals((a for a in addresses if (":" in a) == (family == 6)), family)


def _whitelist(host: Host, variables: Mapping[str, str], family: int) -> Intervals:
    """Return the hosts of HCCL_WHITELIST_FILE (JSON, host_ip) if HCCL_WHITELIST_DISABLE is 0.

    Source: hicann/hccl docs/zh/user_guide/hccl_env.
    """
    path = variables.get("HCCL_WHITELIST_FILE", "")
    if variables.get("HCCL_WHITELIST_DISABLE") != "0" or not path.startswith("/"):
        return ()
    try:
        listed = parse_json(host.read(path))["host_ip"]
        own = {address for interface in host.interfaces() for address in interface.addresses}
        return _as_intervals((address for address in listed if address not in own), family)
    except (HostError, ValueError, KeyError, TypeError, AttributeError):
        return ()


def ingresses(context: Context, family: int, hccl: Optional[HcclPorts]) -> list[Ingress]:
    """Return the interfaces by which peers can arrive: the one the job names, else every one that faces the network."""
    try:
        interfaces = [_with_family(interface, family) for interface in context.host.interfaces()]
    except HostError:
        return [Ingress(None, None)]
    facing = [interface for interface in interfaces if interface.up and interface.addresses]
    named = _named_by_job(context, facing, hccl is not None)
    physical = [interface for interface in facing if not interface.name.startswith(VIRTUAL_PREFIXES)]
    chosen = named or physical or facing
    return [Ingress(interface.name, _as_intervals(interface.addresses, family)) for interface in chosen] or [
        Ingress(None, None)
    ]


def _with_family(interface: Interface, family: int) -> Interface:
    """Return the interface with its addresses of this family, without loopback."""
    plain = (address.partition("%")[0] for address in interface.addresses)
    return interface._replace(addresses=tuple(a for a in plain if (":" in a) == (family == 6) and not is_loopback(a)))


def _named_by_job(context: Context, facing: Sequence[Interface], hccl: bool) -> list[Interface]:
    """Return the job's interfaces: HCCL_IF_IP before HCCL_SOCKET_IFNAME; for MASTER_PORT, MASTER_ADDR's.

    Source: hicann/hccl docs/zh/user_guide/hccl_env (HCCL_IF_IP has precedence).
    """
    try:
        variables = context.target.variables()
        known = master_address(context)
    except Undetermined:
        return []
    if hccl:
        address = variables.get("HCCL_IF_IP", "").strip()
        names = variables.get("HCCL_SOCKET_IFNAME", "").strip()
        exact = [interface._replace(addresses=(address,)) for interface in facing if address in interface.addresses]
        return exact or [interface for interface in facing if selects(names, interface.name)]
    own = known.addresses if known is not None and known.is_own else ()
    return [
        interface._replace(addresses=tuple(a for a in interface.addresses if a in own))
        for interface in facing
        if any(a in own for a in interface.addresses)
    ]
