"""Names of what a finding speaks about: `cpu0, cpu1, cpu2, cpu7` reads better as `cpu0-2, cpu7`."""

from __future__ import annotations

import re
from typing import Iterable, Sequence

_NUMBERED = re.compile(r"([a-z_]+)(0|[1-9]\d{0,5})(?:-(0|[1-9]\d{0,5}))?")  # `train01` is a name


def join_subjects(names: Iterable[str]) -> str:
    """Join numbered names (`npu3`, `cpu4-7`) to sorted ranges; others stay as they are, in order of first mention."""
    numbers: dict[tuple[str, bool], set[int]] = {}
    for part in (part.strip() for name in names for part in name.split(", ")):
        found = _NUMBERED.fullmatch(part)
        if found is None:
            numbers[part, False] = set()
            continue
        first, last = int(found[2]), int(found[3] or found[2])
        numbers.setdefault((found[1], True), set()).update(range(first, last + 1) if last >= first else (first, last))
    parts = [part for (stem, _), known in numbers.items() for part in _ranges(stem, sorted(known))]
    return ", ".join(part for part in parts if part)


def _ranges(stem: str, numbers: Sequence[int]) -> list[str]:
    if not numbers:
        return [stem]
    parts: list[str] = []
    first = last = numbers[0]
    for number in [*numbers[1:], -1]:
        if number == last + 1:
            last = number
            continue
        parts.append(f"{stem}{first}" + (f"-{last}" if last > first else ""))
        first = last = number
    return parts
