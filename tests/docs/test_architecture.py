"""docs/architecture.md names files that there are."""

from __future__ import annotations

import re

import pytest
from helpers.examples import ROOT

PAGE = (ROOT / "docs/architecture.md").read_text("utf-8")
LIFE = re.findall(r"`([a-z_]+(?:/[a-z_]+)*(?:/|\.py))(?::[a-z_]+)?`", PAGE)


@pytest.mark.parametrize("path", sorted(set(LIFE)))
def test_a_file_that_is_named_is_there(path: str) -> None:
    folders = ("", "envtune", *(f"envtune/{name}" for name in ("trust", "collector", "executor", "report")))
    assert any((ROOT / folder / path).exists() for folder in folders), path
