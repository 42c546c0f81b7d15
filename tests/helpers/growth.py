"""Whether what a reader costs grows no faster than what it reads."""

from __future__ import annotations

import time
from typing import Any, Callable

FACTOR = 16  # by which the input grows
GENEROUS = 64  # by which the cost may grow: a busy machine costs some, a quadratic reader 256 times as much
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
    """Return the seconds for an input of a quarter of `size`, and for one FACTOR times as large."""
    read(make(16))  # imports, caches of regular expressions
    small = size // 4
    return cpu(read, make(small)), cpu(read, make(FACTOR * small))


def is_linear(seconds: tuple[float, float]) -> bool:
    """Return whether the second is in proportion to the first."""
    return seconds[1] < NOTHING + GENEROUS * seconds[0]
