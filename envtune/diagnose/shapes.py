"""The pure-Python chooser: which lines of a block are worth a full look.

A log says the same things again and again with other numbers. So every line is reduced to its shape (digits and the
lower-case letters of hexadecimal numbers become `0`), which `bytes.translate` does at more than 1 GB/s, and only shapes
that were not seen before are judged: by the literals that an expression needs, and once a log has grown, where it pays,
by the expression itself in terms of shapes. Where a line matches an expression, its shape matches the expression's.
"""

from __future__ import annotations

import re
from typing import FrozenSet, Iterable, Iterator, NamedTuple, Optional, Sequence

from envtune.diagnose.lines import ERROR
from envtune.diagnose.literals import Literal, cover, required_literals
from envtune.diagnose.loosened import ignores_case, loosened

HEX = b"0123456789abcdef"
DIGITS = bytes(ord("0") if byte in HEX else byte for byte in range(256))
_SHAPE = DIGITS.replace(b"\r", b"\n")  # parts of a progress line are lines of their own
MANY = 24 << 20  # bytes of shapes that are remembered
LONG = 4096  # a longer shape is not remembered
GROWN = 1 << 18  # bytes of log after which a closer look at a shape pays for compiling the expressions


class Candidate(NamedTuple):
    """A line worth a full look: its place in the block, and the numbers of the expressions that may match it.

    The number after the last expression's says that the line may tell of an error of whatever kind.
    """

    start: int
    end: int
    numbers: tuple[int, ...]


class _Literal(NamedTuple):
    """The shape of a literal; one that may stand there in any case is looked for in the lower-case shape."""

    shape: bytes
    exact: bool


class _Shape(NamedTuple):
    """A shape as it is, and in lower case."""

    exact: bytes
    folded: bytes

    def holds(self, literal: _Literal) -> bool:
        return literal.shape in (self.exact if literal.exact else self.folded)


class _Query(NamedTuple):
    """What a shape has to hold so that the expressions of these numbers may match its lines."""

    numbers: tuple[int, ...]
    needs: tuple[tuple[FrozenSet[_Literal], ...], ...]
    expression: Optional[re.Pattern[bytes]] = None
    folded: bool = False

    def may_match(self, shape: _Shape, others: Sequence[FrozenSet[_Literal]]) -> bool:
        """Whether it may, where a first literal stands there; `others` is the rest of that literal's conjunction."""
        if not all(any(shape.holds(one) for one in option) for option in others):
            return False
        return self.expression is None or self.expression.search(shape[self.folded]) is not None


def _of_shape(literal: Literal) -> _Literal:
    return _Literal(literal.text.encode("utf-8").translate(DIGITS), literal.exact)


def _folded(text: bytes) -> bytes:
    return text.lower().translate(DIGITS)


def _query(number: int, regex: str, multiline: bool) -> _Query:
    needs = required_literals(regex, multiline)
    return _Query((number,), tuple(tuple(frozenset(map(_of_shape, option)) for option in one) for one in needs))


def _closer(queries: Sequence[_Query], expressions: Sequence[tuple[str, bool]]) -> list[_Query]:
    """The queries with their expressions in terms of shapes; those that only differ in digits become one."""
    merged: dict[tuple[bytes, bool], _Query] = {}
    for query in queries:
        regex, multiline = expressions[query.numbers[0]]
        key = loosened(regex, multiline, DIGITS), ignores_case(regex)
        before = merged.get(key)
        if before is None:
            merged[key] = query._replace(expression=re.compile(key[0]), folded=key[1])
        else:
            merged[key] = before._replace(numbers=before.numbers + query.numbers)
    return list(merged.values())


