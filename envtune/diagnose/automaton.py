"""The chooser of the `fast` extra: all expressions in one hyperscan database, kept in the cache directory.

The database is native code's data: one that somebody else could have written is never loaded (catalog/cache.py has the
rules), nor one made from other expressions, by another hyperscan or for another processor.
"""

from __future__ import annotations

import hashlib
import platform
import re
from typing import Any, Iterator, Optional, Sequence

from envtune.catalog import cache
from envtune.diagnose.lines import ERROR
from envtune.diagnose.literals import required_literals
from envtune.diagnose.loosened import ignores_case, loosened
from envtune.diagnose.shapes import Candidate, Shapes

NAME = "signatures.hyperscan"
LONG_ENOUGH = 10  # bytes of a literal that is so rare that it alone stands for its expression
Row = tuple[bytes, int, int]  # expression, number, flags


class Unusable(Exception):
    """There is no hyperscan here, or it cannot take the expressions."""


class Automaton:
    """Finds the lines in which hyperscan sees a match of an expression, or of what is certain of it."""

    def __init__(self, expressions: Sequence[tuple[str, bool]]) -> None:
        """`expressions`: each a regular expression, and whether a match may span lines. Raises Unusable."""
        try:
            import hyperscan
        except Exception as error:  # a package for another processor fails in its own ways
            raise Unusable(str(error)) from error
        self._errors: Optional[Shapes] = None
        self._error = len(expressions)
        rows = list(_rows(hyperscan, expressions))
        try:
            self._database = _database(hyperscan, rows)
        except (hyperscan.error, MemoryError) as error:
            raise Unusable(str(error)) from error

    def candidates(self, block: bytes, errors: bool = False) -> Iterator[Candidate]:
        """The candidate lines of a block of whole lines, in order."""
        found: list[tuple[int, int]] = []

        def note(number: int, start: int, end: int, flags: int, context: object) -> None:
            found.append((end, number))

        self._database.scan(block, match_event_handler=note)
        wanted = self._lines(block, found)
        if errors and any(number == self._error for _, number in found):
            self._errors = self._errors or Shapes(())
            for start, end, _ in self._errors.candidates(block, True):
                before = wanted.get(start)
                numbers = () if before is None else before.numbers
                wanted[start] = Candidate(start, end, (*numbers, self._error))
            return iter([wanted[start] for start in sorted(wanted)])
        return iter(wanted.values())

    def _lines(self, block: bytes, found: Sequence[tuple[int, int]]) -> dict[int, Candidate]:
        """The lines in which the matches end, by their beginning."""
        lines: dict[int, Candidate] = {}
        start = end = -1
        numbers: set[int] = set()
        for at, number in found:
            if number == self._error:
                continue
            if at > end:
                if numbers:
                    lines[start] = Candidate(start, end, tuple(sorted(numbers)))
                start, end, numbers = *_line(block, at - 1), set()
            numbers.add(number)
        if numbers:
            lines[start] = Candidate(start, end, tuple(sorted(numbers)))
        return lines


def _line(block: bytes, at: int) -> tuple[int, int]:
    """Where the line (or the part of a progress line) begins and ends that holds this place."""
    start, end = block.rfind(b"\n", 0, at) + 1, block.find(b"\n", at)
    end = len(block) if end < 0 else end
    start = max(start, block.rfind(b"\r", start, at) + 1)
    part = block.find(b"\r", at, end)
    return start, end if part < 0 else part


def _rows(hyperscan: Any, expressions: Sequence[tuple[str, bool]]) -> Iterator[Row]:
    for number, (regex, multiline) in enumerate(expressions):
        literals = required_literals(regex, multiline)
        rare = [literal for first, *_ in literals for literal in first]
        if rare and min(len(literal.text) for literal in rare) >= LONG_ENOUGH:
            for literal in rare:
                flags = 0 if literal.exact else hyperscan.HS_FLAG_CASELESS
                yield re.escape(literal.text.encode("utf-8")), number, flags
            continue
        text = loosened(regex, multiline)
        flags = hyperscan.HS_FLAG_CASELESS if ignores_case(regex) else 0
        yield text or rb"[^\n]", number, flags
    # Once a block is enough: where the error stands is looked up then, in the few blocks that matter.
    yield loosened(ERROR), len(expressions), hyperscan.HS_FLAG_SINGLEMATCH


def _database(hyperscan: Any, rows: Sequence[Row]) -> Any:
    """The compiled database, from the cache where it is there; compiling takes 0.2 to 0.5 s."""
    stamp = _stamp(hyperscan, rows)
    path = _place()
    kept = None if path is None else cache.read(path)
    if kept is not None and kept.stamp == stamp and kept.content == hashlib.sha256(kept.text).hexdigest():
        try:
            database = hyperscan.loadb(kept.text, hyperscan.HS_MODE_BLOCK)
            database.scratch = hyperscan.Scratch(database)
            return database
        except hyperscan.error:
            pass  # of another processor after all: made anew
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    texts, numbers, flags = zip(*rows)
    database.compile(expressions=list(texts), ids=list(numbers), elements=len(rows), flags=list(flags))
    if path is not None:
        text = hyperscan.dumpb(database)
        cache.write(path, cache.Cached(stamp, hashlib.sha256(text).hexdigest(), text))
    return database


def _place() -> Optional[str]:
    path = cache.beside(NAME)
    return None if path is None or cache.distrusted(path) is not None else path


def _stamp(hyperscan: Any, rows: Sequence[Row]) -> str:
    """What a database depends on: the expressions, hyperscan, the processor."""
    probe = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    probe.compile(expressions=[b"a"], ids=[0], elements=1, flags=[0])
    about = (hyperscan.__version__, probe.info(), platform.machine(), list(rows))
    return hashlib.sha256(repr(about).encode("utf-8")).hexdigest()
