"""Names of hosts in the short form that clush, pdsh and Slurm read: `node[1-7,9]`.

Only the last number of a name is folded: not all of them accept brackets in two places. The tests verify with
ClusterShell's NodeSet that the short form expands to the same names.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from itertools import islice
from typing import Iterable, Iterator, Sequence

from envtune.ranges import MOST_DIGITS

LONGEST = 255  # characters of a host name; anything longer is not one
_NUMBERED = re.compile(r"([A-Za-z0-9._-]*?)([0-9]+)([A-Za-z._-]*)")


_BITS = 64  # per position; a number of MOST_DIGITS fits


class _Places(dict[str, int]):
    """Names as integers, so that very many hosts can be sorted fast; the same hosts are folded for every check.

    Names that differ only in a number with the same count of digits are adjacent: the index of their form times 2 ** 64
    plus their number. A name without a number is negative.
    """

    def __init__(self) -> None:
        self.forms: dict[tuple[str, str, int], int] = {}
        self.others: list[str] = []

    def __missing__(self, name: str) -> int:
        found = _NUMBERED.fullmatch(name) if len(name) <= LONGEST else None
        if found is None or len(found[2]) > MOST_DIGITS:
            self.others.append(name)
            self[name] = -len(self.others)
        else:
            form = self.forms.setdefault((found[1], found[3], len(found[2])), len(self.forms))
            self[name] = (form << _BITS) + int(found[2])
        return self[name]


_PLACES = _Places()


def fold(names: Iterable[str], longest: float = math.inf) -> str:
    """Return the names joined by commas, numbered ones folded to ranges, sorted by their numbers.

    Names after `longest` characters may be missing: for callers that cut the text there anyway.
    """
    every = list(names)
    if len(every) == 1:  # a fleet has tens of thousands of values that only one host has
        return every[0]
    places = sorted(map(_PLACES.__getitem__, every))
    start = bisect_left(places, 0)
    others = sorted({_PLACES.others[-place - 1] for place in places[:start]})
    forms = list(_PLACES.forms)
    by_form: dict[tuple[str, str], dict[int, list[int]]] = {}
    while start < len(places):
        form = places[start] >> _BITS
        end = bisect_left(places, (form + 1) << _BITS, start)
        stem, rest, digits = forms[form]
        found = places[start:end]
        by_form.setdefault((stem, rest), {})[digits] = [place - (form << _BITS) for place in found] if form else found
        start = end
    folded = [
        f"{stem}{part}{rest}"
        for (stem, rest), numbers in sorted(by_form.items(), key=_first_name)
        for part in _parts(numbers, longest)
    ]
    return ",".join([*folded, *others])


def _first_name(form: tuple[tuple[str, str], dict[int, list[int]]]) -> str:
    (stem, rest), numbers = form
    return min(f"{stem}{found[0]:0{digits}d}{rest}" for digits, found in numbers.items())


def _parts(numbers: dict[int, list[int]], longest: float) -> Iterator[str]:
    """Yield the numbers in brackets, grouped by number of digits: once for each zero-padded width."""
    by_width: dict[int, list[int]] = {}
    for digits, found in sorted(numbers.items()):
        is_filled = digits > 1 and found[0] < 10 ** (digits - 1)
        by_width.setdefault(digits if is_filled else 0, []).extend(found)
    for width, found in sorted(by_width.items()):
        form = f"%0{width}d" if width else "%d"
        several = f"{form}-{form}"
        most = len(found) if longest == math.inf else int(longest) // len(form % found[0]) + 1
        ranges = [form % low if low == high else several % (low, high) for low, high in islice(_ranges(found), most)]
        yield f"[{','.join(ranges)}]" if found[0] != found[-1] else ranges[0]


def _ranges(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    low = numbers[0]
    for number, after in zip(numbers, islice(numbers, 1, None)):
        if after - number > 1:  # it is 0 if a name occurs twice
            yield low, number
            low = after
    yield low, numbers[-1]
