"""nftables: the text of `nft list ruleset`, converted to the form of its JSON. Source: nft(8).

For hosts whose nft has no JSON output, and recordings with only the text. A rule that is not understood to its last
word gets an unknown action; what was understood before that word still limits the packets it applies to.
"""

from __future__ import annotations

import re
from typing import Any, Sequence

from envtune.firewall.model import ListingError, Table
from envtune.firewall.nft.json import tables
from envtune.intervals import address_family
from envtune.ranges import decimal

Item = dict[str, Any]
Expr = list[dict[str, Any]]

FAMILIES = ("ip", "ip6", "inet", "arp", "bridge", "netdev")
_TOKEN = re.compile(r'"[^"]*"|\n|[!<>=]=|[{}(),;=]|[^\s{}(),;="!<>]+|[!<>]')
_HANDLE = re.compile(r"\s*# handle \d+\s*$")
_HEADERS = frozenset(
    {"tcp", "udp", "th", "ip", "ip6", "ether", "icmp", "icmpv6", "igmp", "sctp", "dccp", "udplite", "esp", "ah", "comp"}
    | {"arp", "vlan"}
)
_BARE_META = frozenset({"iif", "iifname", "oif", "oifname"})
_PLAIN = frozenset({"accept", "drop", "return", "continue", "notrack"})
_OPERATORS = ("==", "!=", "<=", ">=", "<", ">")
_BITS = ({"ct": {"key": "state"}}, {"payload": {"protocol": "tcp", "field": "flags"}}, {"ct": {"key": "status"}})
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+")


class UnclearError(Exception):
    """Words that are not understood."""


