"""What the position of a rule depends on: the chain as it was read, so that a later run finds it unchanged or stops.

The digest is computed from the listing that was read, live or recorded, with the same patterns that the executor uses
on the chain at that time. Counters are left out, and so are envtune's own rules that do not affect the position.
"""

from __future__ import annotations

import re
from typing import Any, Mapping, Optional

from envtune.executor.files import digest
from envtune.executor.operations.command import matching
from envtune.resources.firewall.listings import NFT_JSON
from envtune.resources.firewall.placement import Opening

_COUNTERS = '"(?:packets|bytes|used)": [0-9]+'
_TABLE = r"(?ms)^\*{name}\s*$(.*?)^COMMIT"


def chain_precondition(
    opening: Opening, listing: str, program: str = "", comment: str = ""
) -> Optional[Mapping[str, Any]]:
    """Return the `given` of an operation that inserts a rule among others; None if the chain cannot be listed again.

    `program` is the iptables that will be run then, empty for nft; `comment` is the id of the inserted rules, empty if
    any rule of envtune may come or go.
    """
    if opening.table.source == " ".join(NFT_JSON):
        return _of_json(opening, listing, comment)
    if opening.table.family == "iptables" and program:
        return _of_lines(opening, listing, program, comment)
    return None


def _of_json(opening: Opening, listing: str, comment: str) -> Optional[Mapping[str, Any]]:
    """Return the rules as printed by nft: one line of JSON, members in a fixed order."""
    table, own = opening.table, re.escape(comment or "envtune:")
    start = f'{{"rule": {{"family": "{table.family}", "table": "{table.name}", "chain": "{opening.chain}", '
    pattern = (
        re.escape(start) + rf'(?!"handle": [0-9]+, "comment": "{own}).*?' + r'\}\}(?=, \{"[a-z ]+": \{"family|\]\}\s*$)'
    )
    rules = matching(listing, pattern, _COUNTERS)
    if not rules and opening.table.chains[opening.chain].rules:
        return None  # JSON in another format: the same rules, differently written
    argv = ["nft", "-j", "list", "chain", table.family, table.name, opening.chain]
    return {"argv": argv, "pattern": pattern, "ignore": _COUNTERS, "digest": digest(rules)}


def _of_lines(opening: Opening, listing: str, program: str, comment: str) -> Mapping[str, Any]:
    """Return the rules as printed by iptables-save and `iptables -S`, which use the same words."""
    name, chain = opening.table.name, opening.chain
    inside = re.search(_TABLE.format(name=re.escape(name)), listing)
    lines = (inside[1] if inside else listing).splitlines()
    plain = "\n".join(re.sub(r"^\[[0-9:]+\] ", "", line.strip()) for line in lines)
    pattern = rf"(?m)^-A {re.escape(chain)} (?!.*{re.escape(comment)}\b).*$"
    argv = [program, "-w", *([] if name == "filter" else ["-t", name]), "-S", chain]
    return {"argv": argv, "pattern": pattern, "digest": digest(matching(plain, pattern))}
