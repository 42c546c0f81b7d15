"""What the tests of the packet filters ask: a short notation for "these ports, from these peers"."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Optional, Sequence

from envtune import intervals as regions
from envtune.resources.firewall.evaluate import connect
from envtune.resources.firewall.match import Packet
from envtune.resources.firewall.model import Table

RULESETS = Path(__file__).parents[1] / "resources" / "firewall" / "rulesets"
PORTS = ((29688, 29688), (60000, 60031))


def recorded(name: str) -> str:
    """A rule set as the tool wrote it."""
    return (RULESETS / name).read_text("utf-8")


def walk(
    tables: Sequence[Table],
    ports: Sequence[tuple[int, int]] = PORTS,
    peer: Optional[str] = None,
    own: Optional[str] = "192.0.2.10",
    interface: Optional[str] = "eth0",
    family: int = 4,
) -> dict[str, str]:
    """{"open": "29688, 60000-60031"}: the ports of each verdict; "part" where it depends on the peer's address."""
    addresses = ((regions.number(peer, family),) * 2,) if peer else regions.peers(family)
    mine = ((regions.number(own, family),) * 2,) if own else None
    everything = regions.box(regions.intervals(ports), addresses)
    found: dict[str, Any] = {}
    for one in connect(tables, Packet(everything, family, False, frozenset(), "new", interface, mine)):
        found[one.verdict] = regions.join(found.get(one.verdict, ()), one.part)
    whole = {
        verdict: regions.intervals((low, high) for low, high, inside in part if inside == addresses)
        for verdict, part in found.items()
    }
    rest = regions.intervals(
        (low, high) for part in found.values() for low, high, inside in part if inside != addresses
    )
    named = {verdict: regions.port_text(ports_) for verdict, ports_ in whole.items() if ports_}
    return {**named, **({"part": regions.port_text(rest)} if rest else {})}


ALL = regions.port_text(PORTS)
