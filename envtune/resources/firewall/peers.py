"""Who connects to this host, to which of its ports, and by which interfaces: what a packet filter is judged for.

The peers are those the user named (`--peer`, a hostfile, Slurm's node list), else those the job names
(HCCL_WHITELIST_FILE, two nodes with MASTER_ADDR), else any address there can be.
"""

from __future__ import annotations

from typing import Mapping, NamedTuple, Optional, Sequence

from envtune import intervals as regions
from envtune.context import Context
from envtune.errors import HostError, NotApplicable, Undetermined
from envtune.host import Host
from envtune.intervals import Intervals
from envtune.messages import Message
from envtune.model import Interface
from envtune.resources.network.names import is_loopback, master, nodes
from envtune.resources.network.ports import HcclPorts, hccl_ports

# Interfaces of container and virtual machine software: no peer comes by them.
INNER = (
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
    """The addresses connections come from; `complete` when they are all there are."""

    family: int
    addresses: Intervals
    known: Intervals  # peers named by the user or the job
    complete: bool


class Way(NamedTuple):
    """The interface peers come by and the addresses of this host they use there; None: not known."""

    name: Optional[str]
    own: Optional[Intervals]


class Question(NamedTuple):
    """Ports that must be open to the peers; `hccl` says why they are these, None for MASTER_PORT."""

    subject: str
    ports: Intervals
    hccl: Optional[HcclPorts] = None


def questions(context: Context) -> tuple[Question, ...]:
    """MASTER_PORT (where this host is the master) and HCCL's ports."""
    port = _master_port(context)
    first = () if port is None else (Question(f"MASTER_PORT {port}", ((port, port),)),)
    found = hccl_ports(context)
    return (*first, Question(found.subject if found.fault is None else "HCCL", found.ports, found))


def _master_port(context: Context) -> Optional[int]:
    """The port peers connect to on this host; None on a worker, or when none is set (network checks judge it)."""
    try:
        variables = context.target.variables()
        text = variables.get("MASTER_PORT", "").strip()
        known = master(context)
    except Undetermined:
        return None
    port = regions.decimal(text)
    if port is None or not 0 < port < 65536:
        return None
    away = (known is not None and known.own is False) or (nodes(variables).rank or 0) > 0
    return None if away else port


def peers_of(context: Context) -> tuple[Peers, ...]:
    """The peers, one entry for each version of IP that they use."""
    if context.target.options.peers:
        return _named(context)
    try:
        variables = context.target.variables()
        known = master(context)
    except Undetermined:
        return (Peers(4, regions.peers(4), (), False),)
    job = nodes(variables)
    if job.size == 1:
        reason = Message("a job on a single node has no peers ({source})", source=job.source)
        raise NotApplicable(reason, context.target.environment.source, job.source)
    addresses = known.addresses if known is not None else ()
    version = 6 if addresses and all(":" in address for address in addresses) else 4
    listed = _whitelist(context.host, variables, version)
    if listed:
        return (Peers(version, listed, listed, True),)
    away = [a for a in addresses if (":" in a) == (version == 6)] if known is not None and known.own is False else []
    named_ones = regions.intervals((regions.number(a, version),) * 2 for a in away)
    complete = job.size == 2 and bool(named_ones)
    return (Peers(version, named_ones if complete else regions.peers(version), named_ones, complete),)


def _named(context: Context) -> tuple[Peers, ...]:
    """The peers the user named, without this host itself: a hostfile and Slurm's list name every node."""
    words = context.target.options.peers
    found: dict[int, list[tuple[int, int]]] = {}
    for word in words:
        try:
            family = 6 if ":" in word else 4
            found.setdefault(family, []).append(regions.network(word, family))
        except ValueError:
            reason = Message("{word} is not an address of a peer", word=word)
            raise Undetermined(reason, "--peer", word) from None
    rows = []
    for family, pairs in sorted(found.items()):
        inside = regions.common(
            regions.without(regions.intervals(pairs), _own(context.host, family)), regions.peers(family)
        )
        if inside:
            rows.append(Peers(family, inside, inside, True))
    if not rows:
        reason = Message("the peers named are this host itself")
        raise NotApplicable(reason, "--peer", " ".join(words))
    return tuple(rows)


def _own(host: Host, family: int) -> Intervals:
    """This host's addresses; none where they cannot be read."""
    try:
        table = host.interfaces()
    except HostError:
        return ()
    plain = [address.partition("%")[0] for one in table for address in one.addresses]
    return regions.intervals((regions.number(a, family),) * 2 for a in plain if (":" in a) == (family == 6))


def _whitelist(host: Host, variables: Mapping[str, str], family: int) -> Intervals:
    """The hosts of HCCL_WHITELIST_FILE when HCCL_WHITELIST_DISABLE=0 makes it count (facts D7: JSON, host_ip)."""
    import json

    path = variables.get("HCCL_WHITELIST_FILE", "")
    if variables.get("HCCL_WHITELIST_DISABLE") != "0" or not path.startswith("/"):
        return ()
    try:
        listed = json.loads(host.read(path))["host_ip"]
        own = {address for one in host.interfaces() for address in one.addresses}
        return regions.intervals((regions.number(address, family),) * 2 for address in listed if address not in own)
    except (HostError, ValueError, KeyError, TypeError, AttributeError):
        return ()


def ways(context: Context, family: int, hccl: Optional[HcclPorts]) -> list[Way]:
    """The interfaces peers can come by: the one the job names, else every one that faces the network."""
    try:
        table = [_faced(one, family) for one in context.host.interfaces()]
    except HostError:
        return [Way(None, None)]
    facing = [one for one in table if one.up and one.addresses]
    wanted = _named_by_job(context, facing, hccl is not None)
    outer = [one for one in facing if not any(one.name.startswith(start) for start in INNER)]
    chosen = wanted or outer or facing
    return [
        Way(one.name, regions.intervals((regions.number(a, family),) * 2 for a in one.addresses)) for one in chosen
    ] or [Way(None, None)]


def _faced(one: Interface, family: int) -> Interface:
    plain = (address.partition("%")[0] for address in one.addresses)
    return one._replace(addresses=tuple(a for a in plain if (":" in a) == (family == 6) and not is_loopback(a)))


def _named_by_job(context: Context, facing: Sequence[Interface], hccl: bool) -> list[Interface]:
    """HCCL_IF_IP before HCCL_SOCKET_IFNAME (facts D7); for MASTER_PORT, the interface that has MASTER_ADDR."""
    try:
        variables = context.target.variables()
        known = master(context)
    except Undetermined:
        return []
    if hccl:
        address = variables.get("HCCL_IF_IP", "").strip()
        exact = [one._replace(addresses=(address,)) for one in facing if address in one.addresses]
        return exact or [one for one in facing if _chosen(one.name, variables.get("HCCL_SOCKET_IFNAME", "").strip())]
    mine = known.addresses if known is not None and known.own else ()
    return [
        one._replace(addresses=tuple(a for a in one.addresses if a in mine))
        for one in facing
        if any(a in mine for a in one.addresses)
    ]


def _chosen(name: str, words: str) -> bool:
    """HCCL_SOCKET_IFNAME: `eth` a prefix, `=eth0` exact, `^eth` all others."""
    if not words:
        return False
    mode, rest = (words[0], words[1:]) if words[0] in "=^" else ("", words)
    parts = [part for part in rest.split(",") if part]
    hit = any(name == part if mode == "=" else name.startswith(part) for part in parts)
    return not hit if mode == "^" else hit
