"""Every line an FAQ entry says it matches, and every near miss: `test_match[F06-0]`."""

from __future__ import annotations

import pytest
from helpers.faq import examples, found_in, matcher

from envtune.diagnose.patterns import Pattern
from envtune.diagnose.prefilter.literals import required_literals


@pytest.mark.parametrize(("entry", "text"), list(examples("match")))
def test_match(entry: str, text: str) -> None:
    assert entry in {hit.pattern.owner for hit in found_in(text).hits}


@pytest.mark.parametrize(("entry", "text"), list(examples("near_miss")))
def test_near_miss(entry: str, text: str) -> None:
    assert entry not in {hit.pattern.owner for hit in found_in(text).hits}


@pytest.mark.parametrize("pattern", [pytest.param(p, id=f"{p.owner}-{p.index}") for p in matcher().patterns])
def test_every_expression_can_be_searched_for_by_its_literals(pattern: Pattern) -> None:
    assert required_literals(pattern.regex), pattern.regex


def test_the_bare_code_of_an_npu_error_is_no_diagnosis() -> None:
    assert found_in("RuntimeError: NPU error, error code is 500000").hits == []
