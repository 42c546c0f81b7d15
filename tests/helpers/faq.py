"""The FAQ entries of the tree, and what a scan with their signatures finds."""

from __future__ import annotations

from functools import cache
from typing import Any, Iterator

import pytest

from envtune.catalog.entries import faq_from
from envtune.diagnose.logs.files import LogFile
from envtune.diagnose.patterns import Matcher, Prefilter, patterns_of, select_prefilter
from envtune.diagnose.scan import Scan, scan
from envtune.model import FaqEntry
from helpers.examples import ROOT
from helpers.shipped import parsed

FILES = sorted((ROOT / "checks" / "faq").glob("*.yaml"))


@cache
def entries() -> tuple[FaqEntry, ...]:
    return tuple(faq_from(parsed(path)) for path in FILES)


@cache
def matcher() -> Matcher:
    return Matcher(patterns_of(entries()))


@cache
def prefilter() -> Prefilter:
    return select_prefilter(matcher().patterns, [])


def found_in(text: str) -> Scan:
    return scan([LogFile("log", content=(text + "\n").encode("utf-8"))], matcher(), prefilter())


def examples(kind: str) -> Iterator[Any]:
    for path in FILES:
        data = parsed(path)
        for number, text in enumerate(data["examples"][kind]):
            yield pytest.param(data["id"], text, id=f"{data['id']}-{number}")
