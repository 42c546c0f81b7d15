"""Names and addresses of a job: MASTER_ADDR, and the host's own name.

Source: porting guide 003:275, 301, 594, 3417.
"""

from __future__ import annotations

from typing import Iterable, Mapping, Optional

from envtune import intervals
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Missing, NotApplicable, NotRecorded, host_error_text
from envtune.host import Host
from envtune.messages import Literal, Message, Text, in_context
from envtune.model import Command, Evidence, Reading, Source
from envtune.ranges import decimal, whole_number
from envtune.records import NamedTuple
from envtune.resources.network.answers import (
    ACCEPTED,
    REACHED,
    answer_text,
    answers,
    is_undecided,
    may_connect,
    probe_command,
)
from envtune.resources.npu.command import master_option
from envtune.resources.npu.devices import ELSEWHERE, runs_elsewhere

# Addresses in the guide's scripts that are meant to be replaced. Source: 003:275, 003:594.
PLACEHOLDERS = ("10.136.181.115", "1.1.1.1")
LOOKUP_TIMEOUT = 3.0  # seconds


class JobNodes(NamedTuple):
    """The job's size according to its variables, None if they do not tell; `source` names the variables used."""

    size: Optional[int]
    rank: Optional[int]  # of this node; 0 is the master
    source: str


class MasterAddress(NamedTuple):
    """MASTER_ADDR: its value, the addresses it resolves to, and whether one is this host's (None: unknown)."""

    text: str
    addresses: tuple[str, ...]
    is_own: Optional[bool]
    evidence: Evidence
    reason: Optional[Text] = None  # why its addresses are unknown


@probe("network.master_addr")
def master_addr(context: Context) -> Iterable[Reading]:
    """Whether MASTER_ADDR can be the address of the master node: `right` or `wrong`."""
    address = master_address(context)
    if address is None:
        raise NotApplicable(Message("MASTER_ADDR is not set for this job"), variables_source(context))
    if runs_elsewhere(context) and _depends_on_host(address):
        return [Reading("MASTER_ADDR", None, address.evidence, reason=ELSEWHERE)]
    if address.reason is not None and address.is_own is None and not _is_impossible(address):
        return [Reading("MASTER_ADDR", None, address.evidence, reason=address.reason)]
    variables = context.target.variables()
    right, why = _judge_master(address, job_nodes(variables))
    if right is None:
        return [_other_node(context, address, port_number(variables.get("MASTER_PORT", "")), why)]
    reading = _master_reading(address, right, why)
    return [reading if right else reading._replace(fields=_own_address(context))]


def _own_address(context: Context) -> Mapping[str, str]:
    """Return the address that MASTER_ADDR should have, if this host is the master or the only node."""
    job = job_nodes(context.target.variables())
    if job.size != 1 and job.rank != 0:
        return {}
    try:
        addresses = [address for address in host_addresses(context.host) if not is_loopback(address)]
    except HostError:
        return {}
    own = next((address for address in addresses if ":" not in address), "127.0.0.1" if job.size == 1 else "")
    return {"address": own} if own else {}


def _master_reading(address: MasterAddress, right: bool, why: Text) -> Reading:
    value = address.text if address.text == address.text.strip() else repr(address.text)
    shown = Message("{value}: {why}", value=value, why=why)
    expected = Message("an address of this host (single node, master) or the master's (workers)")
    return Reading("MASTER_ADDR", "right" if right else "wrong", address.evidence, shown, expected)


