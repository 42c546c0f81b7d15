"""Whether a change makes something faster: the median of paired ratios, its interval, and when to stop. Pure.

A pair is one measurement without the change and one with it, next to each other in time, so that other load on the
machine affects both; what counts is their ratio. The interval is that of the sign test, between two order statistics,
which holds for every distribution (Conover, Practical Nonparametric Statistics, 3rd edition, section 3.2; David and
Nagaraja, Order Statistics, section 7.1). No random numbers: the same measurements give the same answer.

The interval is evaluated three times, each with a third of the error (Bonferroni): stopping as soon as a plain 95 %
interval looks good would be wrong in more than 5 % of cases.
"""

from __future__ import annotations

from enum import Enum
from math import comb
from typing import Optional, Sequence

from envtune.records import NamedTuple

LOOKS = (8, 12, 20)  # pairs after which it is evaluated; 8 are the fewest whose interval is wrong in less than 5 % / 3
ERROR = 0.05  # of all evaluations together
RELEVANT = 0.02  # a ratio closer to 1 is too small a difference to be worth a change
Pair = tuple[float, float]  # seconds without the change, and with it


class Verdict(Enum):
    """What the pairs show about the change."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"  # no difference, or a smaller one than RELEVANT
    UNDECIDED = "undecided"  # the pairs differ too much from each other


class Estimate(NamedTuple):
    """Summary of pairs: medians in seconds, and the median of the ratios with its interval."""

    pairs: int
    before: float
    after: float
    ratio: float  # below 1: faster
    low: float
    high: float


def median(values: Sequence[float]) -> float:
    """Return the median; for an even number of values the mean of the two in the middle."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def interval_rank(number: int, error: float) -> Optional[int]:
    """Return the largest k for which the k-th smallest and k-th largest value miss the median with at most `error`.

    None if even the smallest and the largest value miss it more often: there are too few.
    """
    rank, tail = 0, 0
    while rank <= number // 2:
        tail += comb(number, rank)
        if 2 * tail > error * 2**number:
            break
        rank += 1
    return rank or None


def estimate(pairs: Sequence[Pair], error: float = ERROR / len(LOOKS)) -> Estimate:
    """Return the summary of the pairs; the interval is from 0 to infinity if they are too few."""
    ratios = sorted(after / before for before, after in pairs)
    rank = interval_rank(len(ratios), error)
    low, high = (0.0, float("inf")) if rank is None else (ratios[rank - 1], ratios[-rank])
    before, after = median([pair[0] for pair in pairs]), median([pair[1] for pair in pairs])
    return Estimate(len(ratios), before, after, median(ratios), low, high)


def decide(found: Estimate, is_last: bool) -> Optional[Verdict]:
    """Return the verdict, None if more pairs may still decide it."""
    if found.high < 1 - RELEVANT:
        return Verdict.FASTER
    if found.low > 1 + RELEVANT:
        return Verdict.SLOWER
    if found.low >= 1 - RELEVANT and found.high <= 1 + RELEVANT:
        return Verdict.SAME
    if not is_last:
        return None
    if found.high < 1:
        return Verdict.FASTER
    return Verdict.SLOWER if found.low > 1 else Verdict.UNDECIDED
