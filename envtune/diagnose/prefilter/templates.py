"""The pure-Python chooser: which lines of a block are worth a full look.

A log says the same things again and again with other numbers. So every line is reduced to its shape (digits and the
lower-case letters of hexadecimal numbers become `0`), which `bytes.translate` does at more than 1 GB/s, and only shapes
that were not seen before are judged: by the literals that an expression needs, and once a log has grown, where it pays,
by the expression itself in terms of shapes. Where a line matches an expression, its shape matches the expression's.
Shapes that differ only in how long their numbers are share an outline (`00` becomes `0`), which is judged but once.
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import FrozenSet, Iterable, Iterator, NamedTuple, Sequence, Set, Tuple, Union

from envtune.diagnose.logs.lines import ERROR
from envtune.diagnose.prefilter.literals import Literal, Needs, required_literals
from envtune.diagnose.prefilter.relax import ignores_case, loosened

HEX = b"0123456789abcdef"
DIGITS = bytes(ord("0") if byte in HEX else byte for byte in range(256))
_SHAPE = DIGITS.replace(b"\r", b"\n")  # parts of a progress line are lines of their own
MANY = 24 << 20  # bytes of shapes that are remembered
LONG = 4096  # a longer shape is not remembered
FEW = 1 << 15  # bytes in which looking for every literal costs less than first telling which can be there
GROWN = 1 << 18  # bytes of log after which a closer look at a shape pays for compiling the expressions


Numbers = Union[Set[int], FrozenSet[int]]


class Expression(NamedTuple):
    """A regular expression as choosers see it."""

    regex: str
    multiline: bool = False  # a match may span lines
    once: bool = False  # one match in a file is enough


class Candidate(NamedTuple):
    """A line worth a full look: its place in the block, and the numbers of the expressions that may match it.

    The number after the last expression's says that the line may tell of an error of whatever kind; it is one of those
    of which one in a file is enough.
    """

    start: int
    end: int
    numbers: tuple[int, ...]


ANY_ERROR = Expression(ERROR, once=True)


class _Literal(NamedTuple):
    """The outline of a literal; one that may stand there in any case is looked for in the lower-case outline."""

    outline: bytes
    exact: bool


_Needs = Tuple[Tuple[FrozenSet[_Literal], ...], ...]


def _outline(shapes: bytes) -> bytes:
    """Shapes with every number one digit long."""
    shapes = shapes.replace(b"00000000", b"0").replace(b"0000", b"0")
    while b"00" in shapes:
        shapes = shapes.replace(b"00", b"0")
    return shapes


def _folded(shapes: bytes) -> bytes:
    return shapes.lower().translate(DIGITS)


def _telling(option: FrozenSet[_Literal]) -> int:
    """How many characters of a literal are left in its shape: one of digits says nothing."""
    return min(len(literal.outline.replace(b"0", b"")) for literal in option)


class _Query:
    """Expressions that need the same literals, but for their digits."""

    def __init__(self, needs: _Needs) -> None:
        self.needs = needs
        self.numbers: list[int] = []
        self._expressions: list[tuple[re.Pattern[bytes], bool, list[int]]] = []

    def may_match(self, shape: bytes, expressions: Sequence[Expression]) -> Iterator[int]:
        """The numbers of those expressions that the lines of a shape may match."""
        if not self._expressions:
            distinct: dict[tuple[bytes, bool], list[int]] = {}
            for number in self.numbers:
                regex, multiline, _ = expressions[number]
                key = loosened(regex, multiline, DIGITS), ignores_case(regex)
                distinct.setdefault(key, []).append(number)
            self._expressions = [(re.compile(text), fold, numbers) for (text, fold), numbers in distinct.items()]
        for expression, fold, numbers in self._expressions:
            if expression.search(_folded(shape) if fold else shape):
                yield from numbers


class Shapes:
    """Finds the lines that may match an expression; one of which nothing is certain may match any line."""

    def __init__(self, expressions: Iterable[Expression]) -> None:
        self._expressions = (*expressions, ANY_ERROR)
        self._always: tuple[int, ...] = ()
        self._plain: list[tuple[Literal, int]] = []
        queries: dict[_Needs, _Query] = {}
        for number, expression in enumerate(self._expressions):
            literals = required_literals(expression.regex, expression.multiline)
            outlines = _needs(literals)
            self._plain += [
                (literal, number) for one, out in zip(literals, outlines) if not _telling(out[0]) for literal in one[0]
            ]
            needs = tuple(out for out in outlines if _telling(out[0]))
            if needs:
                queries.setdefault(needs, _Query(needs)).numbers.append(number)
            if not literals:
                self._always += (number,)
        self._uses: dict[_Literal, list[tuple[_Query, tuple[FrozenSet[_Literal], ...]]]] = {}
        for query in queries.values():
            for first, *others in query.needs:
                for literal in first:
                    self._uses.setdefault(literal, []).append((query, tuple(others)))
        self._grams: dict[_Literal, set[int]] = {}
        self._seen = 0
        self._forget()

    def _forget(self) -> None:
        self._worth: dict[bytes, tuple[int, ...]] = {}
        self._dull: set[bytes] = set()
        self._outlines: dict[bytes, list[_Query]] = {}
        self._size = 0

    def candidates(self, block: bytes, known: Numbers = frozenset()) -> Iterator[Candidate]:
        """The candidate lines of a block of whole lines, in order; none for what is known of the file already."""
        if self._seen <= GROWN < self._seen + len(block):
            self._worth = {}  # to be judged closer
        self._seen += len(block)
        shapes = block.translate(_SHAPE).split(b"\n")
        kinds = set(shapes)
        worth = {kind: self._worth[kind] for kind in kinds.intersection(self._worth)} if self._worth else {}
        fresh = kinds.difference(self._dull).difference(worth)
        if fresh:
            judged = self._judge(list(fresh))
            self._remember(fresh, judged)
            worth.update(judged)
        if known:
            worth = {kind: numbers for kind, numbers in worth.items() if not known.issuperset(numbers)}
        plain = self._plain_in(block, known) if self._plain else {}
        if worth or self._always or plain:
            yield from self._places(shapes, worth, plain)

    def _places(
        self, shapes: Sequence[bytes], worth: dict[bytes, tuple[int, ...]], plain: dict[int, set[int]]
    ) -> Iterator[Candidate]:
        ends = [length + number for number, length in enumerate(accumulate(map(len, shapes)))]
        if self._always or plain:
            which: Iterable[int] = range(len(shapes))
        else:
            which = [number for number, shape in enumerate(shapes) if shape in worth]
        for number in which:
            shape = shapes[number]
            start = ends[number] - len(shape)
            numbers = worth.get(shape, self._always)
            if plain and start in plain:
                numbers = tuple(sorted(plain[start].union(numbers)))
            if numbers and shape:
                yield Candidate(start, ends[number], numbers)

    def _plain_in(self, block: bytes, known: Numbers) -> dict[int, set[int]]:
        """Where lines begin that hold a literal of which the shape says nothing, such as `EDAC` in any case."""
        wanted = [(literal, number) for literal, number in self._plain if number not in known]
        folded = b"" if all(literal.exact for literal, _ in wanted) else block.lower()
        found: dict[int, set[int]] = {}
        for literal, number in wanted:
            needle = literal.text.encode("utf-8")
            text = block if literal.exact else folded
            at = text.find(needle)
            while at >= 0:
                start = text.rfind(b"\n", 0, at) + 1
                found.setdefault(max(start, text.rfind(b"\r", start, at) + 1), set()).add(number)
                at = text.find(needle, at + len(needle))
        return found

    def _judge(self, fresh: Sequence[bytes]) -> dict[bytes, tuple[int, ...]]:
        """The expressions each new shape may match; only shapes that may match any are in the answer."""
        outlines = _outline(b"\n".join(fresh)).split(b"\n")
        self._judge_outlines(list(set(outlines).difference(self._outlines)))
        found: dict[bytes, tuple[int, ...]] = {}
        for shape, outline in zip(fresh, outlines):
            queries = self._outlines[outline]
            if not queries:
                continue
            numbers = set(self._always)
            for query in queries:
                numbers.update(query.may_match(shape, self._expressions) if self._seen > GROWN else query.numbers)
            if numbers:
                found[shape] = tuple(sorted(numbers))
        return found

    def _judge_outlines(self, fresh: Sequence[bytes]) -> None:
        """Note for each new outline which queries its shapes may satisfy."""
        exact = b"\n".join(fresh)
        folded = _outline(_folded(exact))
        lowered = folded.split(b"\n")
        found: list[list[_Query]] = [[] for _ in fresh]
        for literal, numbers in self._lines_with(exact, fresh, folded, lowered):
            for query, others in self._uses[literal]:
                for number in numbers:
                    line, low = fresh[number], lowered[number]
                    if all(any(_holds(o, line, low) for o in one) for one in others) and query not in found[number]:
                        found[number].append(query)
        self._outlines.update(zip(fresh, found))

    def _lines_with(
        self, exact: bytes, fresh: Sequence[bytes], folded: bytes, lowered: Sequence[bytes]
    ) -> Iterator[tuple[_Literal, list[int]]]:
        """The first literals that stand anywhere, and the numbers of the lines in which they do."""
        candidates: Iterable[_Literal] = self._uses
        if len(exact) > FEW:
            self._grams = self._grams or {one: _grams(_outline(_folded(one.outline))) for one in self._uses}
            there = _grams(folded)
            candidates = [literal for literal, needed in self._grams.items() if needed <= there]
        begins = {True: _begins(fresh), False: _begins(lowered)}
        for literal in candidates:
            text, places = (exact if literal.exact else folded), begins[literal.exact]
            numbers = []
            at = text.find(literal.outline)
            while at >= 0:
                numbers.append(places[text.rfind(b"\n", 0, at) + 1])
                end = text.find(b"\n", at)
                at = text.find(literal.outline, end) if end >= 0 else -1
            if numbers:
                yield literal, numbers

    def _remember(self, fresh: set[bytes], worth: dict[bytes, tuple[int, ...]]) -> None:
        """A log whose lines never repeat is not kept in memory: beyond MANY bytes all is forgotten and learnt anew."""
        short = {shape for shape in fresh if len(shape) <= LONG}
        self._size += sum(map(len, fresh)) + 200 * len(fresh)
        if self._size > MANY:
            self._forget()
            return
        self._dull.update(short.difference(worth))
        self._worth.update((shape, worth[shape]) for shape in short.intersection(worth))


def _begins(lines: Sequence[bytes]) -> dict[int, int]:
    """Where each line begins in the text that they make -> its number."""
    ends = accumulate(map(len, lines))
    return {end + number - len(line): number for number, (end, line) in enumerate(zip(ends, lines))}


def _needs(literals: Needs) -> _Needs:
    """The same in terms of outlines, in each conjunction the most telling option first."""
    return tuple(
        tuple(sorted((frozenset(map(_of, option)) for option in one), key=_telling, reverse=True)) for one in literals
    )


def _of(literal: Literal) -> _Literal:
    return _Literal(_outline(literal.text.encode("utf-8").translate(DIGITS)), literal.exact)


def _holds(literal: _Literal, exact: bytes, folded: bytes) -> bool:
    return literal.outline in (exact if literal.exact else folded)


def _grams(text: bytes) -> set[int]:
    """Every four bytes that stand together, as numbers: they tell which literals can be in a text at all."""
    view = memoryview(text)
    return set().union(*(view[start : start + (len(text) - start) // 4 * 4].cast("I") for start in range(4)))
