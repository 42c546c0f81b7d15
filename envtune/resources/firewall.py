"""Whether a new TCP connection from a cluster peer gets through this host's packet filters.

The rule sets themselves are evaluated (firewall_walk.py), not their front ends' settings; firewall_sources.py says
which commands are read, in which order. A verdict holds for every port asked about and for every address a peer can
have, or for the peers' addresses where the job names them (HCCL_WHITELIST_FILE, two nodes with MASTER_ADDR).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterable, Mapping, NamedTuple, Optional, Sequence

from envtune.errors import HostError, NotApplicable, Undetermined
from envtune.host import Host
from envtune.model import Evidence, Interface, Reading, Text
from envtune.resources import Scene, probe
from envtune.resources import firewall_region as regions
from envtune.resources.firewall_region import Intervals, Region
from envtune.resources.firewall_sources import RuleSets, rule_sets, without_dormant
from envtune.resources.network import is_loopback, master, nodes
from envtune.resources.ports import HcclPorts, hccl_ports

if TYPE_CHECKING:
    from envtune.resources.firewall_rules import Rule
    from envtune.resources.firewall_walk import Outcome

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
    known: Intervals  # peers named by the job
    complete: bool


class Way(NamedTuple):
    """The interface peers come by and the addresses of this host they use there; None: not known."""

    name: Optional[str]
    own: Optional[Intervals]


@probe("firewall.peers")
def from_peers(scene: Scene) -> Iterable[Reading]:
    """MASTER_PORT (where this host is the master) and HCCL's ports: open to the peers, closed, or cannot be told."""
    peers = _peers(scene)
    sets = rule_sets(scene.host, peers.family)
    readings = _readings(scene, peers, sets)
    if any(reading.value != "open" for reading in readings) and without_dormant(scene.host, sets):
        return _readings(scene, peers, sets)
    return readings


def _readings(scene: Scene, peers: Peers, sets: RuleSets) -> list[Reading]:
    readings = []
    port = _master_port(scene)
    if port is not None:
        readings.append(_reading(scene, f"MASTER_PORT {port}", ((port, port),), peers, sets, None))
    found = hccl_ports(scene)
    if found.fault is not None:
        readings.append(Reading("HCCL", None, found.evidence, reason=found.fault))
    else:
        readings.append(_reading(scene, found.subject, found.ports, peers, sets, found))
    return readings


def _master_port(scene: Scene) -> Optional[int]:
    """The port peers connect to on this host; None on a worker, or when none is set (network checks judge it)."""
    try:
        variables = scene.target.variables()
        text = variables.get("MASTER_PORT", "").strip()
        known = master(scene)
    except Undetermined:
        return None
    port = regions.decimal(text)
    if port is None or not 0 < port < 65536:
        return None
    away = (known is not None and known.own is False) or (nodes(variables).rank or 0) > 0
    return None if away else port


def _peers(scene: Scene) -> Peers:
    try:
        variables = scene.target.variables()
        known = master(scene)
    except Undetermined:
        return Peers(4, regions.peers(4), (), False)
    job = nodes(variables)
    if job.size == 1:
        reason = Text(f"a job on a single node has no peers ({job.source})", f"单机任务没有其他节点（{job.source}）")
        raise NotApplicable(reason, scene.target.environment.source, job.source)
    addresses = known.addresses if known is not None else ()
    version = 6 if addresses and all(":" in address for address in addresses) else 4
    listed = _whitelist(scene.host, variables, version)
    if listed:
        return Peers(version, listed, listed, True)
    away = [a for a in addresses if (":" in a) == (version == 6)] if known is not None and known.own is False else []
    named_ones = regions.intervals((regions.number(a, version),) * 2 for a in away)
    complete = job.size == 2 and bool(named_ones)
    return Peers(version, named_ones if complete else regions.peers(version), named_ones, complete)


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


