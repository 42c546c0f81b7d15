"""docs/security.md promises what tests hold, with the limits of the code; both languages say the same."""

from __future__ import annotations

import ast
import importlib
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from helpers.examples import ROOT

PAGES = {"en": ROOT / "docs/security.md", "zh": ROOT / "docs/security.zh.md"}
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "s": 1}
BOTH = pytest.mark.parametrize("lang", PAGES)


def promises(lang: str) -> dict[str, tuple[str, tuple[str, ...]]]:
    """The sentence and the tests of every promise, by its id."""
    text = PAGES[lang].read_text("utf-8")
    rows = re.findall(r"^- \*\*(S\d+)\*\* (.*(?:\n  .+)*)", text, re.MULTILINE)
    assert len(rows) == len({id_ for id_, _ in rows}) == len(re.findall(r"\*\*S\d+\*\*", text))
    named = re.compile(r"`(tests/[^`]*)`")
    return {id_: (named.sub("", body).strip(), tuple(named.findall(body))) for id_, body in rows}


def limits(lang: str) -> dict[str, str]:
    """What the page says of every constant: `module:NAME` -> `32 MiB`."""
    rows = re.findall(r"^\|[^|]*\| ([0-9][^|]*) \| `([^`]*)` \|$", PAGES[lang].read_text("utf-8"), re.MULTILINE)
    return {name: value for value, name in rows}


@cache
def functions(path: Path) -> frozenset[str]:
    """The functions of a file that pytest collects."""
    nodes = ast.parse(path.read_text("utf-8")).body
    return frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"))


@BOTH
def test_every_promise_names_tests_that_there_are(lang: str) -> None:
    found = promises(lang)
    assert list(found) == [f"S{number:02d}" for number in range(1, len(found) + 1)] and len(found) > 30
    for id_, (sentence, tests) in found.items():
        assert sentence and tests, id_
        for test in tests:
            path, _, name = test.partition("::")
            assert (ROOT / path).is_file() and name in functions(ROOT / path), f"{id_}: {test}"


def test_both_languages_promise_the_same() -> None:
    assert {id_: tests for id_, (_, tests) in promises("en").items()} == {
        id_: tests for id_, (_, tests) in promises("zh").items()
    }
    assert limits("en") == limits("zh")
    shapes = [
        [len(re.findall(pattern, page.read_text("utf-8"), re.MULTILINE)) for pattern in ("^## ", "^### ", r"^\|")]
        for page in PAGES.values()
    ]
    assert shapes[0] == shapes[1]  # a section or a row that only one of them has


def test_the_limits_are_those_of_the_code() -> None:
    found = limits("en")
    assert len(found) > 20
    for name, value in found.items():
        number, _, unit = value.replace(",", "").partition(" ")
        assert float(number) * UNITS.get(unit, 1) == constant(name), name


def constant(name: str) -> Any:
    module, _, members = name.partition(":")
    value: Any = importlib.import_module(module)
    for member in members.split("."):
        value = getattr(value, member)
    return value


@BOTH
def test_every_link_leads_somewhere(lang: str) -> None:
    page = PAGES[lang]
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text("utf-8")):
        file, _, anchor = target.partition("#")
        place = page.parent / file if file else page
        assert place.is_file(), target
        headings = re.findall(r"^#+ (.*)|^<a id=\"(.*)\">", place.read_text("utf-8"), re.MULTILINE)
        anchors = {re.sub(r"[^\w -]", "", "".join(row).lower()).replace(" ", "-") for row in headings}
        assert not anchor or anchor in anchors, target
