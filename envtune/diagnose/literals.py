"""Which literal texts a match of an expression must contain.

Searching 300 expressions over a log costs minutes in Python; finding a handful of literal pieces costs nothing. A line
that contains none of the pieces an expression needs cannot match it, so only the other lines are tried in full.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any, FrozenSet, Iterable, Mapping, Optional, Sequence

# The parser of `re`, under its name since 3.11 or before.
_NEW = sys.version_info >= (3, 11)
sre = importlib.import_module("re._constants" if _NEW else "sre_constants")
sre_parser = importlib.import_module("re._parser" if _NEW else "sre_parse")

Literals = Optional[FrozenSet[str]]  # a match contains at least one of them; None when nothing is certain
SHORTEST = 3


def required_literals(regex: str) -> Literals:
    """The best set of lower-case literals of which every match of `regex` contains at least one (case ignored)."""
    return _best(_sequence(sre_parser.parse(regex)))


def _best(options: Iterable[Literals]) -> Literals:
    """The option whose shortest member is longest: the rarest to find by chance."""
    certain = [o for o in options if o and min(map(len, o)) >= SHORTEST]
    return max(certain, key=lambda o: (min(map(len, o)), -len(o)), default=None)


def _sequence(tokens: Any) -> list[Literals]:
    """Each certain option of a sequence: runs of literal characters, and what its groups and branches need."""
    options: list[Literals] = []
    run = ""
    for operation, argument in tokens:
        if operation is sre.LITERAL:
            run += chr(argument).lower()
            continue
        options.append(frozenset([run]) if run else None)
        run = ""
        options.append(_token(operation, argument))
    options.append(frozenset([run]) if run else None)
    return options


def _token(operation: Any, argument: Any) -> Literals:
    if operation is sre.SUBPATTERN:
        return _best(_sequence(argument[-1]))
    if operation is sre.BRANCH:
        branches = [_best(_sequence(branch)) for branch in argument[1]]
        if any(branch is None for branch in branches):
            return None
        return frozenset().union(*(branch for branch in branches if branch))
    if operation in (sre.MAX_REPEAT, sre.MIN_REPEAT) and argument[0] >= 1:
        return _best(_sequence(argument[2]))
    if operation is sre.ASSERT and argument[0] >= 0:
        return _best(_sequence(argument[1]))
    return None


def choose_anchors(needs: Sequence[FrozenSet[str]], commonness: Mapping[str, float]) -> tuple[str, ...]:
    """A small set of pieces such that every literal of every need contains one: greedy cover by pieces of 4 characters.

    `commonness` gives how often a piece stands in ordinary log lines (0 when it does not); common pieces are avoided,
    because each find of one costs a closer look.
    """
    open_literals = {literal for need in needs for literal in need}
    chosen: list[str] = []
    while open_literals:
        pieces: dict[str, int] = {}
        for literal in open_literals:
            size = min(4, len(literal))
            for start in range(len(literal) - size + 1):
                piece = literal[start : start + size]
                pieces[piece] = pieces.get(piece, 0) + 1
        best = max(pieces, key=lambda p: (pieces[p] / (1 + 1000 * commonness.get(p, 0.0)), p))
        chosen.append(best)
        open_literals = {literal for literal in open_literals if best not in literal}
    return tuple(chosen)
