"""Which ranks of a job have no profile: from the size of the job noted by the profiler, else from gaps."""

from __future__ import annotations

from typing import Iterable, Iterator, Sequence

from envtune.profile.unit import Unit
from envtune.records import NamedTuple

MOST = 1 << 20  # ranks of a job; a larger number is invalid


class Missing(NamedTuple):
    """The ranks without steps, as ranges (`3`, `8-15`); `size` is 0 if no file tells the size of the job."""

    ranks: tuple[str, ...]
    size: int


def missing_ranks(units: Sequence[Unit]) -> Missing:
    """Return the ranks of a job that are missing among these units, which are of one profiler."""
    known = {int(rank) for rank in _ranks(units) if rank.isascii() and rank.isdecimal() and int(rank) < MOST}
    size = max((unit.metadata.world for unit in units if unit.metadata is not None), default=0)
    size = size if max(known, default=-1) < size <= MOST else 0
    if not known:
        return Missing((), size)
    begin, end = (0, size) if size else (min(known), max(known))
    return Missing(tuple(_gaps(sorted(known), begin, end)), size)


def _ranks(units: Iterable[Unit]) -> Iterator[str]:
    for unit in units:
        if len(unit.steps) == 1 and unit.rank is not None:
            yield unit.rank
        elif len(unit.steps) > 1:
            yield from (steps.rank for steps in unit.steps)


def _gaps(known: Sequence[int], begin: int, end: int) -> Iterator[str]:
    """Yield the unknown numbers from `begin` up to but excluding `end`, consecutive ones as a range."""
    for number in (*known, end):
        if number > begin:
            yield str(begin) if number == begin + 1 else f"{begin}-{number - 1}"
        begin = number + 1
