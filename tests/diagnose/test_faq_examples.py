"""Every line an FAQ entry says it matches, and every near miss: `test_match[F06]`."""

from __future__ import annotations

from typing import Mapping, Sequence

import pytest
from helpers.faq import FILES, found_in, matcher
from helpers.shipped import parsed

from envtune.diagnose.prefilter.literals import required_literals

EXAMPLES = [pytest.param(data["id"], data["examples"], id=data["id"]) for data in map(parsed, FILES)]


def owners(text: str) -> set[str]:
    return {hit.pattern.owner for hit in found_in(text).hits}


@pytest.mark.parametrize(("entry", "examples"), EXAMPLES)
def test_match(entry: str, examples: Mapping[str, Sequence[str]]) -> None:
    assert [text for text in examples["match"] if entry not in owners(text)] == []


@pytest.mark.parametrize(("entry", "examples"), EXAMPLES)
def test_near_miss(entry: str, examples: Mapping[str, Sequence[str]]) -> None:
    assert [text for text in examples["near_miss"] if entry in owners(text)] == []


def test_every_expression_can_be_searched_for_by_its_literals() -> None:
    without = [(p.owner, p.regex) for p in matcher().patterns if not required_literals(p.regex)]
    assert without == []


def test_the_bare_code_of_an_npu_error_is_no_diagnosis() -> None:
    assert found_in("RuntimeError: NPU error, error code is 500000").hits == []
