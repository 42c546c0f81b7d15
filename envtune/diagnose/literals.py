"""Which literal texts a match of an expression must contain.

Searching 300 expressions over a log costs minutes in Python; finding a handful of literal pieces costs nothing. A line
that contains none of the pieces an expression needs cannot match it, so only the other lines are tried in full.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any, FrozenSet, Iterable, NamedTuple, Sequence, Tuple

# The parser of `re`, under its name since 3.11 or before.
_NEW = sys.version_info >= (3, 11)
sre = importlib.import_module("re._constants" if _NEW else "sre_constants")
sre_parser = importlib.import_module("re._parser" if _NEW else "sre_parse")

SHORTEST = 3  # bytes
ONE_OR_MORE = (sre.MAX_REPEAT, sre.MIN_REPEAT)
NEWLINE = ord("\n")


class Literal(NamedTuple):
    """A piece of text that a match contains: as it is written (`exact`), or in any case (then it is lower case)."""

    text: str
    exact: bool


Literals = FrozenSet[Literal]  # a match contains at least one of them
Conjunction = Tuple[Literals, ...]  # a match contains at least one of each set; the first is the rarest
Needs = Tuple[Conjunction, ...]  # a match satisfies at least one conjunction; none when nothing is certain


def required_literals(regex: str, multiline: bool = False) -> Needs:
    """What every match of `regex` contains. For a match that may span lines: in the line in which it begins."""
    parsed = sre_parser.parse(regex)
    tokens: Sequence[Any] = list(parsed)
    fold = bool(parsed.state.flags & sre.SRE_FLAG_IGNORECASE)
    if multiline and parsed.state.flags & sre.SRE_FLAG_DOTALL:
        return ()
    sequences = [tokens]
    if len(tokens) == 1 and tokens[0][0] is sre.BRANCH:
        sequences = [list(branch) for branch in tokens[0][1][1]]
    found = [_conjunction(first_line(s) if multiline else s, fold) for s in sequences]
    return tuple(found) if all(found) else ()


def _conjunction(tokens: Sequence[Any], fold: bool) -> Conjunction:
    options = {option for option in _sequence(tokens, fold) if option}
    best = _best(options)
    return (best, *sorted(options - {best}, key=sorted)) if best else ()


def first_line(tokens: Sequence[Any]) -> Sequence[Any]:
    """The tokens before the first one that can match a line end: what they match stands in one line."""
    for number, (operation, argument) in enumerate(tokens):
        if may_end_line(operation, argument):
            return tokens[:number]
    return tokens


def may_end_line(operation: Any, argument: Any) -> bool:
    """Whether a token can match a line end. In doubt it can."""
    if operation is sre.LITERAL:
        return bool(argument == NEWLINE)
    if operation is sre.NOT_LITERAL:
        return bool(argument != NEWLINE)
    if operation in (sre.ANY, sre.AT):
        return False
    if operation is sre.IN:
        return _class_holds_newline(argument)
    if operation in ONE_OR_MORE:
        return any(may_end_line(*token) for token in argument[2])
    if operation is sre.SUBPATTERN:
        return bool(argument[1] & sre.SRE_FLAG_DOTALL) or any(may_end_line(*token) for token in argument[-1])
    if operation is sre.BRANCH:
        return any(may_end_line(*token) for branch in argument[1] for token in branch)
    return True


def _class_holds_newline(items: Sequence[Any]) -> bool:
    negated = items[0][0] is sre.NEGATE
    holds = False
    for operation, argument in items[1:] if negated else items:
        if operation is sre.LITERAL:
            holds = holds or argument == NEWLINE
        elif operation is sre.RANGE:
            holds = holds or argument[0] <= NEWLINE <= argument[1]
        elif operation is sre.CATEGORY:
            holds = holds or argument in (sre.CATEGORY_SPACE, sre.CATEGORY_NOT_DIGIT, sre.CATEGORY_NOT_WORD)
    return holds != negated


def _best(options: Iterable[Literals]) -> Literals:
    """The option whose shortest member is longest, the rarest to find by chance; empty when all are too short."""
    certain = [option for option in options if option and _shortest(option) >= SHORTEST]
    return max(certain, key=lambda option: (_shortest(option), -len(option), sorted(option)), default=frozenset())


def _shortest(option: Literals) -> int:
    return min(len(literal.text.encode("utf-8", "replace")) for literal in option)


def _sequence(tokens: Any, fold: bool) -> list[Literals]:
    """Each certain option of a sequence: runs of literal characters, and what its groups and branches need."""
    options: list[Literals] = []
    run = ""
    for operation, argument in tokens:
        if operation is sre.LITERAL and (argument < 128 or not (fold and _has_case(chr(argument)))):
            run += chr(argument)
            continue
        options.append(_literal(run, fold))
        run = ""
        options.append(_token(operation, argument, fold))
    options.append(_literal(run, fold))
    return options


def _literal(run: str, fold: bool) -> Literals:
    if not run:
        return frozenset()
    return frozenset([Literal(run.lower() if fold else run, not fold or not _has_case(run))])


def _has_case(character: str) -> bool:
    return character.lower() != character.upper()


def _token(operation: Any, argument: Any, fold: bool) -> Literals:
    if operation is sre.SUBPATTERN:
        fold = bool((fold or argument[1] & sre.SRE_FLAG_IGNORECASE) and not argument[2] & sre.SRE_FLAG_IGNORECASE)
        return _best(_sequence(argument[-1], fold))
    if operation is sre.BRANCH:
        branches = [_best(_sequence(branch, fold)) for branch in argument[1]]
        return frozenset().union(*branches) if all(branches) else frozenset()
    if operation in ONE_OR_MORE and argument[0] >= 1:
        return _best(_sequence(argument[2], fold))
    if operation is sre.ASSERT and argument[0] >= 0:
        return _best(_sequence(argument[1], fold))
    return frozenset()


def cover(literals: Iterable[str], length: int = 4) -> dict[str, tuple[str, ...]]:
    """Few pieces such that every literal contains one: piece -> the literals it was chosen for. Greedy.

    Pieces that stand in many literals are the better ones; of equals, the one that sorts first, so that the answer
    does not depend on the order of a set.
    """
    pieces: dict[str, set[str]] = {}
    for literal in set(literals):
        size = min(length, len(literal))
        for start in range(len(literal) - size + 1):
            pieces.setdefault(literal[start : start + size], set()).add(literal)
    chosen: dict[str, tuple[str, ...]] = {}
    while pieces:
        best = min(pieces, key=lambda piece: (-len(pieces[piece]), piece))
        covered = pieces.pop(best)
        chosen[best] = tuple(sorted(covered))
        for piece in list(pieces):
            pieces[piece] -= covered
            if not pieces[piece]:
                del pieces[piece]
    return chosen
