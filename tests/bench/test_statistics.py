"""What pairs of measurements show, on written numbers."""

from __future__ import annotations

import random

import pytest

from envtune.bench.statistics import ERROR, LOOKS, Pair, Verdict, decide, estimate, interval_rank, median

EACH = ERROR / len(LOOKS)


@pytest.mark.parametrize(("values", "middle"), [([3.0], 3.0), ([4.0, 1.0], 2.5), ([9.0, 1.0, 2.0], 2.0)])
def test_the_median(values: list[float], middle: float) -> None:
    assert median(values) == middle


@pytest.mark.parametrize(
    ("number", "error", "rank"),
    [
        (5, 0.05, None),  # 2 * 2 ** -5 is 6 %
        (6, 0.05, 1),
        (10, 0.05, 2),  # tables of the sign test: 10 pairs from the 2nd to the 9th
        (20, 0.05, 6),
        (25, 0.05, 8),
        (7, EACH, 1),
        (6, EACH, None),
        (8, EACH, 1),
        (12, EACH, 2),
        (20, EACH, 5),
    ],
)
def test_the_interval_is_between_order_statistics(number: int, error: float, rank: int) -> None:
    assert interval_rank(number, error) == rank


def test_the_first_look_has_enough_pairs() -> None:
    assert all(interval_rank(number, EACH) is not None for number in LOOKS)


def test_an_estimate() -> None:
    found = estimate(
        [(10.0, 5.0), (10.0, 6.0), (20.0, 9.0), (10.0, 4.0), (8.0, 4.0), (10.0, 7.0), (10.0, 5.0), (4.0, 2.0)]
    )
    assert (found.pairs, found.before, found.after) == (8, 10.0, 5.0)
    assert (found.ratio, found.low, found.high) == (0.5, 0.4, 0.7)


def test_too_few_pairs_say_nothing() -> None:
    found = estimate([(1.0, 0.1)] * 5)
    assert (found.low, found.high) == (0.0, float("inf")) and decide(found, is_last=False) is None
    assert decide(found, is_last=True) is Verdict.UNDECIDED


def ratios(*values: float) -> list[Pair]:
    return [(1.0, value) for value in values]


@pytest.mark.parametrize(
    ("pairs", "early", "last"),
    [
        (ratios(0.5, 0.6, 0.4, 0.5, 0.7, 0.5, 0.55, 0.45), Verdict.FASTER, Verdict.FASTER),
        (ratios(1.5, 1.6, 1.4, 1.5, 1.7, 1.5, 1.55, 1.45), Verdict.SLOWER, Verdict.SLOWER),
        (ratios(1.0, 0.99, 1.01, 1.0, 1.01, 0.99, 1.0, 1.0), Verdict.SAME, Verdict.SAME),
        (ratios(0.97, 0.985, 0.96, 0.97, 0.97, 0.97, 0.97, 0.97), None, Verdict.FASTER),  # but not by 2 % for sure
        (ratios(1.03, 1.015, 1.04, 1.03, 1.03, 1.03, 1.03, 1.03), None, Verdict.SLOWER),
        (ratios(0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 1.3), None, Verdict.UNDECIDED),  # one pair more must decide it
    ],
)
def test_when_it_is_decided(pairs: list[Pair], early: Verdict, last: Verdict) -> None:
    found = estimate(pairs)
    assert (decide(found, is_last=False), decide(found, is_last=True)) == (early, last)


def concluded(numbers: random.Random, effect: float, spread: float) -> Verdict:
    """What is said of a change with that effect, where each measurement has noise of its own."""
    pairs: list[Pair] = []
    while True:
        pairs.append((numbers.lognormvariate(0, spread), effect * numbers.lognormvariate(0, spread)))
        if len(pairs) in LOOKS:
            found = decide(estimate(pairs), is_last=len(pairs) == LOOKS[-1])
            if found is not None:
                return found


@pytest.mark.parametrize("spread", [0.002, 0.05, 0.3])
def test_a_change_without_effect_is_called_one_in_at_most_5_percent(spread: float) -> None:
    numbers = random.Random(17)
    found = [concluded(numbers, 1.0, spread) for _ in range(1000)]
    assert sum(one in (Verdict.FASTER, Verdict.SLOWER) for one in found) <= 50


def test_a_large_effect_is_found_in_spite_of_noise() -> None:
    numbers = random.Random(18)
    assert {concluded(numbers, 0.5, 0.1) for _ in range(300)} == {Verdict.FASTER}
