"""Relax an expression over text to one over bytes that matches at least the same lines (an over-approximation).

Both prefilters need it: hyperscan has no look-around, and no Unicode classes for bytes that may be invalid UTF-8;
templates have no digits left. What is dropped or widened here only lets more lines through to the full expression. The
result is in the syntax that `re` and hyperscan share.
"""

from __future__ import annotations

import re
from typing import Any, Iterable, Mapping, Optional, Sequence

from envtune.catalog.signatures.literals import ONE_OR_MORE, first_line, sre, sre_parser

_IDENTITY = bytes(range(256))
_HIGH = frozenset(range(128, 256))  # every byte of a character beyond ASCII
_ANY = _HIGH | frozenset(range(128)) - {ord("\n")}
_CATEGORIES: Mapping[Any, str] = {
    sre.CATEGORY_DIGIT: r"\d",
    sre.CATEGORY_NOT_DIGIT: r"\D",
    sre.CATEGORY_SPACE: r"\s",
    sre.CATEGORY_NOT_SPACE: r"\S",
    sre.CATEGORY_WORD: r"\w",
    sre.CATEGORY_NOT_WORD: r"\W",
}
_LONGEST_REPEAT = 64  # a longer bounded repeat becomes unbounded: counting states make an automaton big and slow
_ATOMIC = getattr(sre, "ATOMIC_GROUP", None)  # since Python 3.11
_POSSESSIVE = getattr(sre, "POSSESSIVE_REPEAT", None)


def ignores_case(regex: str) -> bool:
    """Return whether any part of the expression ignores case; then the relaxed one has to, too."""
    return (
        bool(re.compile(regex).flags & re.IGNORECASE) or "(?i:" in regex or re.search(r"\(\?[a-z]*i", regex) is not None
    )


def relax_regex(regex: str, multiline: bool = False, table: bytes = _IDENTITY) -> bytes:
    """Return the relaxed expression, empty if nothing is left of it.

    `table` is the translation table of the bytes to be searched; of an expression that may span lines, only the part in
    the first line is kept. With `ignores_case` it is written in lower case.
    """
    tokens: Sequence[Any] = list(sre_parser.parse(regex))
    tokens = first_line(tokens) if multiline else tokens
    return _Writer(table, ignores_case(regex)).sequence(_trimmed(tokens))


def _trimmed(tokens: Sequence[Any]) -> list[Any]:
    """Return the tokens without the optional ones at both ends, which do not decide whether there is a match."""
    kept = list(tokens)
    while kept and _least(kept[-1]) == 0:
        kept.pop()
    while kept and _least(kept[0]) == 0:
        kept.pop(0)
    if kept and kept[-1][0] in ONE_OR_MORE:
        operation, (least, _, repeated) = kept[-1]
        kept[-1] = (operation, (least, least, repeated))
    return kept


def _least(token: tuple[Any, Any]) -> int:
    """Return 0 if the token can match the empty text."""
    operation, argument = token
    if operation in (*ONE_OR_MORE, _POSSESSIVE):
        return int(argument[0])
    if operation in (sre.AT, sre.ASSERT, sre.ASSERT_NOT):
        return 0
    return 1


