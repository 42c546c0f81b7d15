"""Ports of a job: HCCL's range on the host, and MASTER_PORT.

Sources: vendor reference of HCCL_IF_BASE_PORT (16 ports in CANN 6.3.RC2 and 8.2.RC1, 32 from 8.3.RC1) and of
HCCL_HOST_SOCKET_PORT_RANGE; Documentation/networking/ip-sysctl of the kernel; porting guide 003:302, 3423, 3435.
"""

from __future__ import annotations

from typing import Iterable, NamedTuple, Optional

from envtune import intervals as regions
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, NotApplicable, Undetermined, host_error_text
from envtune.host import Host
from envtune.intervals import Intervals
from envtune.messages import Literal, Message, Text
from envtune.model import Evidence, Listener, Reading, Source
from envtune.resources.network.names import master, nodes, source_of

BASE_PORT, BASE_RANGE = 60000, (1024, 65520)
EPHEMERAL = "/proc/sys/net/ipv4/ip_local_port_range"
RESERVED = "/proc/sys/net/ipv4/ip_local_reserved_ports"
_SHOWN_LISTENERS = 8


class HcclPorts(NamedTuple):
    """The host ports HCCL binds, and why it is these. `fault` says why the settings cannot work."""

    ports: Intervals
    why: Text
    evidence: Evidence
    fault: Optional[Text] = None
    automatic: bool = False  # the kernel picks from its ephemeral range

    @property
    def subject(self) -> str:
        """`HCCL 60000-60031`."""
        return f"HCCL {regions.port_text(self.ports)}"


def hccl_ports(context: Context) -> HcclPorts:
    """HCCL's ports for this job, its defaults where the job's variables cannot be told."""
    return context.cached(_hccl_ports)


def _hccl_ports(context: Context) -> HcclPorts:
    count, because, cann = ports_per_job(context)
    source = source_of(context)
    try:
        variables = context.target.variables()
    except Undetermined:
        why = Message("HCCL's default base port, because the job's variables are not known; {because}", because=because)
        return HcclPorts(((BASE_PORT, BASE_PORT + count - 1),), why, Evidence(cann))
    named = variables.get("HCCL_HOST_SOCKET_PORT_RANGE", "").strip()
    if named:
        return _named_ports(context, named, source)
    text = variables.get("HCCL_IF_BASE_PORT", "").strip()
    if not text:
        why = Message("HCCL's default base port; {because}", because=because)
        return HcclPorts(((BASE_PORT, BASE_PORT + count - 1),), why, Evidence(cann))
    return _based_ports(text, count, because, source)


def _based_ports(text: str, count: int, because: Text, source: Source) -> HcclPorts:
    setting = f"HCCL_IF_BASE_PORT={text}"
    why = Message("{setting}; {because}", setting=setting, because=because)
    evidence = Evidence(source, setting)
    base = regions.decimal(text)
    if base is None or not BASE_RANGE[0] <= base <= BASE_RANGE[1]:
        fault = Message("{setting} is not a number from 1024 to 65520", setting=setting)
        return HcclPorts((), why, evidence, fault)
    if base + count - 1 > 65535:
        fault = Message("{setting} leaves no room for {count} ports below 65536", setting=setting, count=count)
        return HcclPorts((), why, evidence, fault)
    return HcclPorts(((base, base + count - 1),), why, evidence)


def _named_ports(context: Context, text: str, source: Source) -> HcclPorts:
    setting = f"HCCL_HOST_SOCKET_PORT_RANGE={text}"
    evidence = Evidence(source, setting)
    why = Message("{setting}, which overrides HCCL_IF_BASE_PORT", setting=setting)
    if text.lower() == "auto":
        return HcclPorts(ephemeral(context.host), why, evidence, automatic=True)
    try:
        ports = port_list(text)
    except ValueError:
        ports = ()
    if not ports or ports[0][0] < 1:
        fault = Message("{setting} is not a list of ports from 1 to 65535", setting=setting)
        return HcclPorts((), why, evidence, fault)
    return HcclPorts(ports, why, evidence)


def ports_per_job(context: Context) -> tuple[int, Text, str]:
    """16 or 32 ports, why, and the source: 16 up to CANN 8.2.RC1, 32 from 8.3; where it cannot be told, 32."""
    fact = context.facts["cann"]
    if fact.value is None or fact.value == "none":
        larger = Message("without a CANN version the larger count of 32")
        return 32, larger, str(fact.source)
    generation = _generation(fact.value)
    if generation is None or generation == (8, 2, ""):
        words = f"CANN {fact.value}"
        return 32, Message("{words} may use 16 or 32, so 32", words=words), str(fact.source)
    count = 16 if generation < (8, 3) else 32
    return count, Message("CANN {value} uses {count}", value=fact.value, count=count), str(fact.source)


