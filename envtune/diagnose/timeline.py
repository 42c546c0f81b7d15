"""Tell when each hit happened and which process it belongs to, as far as the logs say. Pure.

Lines of one program have a time or not, and a year or not; ranks are named in prefixes, in file names or only by a
process id that another line gives a rank. The result orders failures of several ranks and invents nothing: a hit whose
time is unknown comes last.
"""

from __future__ import annotations

from typing import Hashable, Iterable, Mapping, Optional

from envtune.diagnose.logs.lines import NO_YEAR, in_year, time_of, year_of
from envtune.diagnose.scan import CONTEXT, Hit

SKEW = 5.0  # seconds by which the clocks of two hosts may differ unnoticed
UNKNOWN_TIME = float("inf")
Moment = tuple[float, str, int]  # seconds (infinite where unknown), file, line


class Timeline:
    """The order of hits."""

    def __init__(self, hits: Iterable[Hit]) -> None:
        self._times: dict[tuple[str, int], float] = {}
        self._ranks: dict[tuple[str, int], int] = {}  # (host, pid) -> rank, where a line says both
        files: dict[str, list[Hit]] = {}
        for hit in hits:
            files.setdefault(hit.file.path, []).append(hit)
            pid = _pid(hit)
            if pid is not None and hit.rank is not None:
                self._ranks.setdefault((hit.file.host, pid), hit.rank)
        for path, of_file in files.items():
            for number, moment in _times_of(of_file).items():
                self._times[(path, number)] = moment
        self._add_years()
        everything = [hit for of_file in files.values() for hit in of_file]
        ranks = {(hit.file.host, self.rank(hit)) for hit in everything if self.rank(hit) is not None}
        self._several = len(ranks) > 1 or len({hit.file.host for hit in everything}) > 1

    def moment(self, hit: Hit) -> Moment:
        """Return a key that sorts by time, then by reading order."""
        return self._times.get((hit.file.path, hit.line.number), UNKNOWN_TIME), hit.file.path, hit.line.number

    def rank(self, hit: Hit) -> Optional[int]:
        """Return the rank that printed it: by its line, its file's name, or the process id of a line with a rank."""
        pid = _pid(hit)
        if hit.rank is not None or pid is None:
            return hit.rank
        return self._ranks.get((hit.file.host, pid))

    def process(self, hit: Hit) -> Hashable:
        """Return the process that printed it; the same for all where the inputs show one only."""
        if not self._several:
            return ""
        rank = self.rank(hit)
        return (hit.file.host, rank) if rank is not None else (hit.file.host, hit.file.path)

    def _add_years(self) -> None:
        """Give times without a year that of the others, so that both can be compared."""
        years = {year_of(moment) for moment in self._times.values() if moment != UNKNOWN_TIME} - {NO_YEAR}
        if len(years) == 1:
            (year,) = years
            for place, moment in self._times.items():
                if moment != UNKNOWN_TIME and year_of(moment) == NO_YEAR:
                    self._times[place] = in_year(moment, year)


def _times_of(hits: Iterable[Hit]) -> Mapping[int, float]:
    """Return the time of each line in one file; one without a time has that of the last before it, else of the next."""
    clock: Optional[float] = None
    times: dict[int, Optional[float]] = {}
    for hit in sorted(hits, key=lambda h: h.line.number):
        clock = _time_of(hit, clock)
        times[hit.line.number] = clock
    first = next((moment for moment in times.values() if moment is not None), UNKNOWN_TIME)
    return {number: first if moment is None else moment for number, moment in times.items()}


def _time_of(hit: Hit, clock: Optional[float]) -> Optional[float]:
    if hit.line.time is not None:
        return hit.line.time
    for text in reversed(hit.context[: min(CONTEXT, max(hit.line.number - 1, 0))]):
        moment = time_of(text)
        if moment is not None:
            return moment
    return clock


def _pid(hit: Hit) -> Optional[int]:
    return hit.line.pid if hit.line.pid is not None else hit.file.pid
