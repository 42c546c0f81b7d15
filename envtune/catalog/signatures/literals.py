"""Find the literal texts that a match of an expression must contain.

Searching a log for 300 expressions costs minutes in Python; finding a handful of literal pieces costs nothing. A line
that contains none of the pieces an expression needs cannot match it, so only the other lines are matched in full.
"""

from __future__ import annotations

import importlib
import sys
from functools import lru_cache
from typing import AbstractSet, Any, FrozenSet, Iterable, Iterator, NamedTuple, Optional, Sequence, Tuple

# The parser of `re`, under its name since 3.11 or before.
_NEW = sys.version_info >= (3, 11)
sre = importlib.import_module("re._constants" if _NEW else "sre_constants")
sre_parser = importlib.import_module("re._parser" if _NEW else "sre_parse")

SHORTEST = 3  # bytes
MAX_SPELLINGS = 24  # texts into which a token may be expanded
# Words of lines that report no error, from plog at level INFO and the output of training scripts.
ORDINARY = (
    "python op_kernel_info_store kernel_name task_type stream_id device_id event_id context infershape infer shape"
    " tiling_key tiling data workspace execute start end success timestamp time_cost timeout synchronizestream"
    " synchronize memory malloc free size alloc copy async rank table ranksize level hccl allreduce transport socket"
    " link listen port connect heartbeat graph engine optimize compile session node operator input output format dtype"
    " torch torch_npu transformers megatron deepspeed epoch step iter iteration loss grad norm lr throughput samples"
    " info event debug report profiling options default config version library loading loaded set get create destroy"
    " init enable disable wait numpy torch_npu/ npu site-packages device ip code error_code result ret success return"
)
ONE_OR_MORE = (sre.MAX_REPEAT, sre.MIN_REPEAT)
_ASSERTIONS = (sre.ASSERT, sre.ASSERT_NOT)
NEWLINE = ord("\n")


class Literal(NamedTuple):
    """A piece of text that a match contains: with this case (`exact`), or in any case (then it is lower case)."""

    text: str
    exact: bool


Literals = FrozenSet[Literal]  # a match contains at least one of them
Conjunction = Tuple[Literals, ...]  # a match contains at least one of each set; the first is the rarest
Needs = Tuple[Conjunction, ...]  # a match satisfies at least one conjunction; empty if nothing is certain


_known: dict[Tuple[str, bool], Any] = {}


def remember(rows: Iterable[Tuple[str, bool, Any]]) -> None:
    """Have `required_literals` answer for these expressions with what `as_rows` returned of them.

    Parsing all signatures of the catalog would take half of the time until a short log is diagnosed.
    """
    _known.update(((regex, multiline), needs) for regex, multiline, needs in rows)


def as_rows(expressions: Iterable[Tuple[str, bool]]) -> Sequence[Tuple[str, bool, Any]]:
    """Return expressions with what they require, as plain data."""
    return [(regex, multiline, _plain(required_literals(regex, multiline))) for regex, multiline in expressions]


def _plain(needs: Needs) -> Any:
    return [[sorted(literals) for literals in conjunction] for conjunction in needs]


def _from_plain(needs: Any) -> Needs:
    return tuple(
        tuple(frozenset(Literal(text, exact) for text, exact in literals) for literals in conjunction)
        for conjunction in needs
    )


@lru_cache(maxsize=2048)
def required_literals(regex: str, multiline: bool = False) -> Needs:
    """Return what every match of `regex` contains; where a match may span lines: in the line in which it begins."""
    known = _known.get((regex, multiline))
    if known is not None:
        return _from_plain(known)
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
    """Return the tokens before the first one that can match a newline: what they match is in one line.

    What an assertion looks for in later lines is ignored; what follows the assertion is in the same line.
    """
    kept = []
    for operation, argument in tokens:
        if not may_end_line(operation, argument):
            kept.append((operation, argument))
        elif operation not in _ASSERTIONS:
            break
    return kept


