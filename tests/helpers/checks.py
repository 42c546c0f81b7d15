"""The checks of the tree, read from their files, and their examples."""

from __future__ import annotations

from typing import Any, Iterator, Mapping

import pytest

from helpers.examples import ROOT
from helpers.shipped import parsed


def check_files() -> Iterator[Mapping[str, Any]]:
    for path in sorted((ROOT / "checks").glob("*/*.yaml")):
        if path.parent.name not in ("faq", "examples"):
            yield parsed(path)


def all_examples() -> Iterator[Any]:
    for data in check_files():
        for outcome, examples in data["examples"].items():
            for number, example in enumerate(examples):
                yield pytest.param(data, outcome, example, id=f"{data['id']}-{outcome}-{number}")
