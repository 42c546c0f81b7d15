"""Measure the same work with and without changes, in turn, until the difference is known.

The order is reversed from pair to pair (with, without, without, with, ...): a drift, such as a CPU getting warmer,
affects both equally, and the changes are applied or undone only once per pair.
"""

from __future__ import annotations

from typing import Callable, Mapping, Protocol, Sequence

from envtune.bench.statistics import LOOKS, Estimate, Verdict, decide, estimate
from envtune.records import NamedTuple


class Measurement(NamedTuple):
    """Seconds that the work took, and those of its parts, if any."""

    seconds: float
    parts: Mapping[str, float] = {}
    about: str = ""  # what was measured: `pillow 9.5.0`


class Changes(Protocol):
    """Changes that can be applied and undone repeatedly. They are applied when the comparison begins."""

    def make(self) -> None:
        """Make them."""

    def undo(self) -> None:
        """Undo them."""


class Comparison(NamedTuple):
    """The measurements, as pairs without and with the changes, and the conclusion."""

    pairs: tuple[tuple[Measurement, Measurement], ...]
    estimate: Estimate
    verdict: Verdict
    parts: Mapping[str, Estimate]
    are_made: bool  # whether the changes are made now


def compare(
    measure: Callable[[], Measurement],
    changes: Changes,
    on_pair: Callable[[int, float], None] = lambda number, ratio: None,
    looks: Sequence[int] = LOOKS,
) -> Comparison:
    """Return the effect of the changes, which are in place at the start, on the time that `measure` takes.

    Exceptions of `measure` and `changes` are passed on. `on_pair` is called with the number and ratio of each pair.
    """
    measure()  # caches get warm
    pairs: list[tuple[Measurement, Measurement]] = []
    made = True
    while True:
        first = measure()
        if made:
            changes.undo()
        else:
            changes.make()
        made = not made
        second = measure()
        pairs.append((second, first) if not made else (first, second))
        before, after = pairs[-1]
        on_pair(len(pairs), after.seconds / before.seconds)
        if len(pairs) in looks:
            found = estimate([(one.seconds, other.seconds) for one, other in pairs])
            verdict = decide(found, is_last=len(pairs) == looks[-1])
            if verdict is not None:
                return Comparison(tuple(pairs), found, verdict, _parts(pairs), made)


def _parts(pairs: Sequence[tuple[Measurement, Measurement]]) -> Mapping[str, Estimate]:
    names = [name for name in pairs[0][0].parts if all(name in one.parts for pair in pairs for one in pair)]
    return {name: estimate([(one.parts[name], other.parts[name]) for one, other in pairs]) for name in names}