def may_end_line(operation: Any, argument: Any) -> bool:
    """Return whether a token can match a newline; true if in doubt."""
    if operation is sre.LITERAL:
        return bool(argument == NEWLINE)
    if operation is sre.NOT_LITERAL:
        return bool(argument != NEWLINE)
    if operation in (sre.ANY, sre.AT):
        return False
    if operation is sre.IN:
        return _class_holds_newline(argument)
    if operation in ONE_OR_MORE or operation in _ASSERTIONS:
        return any(may_end_line(*token) for token in argument[-1])
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
    """Return the option that is likely the rarest: no member ordinary, the shortest member longest; empty if none."""
    certain = [option for option in options if option and shortest(option) >= SHORTEST]
    return max(certain, key=lambda o: (not ordinary(o), shortest(o), -len(o), sorted(o)), default=frozenset())


def shortest(option: Literals) -> int:
    """Return the length of the shortest literal, in bytes."""
    return min(len(literal.text.encode("utf-8", "replace")) for literal in option)


def ordinary(option: Literals) -> bool:
    """Return whether lines without any error are full of one of these literals."""
    return any(literal.text.lower() in ORDINARY for literal in option)


def _sequence(tokens: Any, fold: bool) -> list[Literals]:
    """Return what a match contains: each run of tokens that can be expanded, and what the others need."""
    options: list[Literals] = []
    spelled = {""}
    for operation, argument in _flat(tokens):
        spellings = _spellings(operation, argument, fold)
        if spellings is not None and len(spellings) * len(spelled) <= MAX_SPELLINGS:
            spelled = {before + after for before in spelled for after in spellings}
            continue
        options.append(_literals(spelled, fold))
        spelled = {""} if spellings is None else spellings
        if spellings is None:
            options.append(_token(operation, argument, fold))
    options.append(_literals(spelled, fold))
    return options


def _flat(tokens: Any) -> Iterator[Any]:
    """Yield the tokens, with groups replaced by their tokens."""
    for token in tokens:
        if token[0] is sre.SUBPATTERN and not token[1][1] and not token[1][2]:
            yield from _flat(token[1][-1])
        else:
            yield token


def _literals(spelled: AbstractSet[str], fold: bool) -> Literals:
    if "" in spelled:
        return frozenset()
    return frozenset(Literal(text.lower() if fold else text, not fold or not _has_case(text)) for text in spelled)


def _spellings(operation: Any, argument: Any, fold: bool) -> Optional[set[str]]:
    """Return every text that the token can match, if these are few and all known; None otherwise."""
    if operation is sre.LITERAL:
        return None if fold and argument >= 128 and _has_case(chr(argument)) else {chr(argument)}
    if operation is sre.IN and all(item is sre.LITERAL and one < 128 for item, one in argument) and len(argument) <= 4:
        return {chr(one) for _, one in argument}
    if operation in (sre.AT, sre.ASSERT_NOT):
        return {""}
    if operation is sre.SUBPATTERN and not argument[1] and not argument[2]:
        return _all_spellings(argument[-1], fold)
    if operation is sre.BRANCH:
        branches = [_all_spellings(branch, fold) for branch in argument[1]]
        texts = set().union(*(branch for branch in branches if branch is not None))
        return texts if None not in branches and len(texts) <= MAX_SPELLINGS else None
    if operation in ONE_OR_MORE and argument[0] == 0 and argument[1] == 1:
        inner = _all_spellings(argument[2], fold)
        return None if inner is None else inner | {""}
    return None


def _all_spellings(tokens: Any, fold: bool) -> Optional[set[str]]:
    spelled = {""}
    for operation, argument in tokens:
        spellings = _spellings(operation, argument, fold)
        if spellings is None or len(spellings) * len(spelled) > MAX_SPELLINGS:
            return None
        spelled = {before + after for before in spelled for after in spellings}
    return spelled


def _token(operation: Any, argument: Any, fold: bool) -> Literals:
    """Return what a token that cannot be expanded needs."""
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


def _has_case(text: str) -> bool:
    return text.lower() != text.upper()
