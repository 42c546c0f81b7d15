"""Ports of a job: HCCL's range on the host, and MASTER_PORT.

Sources: vendor reference of HCCL_IF_BASE_PORT (16 ports in CANN 6.3.RC2 and 8.2.RC1, 32 from 8.3.RC1) and of
HCCL_HOST_SOCKET_PORT_RANGE; Documentation/networking/ip-sysctl of the kernel; porting guide 003:302, 3423, 3435.
"""

from __future__ import annotations

from typing import Iterable, Mapping, Optional, Union

from envtune import intervals
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, NotApplicable, Undetermined, host_error_text
from envtune.host import Host, descendants
from envtune.intervals import Intervals
from envtune.messages import Literal, Message, Text, enumerated
from envtune.model import Command, Evidence, Listener, Reading, Source
from envtune.ranges import checked_int, decimal
from envtune.records import NamedTuple
from envtune.resources.network.names import job_nodes, master_address, variables_source
from envtune.resources.npu.command import master_option
from envtune.resources.npu.devices import ELSEWHERE, runs_elsewhere

BASE_PORT, BASE_RANGE = 60000, (1024, 65520)
EPHEMERAL = "/proc/sys/net/ipv4/ip_local_port_range"
RESERVED = "/proc/sys/net/ipv4/ip_local_reserved_ports"
SHOWN_PORTS = 8
# torchrun sets it to True for its workers if it has bound MASTER_PORT itself: they connect to its store and bind
# nothing. Source: torch/distributed/rendezvous.py, elastic/agent/server/local_elastic_agent.py (1.12 and newer).
AGENT_STORE = "TORCHELASTIC_USE_AGENT_STORE"
FREE_PORTS = range(29500, 30500)  # from torchrun's default port on


class HcclPorts(NamedTuple):
    """The host ports HCCL binds, and why these; `fault` says why the settings cannot work."""

    ports: Intervals
    why: Text
    evidence: Evidence
    fault: Optional[Text] = None
    automatic: bool = False  # the kernel picks from its ephemeral range

    @property
    def subject(self) -> str:
        """Return `HCCL 60000-60031`."""
        return f"HCCL {intervals.port_text(self.ports)}"


def hccl_ports(context: Context) -> HcclPorts:
    """Return HCCL's ports for this job, the defaults if the job's variables are unknown."""
    return context.cached(_hccl_ports)


def _hccl_ports(context: Context) -> HcclPorts:
    count, why_count, cann = ports_per_job(context)
    source = variables_source(context)
    default = ((BASE_PORT, BASE_PORT + count - 1),)
    try:
        variables = context.target.variables()
    except Undetermined:
        why = Message("HCCL's default base port, because the job's variables are unknown; {count}", count=why_count)
        return HcclPorts(default, why, Evidence(cann))
    port_range = variables.get("HCCL_HOST_SOCKET_PORT_RANGE", "").strip()
    if port_range:
        return _ports_of_range(context, port_range, source)
    base = variables.get("HCCL_IF_BASE_PORT", "").strip()
    if not base:
        return HcclPorts(default, Message("HCCL's default base port; {count}", count=why_count), Evidence(cann))
    return _ports_from_base(base, count, why_count, source)


def _ports_from_base(text: str, count: int, why_count: Text, source: Source) -> HcclPorts:
    setting = f"HCCL_IF_BASE_PORT={text}"
    why = Message("{setting}; {count}", setting=setting, count=why_count)
    evidence = Evidence(source, setting)
    base = decimal(text)
    if base is None or not BASE_RANGE[0] <= base <= BASE_RANGE[1]:
        fault = Message("{setting} is not a number from 1024 to 65520", setting=setting)
        return HcclPorts((), why, evidence, fault)
    if base + count - 1 > 65535:
        fault = Message("{setting} leaves too few ports below 65536 for {count}", setting=setting, count=count)
        return HcclPorts((), why, evidence, fault)
    return HcclPorts(((base, base + count - 1),), why, evidence)