def _reading(
    scene: Scene, subject: str, ports: Intervals, peers: Peers, sets: RuleSets, hccl: Optional[HcclPorts]
) -> Reading:
    judge = _Judge(subject, ports, peers, sets, hccl)
    if not sets.tables:
        return judge.reading([(Way(None, None), [])])
    from envtune.resources.firewall_match import Packet
    from envtune.resources.firewall_walk import TooLarge, connect

    packet = Packet(regions.box(ports, peers.addresses), peers.family, False, frozenset(), "new")
    try:
        outcomes = [
            (way, connect(sets.tables, packet._replace(interface=way.name, own=way.own)))
            for way in _ways(scene, peers.family, hccl)
        ]
    except TooLarge:
        return Reading(subject, None, _evidence(sets, None), expected=_wanted(sets), reason=_TOO_LARGE)
    return judge.reading(outcomes)


_TOO_LARGE = Text("the rule set is too large to follow every way through it", "规则集过大，无法逐条推演")


def _ways(scene: Scene, family: int, hccl: Optional[HcclPorts]) -> list[Way]:
    """The interfaces peers can come by: the one the job names, else every one that faces the network."""
    try:
        table = [_faced(one, family) for one in scene.host.interfaces()]
    except HostError:
        return [Way(None, None)]
    facing = [one for one in table if one.up and one.addresses]
    wanted = _named_by_job(scene, facing, hccl is not None)
    outer = [one for one in facing if not any(one.name.startswith(start) for start in INNER)]
    chosen = wanted or outer or facing
    return [
        Way(one.name, regions.intervals((regions.number(a, family),) * 2 for a in one.addresses)) for one in chosen
    ] or [Way(None, None)]


def _faced(one: Interface, family: int) -> Interface:
    plain = (address.partition("%")[0] for address in one.addresses)
    return one._replace(addresses=tuple(a for a in plain if (":" in a) == (family == 6) and not is_loopback(a)))


def _named_by_job(scene: Scene, facing: Sequence[Interface], hccl: bool) -> list[Interface]:
    """HCCL_IF_IP before HCCL_SOCKET_IFNAME (facts D7); for MASTER_PORT, the interface that has MASTER_ADDR."""
    try:
        variables = scene.target.variables()
        known = master(scene)
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