class Shapes:
    """Finds the lines that may match an expression; one of which nothing is certain may match any line."""

    def __init__(self, expressions: Iterable[tuple[str, bool]]) -> None:
        """`expressions`: each a regular expression, and whether a match may span lines."""
        self._expressions = (*expressions, (ERROR, False))
        queries = [_query(number, *expression) for number, expression in enumerate(self._expressions)]
        self._error = (len(queries) - 1,)
        self._always = tuple(query.numbers[0] for query in queries if not query.needs)
        self._queries = [query for query in queries if query.needs]
        self._seen = 0
        self._learn()

    def _learn(self) -> None:
        self._uses: dict[_Literal, list[tuple[_Query, tuple[FrozenSet[_Literal], ...]]]] = {}
        for query in self._queries:
            for first, *others in query.needs:
                for literal in first:
                    self._uses.setdefault(literal, []).append((query, tuple(others)))
        self._pieces = [self._cover(exact) for exact in (True, False)] if self._seen else []
        self._forget()

    def _cover(self, exact: bool) -> dict[bytes, list[_Literal]]:
        """Few pieces that tell which literals can be in a text at all."""
        names = cover(one.shape.decode("latin-1") for one in self._uses if one.exact is exact)
        return {
            piece.encode("latin-1"): [_Literal(name.encode("latin-1"), exact) for name in covered]
            for piece, covered in names.items()
        }

    def _forget(self) -> None:
        self._worth: dict[bytes, tuple[int, ...]] = {}
        self._dull: set[bytes] = set()
        self._size = 0

    def candidates(self, block: bytes, errors: bool = False) -> Iterator[Candidate]:
        """The candidate lines of a block of whole lines, in order."""
        if self._seen <= GROWN < self._seen + len(block):
            self._queries = _closer(self._queries, self._expressions)
            self._seen += len(block)
            self._learn()
        self._seen += len(block)
        shapes = block.translate(_SHAPE).split(b"\n")
        kinds = set(shapes)
        fresh = kinds.difference(self._dull).difference(self._worth)
        worth = {kind: self._worth[kind] for kind in kinds.intersection(self._worth)} if self._worth else {}
        if fresh:
            judged = self._judge(fresh)
            self._remember(fresh, judged)
            worth.update(judged)
        if not errors:
            worth = {kind: numbers for kind, numbers in worth.items() if numbers != self._error}
        if worth or self._always:
            yield from self._places(shapes, worth)

    def _places(self, shapes: Sequence[bytes], worth: dict[bytes, tuple[int, ...]]) -> Iterator[Candidate]:
        at = 0
        always = self._always
        for shape in shapes:
            end = at + len(shape)
            numbers = worth.get(shape, always)
            if numbers and shape:
                yield Candidate(at, end, numbers)
            at = end + 1

    def _judge(self, fresh: set[bytes]) -> dict[bytes, tuple[int, ...]]:
        """The expressions each new shape may match; only shapes that may match any are in the answer."""
        lines = list(fresh)
        text = b"\n".join(lines)
        folded = _folded(text)
        lowered = folded.split(b"\n")
        found: dict[bytes, set[int]] = {}
        for literal in self._literals_in(text, folded):
            for line, low in zip(lines, lowered):
                if literal.shape in (line if literal.exact else low):
                    shape = _Shape(line, low)
                    for query, others in self._uses[literal]:
                        if query.may_match(shape, others):
                            found.setdefault(line, set()).update(query.numbers)
        return {shape: tuple(sorted({*numbers, *self._always})) for shape, numbers in found.items()}

    def _literals_in(self, text: bytes, folded: bytes) -> Iterator[_Literal]:
        """The first literals that stand anywhere in the text."""
        candidates: Iterable[_Literal] = self._uses
        if self._pieces:
            sides = zip((text, folded), self._pieces)
            candidates = [one for where, pieces in sides for piece in pieces if piece in where for one in pieces[piece]]
        for literal in candidates:
            if literal.shape in (text if literal.exact else folded):
                yield literal

    def _remember(self, fresh: set[bytes], worth: dict[bytes, tuple[int, ...]]) -> None:
        """A log whose lines never repeat is not kept in memory: beyond MANY bytes all is forgotten and learnt anew."""
        short = {shape for shape in fresh if len(shape) <= LONG}
        self._size += sum(map(len, short)) + 100 * len(short)
        if self._size > MANY:
            self._forget()
            return
        self._dull.update(short.difference(worth))
        self._worth.update((shape, worth[shape]) for shape in short.intersection(worth))
