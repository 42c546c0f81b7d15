"""When operators are compiled: only compilations after the first step are recurring."""

from __future__ import annotations

from array import array
from typing import Iterable, Optional

from envtune.records import NamedTuple

MOST = 1 << 20  # compilations and steps whose times are kept; the sums include all
FIRST_NUMBER = "ProfilerStep#0"  # torch numbers the steps of a training from 0


class Compiling(NamedTuple):
    """What operators are compiled in which steps; times in microseconds."""

    calls: int  # in all steps, including the start-up
    later_calls: int  # after the first step
    later: float
    steps: float  # the time of the steps after the first
    has_first: bool  # False if only a single step was recorded and it is not the first of the training


class Spans:
    """The beginnings and durations of events, in bounded memory."""

    def __init__(self) -> None:
        self.starts, self.durations = array("d"), array("d")
        self.placed = True  # False if an event has no time or there are too many

    def add(self, start: Optional[float], duration: float) -> None:
        """Add one event."""
        if start is None or len(self.starts) >= MOST:
            self.placed = False
            return
        self.starts.append(start)
        self.durations.append(duration)


def compiling(steps: Spans, compiled: Spans, training_starts: bool = False) -> Optional[Compiling]:
    """Return what is compiled after the first of these steps; None if the events do not tell.

    With a single step, what it compiles counts, unless it is the first of the training (`training_starts`). Source of
    the rule: Ascend PyTorch porting guide, compilation bottleneck: aclopCompile after the first step.
    """
    if not steps.starts or not steps.placed or not compiled.placed:
        return None
    ordered = sorted(zip(steps.starts, steps.durations))
    skipped = 1 if len(ordered) > 1 or training_starts else 0
    first, duration = ordered[0]
    begin = first + duration if skipped else first
    later = [time for start, time in zip(compiled.starts, compiled.durations) if start >= begin]
    whole = sum(time for _, time in ordered[skipped:])
    return Compiling(len(compiled.starts), len(later), sum(later), whole, skipped > 0)


def spans(rows: Iterable[tuple[float, float]]) -> Spans:
    """Return the spans of these beginnings and durations."""
    found = Spans()
    for start, duration in rows:
        found.add(start, duration)
    return found
