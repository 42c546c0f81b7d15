"""docs/architecture.md names files that there are."""

from __future__ import annotations

import re

from helpers.examples import ROOT

PAGE = (ROOT / "docs/architecture.md").read_text("utf-8")
LIFE = re.findall(r"`([a-z_]+(?:/[a-z_]+)*(?:/|\.py))(?::[a-z_]+)?`", PAGE)


def test_a_file_that_is_named_is_there() -> None:
    folders = ("", "envtune", *(f"envtune/{name}" for name in ("trust", "collector", "executor", "report")))
    named = sorted(set(LIFE))
    assert [path for path in named if not any((ROOT / folder / path).exists() for folder in folders)] == []
    assert len(named) > 50
