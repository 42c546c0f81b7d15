"""The pure-Python prefilter: find the lines of a block that are worth matching in full.

A log repeats the same messages with different numbers. So every line is reduced to its template (digits and the
lower-case letters of hexadecimal numbers become `0`), which `bytes.translate` does at more than 1 GB/s, and only
templates that were not seen before are judged: by the literals that an expression needs, and in larger logs, where it
pays off, by the expression itself, relaxed to templates. If a line matches an expression, its template matches the
relaxed one. Templates that differ only in the length of their numbers share a collapsed template (`00` becomes `0`),
which is judged only once.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import accumulate
from typing import FrozenSet, Iterable, Iterator, Mapping, NamedTuple, Sequence, Set, Tuple, Union

from envtune.catalog.signatures.literals import ORDINARY, Literal, Needs, required_literals
from envtune.diagnose.logs.lines import ERROR
from envtune.diagnose.logs.window import PART
from envtune.diagnose.prefilter.relax import ignores_case, relax_regex

HEX = b"0123456789abcdef"
DIGITS = bytes(ord("0") if byte in HEX else byte for byte in range(256))
_TEMPLATE = DIGITS.replace(b"\r", b"\n")  # parts of a progress line are separate lines
MAX_REMEMBERED = 24 << 20  # bytes of templates
LONGEST_REMEMBERED = 4096  # bytes of one template
SMALL = 1 << 15  # bytes below which searching every literal is cheaper than first finding out which can occur
SHORT = -1  # instead of a gram, for literals shorter than one
GROWN = 1 << 18  # bytes of log after which judging templates by expressions is worth compiling them


Numbers = Union[Set[int], FrozenSet[int]]


class Expression(NamedTuple):
    """The properties of a regular expression that a prefilter needs."""

    regex: str
    multiline: bool = False  # a match may span lines
    once: bool = False  # one match in a file is enough


class CandidateLine(NamedTuple):
    """A line worth matching: its position in the block, and the numbers of the expressions that may match it.

    The number after the last expression's means that the line may report any error; one match per file is enough for
    that.
    """

    start: int
    end: int
    numbers: tuple[int, ...]


ANY_ERROR = Expression(ERROR, once=True)


class _Literal(NamedTuple):
    """A collapsed literal; one that may occur in any case is searched in the lower-case text."""

    collapsed: bytes
    exact: bool


_Needs = Tuple[Tuple[FrozenSet[_Literal], ...], ...]


def _collapsed(templates: bytes) -> bytes:
    """Return the templates with every number collapsed to one digit."""
    templates = templates.replace(b"00000000", b"0").replace(b"0000", b"0")
    while b"00" in templates:
        templates = templates.replace(b"00", b"0")
    return templates


def _folded(templates: bytes) -> bytes:
    return templates.lower().translate(DIGITS)


def _selectivity(option: FrozenSet[_Literal]) -> int:
    """Return the smallest number of non-digits in any of the literals; a literal of digits only selects nothing."""
    return min(len(literal.collapsed.replace(b"0", b"")) for literal in option)


class _Query:
    """Expressions that need the same literals, apart from digits."""

    def __init__(self, needs: _Needs) -> None:
        self.needs = needs
        self.numbers: list[int] = []
        self._expressions: list[tuple[re.Pattern[bytes], bool, list[int]]] = []

    def may_match(self, template: bytes, expressions: Sequence[Expression]) -> Iterator[int]:
        """Yield the numbers of the expressions that the lines of a template may match."""
        if not self._expressions:
            distinct: dict[tuple[bytes, bool], list[int]] = {}
            for number in self.numbers:
                regex, multiline, _ = expressions[number]
                key = relax_regex(regex, multiline, DIGITS), ignores_case(regex)
                distinct.setdefault(key, []).append(number)
            self._expressions = [(re.compile(text), fold, numbers) for (text, fold), numbers in distinct.items()]
        for expression, fold, numbers in self._expressions:
            if expression.search(_folded(template) if fold else template):
                yield from numbers


class _Index(NamedTuple):
    """What is searched for: numbers of expressions that require no literal, literals, and the queries they begin."""

    always: Tuple[int, ...]
    untemplated: Tuple[Tuple[Literal, int], ...]  # literals that templates do not preserve
    uses: Mapping[_Literal, Sequence[Tuple[_Query, Tuple[FrozenSet[_Literal], ...]]]]


@lru_cache(maxsize=4)  # a process uses the same signatures for every log
def _index_of(expressions: Tuple[Expression, ...]) -> _Index:
    always: list[int] = []
    untemplated: list[tuple[Literal, int]] = []
    queries: dict[_Needs, _Query] = {}
    for number, expression in enumerate(expressions):
        literals = required_literals(expression.regex, expression.multiline)
        collapsed = _needs(literals)
        untemplated += [
            (literal, number)
            for conjunction, need in zip(literals, collapsed)
            if not _selectivity(need[0])
            for literal in conjunction[0]
        ]
        needs = tuple(need for need in collapsed if _selectivity(need[0]))
        if needs:
            queries.setdefault(needs, _Query(needs)).numbers.append(number)
        if not literals:
            always.append(number)
    uses: dict[_Literal, list[tuple[_Query, tuple[FrozenSet[_Literal], ...]]]] = {}
    for query in queries.values():
        for first, *others in query.needs:
            for literal in first:
                uses.setdefault(literal, []).append((query, tuple(others)))
    return _Index(tuple(always), tuple(untemplated), uses)


class TemplateFilter:
    """Finds the lines that may match an expression; an expression that requires no literal may match any line."""

    def __init__(self, expressions: Iterable[Expression]) -> None:
        self._expressions = (*expressions, ANY_ERROR)
        self._always, self._untemplated, self._uses = _index_of(self._expressions)
        self._rarest: Mapping[int, Sequence[tuple[_Literal, set[int]]]] = {}
        self._seen = 0
        self._forget()

    def _forget(self) -> None:
        self._candidates_by_template: dict[bytes, tuple[int, ...]] = {}
        self._negatives: set[bytes] = set()  # templates that no expression may match
        self._queries_by_collapsed: dict[bytes, list[_Query]] = {}
        self._size = 0

    def candidates(self, block: bytes, known: Numbers = frozenset()) -> Iterator[CandidateLine]:
        """Yield the candidate lines of a block of whole lines, in order; none for what is already known of the file."""
        if self._seen <= GROWN < self._seen + len(block):
            self._candidates_by_template = {}  # to be judged by expressions from now on
        self._seen += len(block)
        templates = block.translate(_TEMPLATE).split(b"\n")
        distinct = set(templates)
        remembered = self._candidates_by_template
        positives = {template: remembered[template] for template in distinct.intersection(remembered)}
        new = distinct.difference(self._negatives).difference(positives)
        if new:
            judged = self._judge(list(new))
            self._remember(new, judged)
            positives.update(judged)
        if known:
            positives = {template: numbers for template, numbers in positives.items() if not known.issuperset(numbers)}
        untemplated = self._untemplated_in(block, known) if self._untemplated else {}
        if positives or self._always or untemplated:
            yield from self._places(templates, positives, untemplated)

    def _places(
        self, templates: Sequence[bytes], positives: dict[bytes, tuple[int, ...]], untemplated: dict[int, set[int]]
    ) -> Iterator[CandidateLine]:
        ends = [length + number for number, length in enumerate(accumulate(map(len, templates)))]
        if self._always or untemplated:
            lines: Iterable[int] = range(len(templates))
        else:
            lines = [number for number, template in enumerate(templates) if template in positives]
        for number in lines:
            template = templates[number]
            start = ends[number] - len(template)
            numbers = positives.get(template, self._always)
            if untemplated and start in untemplated:
                numbers = tuple(sorted(untemplated[start].union(numbers)))
            if numbers and template:
                yield CandidateLine(start, ends[number], numbers)

    def _untemplated_in(self, block: bytes, known: Numbers) -> dict[int, set[int]]:
        """Return the starts of lines with a literal that templates do not preserve, such as `EDAC`."""
        literals = [(literal, number) for literal, number in self._untemplated if number not in known]
        folded = b"" if all(literal.exact for literal, _ in literals) else block.lower()
        starts: dict[int, set[int]] = {}
        for literal, number in literals:
            needle = literal.text.encode("utf-8")
            text = block if literal.exact else folded
            at = text.find(needle)
            while at >= 0:
                start = text.rfind(b"\n", 0, at) + 1
                starts.setdefault(max(start, text.rfind(b"\r", start, at) + 1), set()).add(number)
                at = text.find(needle, at + len(needle))
        return starts

    def _judge(self, new: Sequence[bytes]) -> dict[bytes, tuple[int, ...]]:
        """Return the expressions that each new template may match; templates that may match none are left out."""
        collapsed = _collapsed(b"\n".join(new)).split(b"\n")
        self._judge_collapsed(list(set(collapsed).difference(self._queries_by_collapsed)))
        judged: dict[bytes, tuple[int, ...]] = {}
        for template, key in zip(new, collapsed):
            queries = self._queries_by_collapsed[key]
            if not queries:
                continue
            numbers = set(self._always)
            for query in queries:
                judge = self._seen > GROWN and len(template) <= PART  # what is longer is searched in parts
                numbers.update(query.may_match(template, self._expressions) if judge else query.numbers)
            if numbers:
                judged[template] = tuple(sorted(numbers))
        return judged

    def _judge_collapsed(self, new: Sequence[bytes]) -> None:
        """Remember for each new collapsed template which queries it may satisfy."""
        exact = b"\n".join(new)
        folded = _collapsed(_folded(exact))
        lowered = folded.split(b"\n")
        satisfied: list[list[_Query]] = [[] for _ in new]
        for literal, numbers in self._lines_with(exact, new, folded, lowered):
            for query, others in self._uses[literal]:
                for number in numbers:
                    line, low = new[number], lowered[number]
                    holds_others = all(any(_holds(option, line, low) for option in options) for options in others)
                    if holds_others and query not in satisfied[number]:
                        satisfied[number].append(query)
        self._queries_by_collapsed.update(zip(new, satisfied))

    def _lines_with(
        self, exact: bytes, new: Sequence[bytes], folded: bytes, lowered: Sequence[bytes]
    ) -> Iterator[tuple[_Literal, list[int]]]:
        """Yield the first literals of queries that occur anywhere, and the numbers of the lines that contain them."""
        literals: Iterable[_Literal] = self._uses
        if len(exact) > (SMALL if self._seen <= GROWN else SMALL >> 7):  # the grams of the literals are computed once
            self._rarest = self._rarest or _by_rarest_gram(self._uses)
            present = _grams(folded)
            found = (use for gram in present.intersection(self._rarest) for use in self._rarest[gram])
            literals = [literal for literal, needed in (*found, *self._rarest[SHORT]) if needed <= present]
        starts = {True: _starts(new), False: _starts(lowered)}
        for literal in literals:
            text, places = (exact if literal.exact else folded), starts[literal.exact]
            numbers = []
            at = text.find(literal.collapsed)
            while at >= 0:
                numbers.append(places[text.rfind(b"\n", 0, at) + 1])
                end = text.find(b"\n", at)
                at = text.find(literal.collapsed, end) if end >= 0 else -1
            if numbers:
                yield literal, numbers

    def _remember(self, new: set[bytes], judged: dict[bytes, tuple[int, ...]]) -> None:
        """Remember new templates; above a limit all are forgotten, for logs whose lines never repeat."""
        short = {template for template in new if len(template) <= LONGEST_REMEMBERED}
        self._size += sum(map(len, new)) + 200 * len(new)
        if self._size > MAX_REMEMBERED:
            self._forget()
            return
        self._negatives.update(short.difference(judged))
        self._candidates_by_template.update((template, judged[template]) for template in short.intersection(judged))


def _starts(lines: Sequence[bytes]) -> dict[int, int]:
    """Return {start of each line in the joined text: its number}."""
    ends = accumulate(map(len, lines))
    return {end + number - len(line): number for number, (end, line) in enumerate(zip(ends, lines))}


def _needs(literals: Needs) -> _Needs:
    """Return the same with collapsed literals, the most selective option of each conjunction first."""
    return tuple(
        tuple(sorted((frozenset(map(_of, option)) for option in conjunction), key=_selectivity, reverse=True))
        for conjunction in literals
    )


def _of(literal: Literal) -> _Literal:
    return _Literal(_collapsed(literal.text.encode("utf-8").translate(DIGITS)), literal.exact)


def _holds(literal: _Literal, exact: bytes, folded: bytes) -> bool:
    return literal.collapsed in (exact if literal.exact else folded)


def _by_rarest_gram(literals: Iterable[_Literal]) -> Mapping[int, Sequence[tuple[_Literal, set[int]]]]:
    """Return the literals by their gram that is least likely in ordinary lines."""
    often = _grams(_collapsed(_folded(ORDINARY.encode("ascii"))))
    grams: dict[int, list[tuple[_Literal, set[int]]]] = {SHORT: []}
    for literal in literals:
        own = _grams(_collapsed(_folded(literal.collapsed)))
        rarest = min(own, key=lambda gram: (gram in often, len(grams.get(gram, ())), gram), default=SHORT)
        grams.setdefault(rarest, []).append((literal, own))
    return grams


def _grams(text: bytes) -> set[int]:
    """Return every four consecutive bytes as a number: they show which literals a text can contain."""
    view = memoryview(text)
    return set().union(*(view[start : start + (len(text) - start) // 4 * 4].cast("I") for start in range(4)))
