"""Patterns for names of hosts and subjects: `node[01-20,25]`, `npu*`, several separated by commas."""

from __future__ import annotations

import re
from functools import cache
from typing import Iterator, NamedTuple

_PIECE = re.compile(r"\[([0-9,-]*)\]|([*?])|([^*?\[\]]+)")
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
_WILDCARDS = {"*": ".*", "?": "."}


class _Range(NamedTuple):
    first: int
    last: int
    width: int  # digits a number must have, 0 for any

    def holds(self, digits: str) -> bool:
        """Return whether a number in a name is in the range."""
        return self.first <= int(digits) <= self.last and (not self.width or len(digits) == self.width)


class _Pattern(NamedTuple):
    expression: re.Pattern[str]
    ranges: tuple[tuple[_Range, ...], ...]  # one item per bracket, a group of the expression

    def matches(self, name: str) -> bool:
        """Return whether the whole name matches."""
        found = self.expression.fullmatch(name)
        return found is not None and all(
            any(one.holds(digits) for one in ranges) for digits, ranges in zip(found.groups(), self.ranges)
        )


def matches(patterns: str, name: str) -> bool:
    """Return whether one of the comma-separated patterns matches the whole name; ValueError if one is invalid."""
    return any(pattern.matches(name) for pattern in _compiled(patterns))


def matches_host(patterns: str, name: str) -> bool:
    """Return whether a host matches, by its full name or the part before the first dot."""
    return matches(patterns, name) or matches(patterns, name.partition(".")[0])


def is_pattern(text: str) -> bool:
    """Return True for a valid pattern; otherwise ValueError says why not."""
    _compiled(text)
    return True


@cache
def _compiled(patterns: str) -> tuple[_Pattern, ...]:
    return tuple(_pattern(part) for part in _parts(patterns))


def _parts(patterns: str) -> Iterator[str]:
    """Yield the parts between commas outside brackets."""
    for part in re.split(r",(?![0-9,-]*\])", patterns):
        if not part.strip():
            raise ValueError("nothing stands between two commas")
        yield part.strip()


def _pattern(text: str) -> _Pattern:
    expression, ranges, end = "", [], 0
    while end < len(text):
        piece = _PIECE.match(text, end)
        if piece is None:
            raise ValueError(f"{text[end:]!r}: brackets hold numbers, as in node[01-20,25]")
        end = piece.end()
        if piece[1] is not None:
            ranges.append(tuple(map(_range, piece[1].split(","))))
            expression += "([0-9]{1,18})"
        else:
            expression += _WILDCARDS[piece[2]] if piece[2] else re.escape(piece[3])
    return _Pattern(re.compile(expression, re.DOTALL), tuple(ranges))


def _range(text: str) -> _Range:
    found = _RANGE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a range of numbers")
    first, last = found[1], found[2] or found[1]
    if int(last) < int(first):
        raise ValueError(f"{text!r}: the last number is below the first")
    return _Range(int(first), int(last), len(first) if first.startswith("0") and len(first) > 1 else 0)