def _other_node(context: Context, address: MasterAddress, port: Optional[int], why: Text) -> Reading:
    """Return the reading for another node's MASTER_ADDR: what answers there, if probing is allowed; else unknown."""
    shown, target = Literal(address.text), address.addresses[0]
    if port is None:
        reason = Message("{why}; MASTER_PORT names no port to try", why=why)
        look = (Command("look", f"ping -c 1 -W 2 {target}"),)
        return Reading("MASTER_ADDR", None, address.evidence, shown, reason=reason, commands=look)
    look = (Command("look", connect_command(target, port)),)
    if not may_connect(context):
        command = probe_command(context)
        reason = Message("{why}; {command} connects to the master", why=why, command=command)
        return Reading("MASTER_ADDR", None, address.evidence, shown, reason=reason, commands=look)
    places = tuple((one, port) for one in address.addresses)
    (host, _), answer = min(answers(context, places).items(), key=lambda row: _rank(row[1]))
    words = Message("{host} port {port}: {answer}", host=host, port=port, answer=answer_text(answer))
    answered = address._replace(evidence=Evidence(f"connect {host} {port}", words.en))
    if is_undecided(answer) or (answer != ACCEPTED and answer in REACHED and not _is_of_the_job(context, address)):
        reason = Message("{why}; {answer}", why=why, answer=words)
        return Reading("MASTER_ADDR", None, answered.evidence, shown, reason=reason, commands=look)
    return _master_reading(answered, answer in REACHED, words)._replace(commands=look)


def _rank(answer: str) -> int:
    """Sort key for answers: one reachable address is enough; one without an answer leaves it undecided."""
    return (*REACHED, "").index(answer if answer in REACHED else "") * 2 - is_undecided(answer)


def _is_of_the_job(context: Context, address: MasterAddress) -> bool:
    """Return whether the address is known to be another node of the job: the job has several, or it was named."""
    job = job_nodes(context.target.variables())
    named = any(one in context.target.options.peers for one in address.addresses)
    return named or job.size is not None or job.rank is not None


def master_address(context: Context) -> Optional[MasterAddress]:
    """Return MASTER_ADDR of the job, None if it is not set; raises Undetermined if the job's variables are unknown."""
    return context.cached(_read_master)


def _read_master(context: Context) -> Optional[MasterAddress]:
    text, source = context.target.variables().get("MASTER_ADDR"), variables_source(context)
    if text is None:
        option = master_option(context)[0]
        if option is None:
            return None
        text, source = option
    name = text  # unchanged: a blank or a carriage return is part of the name in a lookup
    setting = Evidence(source, f"MASTER_ADDR={text}")
    try:
        intervals.address_family(name.partition("%")[0])
        addresses: tuple[str, ...] = (name.partition("%")[0],)
        evidence = setting
    except ValueError:
        if not is_host_name(name):
            return MasterAddress(name, (), None, setting, Message("it is not a host name"))
        try:
            addresses, evidence = resolve_name(context.host, name, "ahosts")
        except HostError as error:
            return MasterAddress(name, (), None, Evidence(error.path, str(error)), host_error_text(error))
    try:
        own = any(is_loopback(a) or a in host_addresses(context.host) for a in addresses)
    except HostError as error:
        return MasterAddress(name, addresses, None, Evidence(error.path, str(error)), host_error_text(error))
    return MasterAddress(name, addresses, own, evidence)


def _is_impossible(address: MasterAddress) -> bool:
    return not address.text or (not address.addresses and not is_host_name(address.text))


def _depends_on_host(address: MasterAddress) -> bool:
    """Return whether another host may judge the address differently: whose it is, and how its name resolves."""
    if not address.addresses:
        return is_host_name(address.text)
    return address_fault(address) is None and not _is_loopback_only(address)


def port_number(text: str) -> Optional[int]:
    """Return the port that a variable names, None for anything else."""
    port = decimal(text.strip())
    return port if port is not None and 0 < port < 65536 else None


def connect_command(address: str, port: int) -> str:
    """Return the command that shows whether something answers there."""
    return f"timeout 2 bash -c '</dev/tcp/{address}/{port}' && echo open"


def _judge_master(address: MasterAddress, job: JobNodes) -> tuple[Optional[bool], Text]:
    """Return whether MASTER_ADDR is right (None: unknown), and why."""
    fault = address_fault(address)
    if fault is not None:
        return False, fault
    return _judge_own(address, job) if address.is_own else _judge_other(job)


