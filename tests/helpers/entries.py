"""The files of the catalog, one test case each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envtune.catalog.layers import Layer, sources
from helpers.examples import ROOT
from helpers.shipped import parsed


def entries(kind: str) -> list[Any]:
    files = [s for s in sources(Layer(str(ROOT), own=True)) if s.kind == kind]
    return [pytest.param(Path(s.path), parsed(Path(s.path)), id=Path(s.path).stem) for s in files]
