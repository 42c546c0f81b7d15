"""The prefilter of the `fast` extra: all expressions in one hyperscan database, kept in the cache directory.

The database is processed by native code: one that somebody else could have written is never loaded (catalog/cache.py
has the rules), nor one compiled from other expressions, by another hyperscan or for another processor.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections import Counter
from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Optional, Sequence

from envtune.catalog import cache
from envtune.catalog.layers import why_untrusted
from envtune.catalog.signatures.literals import ORDINARY, Literal, Literals, ordinary, required_literals, shortest
from envtune.diagnose.logs.window import PART
from envtune.diagnose.prefilter.relax import ignores_case, relax_regex
from envtune.diagnose.prefilter.templates import ANY_ERROR, CandidateLine, Expression, Numbers, TemplateFilter

NAME = "signatures.hyperscan"
SHORTEST_LITERAL = 3  # bytes of a literal that replaces its expression, unless it is ordinary
HEXADECIMAL = set("0123456789abcdef")
FORMAT = 2  # increment when different rows are generated from the same expressions
ONCE = 1 << 20  # added to the number of a row that reports one match per block
TAIL = 8  # bytes by which hyperscan decides whether to confirm a match
MAX_ROWS, MAX_ROW_SETS = 40, 4096  # rows of one line that are remembered as a set; number of such sets
# When an expression takes the place of its literals (HyperscanFilter._chatty): compiling anew takes 0.25 s, a candidate
# line about 10 us, the pure-Python prefilter about 2 ms a block.
MANY_LINES, MANY_BLOCKS = 20_000, 100
SAMPLE, FEWEST = 400, 20  # candidate lines of one block on which this is decided
RARER = 4  # how many times rarer other literals must be
IN_VAIN = 0.05  # share of candidate lines that an expression's literals select and no expression matches


class Row(NamedTuple):
    """An expression or a literal, as passed to hyperscan."""

    text: bytes
    flags: int
    once: bool


class UnusableError(Exception):
    """Hyperscan is missing, or does not support the expressions."""


class HyperscanFilter:
    """Finds the lines in which hyperscan sees a match of an expression, or of its literals.

    For an expression that needs only one match per file, hyperscan reports one per block; the pure-Python prefilter
    finds its position in the block, and whether it really matches.

    If the literals of an expression turn out to be frequent in these logs without a match of it, the expression itself
    replaces them: a database is compiled without them.
    """

    def __init__(self, expressions: Sequence[Expression]) -> None:
        """Compile the expressions; raises UnusableError."""
        try:
            import hyperscan
        except Exception as error:  # a package for another processor fails in unpredictable ways
            raise UnusableError(str(error)) from error
        self._hyperscan = hyperscan
        everything = (*expressions, ANY_ERROR)
        self._once = [number for number, expression in enumerate(everything) if expression.once]
        self._once_filter: Optional[TemplateFilter] = None
        self._expressions = everything
        self._numbers: dict[tuple[int, ...], tuple[int, ...]] = {}  # rows that matched -> expressions to try
        self._known: tuple[int, frozenset[int]] = (0, frozenset())  # how much was known, and the rows for it
        self._whole: set[int] = set()  # expressions that replaced their literals
        self._others: dict[int, Literals] = {}  # expressions searched by different literals than initially
        self._seen, self._next_look = 0, MANY_LINES  # candidate lines, and at how many of them to check next
        self._missed: tuple[Numbers, Numbers] = (set(), set())  # what was known of the last file, what was missing
        self._misses: Counter[int] = Counter()  # blocks in which it was still missing
        try:
            self._database, self._looked_for = _database(hyperscan, everything)
        except (hyperscan.error, MemoryError) as error:
            raise UnusableError(str(error)) from error
        self._rows = list(self._looked_for.values())

    def candidates(self, block: bytes, known: Numbers = frozenset()) -> Iterator[CandidateLine]:
        """Return the candidate lines of a block of whole lines, in order; none for what is known of the file."""
        matches: list[tuple[int, int]] = []
        once: list[int] = []
        known_rows = self._rows_of(known)

        def record(row: int, start: int, end: int, flags: int, context: object) -> None:
            if row < ONCE:
                if row not in known_rows:
                    matches.append((end, row))
            else:
                once.append(row - ONCE)

        self._database.scan(block, match_event_handler=record)
        lines = self._lines(block, matches) if matches else {}
        missing = {number for row in once for number in self._rows[row]}.difference(known) if once else set()
        absent = set(self._still_missing(known, missing))
        chatty = {*self._chatty(block, lines, bool(absent)), *absent}.difference(self._whole)
        if chatty:
            self._replace(chatty, block)
        if not missing:
            return iter(lines.values())
        for start, end, numbers in self._once_in(block, missing):
            line = lines.get(start)
            lines[start] = CandidateLine(start, end, tuple(sorted({*numbers, *(line.numbers if line else ())})))
        return iter([lines[start] for start in sorted(lines)])

    def _chatty(self, block: bytes, lines: Mapping[int, CandidateLine], now: bool) -> Iterator[int]:
        """Yield the expressions whose literals select many lines that no expression matches.

        Checked after MANY_LINES, then after twice as many each time, and `now` if something is compiled anyway; the
        lines of one block decide.
        """
        self._seen += len(lines)
        if not (now or self._seen >= self._next_look) or len(lines) < FEWEST:
            return
        self._next_look = 2 * self._seen
        sample = list(lines.values())[:SAMPLE]
        relaxed = {number: self._relaxed(number) for number in {n for line in sample for n in line.numbers}}
        refused: Counter[int] = Counter()
        for start, end, numbers in sample:
            line = block[start : min(end, start + PART)]
            if not any(relaxed[number].search(line) and self._holds(number, line) for number in numbers):
                refused.update(numbers)
        yield from (number for number, count in refused.items() if count >= IN_VAIN * len(sample))

    def _relaxed(self, number: int) -> re.Pattern[bytes]:
        regex, multiline, _ = self._expressions[number]
        return re.compile(relax_regex(regex, multiline), re.IGNORECASE if ignores_case(regex) else 0)

    def _still_missing(self, known: Numbers, missing: set[int]) -> Iterator[int]:
        """Yield expressions that need one match per file and were not found in MANY_BLOCKS with their literals."""
        file, before = self._missed
        self._missed = known, set(missing)
        if known is file:
            self._misses.update(before.intersection(missing))
            yield from (number for number in missing - self._whole if self._misses[number] >= MANY_BLOCKS)

    def _holds(self, number: int, line: bytes) -> bool:
        """Return whether a line contains everything that a match of an expression contains."""
        regex, multiline, _ = self._expressions[number]
        needs, text = required_literals(regex, multiline), line.decode("utf-8", "replace")
        folded = text.lower()
        return not needs or any(
            all(any(text_ in (text if exact else folded) for text_, exact in option) for option in conjunction)
            for conjunction in needs
        )

    def _rarer(self, number: int, block: bytes) -> Literals:
        """Return other literals that a match of an expression needs and that are much rarer in a block; or none."""
        regex, multiline, once = self._expressions[number]
        needs = required_literals(regex, multiline)
        if once or number in self._others or len(needs) != 1:
            return frozenset()
        folded = block.lower()

        def often(option: Literals) -> int:
            return sum(folded.count(_rare_end(literal.text).lower().encode("utf-8")) for literal in option)

        first, *others = needs[0]
        rare = (option for option in others if shortest(option) >= SHORTEST_LITERAL and not _is_digits(option))
        best = min(rare, key=lambda option: (often(option), sorted(option)), default=first)
        return best if RARER * often(best) <= often(first) else frozenset()

    def _replace(self, numbers: Iterable[int], block: bytes) -> None:
        """From now on, search for rarer literals of these expressions, or for the expressions themselves."""
        rarer = {number: self._rarer(number, block) for number in numbers}
        nearly = (number for number, count in self._misses.items() if count >= MANY_BLOCKS // 4)
        self._whole.update((number for number, option in rarer.items() if not option), nearly)  # compiled once for both
        self._others.update((number, option) for number, option in rarer.items() if option)
        changed = self._whole.union(self._others)
        rows = {row: [n for n in others if n not in changed] for row, others in self._looked_for.items()}
        for number in self._whole:
            rows.setdefault(_whole(self._hyperscan, self._expressions[number]), []).append(number)
        for number, option in self._others.items():
            if number not in self._whole:
                for row in _literal_rows(self._hyperscan, option, once=False):
                    rows.setdefault(row, []).append(number)
        rows = {row: numbers for row, numbers in rows.items() if numbers}
        try:
            self._database = _compiled(self._hyperscan, rows)
        except (self._hyperscan.error, MemoryError):
            return  # keep searching by literals
        self._looked_for, self._rows = rows, list(rows.values())
        self._numbers = {}
        self._known = (0, frozenset())

    def _rows_of(self, known: Numbers) -> frozenset[int]:
        """Return the rows that belong only to known expressions."""
        if self._known[0] != len(known) or not known:
            rows = (row for row, numbers in enumerate(self._rows) if known and known.issuperset(numbers))
            self._known = len(known), frozenset(rows)
        return self._known[1]

    def _once_in(self, block: bytes, missing: Numbers) -> Iterator[CandidateLine]:
        if self._once_filter is None:
            self._once_filter = TemplateFilter(self._expressions[number] for number in self._once[:-1])
        known = {place for place, number in enumerate(self._once) if number not in missing}
        for start, end, places in self._once_filter.candidates(block, known):
            yield CandidateLine(start, end, tuple(self._once[place] for place in places if place not in known))

    def _lines(self, block: bytes, matches: Sequence[tuple[int, int]]) -> dict[int, CandidateLine]:
        """Return the lines in which the matches end, by start position."""
        lines: dict[int, CandidateLine] = {}
        start = end = -1
        rows: list[int] = []
        for at, row in matches:
            if at > end:
                if rows:
                    lines[start] = CandidateLine(start, end, self._of_rows(tuple(rows)))
                    rows = []
                start, end = _line(block, at - 1)
            rows.append(row)
        lines[start] = CandidateLine(start, end, self._of_rows(tuple(rows)))
        return lines

    def _of_rows(self, rows: tuple[int, ...]) -> tuple[int, ...]:
        numbers = self._numbers.get(rows)
        if numbers is None:
            numbers = tuple(sorted({number for row in rows for number in self._rows[row]}))
            if len(rows) <= MAX_ROWS and len(self._numbers) < MAX_ROW_SETS:
                self._numbers[rows] = numbers
        return numbers


def _line(block: bytes, at: int) -> tuple[int, int]:
    """Return where the line (or the part of a progress line) at this position starts and ends."""
    start, end = block.rfind(b"\n", 0, at) + 1, block.find(b"\n", at)
    end = len(block) if end < 0 else end
    start = max(start, block.rfind(b"\r", start, at) + 1)
    part = block.find(b"\r", at, end)
    return start, end if part < 0 else part


def _rows(hyperscan: Any, expressions: Sequence[Expression]) -> dict[Row, list[int]]:
    """Return {what hyperscan searches for: the expressions it is for}.

    Literals alone are found twice as fast, so only expressions with ordinary literals are passed in full.
    """
    rows: dict[Row, list[int]] = {}
    for number, expression in enumerate(expressions):
        regex, multiline, once = expression
        flags = hyperscan.HS_FLAG_SINGLEMATCH if once else 0
        needs = required_literals(regex, multiline)
        if needs and all(_rare(first, once) for first, *_ in needs):
            for row in _literal_rows(hyperscan, {literal for first, *_ in needs for literal in first}, once):
                rows.setdefault(row, []).append(number)
        else:
            row = _whole(hyperscan, expression)
            rows.setdefault(Row(row.text, row.flags | flags, once), []).append(number)
    return rows


def _literal_rows(hyperscan: Any, literals: Iterable[Literal], once: bool) -> Iterator[Row]:
    flags = hyperscan.HS_FLAG_SINGLEMATCH if once else 0
    for literal in sorted(literals):
        case = 0 if literal.exact else hyperscan.HS_FLAG_CASELESS
        yield Row(re.escape(_rare_end(literal.text).encode("utf-8")), flags | case, once)


def _whole(hyperscan: Any, expression: Expression) -> Row:
    """Return the row of a full expression, each match of which is reported."""
    case = hyperscan.HS_FLAG_CASELESS if ignores_case(expression.regex) else 0
    return Row(relax_regex(expression.regex, expression.multiline) or rb"[^\n]", case, False)


def _rare(option: Literals, once: bool) -> bool:
    """Return whether the literals alone may replace the expression: not if ordinary lines are full of them.

    Digits alone occur in every other address.
    """
    if _is_digits(option):
        return False
    return once or not (ordinary(option) or shortest(option) < SHORTEST_LITERAL)


def _is_digits(option: Literals) -> bool:
    return any(set(literal.text) <= HEXADECIMAL for literal in option)


def _rare_end(text: str) -> str:
    """Return the literal cut where its end is rarest: hyperscan decides by the last characters whether to confirm."""
    ends = range(min(len(text), TAIL), len(text) + 1)
    return text[: min(ends, key=lambda end: (_grams(text[end - TAIL : end].lower()), end))]


def _grams(tail: str) -> int:
    """Return how much of it occurs in ordinary lines."""
    return sum(tail[at : at + 3] in ORDINARY for at in range(len(tail) - 2)) + 4 * (tail[-4:] in ORDINARY)


def _database(hyperscan: Any, expressions: Sequence[Expression]) -> tuple[Any, dict[Row, list[int]]]:
    """Return the compiled database and its rows.

    It is read from the cache if possible; generating the rows and compiling them takes 0.3 s each.
    """
    stamp = _stamp(hyperscan, expressions)
    path = _cache_path()
    cached = None if path is None else cache.read(path)
    if cached is not None and cached.stamp == stamp and cached.content == hashlib.sha256(cached.text).hexdigest():
        head, _, text = cached.text.partition(b"\n")
        try:
            database = hyperscan.loadb(text, hyperscan.HS_MODE_BLOCK)
            database.scratch = hyperscan.Scratch(database)
            rows = {Row(shown.encode("latin-1"), *others): numbers for (shown, *others), numbers in json.loads(head)}
            return database, rows
        except hyperscan.error:
            pass  # for another processor after all: compile again
    rows = _rows(hyperscan, expressions)
    database = _compiled(hyperscan, rows)
    if path is not None:
        shown = [((row.text.decode("latin-1"), *row[1:]), numbers) for row, numbers in rows.items()]
        text = json.dumps(shown).encode("ascii") + b"\n" + hyperscan.dumpb(database)
        cache.write(path, cache.Cached(stamp, hashlib.sha256(text).hexdigest(), text))
    return database, rows


def _compiled(hyperscan: Any, rows: Iterable[Row]) -> Any:
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    ids = [number + ONCE if row.once else number for number, row in enumerate(rows)]
    flags = [row.flags for row in rows]
    database.compile(expressions=[row.text for row in rows], ids=ids, elements=len(ids), flags=flags)
    return database


def _cache_path() -> Optional[str]:
    path = cache.cache_path(NAME)
    return None if path is None or why_untrusted(path) is not None else path


def _stamp(hyperscan: Any, expressions: Sequence[Expression]) -> str:
    """Return a digest of what a database depends on: the expressions, hyperscan, the processor."""
    probe = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    probe.compile(expressions=[b"a"], ids=[0], elements=1, flags=[0])
    about = (FORMAT, hyperscan.__version__, probe.info(), platform.machine(), list(expressions))
    return hashlib.sha256(repr(about).encode("utf-8")).hexdigest()