class _Writer:
    def __init__(self, table: bytes, fold: bool) -> None:
        self._table = table
        self._fold = fold

    def sequence(self, tokens: Sequence[Any]) -> bytes:
        written = b""
        for number, (operation, argument) in enumerate(tokens):
            if operation is sre.AT:
                neighbours = [*tokens[max(0, number - 1) : number], *tokens[number + 1 : number + 2]]
                written += rb"\b" if argument is sre.AT_BOUNDARY and _any_word_character(neighbours) else b""
            else:
                written += self._token(operation, argument)
        return written

    def _token(self, operation: Any, argument: Any) -> bytes:
        if operation is sre.LITERAL:
            return self._literal(argument)
        allowed = _allowed(operation, argument, self._fold)
        if allowed is not None:
            return self._class(allowed, 1, 1)
        if operation is sre.SUBPATTERN:
            return self._group(argument[-1])
        if operation is sre.BRANCH:
            return b"(?:" + b"|".join(self.sequence(list(branch)) for branch in argument[1]) + b")"
        if operation in ONE_OR_MORE or operation is _POSSESSIVE:
            return self._repeat(*argument)
        if operation is _ATOMIC:
            return self._group(argument)
        if operation in (sre.ASSERT, sre.ASSERT_NOT):
            return b""
        return self._class(_ANY, 0, sre.MAXREPEAT)  # a back-reference: the group may have matched anything

    def _group(self, tokens: Any) -> bytes:
        inside = self.sequence(list(tokens))
        return b"(?:" + inside + b")" if inside else b""

    def _literal(self, character: int) -> bytes:
        text = chr(character)
        if self._fold and text.lower() != text.upper():
            if character >= 128 or len(text.lower()) > 1:
                return self._class(_ANY, 1, 4)
            text = text.lower()
        return b"".join(_escaped(byte) for byte in text.encode("utf-8", "replace").translate(self._table))

    def _repeat(self, least: int, most: Any, tokens: Any) -> bytes:
        inner = list(tokens)
        allowed = _allowed(inner[0][0], inner[0][1], self._fold) if len(inner) == 1 else None
        if allowed is not None:
            return self._class(allowed, least, most)
        inside = self._group(inner)
        return inside + _times(least, most) if inside else b""

    def _class(self, allowed: Iterable[int], least: int, most: Any) -> bytes:
        """Write a byte class for a character class: a non-ASCII character has up to four bytes."""
        allowed = frozenset(allowed)
        if allowed & _HIGH and most is not sre.MAXREPEAT:
            most = 4 * most
        translated = sorted({self._table[byte] for byte in allowed})
        return b"[" + b"".join(_escaped(byte) for byte in translated) + b"]" + _times(least, most)


def _times(least: int, most: Any) -> bytes:
    if (least, most) == (1, 1):
        return b""
    if most is sre.MAXREPEAT or most > _LONGEST_REPEAT:
        return b"{%d,}" % least
    return b"{%d,%d}" % (least, most)


def _escaped(byte: int) -> bytes:
    character = bytes([byte])
    return character if character.isalnum() else b"\\x%02x" % byte


def _any_word_character(tokens: Sequence[Any]) -> bool:
    """Return whether a token is an ASCII word character: next to one, a word boundary in text is one in bytes, too."""
    return any(
        operation is sre.LITERAL and argument < 128 and (chr(argument).isalnum() or argument == ord("_"))
        for operation, argument in tokens
    )


def _allowed(operation: Any, argument: Any, fold: bool) -> Optional[frozenset[int]]:
    """Return the bytes of the characters that a token for one character matches; None for other tokens."""
    if operation is sre.ANY:
        return _ANY
    if operation is sre.NOT_LITERAL:
        return _ANY - ({argument} if not fold and argument < 128 else set())
    if operation is not sre.IN:
        return None
    negated = argument[0][0] is sre.NEGATE
    items = argument[1:] if negated else argument
    expression = re.compile("[" + "".join(map(_item, items)) + "]", re.IGNORECASE if fold else 0)
    ascii_ones = {byte for byte in range(128) if (expression.match(chr(byte)) is None) is negated}
    only_ascii = not negated and not fold and all(_below_128(*item) for item in items)
    return frozenset(ascii_ones - {ord("\n")}) | (frozenset() if only_ascii else _HIGH)


def _item(item: tuple[Any, Any]) -> str:
    operation, argument = item
    if operation is sre.LITERAL:
        return re.escape(chr(argument))
    if operation is sre.RANGE:
        return f"{re.escape(chr(argument[0]))}-{re.escape(chr(argument[1]))}"
    return _CATEGORIES[argument]


def _below_128(operation: Any, argument: Any) -> bool:
    if operation is sre.RANGE:
        return bool(argument[1] < 128)
    return bool(operation is sre.LITERAL and argument < 128)
