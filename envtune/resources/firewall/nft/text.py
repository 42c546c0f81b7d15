"""nftables: the text of `nft list ruleset`, brought into the shape of its JSON. Source: nft(8).

For hosts whose nft writes no JSON, and recorded ones that hold only the text. A rule that is not understood to its last
word becomes one that nobody can follow; what was understood before that word still says which packets it is about.
"""

from __future__ import annotations

import re
from typing import Any, Optional

from envtune.resources.firewall.model import Malformed, Table
from envtune.resources.firewall.nft import text_rule as rules
from envtune.resources.firewall.nft.json import tables
from envtune.resources.firewall.nft.text_rule import Tokens, Unclear

_TOKEN = re.compile(r'"[^"]*"|\n|[!<>=]=|[{}(),;=]|[^\s{}(),;="!<>]+|[!<>]')
_HANDLE = re.compile(r"\s*# handle \d+\s*$")
FAMILIES = ("ip", "ip6", "inet", "arp", "bridge", "netdev")

Item = dict[str, Any]


def parse_text(text: str, family: int) -> list[Table]:
    """The tables a packet of IPv4 (4) or IPv6 (6) passes; Malformed when the text is cut off."""
    try:
        return tables(items(text), family)
    except (LookupError, TypeError, RecursionError) as error:
        raise Malformed(str(error)) from None


def items(text: str) -> list[Item]:
    """The listing as the items of the JSON form."""
    tokens = Tokens(_TOKEN.findall("\n".join(_uncommented(line) for line in text.splitlines())))
    found: list[Item] = []
    tokens.skip("\n", ";")
    while not tokens.done():
        word = tokens.take()
        if word != "table":
            raise Malformed(f"`{word}` where a table begins")
        first = tokens.take()
        family, name = (first, tokens.take()) if first in FAMILIES else ("ip", first)
        tokens.expect("{")
        _table(tokens, family, name.strip('"'), found)
        tokens.skip("\n", ";")
    return found


def _uncommented(line: str) -> str:
    """The line without `# handle 7` at its end, and nothing of a line that is all comment.

    Any other `#` stays and makes its rule unclear: nft writes what it cannot put in its own words as `# xt_...`.
    """
    return "" if line.lstrip().startswith("#") else _HANDLE.sub("", line)


def _table(tokens: Tokens, family: str, name: str, found: list[Item]) -> None:
    body: Item = {"family": family, "name": name}
    found.append({"table": body})
    while True:
        tokens.skip("\n", ";")
        word = tokens.take()
        if word == "}":
            return
        if word == "flags":
            body["flags"] = tokens.rest_of_line()
        elif word == "chain":
            _chain(tokens, family, name, found)
        elif word in ("set", "map"):
            _set(tokens, word, {"family": family, "table": name}, found)
        elif word in ("comment", "owner"):
            tokens.rest_of_line()
        else:  # flowtable, counter, quota, limit, ct helper, synproxy, secmark: objects that rules refer to
            tokens.until("{")
            tokens.block()


def _set(tokens: Tokens, kind: str, body: Item, found: list[Item]) -> None:
    body["name"] = tokens.take().strip('"')
    tokens.expect("{")
    inner = Tokens(tokens.block())
    while not inner.done():
        word = inner.take()
        if word == "flags":
            body["flags"] = [one for one in inner.rest_of_line() if one != ","]
        elif word == "elements":
            inner.expect("=")
            inner.skip("\n")
            inner.expect("{")
            body["elem"] = _elements(Tokens(inner.block()), kind == "map")
    found.append({kind: body})


def _elements(tokens: Tokens, mapped: bool) -> Optional[list[Any]]:
    try:
        return rules.elements(tokens, mapped)
    except Unclear:
        return [{"unclear": None}]


def _chain(tokens: Tokens, family: str, table: str, found: list[Item]) -> None:
    name = tokens.take().strip('"')
    tokens.expect("{")
    body: Item = {"family": family, "table": table, "name": name}
    found.append({"chain": body})
    for line in _lines(tokens.block()):
        if line[0] == "type":
            _base(Tokens(line), body)
        elif line[0] == "policy" and len(line) > 1:
            body["policy"] = line[1]
        elif line[0] not in ("comment", "devices", "}"):
            expr = rules.parse(line)
            found.append({"rule": {"family": family, "table": table, "chain": name, "expr": expr}})


def _base(tokens: Tokens, body: Item) -> None:
    """`type filter hook input priority filter; policy drop;`"""
    words = tokens.rest_of_line()
    pairs = {word: at for at, word in enumerate(words)}
    body["type"] = words[1] if len(words) > 1 else ""
    if "hook" in pairs:
        body["hook"] = words[pairs["hook"] + 1]
    if "priority" in pairs:
        after = words[pairs["priority"] + 1 :]
        end = after.index(";") if ";" in after else len(after)
        number = "".join(after[:end])
        body["prio"] = int(number) if number.lstrip("-").isdigit() else number
    if "policy" in pairs:
        body["policy"] = words[pairs["policy"] + 1]


def _lines(words: list[str]) -> list[list[str]]:
    """The lines of a block; a line goes on while a brace is open."""
    done: list[list[str]] = []
    line: list[str] = []
    depth = 0
    for word in words:
        depth += (word == "{") - (word == "}")
        if word == "\n" and depth == 0:
            if line:
                done.append(line)
            line = []
        elif word != "\n":
            line.append(word)
    return [*done, line] if line else done
