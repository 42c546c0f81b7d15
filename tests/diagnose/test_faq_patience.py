"""A hostile or odd line must not hold a diagnosis up: each expression gives up soon on a line of its own words."""

from __future__ import annotations

import re
import time

import pytest
from helpers.faq import matcher

from envtune.diagnose.prefilter.literals import required_literals

LINE = 4_000
PATIENCE = 2.0  # seconds; a bounded expression needs a few milliseconds, a runaway one much more than this


def seconds(regex: str, line: str) -> float:
    expression = re.compile(regex)
    start = time.process_time()
    expression.search(line)
    return time.process_time() - start


def lines_of(regex: str) -> list[str]:
    """Lines that pass the look for literals and then repeat them without ever completing the expression."""
    words = sorted({word for needs in required_literals(regex) for choice in needs for word, _ in choice})
    return [(word + tail) * (LINE // len(word + tail)) for word in words for tail in ("a/", "a ", "[0", "")]


@pytest.mark.parametrize("stride", [20, pytest.param(1, marks=pytest.mark.slow)])
def test_no_expression_loses_itself_in_a_long_line(stride: int) -> None:
    slow = [
        (pattern.owner, pattern.regex)
        for pattern in matcher().patterns[::stride]
        for line in lines_of(pattern.regex)
        if seconds(pattern.regex, line) > PATIENCE
    ]
    assert slow == []


@pytest.mark.slow
def test_the_lines_do_wear_out_an_unbounded_expression() -> None:
    runaway = r"third_party/[\w./-]+[^\n:]{0,80}:?\s?does not exist"
    assert any(seconds(runaway, line[:2_000]) > 0.02 for line in lines_of(runaway))
