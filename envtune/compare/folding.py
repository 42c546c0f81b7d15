"""Names of hosts in the short form that clush, pdsh and Slurm read: `node[1-7,9]`.

Only the last number of a name is folded: not all of them read brackets at two places. ClusterShell's NodeSet says in
the tests that the names come back from the short form.
"""

from __future__ import annotations

import re
from typing import Iterable, Iterator, Sequence

from envtune.ranges import MOST_DIGITS

LONGEST = 255  # characters of a host name; what is longer is none
_NUMBERED = re.compile(r"([A-Za-z0-9._-]*?)([0-9]+)([A-Za-z._-]*)")


def fold(names: Iterable[str]) -> str:
    """Return the names joined by commas, numbered ones folded to ranges, sorted by their numbers."""
    by_form: dict[tuple[str, str], list[str]] = {}
    others: list[str] = []
    for name in sorted(set(names)):
        found = _NUMBERED.fullmatch(name) if len(name) <= LONGEST else None
        if found is None or len(found[2]) > MOST_DIGITS:
            others.append(name)
        else:
            by_form.setdefault((found[1], found[3]), []).append(found[2])
    folded = [f"{stem}{part}{rest}" for (stem, rest), numbers in by_form.items() for part in _parts(numbers)]
    return ",".join([*folded, *others])


def _parts(numbers: Sequence[str]) -> Iterator[str]:
    """Yield the numbers in brackets, once for each width to which they are filled with zeros."""
    filled = {len(digits) for digits in numbers if digits[0] == "0" and len(digits) > 1}
    by_width: dict[int, list[int]] = {}
    for digits in numbers:
        by_width.setdefault(len(digits) if len(digits) in filled else 0, []).append(int(digits))
    for width, found in sorted(by_width.items()):
        ranges = [
            f"{low:0{width}d}" + (f"-{high:0{width}d}" if high > low else "") for low, high in _ranges(sorted(found))
        ]
        yield f"[{','.join(ranges)}]" if len(found) > 1 else ranges[0]


def _ranges(numbers: Sequence[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found