def _is_loopback_only(address: MasterAddress) -> bool:
    return bool(address.addresses) and all(is_loopback(one) for one in address.addresses)


def _judge_own(address: MasterAddress, job: JobNodes) -> tuple[bool, Text]:
    if _is_loopback_only(address):
        if job.size is not None and job.size > 1:
            return False, Message("every node would connect to itself")
        return True, Message("this host, for a job on a single node")
    if job.rank is not None and job.rank > 0:
        node = f"node {job.rank} ({job.source})"
        return False, Message("this host is {node}, not the master", node=node)
    return True, Message("an address of this host")


def _judge_other(job: JobNodes) -> tuple[Optional[bool], Text]:
    if job.size == 1:
        return False, Message("not an address of this single node ({source})", source=job.source)
    if job.rank == 0:
        return False, Message("this host is the master ({source}) and does not have this address", source=job.source)
    if job.size is not None or job.rank is not None:
        return None, Message("an address of another node; whether the master responds there is unknown on this host")
    return None, Message(
        "not an address of this host: right on a worker of a multi-node job, wrong on a single node or the"
        " master; NNODES and NODE_RANK, which would show this, are not set"
    )


def address_fault(address: MasterAddress) -> Optional[Text]:
    """Return why it cannot be the address of any host."""
    if not address.text:
        return in_context("names", "empty")
    if address.text != address.text.strip():
        return Message("it contains a blank or a carriage return, so it does not resolve")
    if address.text in PLACEHOLDERS and not address.is_own:
        return Message("the sample address of the porting guide, left unchanged")
    if not address.addresses:
        if not is_host_name(address.text):
            return Message("neither an address nor a host name")
        return Message("does not resolve")
    if not any(_is_host_address(one) for one in address.addresses):
        return Message("not the address of a host")
    return None


def _is_host_address(address: str) -> bool:
    family = intervals.address_family(address)
    value = intervals.address_number(address, family)
    return is_loopback(address) or bool(intervals.intersection(((value, value),), intervals.unicast_addresses(family)))


def job_nodes(variables: Mapping[str, str]) -> JobNodes:
    """Return how many nodes the job has and which one this is.

    Source: torchrun's and torch.distributed's variables.
    """
    used: list[str] = []

    def number(name: str) -> Optional[int]:
        value = whole_number(variables.get(name, ""))
        if value is not None:
            used.append(f"{name}={value}")
        return value

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
    return JobNodes(count, rank, ", ".join(used))


def single_node(context: Context) -> str:
    """Return the variables showing that the job runs only on this host, empty if there are none."""
    variables = context.target.variables()
    job, master = job_nodes(variables), master_address(context)
    if job.size is not None:
        return job.source if job.size == 1 else ""
    own = master is not None and bool(master.addresses) and all(map(is_loopback, master.addresses))
    return f"MASTER_ADDR={master.text}" if own and master is not None else ""


def is_host_name(name: str) -> bool:
    """Return whether a name can be looked up: letters, digits, dots, hyphens; not a dotted number; not an option."""
    plain = name.replace("-", "").replace(".", "").replace("_", "")
    return bool(plain) and plain.isascii() and plain.isalnum() and name[0] not in "-." and not plain.isdecimal()


def resolve_name(host: Host, name: str, database: str) -> tuple[tuple[str, ...], Evidence]:
    """Return the addresses of a name, none if it does not resolve.

    Runs getent `hosts` or `ahosts` (a recording may contain either), else reads /etc/hosts. Raises HostError if nothing
    in the recording shows them.
    """
    for kind in (database, "ahosts" if database == "hosts" else "hosts"):
        try:
            result = host.run(["getent", kind, name], timeout=LOOKUP_TIMEOUT)
        except (Missing, NotRecorded) as error:
            failure = error
            continue
        if result.returncode not in (0, 2):  # 2: not found
            continue
        evidence = Evidence(result.line, result.stdout or result.stderr or "(no output, exit code 2)")
        return _addresses(line.split()[0] for line in result.stdout.splitlines() if line.strip()), evidence
    addresses, evidence = hosts_file_addresses(host, name)
    if addresses:
        return addresses, evidence
    raise failure


