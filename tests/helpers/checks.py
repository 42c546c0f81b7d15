"""The checks of the tree, read from their files."""

from __future__ import annotations

from typing import Any, Iterator, Mapping

from helpers.examples import ROOT
from helpers.shipped import parsed


def check_files() -> Iterator[Mapping[str, Any]]:
    for path in sorted((ROOT / "checks").glob("*/*.yaml")):
        if path.parent.name not in ("faq", "codes", "examples"):
            yield parsed(path)