def _generation(version: str) -> Optional[tuple[object, ...]]:
    """(8, 2, "RC1"): major, minor, and for 8.2 the release candidate that the sources speak of."""
    parts = version.upper().split(".")
    major, minor = (regions.decimal(part) for part in (*parts, "", "")[:2])
    if major is None or minor is None:
        return None
    if major >= 20:  # named after the year: 20.0 to 20.3, before 5.0
        return 0, major
    if (major, minor) == (8, 2):
        return (8, 2, "RC1") if parts[2:3] == ["RC1"] else (8, 2, "")
    return major, minor


def port_list(text: str) -> Intervals:
    """The kernel's list syntax, `60000-60031,8080`; ValueError when it is none."""
    pairs = []
    for part in text.replace("\n", "").split(","):
        if part.strip():
            low, dash, high = part.strip().partition("-")
            pair = (int(low), int(high if dash else low))
            if not 0 <= pair[0] <= pair[1] <= 65535:
                raise ValueError(part)
            pairs.append(pair)
    return regions.union(pairs)


def ephemeral(host: Host) -> Intervals:
    """The ports the kernel gives to outgoing connections, reserved ones not taken out."""
    text = host.read(EPHEMERAL)
    try:
        low, high = (int(word) for word in text.split())
        return port_list(f"{low}-{high}")
    except ValueError:
        raise Undetermined(_nonsense(EPHEMERAL), EPHEMERAL, text) from None


def reserved(host: Host) -> Intervals:
    """The ports the kernel keeps for those who ask for them by number."""
    text = host.read(RESERVED)
    try:
        return port_list(text)
    except ValueError:
        raise Undetermined(_nonsense(RESERVED), RESERVED, text) from None


def _nonsense(path: str) -> Text:
    return Message("{path} does not hold ports", path=path)


@probe("network.hccl_ports", formerly="ports.hccl")
def hccl(context: Context) -> Iterable[Reading]:
    """HCCL's ports: that they exist, that the kernel gives none of them away, that nobody listens on one."""
    found = hccl_ports(context)
    if found.automatic:
        reason = Message("HCCL_HOST_SOCKET_PORT_RANGE=auto: the system picks free ports")
        raise NotApplicable(reason, found.evidence.source, found.evidence.text)
    if found.fault is not None:
        return [Reading("HCCL", "impossible", found.evidence, found.fault, Message("ports that exist"))]
    return [_reservation(context.host, found), *_taken(context, found)]


def _reservation(host: Host, found: HcclPorts) -> Reading:
    subject = found.subject
    try:
        given, kept = ephemeral(host), reserved(host)
    except HostError as error:
        return Reading(subject, None, Evidence(error.path, str(error)), reason=host_error_text(error))
    except Undetermined as verdict:
        return Reading(subject, None, Evidence(verdict.source, verdict.text), reason=verdict.reason)
    inside = regions.intersection(found.ports, given)
    exposed = regions.difference(inside, kept)
    span = regions.port_text(given)
    if not inside:
        value, words = "outside", Message("outside of ip_local_port_range {span}", span=span)
    elif not exposed:
        value, words = "reserved", Message("in ip_local_reserved_ports")
    else:
        ports = regions.port_text(exposed)
        value, words = (
            "exposed",
            Message("{ports} in ip_local_port_range {span}, not in ip_local_reserved_ports", ports=ports, span=span),
        )
    shown = Message("{words} ({why})", words=words, why=found.why)
    evidence = Evidence(RESERVED, f"{RESERVED}: {regions.port_text(kept) or '(empty)'}\n{EPHEMERAL}: {span}")
    commands = _reserving(regions.union((*kept, *exposed))) if exposed else ()
    return Reading(subject, value, evidence, shown, Message("reserved"), commands=commands)


def _reserving(ports: Intervals) -> tuple[str, ...]:
    """Reserve now and at the next boot; what is reserved already stays, since the list is replaced as a whole."""
    setting = f"net.ipv4.ip_local_reserved_ports={regions.port_text(ports).replace(' ', '')}"
    return f"sudo sysctl -w {setting}", f"echo {setting} | sudo tee /etc/sysctl.d/95-envtune.conf"


