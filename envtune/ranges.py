"""Whole numbers and ranges of them in text: the kernel's `0-3,8` as numbers, `cpu0, cpu1, cpu2` as `cpu0-2`."""

from __future__ import annotations

from typing import Iterable, Iterator, Optional, Sequence

from envtune.records import expression

MOST_DIGITS = 18  # below 2**63, what the kernel counts with; Python refuses to convert thousands of digits
MOST_SUBJECTS = 4096  # of one range that are expanded
_NUMBERED = expression(r"([a-z_]+)(0|[1-9]\d{0,5})(?:-(0|[1-9]\d{0,5}))?")  # `train01` is a name


class NumberTooLongError(ValueError):
    """Text that was read contains a number with more digits than anything uses."""

    def __init__(self, digits: int) -> None:
        super().__init__(f"a number of {digits} digits")
        self.digits = digits


def checked_int(text: str) -> int:
    """Return `int(text)`; raises NumberTooLongError, a ValueError, for more than MOST_DIGITS digits."""
    if len(text) > MOST_DIGITS and len(text.strip().lstrip("+-0")) > MOST_DIGITS:
        raise NumberTooLongError(len(text.strip().lstrip("+-")))
    return int(text)


def decimal(text: str) -> Optional[int]:
    """Return `text` as a whole number if it consists of ASCII digits only; None for anything else."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS else None


def whole_number(text: str) -> Optional[int]:
    """Return `text` as a whole number, ignoring surrounding white space; None for anything else."""
    return decimal(text.strip())


def cpu_numbers(text: str) -> tuple[int, ...]:
    """Return the numbers of `0 1 2 3` (affected_cpus) or `0-3,8` (a kernel CPU list), sorted; empty for other text."""
    numbers: set[int] = set()
    for part in text.replace(",", " ").split():
        first, mark, last = part.partition("-")
        low, high = whole_number(first), whole_number(last if mark else first)
        if low is None or high is None or high > 1 << 16:
            return ()
        numbers.update(range(low, high + 1))
    return tuple(sorted(numbers))


def join_subjects(names: Iterable[str]) -> str:
    """Join numbered names (`npu3`, `cpu4-7`) to sorted ranges; others are unchanged, in order of first mention."""
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


def single_subjects(joined: str) -> Iterator[str]:
    """Yield the names joined by `join_subjects` one by one: `npu2-3, te` is npu2, npu3 and te."""
    for part in joined.split(", "):
        yield part
        found = _NUMBERED.fullmatch(part)
        if found is not None and found[3]:
            first, last = int(found[2]), int(found[3])
            if 0 < last - first < MOST_SUBJECTS:
                yield from (f"{found[1]}{number}" for number in range(first, last + 1))
