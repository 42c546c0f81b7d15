"""Names and addresses of a job: MASTER_ADDR, and the host's own name. Source: porting guide 003:275, 301, 594, 3417."""

from __future__ import annotations

from typing import Iterable, Mapping, NamedTuple, Optional

from envtune import intervals as regions
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Missing, NotApplicable, NotRecorded, host_error_text
from envtune.host import Host
from envtune.messages import Literal, Message, Text, in_context
from envtune.model import Evidence, Reading, Source

# Addresses that the guide's scripts carry and that are meant to be replaced. Source: 003:275, 003:594.
PLACEHOLDERS = ("10.136.181.115", "1.1.1.1")
LOOKUP = 3.0  # seconds a name may take


class Nodes(NamedTuple):
    """What the job's variables say of its size; None where they are silent. `source` names the variables used."""

    size: Optional[int]
    rank: Optional[int]  # of this node; 0 is the master
    source: str


class Master(NamedTuple):
    """MASTER_ADDR: what it says, where it leads, and whether that is this host (None: cannot be told)."""

    text: str
    addresses: tuple[str, ...]
    own: Optional[bool]
    evidence: Evidence
    reason: Optional[Text] = None  # why it leads nowhere that can be told


@probe("network.master_addr")
def master_addr(context: Context) -> Iterable[Reading]:
    """Whether MASTER_ADDR can be the master's address, as far as this one host can tell."""
    found = master(context)
    if found is None:
        raise NotApplicable(Message("MASTER_ADDR is not set for this job"), source_of(context))
    if found.reason is not None and found.own is None and not _impossible(found):
        return [Reading("MASTER_ADDR", None, found.evidence, reason=found.reason)]
    verdict, words = _judge_master(found, nodes(context.target.variables()))
    if verdict is None:
        return [Reading("MASTER_ADDR", None, found.evidence, shown=_same(found.text), reason=words)]
    shown = Message("{text}: {words}", text=found.text, words=words)
    return [Reading("MASTER_ADDR", "right" if verdict else "wrong", found.evidence, shown, _expected_master())]


def master(context: Context) -> Optional[Master]:
    """MASTER_ADDR of the job, None when it is not set; Undetermined when the job's variables cannot be told."""
    return context.cached(_master)


def _master(context: Context) -> Optional[Master]:
    text = context.target.variables().get("MASTER_ADDR")
    if text is None:
        return None
    name, source = text.strip(), source_of(context)
    setting = Evidence(source, f"MASTER_ADDR={text}")
    try:
        regions.address_family(name)
        addresses: tuple[str, ...] = (name.partition("%")[0],)
        evidence = setting
    except ValueError:
        if not host_name(name):
            return Master(name, (), None, setting, Message("it is not a host name"))
        try:
            addresses, evidence = resolve(context.host, name, "ahosts")
        except HostError as error:
            return Master(name, (), None, Evidence(error.path, str(error)), host_error_text(error))
    try:
        own = bool(addresses) and any(is_loopback(a) or a in own_addresses(context.host) for a in addresses)
    except HostError as error:
        return Master(name, addresses, None, Evidence(error.path, str(error)), host_error_text(error))
    return Master(name, addresses, own, evidence)


def _impossible(found: Master) -> bool:
    return not found.text or (not found.addresses and not host_name(found.text))


def _judge_master(found: Master, job: Nodes) -> tuple[Optional[bool], Text]:
    """(right, wrong or None for cannot tell; why)."""
    fault = _no_address(found)
    if fault is not None:
        return False, fault
    return _judge_own(found, job) if found.own else _judge_other(job)


def _judge_own(found: Master, job: Nodes) -> tuple[bool, Text]:
    if all(is_loopback(address) for address in found.addresses):
        if job.size is not None and job.size > 1:
            return False, Message("each of the nodes would call itself")
        return True, Message("this host, for a job on a single node")
    if job.rank is not None and job.rank > 0:
        what = f"node {job.rank} ({job.source})"
        return False, Message("this host is {what}, not the master", what=what)
    return True, Message("an address of this host")


def _judge_other(job: Nodes) -> tuple[Optional[bool], Text]:
    if job.size == 1:
        return False, Message("not an address of this single node ({source})", source=job.source)
    if job.rank == 0:
        return False, Message("this host is the master ({source}) and does not have it", source=job.source)
    if job.size is not None or job.rank is not None:
        return True, Message("an address of another node; that it is the master's only the master can tell")
    return None, Message(
        "not an address of this host: right on a worker of several nodes, wrong on a single node or on the "
        "master; NNODES and NODE_RANK would tell, and are not set"
    )


def _no_address(found: Master) -> Optional[Text]:
    """Why it cannot be anybody's address."""
    if not found.text:
        return in_context("names", "empty")
    if found.text in PLACEHOLDERS and not found.own:
        return Message("the sample address of the porting guide, left unchanged")
    if not found.addresses:
        if not host_name(found.text):
            return Message("neither an address nor a host name")
        return Message("does not resolve")
    if all(_nobody(address) for address in found.addresses):
        return Message("not the address of a host")
    return None


def _nobody(address: str) -> bool:
    family = regions.address_family(address)
    value = regions.address_number(address, family)
    return not is_loopback(address) and not regions.intersection(((value, value),), regions.unicast_addresses(family))


