"""Whether what a reader costs grows no faster than what it reads."""

from __future__ import annotations

import time
from typing import Any, Callable

FACTOR = 4  # by which the input grows
GENEROUS = 9  # by which the cost may grow; a quadratic reader costs 16 times as much
NOTHING = 0.03  # seconds of CPU that are lost in the noise
TRIES = 3


def cpu(read: Callable[[Any], Any], value: Any) -> float:
    """Return the seconds of CPU that reading takes, the best of TRIES."""
    best = float("inf")
    for _ in range(TRIES):
        start = time.process_time()
        read(value)
        best = min(best, time.process_time() - start)
        if best < NOTHING:
            break
    return best


def growth(make: Callable[[int], Any], read: Callable[[Any], Any], size: int) -> tuple[float, float]:
    """Return the seconds for an input of `size`, and for one FACTOR times as large."""
    read(make(16))  # imports, caches of regular expressions
    return cpu(read, make(size)), cpu(read, make(FACTOR * size))


def is_linear(seconds: tuple[float, float]) -> bool:
    """Return whether the second is in proportion to the first."""
    return seconds[1] < NOTHING + GENEROUS * seconds[0]
