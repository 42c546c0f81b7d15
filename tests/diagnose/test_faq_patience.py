"""A hostile line must not hold a diagnosis up: each expression gives up soon on a line of its own words."""

from __future__ import annotations

import re
import time
from typing import Any, Iterator

import pytest
from helpers.faq import matcher

from envtune.diagnose.logs.lines import LINE_LIMIT
from envtune.diagnose.logs.window import LineWindow

try:  # Python 3.11 moved it
    from re import _constants, _parser  # type: ignore[attr-defined]
except ImportError:
    import sre_constants as _constants  # type: ignore[no-redef]
    import sre_parse as _parser  # type: ignore[no-redef]

PATIENCE = 0.5  # seconds of CPU for a line of LINE_LIMIT; a bounded expression needs at most 0.1
FILLERS = (" ", "a", "0", "a/", "[0")


def seconds(regex: str, line: str) -> float:
    """The CPU that looking for an expression in a line costs, in the parts in which a line is looked through."""
    expression = re.compile(regex)
    raw = line.encode("utf-8")
    parts = LineWindow(b"", raw, b"", lambda: 0).parts(0, len(raw))
    start = time.process_time()
    for part in parts:
        expression.search(part)
    return time.process_time() - start


def words_of(node: Any) -> Iterator[str]:
    """The literals of an expression in their order, of alternatives the first."""
    word = ""
    for kind, value in node:
        if kind is _constants.LITERAL:
            word += chr(value)
            continue
        if word:
            yield word
        word = ""
        if kind is _constants.SUBPATTERN:
            yield from words_of(value[-1])
        elif kind is _constants.BRANCH:
            yield from words_of(value[1][0])
        elif kind in (_constants.MAX_REPEAT, _constants.MIN_REPEAT):
            yield from words_of(value[2])
    if word:
        yield word


def lines_of(regex: str, size: int = LINE_LIMIT) -> list[str]:
    """Lines of an expression's own words, each beginning of it repeated, that never complete it."""
    words = list(words_of(_parser.parse(regex)))
    beginnings = {"".join(words[:n]) for n in range(1, len(words) + 1)}
    lines = [(word + tail) * (size // len(word + tail)) for word in beginnings for tail in ("", "a ")]
    lines += [word + filler * (size // len(filler)) for word in beginnings for filler in FILLERS]
    return [line[:size] for line in lines]


def impatient(stride: int = 1) -> list[tuple[str, str, str]]:
    return [
        (pattern.owner, pattern.regex, line[:60])
        for pattern in matcher().patterns[::stride]
        for line in lines_of(pattern.regex)
        if seconds(pattern.regex, line) > PATIENCE and seconds(pattern.regex, line) > PATIENCE
    ]


@pytest.mark.parametrize("stride", [40, pytest.param(1, marks=pytest.mark.slow)])
def test_no_expression_loses_itself_in_the_longest_line(stride: int) -> None:
    assert impatient(stride) == []


@pytest.mark.slow
def test_the_lines_do_wear_out_an_unbounded_expression() -> None:
    runaway = r"third_party/[\w./-]+[^\n:]{0,80}:?\s?does not exist"
    assert any(seconds(runaway, line[:2_000]) > 0.02 for line in lines_of(runaway))