def _ports_of_range(context: Context, text: str, source: Source) -> HcclPorts:
    setting = f"HCCL_HOST_SOCKET_PORT_RANGE={text}"
    evidence = Evidence(source, setting)
    why = Message("{setting}, which overrides HCCL_IF_BASE_PORT", setting=setting)
    if text.lower() == "auto":
        return HcclPorts(ephemeral_ports(context.host), why, evidence, automatic=True)
    try:
        ports = port_list(text)
    except ValueError:
        ports = ()
    if not ports or ports[0][0] < 1:
        fault = Message("{setting} is not a list of ports from 1 to 65535", setting=setting)
        return HcclPorts((), why, evidence, fault)
    return HcclPorts(ports, why, evidence)


def ports_per_job(context: Context) -> tuple[int, Text, Source]:
    """Return 16 or 32 ports, why, and the source: 16 up to CANN 8.2.RC1, 32 from 8.3; if unknown, 32."""
    fact = context.facts["cann"]
    if fact.value is None or fact.value == "none":
        return 32, Message("CANN version unknown, so the larger count of 32"), fact.source
    release = _release(fact.value)
    if release is None or release == (8, 2, ""):
        return 32, Message("{cann} may use 16 or 32, so 32", cann=f"CANN {fact.value}"), fact.source
    count = 16 if release < (8, 3) else 32
    return count, Message("CANN {version} uses {count}", version=fact.value, count=count), fact.source


def _release(version: str) -> Optional[tuple[object, ...]]:
    """Return (8, 2, "RC1"): major, minor, and for 8.2 the release candidate that the sources name."""
    parts = version.upper().split(".")
    major, minor = (decimal(part) for part in (*parts, "", "")[:2])
    if major is None or minor is None:
        return None
    if major >= 20:  # named after the year: 20.0 to 20.3, before 5.0
        return 0, major
    if (major, minor) == (8, 2):
        return (8, 2, "RC1") if parts[2:3] == ["RC1"] else (8, 2, "")
    return major, minor


def port_list(text: str) -> Intervals:
    """Return the ports of a list in the kernel's syntax, `60000-60031,8080`; raises ValueError if it is not one."""
    pairs = []
    for part in text.replace("\n", "").split(","):
        if part.strip():
            low, dash, high = part.strip().partition("-")
            pair = (checked_int(low), checked_int(high if dash else low))
            if not 0 <= pair[0] <= pair[1] <= 65535:
                raise ValueError(part)
            pairs.append(pair)
    return intervals.union(pairs)


def ephemeral_ports(host: Host) -> Intervals:
    """Return the ports the kernel assigns to outgoing connections, including the reserved ones."""
    text = host.read(EPHEMERAL)
    try:
        low, high = (checked_int(word) for word in text.split())
        return port_list(f"{low}-{high}")
    except ValueError:
        raise _no_ports(EPHEMERAL, text) from None


def reserved_ports(host: Host) -> Intervals:
    """Return the ports the kernel assigns only on explicit request."""
    text = host.read(RESERVED)
    try:
        return port_list(text)
    except ValueError:
        raise _no_ports(RESERVED, text) from None


def _no_ports(path: str, text: str) -> Undetermined:
    return Undetermined(Message("{path} does not contain ports", path=path), path, text)


@probe("network.hccl_ports", formerly="ports.hccl")
def hccl(context: Context) -> Iterable[Reading]:
    """State of HCCL's host ports, such as `reserved`, `exposed` (may be assigned by the kernel), `free` or `taken`."""
    ports = hccl_ports(context)
    if ports.automatic:
        reason = Message("HCCL_HOST_SOCKET_PORT_RANGE=auto: the system picks free ports")
        raise NotApplicable(reason, ports.evidence.source, ports.evidence.text)
    if ports.fault is not None:
        return [Reading("HCCL", "impossible", ports.evidence, ports.fault, Message("ports that exist"))]
    return [_reservation_reading(context.host, ports), *_listener_readings(context, ports.ports)]


