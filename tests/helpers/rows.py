"""Rows of a parametrised test: a few in `make test`, where they stand for their class, all in `make test-all`."""

from __future__ import annotations

from typing import Any, Iterable

import pytest


def sampled(rows: Iterable[Any], stride: int) -> list[Any]:
    """Every `stride`th row as it is, beginning with the first; the others are marked slow."""
    return [row if number % stride == 0 else marked_slow(row) for number, row in enumerate(rows)]


def marked_slow(row: Any) -> Any:
    """A row of parametrize (a value, a tuple of several, or pytest.param), left out of `make test`."""
    if hasattr(row, "marks"):
        return pytest.param(*row.values, id=row.id, marks=[*row.marks, pytest.mark.slow])
    return pytest.param(*(row if isinstance(row, tuple) else (row,)), marks=pytest.mark.slow)