def _taken(context: Context, found: HcclPorts) -> list[Reading]:
    try:
        rows = listening(context, found.ports)
    except HostError as error:
        subject = f"listeners on {regions.port_text(found.ports)}"
        return [Reading(subject, None, Evidence(error.path, str(error)), reason=host_error_text(error))]
    free = Message("free")
    if not rows:
        words = f"port {regions.port_text(found.ports)}"
        return [Reading(words, "free", Evidence("/proc/net/tcp", "no listener"), free, free)]
    return [
        Reading(
            f"port {port}", "taken", Evidence("/proc/net/tcp", where), owner_text(owners), free, commands=_who(port)
        )
        for port, where, owners in rows[:_SHOWN_LISTENERS]
    ]


def _who(port: int) -> tuple[str, ...]:
    return (f"sudo ss -ltnp 'sport = :{port}'",)


def listening(context: Context, ports: Intervals) -> list[tuple[int, str, list[Listener]]]:
    """(port, sockets, listeners) of every port in which somebody other than the named job listens."""
    by_port: dict[int, list[Listener]] = {}
    for row in context.host.listeners():
        if regions.intersection(((row.port, row.port),), ports):
            by_port.setdefault(row.port, []).append(context.host.owner(row))
    mine = job_pids(context) if by_port else frozenset()
    others = {port: [one for one in rows if one.pid is None or one.pid not in mine] for port, rows in by_port.items()}
    return [
        (port, ", ".join(f"{one.address}:{port}" for one in rows), rows)
        for port, rows in sorted(others.items())
        if rows
    ]


def job_pids(context: Context) -> frozenset[int]:
    """The process named by --pid and its descendants: what they listen on is the job's own."""
    pid = context.target.options.pid
    if pid is None:
        return frozenset()
    found, before = {pid}, 0
    try:
        table = context.host.processes()
    except HostError:
        return frozenset(found)
    while len(found) != before:
        before = len(found)
        found.update(one.pid for one in table if one.ppid in found)
    return frozenset(found)


def owner_text(rows: Iterable[Listener]) -> Text:
    """Who listens, as far as this user may read it."""
    words = []
    for row in rows:
        who = f"{row.process or 'pid'} ({row.pid})" if row.pid is not None else ""
        words.append((f"{row.address} {who}".strip(), bool(who)))
    names = ", ".join(word for word, _ in words)
    if all(known for _, known in words):
        return Message("taken: {names}", names=names)
    return Message("taken: {names}, owner not readable by this user", names=names)


@probe("network.master_port", formerly="ports.master_port")
def master_port(context: Context) -> Iterable[Reading]:
    """MASTER_PORT: a port an ordinary user can bind, free, and not one the kernel hands out."""
    variables = context.target.variables()
    source = source_of(context)
    text = variables.get("MASTER_PORT")
    if text is None:
        raise NotApplicable(Message("MASTER_PORT is not set for this job"), source)
    setting = Evidence(source, f"MASTER_PORT={text}")
    wanted = Message("a free port from 1024 to 65535")
    word = text.strip()
    port = regions.decimal(word)
    if port is None or not 1024 <= port <= 65535:
        shown = Message("{value}: not a number from 1024 to 65535", value=text or Message("(empty)"))
        return [Reading("MASTER_PORT", "impossible", setting, shown, wanted)]
    known = master(context)
    if (known is not None and known.own is False) or (nodes(variables).rank or 0) > 0:
        shown = Message("{word}; bound by the master, which is another host", word=word)
        return [Reading("MASTER_PORT", "right", setting, shown, wanted)]
    return [_bindable(context, port, wanted)]


def _bindable(context: Context, port: int, wanted: Text) -> Reading:
    ports = ((port, port),)
    try:
        rows = listening(context, ports)
        if rows:
            _, where, owners = rows[0]
            words = owner_text(owners)
            shown = Message("{port} {words}", port=port, words=words)
            return Reading("MASTER_PORT", "taken", Evidence("/proc/net/tcp", where), shown, wanted)
        given = ephemeral(context.host)
        if regions.intersection(ports, given) and not regions.intersection(ports, reserved(context.host)):
            span = regions.port_text(given)
            shown = Message("{port} lies in ip_local_port_range {span} and is not reserved", port=port, span=span)
            return Reading("MASTER_PORT", "exposed", Evidence(EPHEMERAL, span), shown, wanted)
    except HostError as error:
        return Reading("MASTER_PORT", None, Evidence(error.path, str(error)), reason=host_error_text(error))
    except Undetermined as verdict:
        return Reading("MASTER_PORT", None, Evidence(verdict.source, verdict.text), reason=verdict.reason)
    return Reading("MASTER_PORT", "right", Evidence("/proc/net/tcp", "no listener"), Literal(str(port)), wanted)