def _reservation_reading(host: Host, ports: HcclPorts) -> Reading:
    try:
        given, kept = ephemeral_ports(host), reserved_ports(host)
    except (HostError, Undetermined) as error:
        return _unknown(ports.subject, error)
    inside = intervals.intersection(ports.ports, given)
    exposed = intervals.difference(inside, kept)
    span, why = intervals.port_text(given), ports.why
    if not inside:
        value, state = "outside", Message("outside of ip_local_port_range {span}", span=span)
    elif not exposed:
        value, state = "reserved", Message("in ip_local_reserved_ports")
    else:
        value = "exposed"
        state = Message("{ports} not reserved", ports=intervals.port_text(exposed))
        why = Message("in ip_local_port_range {span}; {why}", span=span, why=why)
    shown = Message("{state} ({why})", state=state, why=why)
    evidence = Evidence(RESERVED, f"{RESERVED}: {intervals.port_text(kept) or '(empty)'}\n{EPHEMERAL}: {span}")
    commands: tuple[Command, ...] = ()
    if exposed and ports.ports[0][0] != BASE_PORT:  # root's shell would not have them
        commands = _reserve_commands(intervals.union((*kept, *exposed)))
    return Reading(ports.subject, value, evidence, shown, Message("reserved"), commands=commands)


def _unknown(subject: str, error: Union[HostError, Undetermined]) -> Reading:
    if isinstance(error, Undetermined):
        return Reading(subject, None, Evidence(error.source, error.text), reason=error.reason)
    return Reading(subject, None, Evidence(error.path, str(error)), reason=host_error_text(error))


def _reserve_commands(ports: Intervals) -> tuple[Command, ...]:
    """Return what reserves ports now and at the next boot; the list is replaced, so it has those already reserved."""
    setting = f"net.ipv4.ip_local_reserved_ports={intervals.port_text(ports).replace(' ', '')}"
    lines = f"sudo sysctl -w {setting}", f"echo {setting} | sudo tee /etc/sysctl.d/95-envtune.conf"
    return tuple(Command("fix", line) for line in lines)


def _listener_readings(context: Context, ports: Intervals) -> list[Reading]:
    text = intervals.port_text(ports)
    try:
        rows = foreign_listeners(context, ports)
    except HostError as error:
        return [_unknown(f"listeners on {text}", error)]
    free = Message("free")
    if not rows:
        return [Reading(f"port {text}", "free", Evidence("/proc/net/tcp", "no listener"), free, free)]
    return [
        Reading(
            f"port {port}",
            "taken",
            Evidence("/proc/net/tcp", sockets),
            owner_text(owners),
            free,
            commands=(Command("look", f"sudo ss -ltnp 'sport = :{port}'"),),
        )
        for port, sockets, owners in rows[:SHOWN_PORTS]
    ]


def foreign_listeners(context: Context, ports: Intervals) -> list[tuple[int, str, list[Listener]]]:
    """Return (port, sockets, listeners) of every port on which a process outside the named job listens."""
    by_port: dict[int, list[Listener]] = {}
    for row in context.host.listeners():
        if intervals.intersection(((row.port, row.port),), ports):
            by_port.setdefault(row.port, []).append(context.host.owner(row))
    job = _job_processes(context) if by_port else frozenset()
    foreign = {port: [row for row in rows if row.pid is None or row.pid not in job] for port, rows in by_port.items()}
    return [
        (port, ", ".join(f"{row.address}:{port}" for row in rows), rows)
        for port, rows in sorted(foreign.items())
        if rows
    ]


def _job_processes(context: Context) -> frozenset[int]:
    """Return the process named by --pid and its descendants: what they listen on belongs to the job."""
    pid = context.target.options.pid
    if pid is None:
        return frozenset()
    try:
        table = context.host.processes()
    except HostError:
        return frozenset({pid})
    return descendants(table, pid)


