"""Numbers in text that somebody else wrote."""

from __future__ import annotations

from typing import Optional

MOST_DIGITS = 18  # below 2**63, what the kernel counts with; Python refuses to convert thousands of digits


def whole_number(text: str) -> Optional[int]:
    """Return the number that `text` is, in ASCII digits with white space around; None when it is not one."""
    digits = text.strip()
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) <= MOST_DIGITS else None


def cpu_numbers(text: str) -> tuple[int, ...]:
    """Return the sorted numbers of `0 1 2 3` (affected_cpus) or `0-3,8` (a kernel CPU list); none when neither."""
    numbers: set[int] = set()
    for part in text.replace(",", " ").split():
        first, mark, last = part.partition("-")
        low, high = whole_number(first), whole_number(last if mark else first)
        if low is None or high is None or high > 1 << 16:
            return ()
        numbers.update(range(low, high + 1))
    return tuple(sorted(numbers))
