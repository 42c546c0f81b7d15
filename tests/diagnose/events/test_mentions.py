"""A line that only speaks of an error is a mention: no diagnosis, and told as such. Cases in tests/cases/events."""

from __future__ import annotations

from typing import Any, Iterator

import pytest
from helpers.examples import ROOT
from helpers.faq import entries, found_in
from helpers.rows import sampled
from helpers.yaml_text import load_yaml

from envtune.diagnose.events.mentions import Mention, without_mentions
from envtune.diagnose.rank import Resolution, resolve

CASES = ROOT / "tests" / "cases" / "events"


def of_text(text: str) -> tuple[Resolution, tuple[Mention, ...]]:
    found, mentions = without_mentions(found_in(text))
    return resolve(found, entries()), mentions


def mentions() -> Iterator[Any]:
    for why, texts in load_yaml((CASES / "mentions.yaml").read_text("utf-8")).items():
        for name, text in texts.items():
            yield pytest.param(why, text, id=f"{why}-{name}")


def events() -> Iterator[Any]:
    for file in ("events.yaml", "issues.yaml", "runs.yaml"):
        for name, case in load_yaml((CASES / file).read_text("utf-8")).items():
            yield pytest.param(case["entry"], case["text"], id=name)


def pages() -> Iterator[Any]:
    for file in ("pages.yaml", "documents.yaml"):
        for name, case in load_yaml((CASES / file).read_text("utf-8")).items():
            yield pytest.param(case["text"], id=name)


@pytest.mark.parametrize(("why", "text"), list(mentions()))
def test_a_mention_is_told_and_is_no_diagnosis(why: str, text: str) -> None:
    resolution, found = of_text(text)
    assert [candidate.entry.id for candidate in resolution.diagnoses] == []
    assert why in {mention.why for mention in found}


@pytest.mark.parametrize("text", sampled(pages(), 2))
def test_a_page_that_speaks_of_errors_is_told_as_such(text: str) -> None:
    resolution, found = of_text(text)
    assert [candidate.entry.id for candidate in resolution.diagnoses] == []
    assert found


@pytest.mark.parametrize(("entry", "text"), sampled(events(), 2))
def test_an_event_is_the_answer(entry: str, text: str) -> None:
    resolution, found = of_text(text)
    assert [candidate.entry.id for candidate in resolution.diagnoses][:1] == [entry], found


def weighed(kind: str) -> Iterator[Any]:
    for name, text in load_yaml((CASES / "weighed.yaml").read_text("utf-8"))[kind].items():
        yield pytest.param(name.partition(" ")[0], text, id=name)


@pytest.mark.parametrize(("name", "text"), sampled(weighed("pages"), 3))
def test_what_is_written_outweighs_an_error_that_is_shown(name: str, text: str) -> None:
    resolution, _ = of_text(text)
    assert [candidate.entry.id for candidate in resolution.diagnoses] == [], name


@pytest.mark.parametrize(("entry", "text"), list(weighed("questions")))
def test_what_was_pasted_outweighs_the_question(entry: str, text: str) -> None:
    resolution, _ = of_text(text)
    assert [candidate.entry.id for candidate in resolution.diagnoses][:1] == [entry]
