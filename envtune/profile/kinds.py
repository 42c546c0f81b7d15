"""Which profiler wrote the steps of a rank: ranks of different profilers are not of one job and are not compared."""

from __future__ import annotations

import re
from typing import Sequence

from envtune.messages import Literal, Message, Text
from envtune.profile.unit import Unit

TORCH, MINDSPORE, OLDER_MINDSPORE, MSPROF = "torch_npu", "MindSpore", "MindSpore <= 2.2", "msprof"
_DIRECTORIES = ((re.compile(r"[^/]*_ascend_pt(?:/|$)"), TORCH), (re.compile(r"[^/]*_ascend_ms(?:/|$)"), MINDSPORE))
_TABLES = {"graph_steps": OLDER_MINDSPORE, "stage_steps": OLDER_MINDSPORE, "iterations": MSPROF}


def profiler_of(path: str, table: str) -> str:
    """Return which profiler wrote a table of steps, by its directory, then by its kind; empty if neither tells."""
    for pattern, name in _DIRECTORIES:
        if pattern.search(path):
            return name
    return _TABLES.get(table, "")


def named(profiler: str) -> Text:
    """Return the name of a kind of profiles."""
    return Literal(profiler) if profiler else Message("unknown profiler")


def kinds_of(units: Sequence[Unit]) -> dict[str, list[Unit]]:
    """Return the units by profiler; units that do not name it go to the only one that writes such tables."""
    named = {unit.profiler for unit in units if unit.steps}
    likely = [name for name in (TORCH, MINDSPORE) if name in named]
    kinds: dict[str, list[Unit]] = {}
    for unit in units:
        if unit.steps:
            kinds.setdefault(unit.profiler or (likely[0] if len(likely) == 1 else ""), []).append(unit)
    return kinds