def owner_text(rows: Iterable[Listener]) -> Text:
    """Return who listens, as far as this user may read it."""
    rows = tuple(rows)
    owners = enumerated(
        row.address if row.pid is None else f"{row.address} {row.process or 'pid'} ({row.pid})" for row in rows
    )
    if any(row.pid is None for row in rows):
        return Message("in use: {owners}, owner not readable by this user", owners=owners)
    return Message("in use: {owners}", owners=owners)


@probe("network.master_port", formerly="ports.master_port")
def master_port(context: Context) -> Iterable[Reading]:
    """State of MASTER_PORT: `right`, `taken`, `exposed` (may be assigned by the kernel) or `impossible`."""
    variables = context.target.variables()
    text, source = variables.get("MASTER_PORT"), variables_source(context)
    if text is None:
        option = master_option(context)[1]
        if option is None:
            raise NotApplicable(Message("MASTER_PORT is not set for this job"), source)
        text, source = option
    setting = Evidence(source, f"MASTER_PORT={text}")
    expected = Message("a free port from 1024 to 65535")
    value = text.strip()
    port = decimal(value)
    if port is None or not 1024 <= port <= 65535:
        shown = Message("{value}: not a number from 1024 to 65535", value=text or Message("(empty)"))
        return [Reading("MASTER_PORT", "impossible", setting, shown, expected, fields=_free_port(context))]
    address = master_address(context)
    if (address is not None and address.is_own is False) or (job_nodes(variables).rank or 0) > 0:
        shown = Message("{port}; bound by the master, which is another host", port=value)
        return [Reading("MASTER_PORT", "right", setting, shown, expected)]
    if runs_elsewhere(context):
        return [Reading("MASTER_PORT", None, setting, expected=expected, reason=ELSEWHERE)]
    reading = _bindable_reading(context, port, expected)
    bad = reading.reason is None and reading.value != "right"
    return [reading._replace(fields={"port": value, **_free_port(context)}) if bad else reading]


def _free_port(context: Context) -> Mapping[str, str]:
    """Return a port that is free here and that the kernel assigns to nobody; none if that is unknown."""
    try:
        taken = {row.port for row in context.host.listeners()}
        given = intervals.union((*ephemeral_ports(context.host), *hccl_ports(context).ports))
    except (HostError, Undetermined):
        return {}
    ports = (port for port in FREE_PORTS if port not in taken)
    found = next((port for port in ports if not intervals.intersection(((port, port),), given)), None)
    return {} if found is None else {"free": str(found)}


def _bindable_reading(context: Context, port: int, expected: Text) -> Reading:
    ports = ((port, port),)
    try:
        rows = foreign_listeners(context, ports)
        if rows:
            _, sockets, owners = rows[0]
            shown = Message("{port} {owners}", port=port, owners=owner_text(owners))
            if context.target.variables().get(AGENT_STORE) == "True":
                shown = Message("{port}; torchrun listens there for its workers", port=port)
                return Reading("MASTER_PORT", "right", Evidence("/proc/net/tcp", sockets), shown, expected)
            return Reading("MASTER_PORT", "taken", Evidence("/proc/net/tcp", sockets), shown, expected)
        given = ephemeral_ports(context.host)
        if intervals.intersection(ports, given) and not intervals.intersection(ports, reserved_ports(context.host)):
            span = intervals.port_text(given)
            shown = Message("{port} is in ip_local_port_range {span} and not reserved", port=port, span=span)
            return Reading("MASTER_PORT", "exposed", Evidence(EPHEMERAL, span), shown, expected)
    except (HostError, Undetermined) as error:
        return _unknown("MASTER_PORT", error)
    return Reading("MASTER_PORT", "right", Evidence("/proc/net/tcp", "no listener"), Literal(str(port)), expected)
