"""Every line an FAQ entry says it matches, and every near miss: `test_match[F06]`."""

from __future__ import annotations

from typing import Mapping, Sequence

import pytest
from helpers.examples import ROOT
from helpers.faq import FILES, entries, found_in, matcher
from helpers.rows import sampled
from helpers.shipped import parsed
from helpers.yaml_text import load_yaml

from envtune.catalog.signatures.literals import ordinary, required_literals
from envtune.diagnose.rank import resolve

EXAMPLES = [pytest.param(data["id"], data["examples"], id=data["id"]) for data in map(parsed, FILES)]


SPELLINGS = load_yaml((ROOT / "tests" / "cases" / "events" / "spellings.yaml").read_text("utf-8"))


def owners(text: str) -> set[str]:
    return {hit.pattern.owner for hit in found_in(text).hits}


@pytest.mark.parametrize(("entry", "examples"), sampled(EXAMPLES, 2))
def test_match(entry: str, examples: Mapping[str, Sequence[str]]) -> None:
    assert [text for text in examples["match"] if entry not in owners(text)] == []


@pytest.mark.parametrize(("entry", "examples"), sampled(EXAMPLES, 2))
def test_near_miss(entry: str, examples: Mapping[str, Sequence[str]]) -> None:
    assert [text for text in examples["near_miss"] if entry in owners(text)] == []


@pytest.mark.parametrize("case", SPELLINGS, ids=lambda case: f"{case['entry']}-{case['source']}")
def test_spellings_of_other_releases(case: Mapping[str, str]) -> None:
    found = resolve(found_in(case["text"]), entries()).diagnoses
    assert [candidate.entry.id for candidate in found][:1] == [case["entry"]]


def test_tokens_begin_with_a_word_that_ordinary_lines_do_not_have() -> None:
    signatures = [signature for entry in entries() for signature in entry.signatures if signature.tokens]
    assert [s.tokens for s in signatures if ordinary(required_literals(s.regex, s.multiline)[0][0])] == []
    assert signatures


def test_every_expression_can_be_searched_for_by_its_literals() -> None:
    without = [(p.owner, p.regex) for p in matcher().patterns if not required_literals(p.regex)]
    assert without == []


def test_the_bare_code_of_an_npu_error_is_no_diagnosis() -> None:
    assert found_in("RuntimeError: NPU error, error code is 500000").hits == []