def _expected_master() -> Text:
    return Message("an address of this host (single node, master) or the master's (workers)")


def nodes(variables: Mapping[str, str]) -> Nodes:
    """How many nodes the job has and which one this is. Source: torchrun's and torch.distributed's variables."""
    used: list[str] = []

    def number(name: str) -> Optional[int]:
        found = regions.decimal(variables.get(name, "").strip())
        if found is not None:
            used.append(f"{name}={found}")
        return found

    count = number("NNODES") or number("GROUP_WORLD_SIZE")
    if count is None:
        world, local = number("WORLD_SIZE"), number("LOCAL_WORLD_SIZE")
        if world == 1:
            count = 1
        elif world and local:
            count = world // local if world % local == 0 else None
    rank = number("NODE_RANK")
    rank = number("GROUP_RANK") if rank is None else rank
    if rank is None and number("RANK") == 0:
        rank = 0  # rank 0 runs on the master, whatever RANK counts
    return Nodes(count, rank, ", ".join(used))


def host_name(name: str) -> bool:
    """Whether it can be asked for at all: letters, digits, dots, hyphens; not a number with dots; not an option."""
    plain = name.replace("-", "").replace(".", "").replace("_", "")
    return bool(plain) and plain.isascii() and plain.isalnum() and name[0] not in "-." and not plain.isdigit()


def resolve(host: Host, name: str, database: str) -> tuple[tuple[str, ...], Evidence]:
    """The addresses of a name by getent's `hosts` or `ahosts` (a recorded host may hold the other), else /etc/hosts.

    No address when the name does not resolve. Raises HostError when nothing recorded tells.
    """
    for kind in (database, "ahosts" if database == "hosts" else "hosts"):
        try:
            result = host.run(["getent", kind, name], timeout=LOOKUP)
        except (Missing, NotRecorded) as error:
            failure = error
            continue
        if result.returncode not in (0, 2):  # 2: not found
            continue
        found = [line.split()[0] for line in result.stdout.splitlines() if line.strip()]
        return tuple(dict.fromkeys(a.partition("%")[0] for a in found if is_address(a))), Evidence(
            result.line, result.stdout or result.stderr or "(no output, exit code 2)"
        )
    mapped = hosts_file(host, name)
    if mapped[0]:
        return mapped
    raise failure


def hosts_file(host: Host, name: str) -> tuple[tuple[str, ...], Evidence]:
    """The addresses /etc/hosts gives a name."""
    path = "/etc/hosts"
    try:
        text = host.read(path)
    except (Missing, NotRecorded):
        return (), Evidence(path)
    lines = [line.strip() for line in text.splitlines()]
    rows = [(line, line.partition("#")[0].split()) for line in lines]
    mine = [(line, words[0]) for line, words in rows if len(words) > 1 and name.lower() in map(str.lower, words[1:])]
    found = tuple(dict.fromkeys(address.partition("%")[0] for _, address in mine if is_address(address)))
    return found, Evidence(path, "\n".join(line for line, _ in mine))


def is_address(text: str) -> bool:
    """Whether it is an IPv4 or IPv6 address."""
    try:
        regions.address_family(text)
    except ValueError:
        return False
    return True


def is_loopback(address: str) -> bool:
    """127.0.0.0/8 or ::1."""
    return address.startswith("127.") or address == "::1"


def own_addresses(host: Host) -> tuple[str, ...]:
    """Every address of every interface of this host."""
    return tuple(address.partition("%")[0] for one in host.interfaces() for address in one.addresses)


def source_of(context: Context) -> Source:
    """Where the job's variables come from."""
    return context.target.environment.source


def _same(words: str) -> Text:
    return Literal(words)


@probe("network.own_name")
def own_name(context: Context) -> Iterable[Reading]:
    """Where this host's own name leads: by the resolver, and in /etc/hosts. Source: 003:3417-3427, inferred."""
    host = context.host
    name = host.uname.get("nodename", "")
    real = [address for address in own_addresses(host) if not is_loopback(address)]
    if not real:
        raise NotApplicable(Message("no interface has an address other than loopback"), "interfaces")
    readings = []
    mapped, line = hosts_file(host, name)
    if mapped:
        readings.append(_name_reading("/etc/hosts", name, mapped, line, real))
    try:
        found, evidence = resolve(host, name, "hosts") if host_name(name) else ((), Evidence("uname -n", name))
    except HostError as error:
        return [*readings, Reading(name, None, Evidence(error.path, str(error)), reason=host_error_text(error))]
    return [*readings, _name_reading(name, name, found, evidence, real)]


def _name_reading(subject: str, name: str, found: tuple[str, ...], evidence: Evidence, real: list[str]) -> Reading:
    """The first IPv4 address counts, as it does for HCCL; without one, the first address."""
    address = next((a for a in found if ":" not in a), found[0] if found else "")
    if not address:
        value, words = "nowhere", Message("does not resolve")
    elif is_loopback(address):
        value, words = "loopback", Message("{address}, which other nodes cannot reach", address=address)
    elif address in real:
        value, words = "own", Message("{address}, an address of this host", address=address)
    else:
        value, words = "foreign", Message("{address}, which is not this host's", address=address)
    shown = Message("{name}: {words}", name=name, words=words)
    return Reading(subject, value, evidence, shown, in_context("names", "an address of this host"))