class Tokens:
    """Words to be consumed one after the other; running out of them means that the text was truncated."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = words
        self.at = 0

    def done(self) -> bool:
        """Return whether all words are consumed."""
        return self.at >= len(self.words)

    def peek(self, ahead: int = 0) -> str:
        """Return the next word without consuming it; empty at the end."""
        return self.words[self.at + ahead] if self.at + ahead < len(self.words) else ""

    def take(self) -> str:
        """Take the next word; raises ListingError at the end."""
        if self.done():
            raise ListingError("the text ends in the middle")
        self.at += 1
        return self.words[self.at - 1]

    def take_if(self, *words: str) -> bool:
        """Take the next word if it is one of these; return whether it was."""
        hit = self.peek() in words and not self.done()
        self.at += hit
        return hit

    def expect(self, word: str) -> None:
        """Take exactly this word; raises ListingError for any other."""
        taken = self.take()
        if taken != word:
            raise ListingError(f"`{taken}` where `{word}` belongs")

    def skip(self, *words: str) -> None:
        """Take any of these words as long as they follow."""
        while self.take_if(*words):
            pass

    def until(self, word: str) -> None:
        """Take everything up to and including this word."""
        while self.take() != word:
            pass

    def rest_of_line(self) -> list[str]:
        """Take the words up to the end of the line."""
        words = []
        while not self.done() and self.peek() != "\n":
            words.append(self.take())
        return words

    def block(self) -> list[str]:
        """Take the words up to the brace that closes the one just taken, and the brace."""
        words: list[str] = []
        depth = 1
        while True:
            word = self.take()
            depth += (word == "{") - (word == "}")
            if depth == 0:
                return words
            words.append(word)


def parse_text(text: str, family: int) -> list[Table]:
    """Return the tables a packet of IPv4 (4) or IPv6 (6) passes; raises ListingError if the text is truncated."""
    try:
        return tables(items(text), family)
    except (LookupError, TypeError, RecursionError) as error:
        raise ListingError(str(error)) from None


def items(text: str) -> list[Item]:
    """Return the listing as the items of the JSON form."""
    tokens = Tokens(_TOKEN.findall("\n".join(_uncommented(line) for line in text.splitlines())))
    listed: list[Item] = []
    tokens.skip("\n", ";")
    while not tokens.done():
        word = tokens.take()
        if word != "table":
            raise ListingError(f"`{word}` where a table begins")
        first = tokens.take()
        family, name = (first, tokens.take()) if first in FAMILIES else ("ip", first)
        tokens.expect("{")
        _read_table(tokens, family, name.strip('"'), listed)
        tokens.skip("\n", ";")
    return listed


def _uncommented(line: str) -> str:
    """Return the line without `# handle 7` at its end; an empty string for a comment line.

    Any other `#` is kept and makes its rule unclear: nft prints what it cannot express as `# xt_...`.
    """
    return "" if line.lstrip().startswith("#") else _HANDLE.sub("", line)


def _read_table(tokens: Tokens, family: str, name: str, listed: list[Item]) -> None:
    body: Item = {"family": family, "name": name}
    listed.append({"table": body})
    while True:
        tokens.skip("\n", ";")
        word = tokens.take()
        if word == "}":
            return
        if word == "flags":
            body["flags"] = tokens.rest_of_line()
        elif word == "chain":
            _read_chain(tokens, family, name, listed)
        elif word in ("set", "map"):
            _read_set(tokens, word, {"family": family, "table": name}, listed)
        elif word in ("comment", "owner"):
            tokens.rest_of_line()
        else:  # flowtable, counter, quota, limit, ct helper, synproxy, secmark: objects that rules refer to
            tokens.until("{")
            tokens.block()


def _read_set(tokens: Tokens, kind: str, body: Item, listed: list[Item]) -> None:
    body["name"] = tokens.take().strip('"')
    tokens.expect("{")
    inner = Tokens(tokens.block())
    while not inner.done():
        word = inner.take()
        if word == "flags":
            body["flags"] = [flag for flag in inner.rest_of_line() if flag != ","]
        elif word == "elements":
            inner.expect("=")
            inner.skip("\n")
            inner.expect("{")
            elements = inner.block()
            try:
                body["elem"] = _elements(elements, kind == "map")
            except UnclearError:
                body["elem"] = [{"unclear": None}]
    listed.append({kind: body})


def _read_chain(tokens: Tokens, family: str, table: str, listed: list[Item]) -> None:
    name = tokens.take().strip('"')
    tokens.expect("{")
    body: Item = {"family": family, "table": table, "name": name}
    listed.append({"chain": body})
    for line in _lines(tokens.block()):
        if line[0] == "type":
            _read_hook(line, body)
        elif line[0] == "policy" and len(line) > 1:
            body["policy"] = line[1]
        elif line[0] not in ("comment", "devices", "}"):
            listed.append({"rule": {"family": family, "table": table, "chain": name, "expr": _expressions(line)}})


def _read_hook(words: Sequence[str], body: Item) -> None:
    """Read `type filter hook input priority filter; policy drop;`."""
    pairs = {word: at for at, word in enumerate(words)}
    body["type"] = words[1] if len(words) > 1 else ""
    if "hook" in pairs:
        body["hook"] = words[pairs["hook"] + 1]
    if "priority" in pairs:
        after = words[pairs["priority"] + 1 :]
        priority = "".join(after[: after.index(";")] if ";" in after else after)
        body["prio"] = int(priority) if re.fullmatch(r"-?[0-9]{1,18}", priority) else priority
    if "policy" in pairs:
        body["policy"] = words[pairs["policy"] + 1]


def _lines(words: list[str]) -> list[list[str]]:
    """Return the lines of a block; a line continues while a brace is open."""
    lines: list[list[str]] = []
    line: list[str] = []
    depth = 0
    for word in words:
        depth += (word == "{") - (word == "}")
        if word == "\n" and depth == 0:
            if line:
                lines.append(line)
            line = []
        elif word != "\n":
            line.append(word)
    return [*lines, line] if line else lines


# ---------------------------------------------------------------------- one rule


def _expressions(words: Sequence[str]) -> Expr:
    """Return the expressions of a rule; from the first word not understood on, a single unknown one."""
    tokens = Tokens([word for word in words if word != "\n"])
    expr: Expr = []
    at = 0
    try:
        while not tokens.done():
            at = tokens.at
            expr += _statement(tokens)
        return expr
    except (UnclearError, ValueError):
        return [*expr, {" ".join(["?", *tokens.words[at:]]): None}]


def _statement(tokens: Tokens) -> Expr:
    word = tokens.peek()
    if word in _PLAIN:
        return [{tokens.take(): None}]
    if tokens.take_if("jump", "goto"):
        return [{word: {"target": tokens.take().strip('"')}}]
    if word in _FINAL:
        tokens.at = len(tokens.words)  # what remains belongs to it
        return [{word: {}}]
    if word in _READERS:
        return _READERS[word](tokens)
    if word in ("add", "update", "delete") and tokens.peek(1).startswith("@"):
        return _set_statement(tokens)
    return _match_or_mangle(tokens)


def _counter(tokens: Tokens) -> Expr:
    tokens.take()
    if tokens.peek() == "packets":
        tokens.at += 4
    elif tokens.peek() == "name":
        tokens.at += 2
    return []


def _comment(tokens: Tokens) -> Expr:
    tokens.at += 2
    return []


def _log(tokens: Tokens) -> Expr:
    tokens.take()
    while tokens.peek() in ("prefix", "level", "group", "snaplen", "queue-threshold", "flags"):
        tokens.at += 2
        tokens.skip("all", "sequence", "options", "ip", ",")
    return [{"log": None}]


def _limit(tokens: Tokens) -> Expr:
    """Read `limit rate [over] 3/minute [burst 5 packets]`."""
    tokens.take()
    if tokens.take() != "rate":
        raise UnclearError
    tokens.skip("over")
    rate = tokens.take()
    tokens.skip("bytes/second", "kbytes/second", "mbytes/second", "bytes/minute")
    if tokens.peek() == "burst":
        tokens.at += 3
    number, _, per = rate.partition("/")
    return [{"limit": {"rate": number, "per": per}}]


def _reject(tokens: Tokens) -> Expr:
    tokens.take()
    if tokens.peek() == "with":
        tokens.at = len(tokens.words)
    return [{"reject": None}]


def _foreign(tokens: Tokens) -> Expr:
    """Read `xt match "recent"`: an iptables match that nft only names."""
    tokens.take()
    return [{"xt": {"type": tokens.take(), "name": tokens.take().strip('"')}}]


_READERS = {"xt": _foreign, "counter": _counter, "comment": _comment, "log": _log, "limit": _limit, "reject": _reject}
_FINAL = frozenset({"masquerade", "snat", "dnat", "redirect", "queue", "tproxy", "fwd", "synproxy"})


def _set_statement(tokens: Tokens) -> Expr:
    """Read `add @set { ip saddr }`; with a limit inside it is a condition."""
    op, name = tokens.take(), tokens.take()
    tokens.expect("{")
    inner = tokens.block()
    body: dict[str, Any] = {"op": op, "set": name, "elem": " ".join(inner)}
    if {"limit", "quota", "over", "count"} & set(inner):
        body["stmt"] = True
    return [{"set": body}]


def _match_or_mangle(tokens: Tokens) -> Expr:
    """Read a match, a verdict map, or a value that is set."""
    left = _left(tokens)
    if tokens.take_if("set"):
        value = tokens.take()
        while tokens.peek() in ("&", "|", "^", "and", "or", "xor"):
            tokens.at += 2
            value = ""
        return [{"mangle": {"key": left, "value": _scalar(value) if value else None}}]
    if tokens.take_if("vmap"):
        if tokens.peek().startswith("@"):
            return [{"vmap": {"key": left, "data": tokens.take()}}]
        tokens.expect("{")
        return [{"vmap": {"key": left, "data": {"set": _elements(tokens.block(), True)}}}]
    if tokens.take_if("&", "and"):
        left = {"&": [left, _mask(tokens)]}
    op = tokens.take() if tokens.peek() in _OPERATORS else ("in" if left in _BITS else "==")
    right = _right(tokens)
    if tokens.take_if("/"):  # `tcp flags syn / fin,syn,rst,ack`
        left, op = {"&": [left, _right(tokens)]}, "!=" if op == "!=" else "=="
    return [{"match": {"op": op, "left": left, "right": right}}]


def _left(tokens: Tokens) -> dict[str, Any]:
    parts = [_field(tokens)]
    while tokens.take_if("."):
        parts.append(_field(tokens))
    return parts[0] if len(parts) == 1 else {"concat": parts}


def _field(tokens: Tokens) -> dict[str, Any]:
    word = tokens.take()
    if word == "tcp" and tokens.peek() == "option" and tokens.peek(3) == "set":
        tokens.at += 3
        return {"tcp option": None}  # a segment size: no rule tests it
    if word in _BARE_META:
        return {"meta": {"key": word}}
    if word == "meta":
        return {"meta": {"key": tokens.take()}}
    if word == "ct":
        key = tokens.take()
        if key in ("original", "reply", "count", "helper", "timeout", "expectation"):
            raise UnclearError
        return {"ct": {"key": key}}
    if word == "fib":
        return _fib(tokens)
    if word in _HEADERS and tokens.peek() != "option":
        return {"payload": {"protocol": word, "field": tokens.take()}}
    raise UnclearError(word)


def _fib(tokens: Tokens) -> dict[str, Any]:
    flags = [tokens.take()]
    while tokens.take_if("."):
        flags.append(tokens.take())
    return {"fib": {"flags": flags, "result": tokens.take()}}


def _mask(tokens: Tokens) -> Any:
    if not tokens.take_if("("):
        return _scalar(tokens.take())
    names = []
    while not tokens.take_if(")"):
        word = tokens.take()
        if word not in ("|", ","):
            names.append(word)
    return names


def _right(tokens: Tokens) -> Any:
    """Read `{ 22, 80 }`, `@set`, `established,related`, `10.0.0.0/8`, `"eth0"`."""
    if tokens.take_if("{"):
        return {"set": _elements(tokens.block(), False)}
    if tokens.peek() == "(":
        return {"|": _mask(tokens)}
    if tokens.take_if("missing"):
        return False
    values = [_scalar(tokens.take())]
    while tokens.take_if(",", "|"):
        values.append(_scalar(tokens.take()))
    return values[0] if len(values) == 1 else values


def _elements(words: Sequence[str], mapped: bool) -> list[Any]:
    """Return the elements between braces; of a map, [key, verdict] pairs."""
    elements: list[Any] = []
    for part in filter(None, _split([word for word in words if word != "\n"], ",")):
        key = part[: part.index(":")] if ":" in part and mapped else part
        value = _element(key)
        elements.append([value, _verdict(part[len(key) + 1 :])] if mapped else value)
    return elements


def _split(words: Sequence[str], separator: str) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for word in words:
        if word == separator:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def _element(words: Sequence[str]) -> Any:
    """Return a value or a concatenation; a timeout, counter or comment after it does not matter."""
    end = next(
        (at for at, word in enumerate(words) if word in ("timeout", "expires", "counter", "comment")), len(words)
    )
    parts = _split(words[:end], ".")
    if not all(len(part) == 1 for part in parts):
        raise UnclearError(" ".join(words))
    values = [_scalar(part[0]) for part in parts]
    return values[0] if len(values) == 1 else {"concat": values}


def _verdict(words: Sequence[str]) -> dict[str, Any]:
    if len(words) == 1 and words[0] in ("accept", "drop", "return", "continue"):
        return {words[0]: None}
    if len(words) == 2 and words[0] in ("jump", "goto"):
        return {words[0]: {"target": words[1].strip('"')}}
    raise UnclearError(" ".join(words))


def _scalar(word: str) -> Any:
    """Return a number, a name, a prefix or a range."""
    if word.startswith('"'):
        return word.strip('"')
    if _NUMBER.fullmatch(word):
        return int(word, 0) if not word.startswith("0") or "x" in word or word == "0" else int(word)
    low, dash, high = word.partition("-")
    if dash and _same_kind(low, high):
        return {"range": [_scalar(low), _scalar(high)]}
    address, slash, length = word.partition("/")
    if slash and decimal(length) is not None and _is_address(address):
        return {"prefix": {"addr": address, "len": decimal(length)}}
    if not re.fullmatch(r"[\w.:@*+%/\-]+", word):
        raise UnclearError(word)
    return word


def _same_kind(low: str, high: str) -> bool:
    numbers = _NUMBER.fullmatch(low) is not None and _NUMBER.fullmatch(high) is not None
    return numbers or (_is_address(low) and _is_address(high))


def _is_address(text: str) -> bool:
    try:
        address_family(text)
    except ValueError:
        return False
    return True