def hosts_file_addresses(host: Host, name: str) -> tuple[tuple[str, ...], Evidence]:
    """Return the addresses /etc/hosts gives a name."""
    path = "/etc/hosts"
    try:
        text = host.read(path)
    except (Missing, NotRecorded):
        return (), Evidence(path)
    lines = [line.strip() for line in text.splitlines()]
    rows = [(line, line.partition("#")[0].split()) for line in lines]
    named = [(line, words[0]) for line, words in rows if name.lower() in map(str.lower, words[1:])]
    return _addresses(address for _, address in named), Evidence(path, "\n".join(line for line, _ in named))


def _addresses(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the addresses among the texts, each once and without its zone."""
    return tuple(dict.fromkeys(text.partition("%")[0] for text in texts if is_address(text)))


def is_address(text: str) -> bool:
    """Return whether it is an IPv4 or IPv6 address."""
    try:
        intervals.address_family(text)
    except ValueError:
        return False
    return True


def is_loopback(address: str) -> bool:
    """Return whether the address is in 127.0.0.0/8 or ::1."""
    return address.startswith("127.") or address == "::1"


def host_addresses(host: Host) -> tuple[str, ...]:
    """Return every address of every interface of this host."""
    return tuple(address.partition("%")[0] for interface in host.interfaces() for address in interface.addresses)


def variables_source(context: Context) -> Source:
    """Return where the job's variables come from."""
    return context.target.environment.source


@probe("network.own_name")
def own_name(context: Context) -> Iterable[Reading]:
    """Address that the host name resolves to: `own`, `loopback`, `foreign` or `nowhere` (does not resolve).

    By the resolver, and in /etc/hosts; getent is run only if the resolver may have another answer than the file.
    Source: 003:3417-3427, inferred.
    """
    host = context.host
    name = host.uname.get("nodename", "")
    reachable = [address for address in host_addresses(host) if not is_loopback(address)]
    if not reachable:
        raise NotApplicable(Message("no interface has an address other than loopback"), "interfaces")
    readings = []
    addresses, evidence = hosts_file_addresses(host, name)
    if addresses:
        readings.append(_name_reading("/etc/hosts", name, addresses, evidence, reachable))
    if not (any(":" not in address for address in addresses) and _is_file_first(host)):
        addresses, evidence = (), Evidence("uname -n", name)
    try:
        if not addresses and is_host_name(name):
            addresses, evidence = resolve_name(host, name, "hosts")
    except HostError as error:
        return [*readings, Reading(name, None, Evidence(error.path, str(error)), reason=host_error_text(error))]
    return [*readings, _name_reading(name, name, addresses, evidence, reachable)]


def _is_file_first(host: Host) -> bool:
    """Return whether the resolver answers from /etc/hosts before it asks anybody else (nsswitch.conf(5))."""
    try:
        text = host.read("/etc/nsswitch.conf")
    except HostError:
        return False
    rows = (line.partition("#")[0].split() for line in text.splitlines())
    return next((row[1:2] == ["files"] for row in rows if row[:1] == ["hosts:"]), False)


def _name_reading(
    subject: str, name: str, addresses: tuple[str, ...], evidence: Evidence, reachable: list[str]
) -> Reading:
    """Judge the first IPv4 address, which is the one HCCL uses; if there is none, the first address."""
    address = next((a for a in addresses if ":" not in a), addresses[0] if addresses else "")
    if not address:
        value, where = "nowhere", Message("does not resolve")
    elif is_loopback(address):
        value, where = "loopback", Message("{address}, a loopback address", address=address)
    elif address in reachable:
        value, where = "own", Message("{address}, an address of this host", address=address)
    else:
        value, where = "foreign", Message("{address}, not an address of this host", address=address)
    shown = Message("{name}: {where}", name=name, where=where)
    return Reading(subject, value, evidence, shown, in_context("names", "an address of this host"))
