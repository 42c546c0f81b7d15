"""Every line an FAQ entry says it matches, and every near miss: `test_match[F06-0]`."""

from __future__ import annotations

from functools import cache
from typing import Any, Iterator

import pytest
from conftest import ROOT
from shipped import parsed

from envtune.catalog.entries import faq_from
from envtune.diagnose.logs.files import LogFile
from envtune.diagnose.patterns import Chooser, Matcher, Pattern, choose, patterns_of
from envtune.diagnose.prefilter.literals import required_literals
from envtune.diagnose.scan import Scan, scan
from envtune.model import FaqEntry

FILES = sorted((ROOT / "checks" / "faq").glob("*.yaml"))


@cache
def entries() -> tuple[FaqEntry, ...]:
    return tuple(faq_from(parsed(path)) for path in FILES)


@cache
def matcher() -> Matcher:
    return Matcher(patterns_of(entries()))


@cache
def chooser() -> Chooser:
    return choose(matcher().patterns, [])


def found_in(text: str) -> Scan:
    return scan([LogFile("log", content=(text + "\n").encode("utf-8"))], matcher(), chooser())


def examples(kind: str) -> Iterator[Any]:
    for path in FILES:
        data = parsed(path)
        for number, text in enumerate(data["examples"][kind]):
            yield pytest.param(data["id"], text, id=f"{data['id']}-{number}")


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
