"""Match shell patterns (`*`, `?`, `[a-z]`) in one pass over the text, for any pattern.

All ways to match are followed at once: bit n of a number says that the first n positions of the pattern are matched.
"""

from __future__ import annotations

import re
from typing import Callable, Iterator, NamedTuple, Optional

MAX_POSITIONS = 1024  # of a pattern; real ones have ten
_SPECIAL = re.compile(r"[*?\[\\]")
_EXTENDED = re.compile(r"[@?*+!]\(")
_CLASS = re.compile(r"\[:|\[=|\[\.")
_SET = re.compile(r"\[([!^]?)(\]?[^\]]*)\]", re.DOTALL)


class Pattern(NamedTuple):
    """Positions (a character, or the characters in and between pairs, or none: any), and where `*` may stretch."""

    positions: tuple[Callable[[str], bool], ...]
    stars: int  # bit n: anything may stand before position n

    def reversed(self) -> Pattern:
        """Return the pattern that matches the reversed texts."""
        size = len(self.positions)
        stars = sum(1 << (size - gap) for gap in range(size + 1) if self.stars >> gap & 1)
        return Pattern(self.positions[::-1], stars)

    def ends(self, text: str) -> Iterator[int]:
        """Yield the length of every matching prefix of `text`, the shortest first."""
        goal, state, masks = 1 << len(self.positions), 1, dict[str, int]()
        if state & goal:
            yield 0
        for length, char in enumerate(text, 1):
            mask = masks.get(char)
            if mask is None:
                mask = masks[char] = sum(1 << n for n, matches in enumerate(self.positions) if matches(char))
            state = (state & mask) << 1 | state & self.stars
            if state & goal:
                yield length
            if not state:
                return

    def matches(self, text: str) -> bool:
        """Return whether the whole text matches."""
        return max(self.ends(text), default=-1) == len(text)


def parse_pattern(text: str) -> Optional[Pattern]:
    """Return the pattern; None for what is not supported (character classes, extended patterns, backslashes)."""
    if len(text) > 8 * MAX_POSITIONS or _EXTENDED.search(text) or _CLASS.search(text):
        return None
    positions: list[Callable[[str], bool]] = []
    stars, at = 0, 0
    while at < len(text):
        char, bracket = text[at], _SET.match(text, at)
        at += 1
        if char == "*":
            stars |= 1 << len(positions)
        elif char == "?":
            positions.append(lambda _: True)
        elif bracket is not None:
            positions.append(_in_set(bracket[2], bracket[1] == ""))
            at = bracket.end()
        elif char == "\\":
            return None
        else:
            positions.append(char.__eq__)
    return Pattern(tuple(positions), stars) if len(positions) <= MAX_POSITIONS else None


def _in_set(inside: str, wanted: bool) -> Callable[[str], bool]:
    ranges = re.findall(r"(.)-(.)|(.)", inside, re.DOTALL)
    pairs = [(low or single, high or single) for low, high, single in ranges]
    return lambda char: any(low <= char <= high for low, high in pairs) is wanted


def quoted_pattern(text: str) -> str:
    """Return the pattern that matches this text only."""
    return _SPECIAL.sub(lambda special: f"[{special[0]}]", text)
