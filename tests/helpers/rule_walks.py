"""What the tests of the packet filters ask: a short notation for "these ports, from these peers"."""

from __future__ import annotations

from pathlib import Path
from typing import Optional, Sequence

from envtune import intervals
from envtune.firewall import Connections, Region, Table, reachability, regions

RULESETS = Path(__file__).parents[1] / "firewall" / "rulesets"
PORTS = ((29688, 29688), (60000, 60031))
ALL = intervals.port_text(PORTS)


def recorded(name: str) -> str:
    """A rule set as the tool wrote it."""
    return (RULESETS / name).read_text("utf-8")


def one_address(address: str, family: int = 4) -> intervals.Intervals:
    """A single address as a set."""
    return ((intervals.address_number(address, family),) * 2,)


def walk(
    tables: Sequence[Table],
    ports: Sequence[tuple[int, int]] = PORTS,
    peer: Optional[str] = None,
    own: Optional[str] = "192.0.2.10",
    interface: Optional[str] = "eth0",
    family: int = 4,
) -> dict[str, str]:
    """{"open": "29688, 60000-60031"}: the ports of each verdict; "part" where it depends on the peer's address."""
    peers = one_address(peer, family) if peer else intervals.unicast_addresses(family)
    mine = one_address(own, family) if own else None
    parts: dict[str, Region] = {}
    for outcome in reachability(tables, Connections(intervals.union(ports), peers, family, interface, mine)):
        parts[outcome.verdict] = regions.union(parts.get(outcome.verdict, ()), outcome.part)
    rows = [(verdict, row) for verdict, part in parts.items() for row in part]
    whole = {
        verdict: intervals.union(row[:2] for other, row in rows if other == verdict and row[2] == peers)
        for verdict in parts
    }
    partly = intervals.union(row[:2] for _, row in rows if row[2] != peers)
    named = {verdict: intervals.port_text(found) for verdict, found in whole.items() if found}
    return {**named, **({"part": intervals.port_text(partly)} if partly else {})}
