"""The commands that let the peers in, for the tool that owns the rules and exactly these ports.

firewalld gets the rule twice, to runtime and to permanent, and no reload, which would drop other programs' rules. Plain
rule sets get it at the head of the very chain that closes the way: an accept in another table would not undo a drop.
"""

from __future__ import annotations

import re
from typing import Optional, Sequence

from envtune import intervals as regions
from envtune.intervals import Intervals
from envtune.resources.firewall.model import Rule, Table

UNNAMED = "<peer>"  # the user puts the address of each peer here
_MOST = 8  # peers that get a command each
_ZONE = re.compile(r"(?:filter_)?IN_(.+?)(?:_(?:pre|log|deny|allow|post))?")


def opening(
    tables: Sequence[Table], rule: Optional[Rule], front: str, ports: Intervals, peers: Intervals, family: int
) -> tuple[str, ...]:
    """What to type so that the peers reach `ports`; nothing where the rule that closes is not on the way in."""
    table = next((t for t in tables if rule is not None and rule.where.startswith(f"{t.family} {t.name} ")), None)
    names = regions.networks(peers, family) or (UNNAMED,)
    if table is None or rule is None or len(names) > _MOST:
        return ()
    chain = rule.where.split(" ", 2)[2]
    if any(base.chain.name == chain and base.hook not in ("input", "prerouting") for base in table.bases):
        return ()
    if front == "firewalld":
        zone = table.name if table.family == "firewalld" else _zone(chain)
        return _firewalld(zone, ports, names, family)
    if front == "ufw":
        listed = ",".join(_span(pair, ":") for pair in ports)
        return tuple(f"sudo ufw allow proto tcp from {name} to any port {listed}" for name in names)
    return (
        _iptables(table, chain, ports, names, family)
        if table.family == "iptables"
        else _nft(table, chain, ports, names, family)
    )


def _span(pair: tuple[int, int], mark: str) -> str:
    return str(pair[0]) if pair[0] == pair[1] else f"{pair[0]}{mark}{pair[1]}"


def _zone(chain: str) -> str:
    """The zone whose chain this is; empty for another chain of firewalld, then its default zone is changed."""
    found = _ZONE.fullmatch(chain)
    return found[1] if found is not None else ""


def _firewalld(zone: str, ports: Intervals, names: Sequence[str], family: int) -> tuple[str, ...]:
    where = f" --zone={zone}" if zone else ""
    done = []
    for name in names:
        for pair in ports:
            port = f'port port="{_span(pair, "-")}" protocol="tcp"'
            rule = f'rule family="ipv{family}" source address="{name}" {port} accept'
            done += [f"sudo firewall-cmd{mode}{where} --add-rich-rule='{rule}'" for mode in ("", " --permanent")]
    return tuple(done)


def _iptables(table: Table, chain: str, ports: Intervals, names: Sequence[str], family: int) -> tuple[str, ...]:
    program = table.source.replace("-save", "").split(" ")[0]
    where = "" if table.name == "filter" else f" -t {table.name}"
    listed = ",".join(_span(pair, ":") for pair in ports)
    source = ",".join(names)
    return (f"sudo {program}{where} -I {chain} -p tcp -s {source} -m multiport --dports {listed} -j ACCEPT",)


def _nft(table: Table, chain: str, ports: Intervals, names: Sequence[str], family: int) -> tuple[str, ...]:
    listed = ", ".join(_span(pair, "-") for pair in ports)
    ip = "ip" if family == 4 else "ip6"
    source = names[0] if len(names) == 1 else "'{ " + ", ".join(names) + " }'"
    where = f"{table.family} {table.name} {chain}"
    return (f"sudo nft insert rule {where} {ip} saddr {source} tcp dport '{{ {listed} }}' accept",)