class _Judge:
    """Outcomes on every way, as one reading."""

    def __init__(self, subject: str, ports: Intervals, peers: Peers, sets: RuleSets, hccl: Optional[HcclPorts]) -> None:
        self.subject = subject
        self.ports = ports
        self.peers = peers
        self.sets = sets
        self.why = hccl.why if hccl is not None else None

    def reading(self, outcomes: Sequence[tuple[Way, list[Outcome]]]) -> Reading:
        closed = [self._closed(way, found) for way, found in outcomes]
        if all(one is not None for one in closed) and closed[0] is not None:
            return closed[0]
        for at, one in enumerate(closed):
            if one is not None:  # another way is not closed: which one peers take is not known
                name = outcomes[at][0].name or "-"
                return self._untold(
                    Text(f"closed by {name}, not by every interface", f"经 {name} 被拦截，但并非所有网卡都如此"),
                    one.evidence,
                )
        for _, found in outcomes:
            doubt = self._doubt(found)
            if doubt is not None:
                return doubt
        return self._open(outcomes[0][1])

    def _closed(self, way: Way, found: Sequence[Outcome]) -> Optional[Reading]:
        """A failing reading when some port is closed to every peer there is, or to one the job names."""
        shut = [o for o in found if o.verdict == "closed"]
        part: Region = ()
        for one in shut:
            part = regions.join(part, one.part)
        fatal = tuple(row for row in part if row[2] == self.peers.addresses or regions.common(row[2], self.peers.known))
        if not fatal:
            return None
        rule = self._deciding(shut, fatal)
        ports = regions.port_text(regions.ports_of(fatal))
        who = regions.common(regions.addresses_of(fatal), self.peers.known)
        peers = f" to {regions.address_text(who, self.peers.family)}" if who else ""
        nodes_zh = f"对 {regions.address_text(who, self.peers.family)} " if who else ""
        by = f"`{rule.text}` ({rule.where})" if rule is not None else "-"
        shown = Text(f"{ports} closed{peers} by {by}", f"{ports} {nodes_zh}被 `{by}` 拦截".replace("``", "`"))
        from envtune.resources.firewall_remedy import opening

        front = front_end(self.sets)
        let_in = opening(self.sets.tables, rule, front, self.ports, self.peers.known, self.peers.family)
        return Reading(self.subject, "closed", _evidence(self.sets, rule), shown, _wanted(self.sets), commands=let_in)

    @staticmethod
    def _deciding(shut: Sequence[Outcome], fatal: Region) -> Optional[Rule]:
        """The rule that closes the most of it."""
        sizes = [(sum(high - low + 1 for low, high in regions.addresses_of(o.part)), at) for at, o in enumerate(shut)]
        hits = [size for size in sizes if regions.meet(shut[size[1]].part, fatal)]
        return shut[max(hits)[1]].rule if hits else None

    def _doubt(self, found: Sequence[Outcome]) -> Optional[Reading]:
        """Why it cannot be told, when it cannot."""
        for one in found:
            if one.verdict == "unknown" and one.rule is not None:
                by = f"`{one.rule.text}` ({one.rule.where})"
                reason = Text(
                    f"what this rule does to a peer's connection cannot be told: {by}",
                    f"无法判断该规则对其他节点的连接有何作用：{by}",
                )
                return self._untold(reason, _evidence(self.sets, one.rule))
        shut = [o for o in found if o.verdict == "closed"]
        if shut:
            return self._untold(*self._partly(found, shut))
        if self.sets.gaps:
            gap = next((g for g in self.sets.gaps if not g.right), self.sets.gaps[0])
            untold = self._untold(gap.reason, Evidence(gap.source, gap.text))
            return untold._replace(right=all(g.right for g in self.sets.gaps))
        return None

    def _partly(self, found: Sequence[Outcome], shut: Sequence[Outcome]) -> tuple[Text, Evidence]:
        let_in = [o for o in found if o.verdict == "open"]
        inside = regions.intervals(pair for o in let_in for pair in regions.addresses_of(o.part))
        outside = regions.intervals(pair for o in shut for pair in regions.addresses_of(o.part))
        family = self.peers.family
        if len(inside) <= len(outside):
            rule, names = let_in[0].rule if let_in else None, regions.address_text(inside, family)
            reason = Text(
                f"open only for {names}; whether that is every peer is not known",
                f"仅对 {names} 放行；是否涵盖所有节点未知",
            )
        else:
            rule, names = shut[0].rule, regions.address_text(outside, family)
            reason = Text(
                f"open except for {names}; whether a peer is among them is not known",
                f"除 {names} 外均放行；其中是否有任务节点未知",
            )
        return reason, _evidence(self.sets, rule)

    def _untold(self, reason: Text, evidence: Evidence) -> Reading:
        return Reading(self.subject, None, evidence, None, _wanted(self.sets), reason)

    def _open(self, found: Sequence[Outcome]) -> Reading:
        rule = next((o.rule for o in found if o.rule is not None), None)
        by = f"`{rule.text}` ({rule.where})" if rule is not None else ""
        words = (
            Text(f"open by {by}", f"由 {by} 放行") if by else Text("open: no packet filter", "放行：没有任何过滤规则")
        )
        return Reading(self.subject, "open", _evidence(self.sets, rule), words, _wanted(self.sets))


def _evidence(sets: RuleSets, rule: Optional[Rule]) -> Evidence:
    """The rule, and the command that shows it; without a rule, what told that there is none."""
    if rule is not None:
        for table in sets.tables:
            if rule.where.startswith(f"{table.family} {table.name} "):
                return Evidence(table.source, f"{rule.where}: {rule.text}")
    if sets.told:
        return Evidence(*sets.told[0])
    return Evidence("nft -j list ruleset")


def _wanted(sets: RuleSets) -> Text:
    """What should be, and whose rules these are: a change elsewhere would not last."""
    front = front_end(sets)
    if not front:
        return Text("open to the peers", "对其他节点开放")
    return Text(f"open to the peers (the rules are {front}'s)", f"对其他节点开放（规则由 {front} 管理）")


def front_end(sets: RuleSets) -> str:
    """firewalld or ufw by the chains they make; empty when neither did."""
    for table in sets.tables:
        if table.name == "firewalld" or table.family == "firewalld" or "INPUT_ZONES" in table.chains:
            return "firewalld"
        if table.family == "ufw" or any(name.startswith(("ufw-", "ufw6-")) for name in table.chains):
            return "ufw"
    return ""
