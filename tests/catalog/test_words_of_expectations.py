"""What a check expects, and what makes a known error likelier, is told in words: no value of a probe, no pattern."""

from __future__ import annotations

import re
from typing import Mapping

from envtune.catalog import load
from envtune.model import Check, Criterion
from envtune.report.pages.entry import sections

CATALOGUE = load()
# Values that a person finds on the host as they are here. Whatever else a probe returns needs words.
ON_THE_HOST = {"performance", "pillow-simd", "3.4.10", "1", "ADD#MUL", "x86_64", "aarch64"}
ON_THE_HOST |= {"apt-get", "dnf", "yum", "zypper", "ubuntu 18.04", "centos 7.6", "euleros 2.8"}
_AMOUNT = re.compile(r"(?:at least one: )?(?:at least|at most) [\d.]+(?: GB| TB|%)?(?:; at most \d+)?")
_VARIABLE = re.compile(r"(?:\S+, or )?unset(?: \(the default is \S+\))?")
_PATTERN = re.compile(r"\^|\\|\(\?|\.\*|\[|\|")
CRITERIA: Mapping[str, Criterion] = {
    f"{entry.id}-{effect}-{number}": criterion
    for entry in CATALOGUE.faq
    for effect in ("proves", "favours", "rules_out")
    for number, criterion in enumerate(getattr(entry, effect))
    if criterion.actual
}


def expected(check: Check, lang: str) -> str:
    parts = {part.heading.en: part for part in sections(check, CATALOGUE)}
    return parts["Expected"].lines[0].to(lang)


def test_an_expectation_has_words() -> None:
    for check in CATALOGUE.checks:
        text = expected(check, "en")
        assert not _PATTERN.search(text), check.id
        if check.expected is None and not _AMOUNT.fullmatch(text) and not _VARIABLE.fullmatch(text):
            assert set(re.split(", | or ", text)) <= ON_THE_HOST, f"{check.id}: say in `expected` what this value means"


def test_the_words_are_chinese_in_chinese() -> None:
    checks = [check for check in CATALOGUE.checks if check.expected]
    assert [check.id for check in checks if not re.search("[\u4e00-\u9fff]", expected(check, "zh"))] == []


def test_what_a_check_finds_is_named_in_words() -> None:
    for place, criterion in CRITERIA.items():
        assert criterion.found is not None, f"{place}: say in `found` what `actual` matches"
        assert not _PATTERN.search(criterion.found.en) and not _PATTERN.search(criterion.found.zh), place


def test_a_pattern_without_words_is_not_shown() -> None:
    entry = next(entry for entry in CATALOGUE.faq if entry.id == "H116")
    bare = entry._replace(proves=(Criterion("NET003", actual="^{port} in use"),))
    parts = {part.heading.en: part for part in sections(bare, CATALOGUE)}
    text = parts["What proves it on the host"].lines[0].en
    assert "NET003" in text and "^" not in text
