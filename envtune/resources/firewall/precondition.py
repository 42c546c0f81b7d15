"""What the place of a rule rests on: the chain as it was read, so that a later run finds it as planned or stops.

The digest is made from the listing that was read, live or recorded, by the very patterns that the executor uses on the
chain as it is then. Counters are left out; so are rules of ours that do not move the place.
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


def chain_given(opening: Opening, listing: str, program: str = "", mark: str = "") -> Optional[Mapping[str, Any]]:
    """The `given` of an operation that puts a rule among others; None where the listing does not tell the chain again.

    `program` is the iptables that will answer then, empty for nft; `mark` is the id of the rules that are put in, and
    empty where any rule of ours may come or go.
    """
    if opening.table.source == " ".join(NFT_JSON):
        return _of_json(opening, listing, mark)
    if opening.table.family == "iptables" and program:
        return _of_lines(opening, listing, program, mark)
    return None


def _of_json(opening: Opening, listing: str, mark: str) -> Optional[Mapping[str, Any]]:
    """The rules as nft writes them: one line of JSON, members in a fixed order."""
    table, ours = opening.table, re.escape(mark or "envtune:")
    start = f'{{"rule": {{"family": "{table.family}", "table": "{table.name}", "chain": "{opening.chain}", '
    pattern = (
        re.escape(start)
        + rf'(?!"handle": [0-9]+, "comment": "{ours}).*?'
        + r'\}\}(?=, \{"[a-z ]+": \{"family|\]\}\s*$)'
    )
    found = matching(listing, pattern, _COUNTERS)
    if not found and opening.table.chains[opening.chain].rules:
        return None  # somebody else's JSON: the same rules in another form
    argv = ["nft", "-j", "list", "chain", table.family, table.name, opening.chain]
    return {"argv": argv, "pattern": pattern, "ignore": _COUNTERS, "digest": digest(found)}


def _of_lines(opening: Opening, listing: str, program: str, mark: str) -> Mapping[str, Any]:
    """The rules as iptables-save and `iptables -S` write them: the same words."""
    name, chain = opening.table.name, opening.chain
    inside = re.search(_TABLE.format(name=re.escape(name)), listing)
    lines = (inside[1] if inside else listing).splitlines()
    plain = "\n".join(re.sub(r"^\[[0-9:]+\] ", "", line.strip()) for line in lines)
    pattern = rf"(?m)^-A {re.escape(chain)} (?!.*{re.escape(mark)}\b).*$"
    argv = [program, "-w", *([] if name == "filter" else ["-t", name]), "-S", chain]
    return {"argv": argv, "pattern": pattern, "digest": digest(matching(plain, pattern))}
