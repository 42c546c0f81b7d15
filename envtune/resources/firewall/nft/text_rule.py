"""One rule of `nft list ruleset`, word by word, as the expressions of nftables' JSON."""

from __future__ import annotations

import re
from typing import Any, Sequence

from envtune import intervals as regions
from envtune.resources.firewall.model import Malformed

Expr = list[dict[str, Any]]

_HEADERS = frozenset(
    {"tcp", "udp", "th", "ip", "ip6", "ether", "icmp", "icmpv6", "igmp", "sctp", "dccp", "udplite", "esp", "ah", "comp"}
    | {"arp", "vlan"}
)
_BARE_META = frozenset({"iif", "iifname", "oif", "oifname"})
_PLAIN = frozenset({"accept", "drop", "return", "continue", "notrack"})
_OPERATORS = ("==", "!=", "<=", ">=", "<", ">")
_BITS = ({"ct": {"key": "state"}}, {"payload": {"protocol": "tcp", "field": "flags"}}, {"ct": {"key": "status"}})
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+")


class Unclear(Exception):
    """Words that are not understood."""


class Tokens:
    """Words to be taken one after the other; running out of them means that the text was cut off."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = words
        self.at = 0

    def done(self) -> bool:
        """Whether no word is left."""
        return self.at >= len(self.words)

    def peek(self, ahead: int = 0) -> str:
        """The next word, empty at the end."""
        return self.words[self.at + ahead] if self.at + ahead < len(self.words) else ""

    def take(self) -> str:
        """The next word."""
        if self.done():
            raise Malformed("the text ends in the middle")
        self.at += 1
        return self.words[self.at - 1]

    def expect(self, word: str) -> None:
        """Take exactly this word."""
        found = self.take()
        if found != word:
            raise Malformed(f"`{found}` where `{word}` belongs")

    def skip(self, *words: str) -> None:
        """Take any of these words as long as they come."""
        while self.peek() in words and not self.done():
            self.at += 1

    def until(self, word: str) -> None:
        """Take everything up to and including this word."""
        while self.take() != word:
            pass

    def rest_of_line(self) -> list[str]:
        """The words up to the end of the line."""
        found = []
        while not self.done() and self.peek() != "\n":
            found.append(self.take())
        return found

    def block(self) -> list[str]:
        """The words up to the brace that closes the one just taken."""
        found: list[str] = []
        depth = 1
        while True:
            word = self.take()
            depth += (word == "{") - (word == "}")
            if depth == 0:
                return found
            found.append(word)


def parse(words: Sequence[str]) -> Expr:
    """The expressions of a rule; from the first word that is not understood on, a single one that nobody knows."""
    tokens = Tokens([word for word in words if word != "\n"])
    done: Expr = []
    at = 0
    try:
        while not tokens.done():
            at = tokens.at
            done += _statement(tokens)
        return done
    except (Unclear, ValueError):
        return [*done, {" ".join(["?", *tokens.words[at:]]): None}]


def _statement(tokens: Tokens) -> Expr:
    word = tokens.peek()
    if word in _PLAIN:
        return [{tokens.take(): None}]
    if word in ("jump", "goto"):
        tokens.take()
        return [{word: {"target": tokens.take().strip('"')}}]
    if word in _REST:
        tokens.at = len(tokens.words)  # nothing follows but what belongs to it
        return [{word: {}}]
    if word in _SKIPPED:
        return _SKIPPED[word](tokens)
    if word in ("add", "update", "delete") and tokens.peek(1).startswith("@"):
        return _set_statement(tokens)
    return _asking(tokens)


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
    """`limit rate [over] 3/minute [burst 5 packets]`"""
    tokens.take()
    if tokens.take() != "rate":
        raise Unclear
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
    """`xt match "recent"`: words of iptables that nft only names."""
    tokens.take()
    return [{"xt": {"type": tokens.take(), "name": tokens.take().strip('"')}}]


_SKIPPED = {"xt": _foreign, "counter": _counter, "comment": _comment, "log": _log, "limit": _limit, "reject": _reject}
_REST = frozenset({"masquerade", "snat", "dnat", "redirect", "queue", "tproxy", "fwd", "synproxy"})


def _set_statement(tokens: Tokens) -> Expr:
    """`add @set { ip saddr }`; with a limit inside it is a condition."""
    op, name = tokens.take(), tokens.take()
    tokens.expect("{")
    inner = tokens.block()
    body: dict[str, Any] = {"op": op, "set": name, "elem": " ".join(inner)}
    if {"limit", "quota", "over", "count"} & set(inner):
        body["stmt"] = True
    return [{"set": body}]


def _asking(tokens: Tokens) -> Expr:
    """A match, a verdict map, or a value that is set."""
    left = _left(tokens)
    if tokens.peek() == "set":
        tokens.take()
        value = tokens.take()
        while tokens.peek() in ("&", "|", "^", "and", "or", "xor"):
            tokens.at += 2
            value = ""
        return [{"mangle": {"key": left, "value": _scalar(value) if value else None}}]
    if tokens.peek() == "vmap":
        tokens.take()
        if tokens.peek().startswith("@"):
            return [{"vmap": {"key": left, "data": tokens.take()}}]
        tokens.expect("{")
        return [{"vmap": {"key": left, "data": {"set": elements(Tokens(tokens.block()), True)}}}]
    if tokens.peek() in ("&", "and"):
        tokens.take()
        left = {"&": [left, _mask(tokens)]}
    op = tokens.take() if tokens.peek() in _OPERATORS else ("in" if left in _BITS else "==")
    right = _right(tokens)
    if tokens.peek() == "/":  # `tcp flags syn / fin,syn,rst,ack`
        tokens.take()
        left, op = {"&": [left, _right(tokens)]}, "!=" if op == "!=" else "=="
    return [{"match": {"op": op, "left": left, "right": right}}]


def _left(tokens: Tokens) -> dict[str, Any]:
    parts = [_field(tokens)]
    while tokens.peek() == ".":
        tokens.take()
        parts.append(_field(tokens))
    return parts[0] if len(parts) == 1 else {"concat": parts}


def _field(tokens: Tokens) -> dict[str, Any]:
    word = tokens.take()
    if word == "tcp" and tokens.peek() == "option" and tokens.peek(3) == "set":
        tokens.at += 3
        return {"tcp option": None}  # a segment size: no rule asks for it
    if word in _BARE_META:
        return {"meta": {"key": word}}
    if word == "meta":
        return {"meta": {"key": tokens.take()}}
    if word == "ct":
        key = tokens.take()
        if key in ("original", "reply", "count", "helper", "timeout", "expectation"):
            raise Unclear
        return {"ct": {"key": key}}
    if word == "fib":
        return _fib(tokens)
    if word in _HEADERS and tokens.peek() != "option":
        return {"payload": {"protocol": word, "field": tokens.take()}}
    raise Unclear(word)


def _fib(tokens: Tokens) -> dict[str, Any]:
    flags = [tokens.take()]
    while tokens.peek() == ".":
        tokens.take()
        flags.append(tokens.take())
    return {"fib": {"flags": flags, "result": tokens.take()}}


def _mask(tokens: Tokens) -> Any:
    if tokens.peek() != "(":
        return _scalar(tokens.take())
    tokens.take()
    names = []
    while tokens.peek() != ")":
        word = tokens.take()
        if word not in ("|", ","):
            names.append(word)
    tokens.take()
    return names


def _right(tokens: Tokens) -> Any:
    """`{ 22, 80 }`, `@set`, `established,related`, `10.0.0.0/8`, `"eth0"`."""
    if tokens.peek() == "{":
        tokens.take()
        return {"set": elements(Tokens(tokens.block()), False)}
    if tokens.peek() == "(":
        return {"|": _mask(tokens)}
    if tokens.peek() == "missing":
        tokens.take()
        return False
    values = [_scalar(tokens.take())]
    while tokens.peek() in (",", "|"):
        tokens.take()
        values.append(_scalar(tokens.take()))
    return values[0] if len(values) == 1 else values


def elements(tokens: Tokens, mapped: bool) -> list[Any]:
    """The elements between braces; of a map, [key, verdict] pairs."""
    done: list[Any] = []
    for words in _split([word for word in tokens.words if word != "\n"], ","):
        if not words:
            continue
        key = words[: words.index(":")] if ":" in words and mapped else words
        value = _element(key)
        done.append([value, _verdict(words[len(key) + 1 :])] if mapped else value)
    return done


def _split(words: Sequence[str], mark: str) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for word in words:
        if word == mark:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def _element(words: Sequence[str]) -> Any:
    """A value or a concatenation; a time-out, counter or comment after it does not matter."""
    end = next(
        (at for at, word in enumerate(words) if word in ("timeout", "expires", "counter", "comment")), len(words)
    )
    parts = _split(words[:end], ".")
    if not all(len(part) == 1 for part in parts):
        raise Unclear(" ".join(words))
    values = [_scalar(part[0]) for part in parts]
    return values[0] if len(values) == 1 else {"concat": values}


def _verdict(words: Sequence[str]) -> dict[str, Any]:
    if len(words) == 1 and words[0] in ("accept", "drop", "return", "continue"):
        return {words[0]: None}
    if len(words) == 2 and words[0] in ("jump", "goto"):
        return {words[0]: {"target": words[1].strip('"')}}
    raise Unclear(" ".join(words))


def _scalar(word: str) -> Any:
    """A number, a name, a prefix or a range."""
    if word.startswith('"'):
        return word.strip('"')
    if _NUMBER.fullmatch(word):
        return int(word, 0) if not word.startswith("0") or "x" in word or word == "0" else int(word)
    low, dash, high = word.partition("-")
    if dash and (_same_kind(low, high)):
        return {"range": [_scalar(low), _scalar(high)]}
    address, slash, length = word.partition("/")
    if slash and length.isdigit() and _is_address(address):
        return {"prefix": {"addr": address, "len": int(length)}}
    if not re.fullmatch(r"[\w.:@*+%/\-]+", word):
        raise Unclear(word)
    return word


def _same_kind(low: str, high: str) -> bool:
    numbers = _NUMBER.fullmatch(low) is not None and _NUMBER.fullmatch(high) is not None
    return numbers or (_is_address(low) and _is_address(high))


def _is_address(text: str) -> bool:
    try:
        regions.family_of(text)
    except ValueError:
        return False
    return True
