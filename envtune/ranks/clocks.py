"""How far the clocks of hosts are apart, from events that happen on all of them at once.

A communicator becomes ready on all ranks at the same time, and ranks that reduce gradients finish a step at the same
time; the median of the differences is the difference of the clocks, their spread its error. Without such pairs nothing
is known about two hosts.
"""

from __future__ import annotations

import re
from statistics import median
from typing import Iterable, Mapping, NamedTuple, Optional

from envtune.ranks.records import Note, Process
from envtune.ranks.table import start_of

MARGIN = 1.0  # seconds by which simultaneous events may be logged apart
_READY = re.compile(r"success|hcclCommInitInfo|Communicator Key Info")
_STEP = re.compile(
    r"(?i)\b(?:global[_ ]?step|step|iteration|iter)s?\b(?:'| ?[:=\[#\]] ?| )*(\d{1,18})"
    r"|\[ *(\d{1,18})/\d+\]|\| *(\d{1,18})/\d+ \["
)


class Offset(NamedTuple):
    """Seconds that a host's clock is ahead of the reference, and the error."""

    seconds: float
    error: float


class Clocks:
    """The clocks of hosts that have events in common."""

    def __init__(self, notes: Iterable[tuple[Process, Note]]) -> None:
        events: dict[object, dict[str, list[float]]] = {}
        for process, note in notes:
            event = _event(note)
            if event is not None and note.time is not None:
                events.setdefault(event, {}).setdefault(process.host, []).append(note.time)
        self._groups = _groups(events)

    def later(self, one: Process, time: float, other: Process, other_time: float) -> Optional[float]:
        """Return by how many seconds `time` of one process is certainly later than that of another.

        Negative if it is certainly earlier, 0 if their order is within the error; None if the clocks of the two hosts
        cannot be compared.
        """
        if one.host == other.host:
            return time - other_time
        for group in self._groups:
            if one.host in group and other.host in group:
                first, second = group[one.host], group[other.host]
                apart = (time - first.seconds) - (other_time - second.seconds)
                error = first.error + second.error + MARGIN
                return 0.0 if abs(apart) <= error else apart
        return None


def step_of(note: Note) -> Optional[int]:
    """Return the number of the training step that a line reports, None if it reports none."""
    found = _STEP.search(note.text[:400]) if note.kind == "seen" else None
    return int(next(group for group in found.groups() if group)) if found else None


def _event(note: Note) -> Optional[object]:
    if note.kind == "start" and _READY.search(note.text):
        start = start_of(note)
        return ("ready", start.comm) if start.comm else None
    step = step_of(note)
    return None if step is None else ("step", step)


def _groups(events: Mapping[object, Mapping[str, list[float]]]) -> list[dict[str, Offset]]:
    """Return hosts whose clocks can be compared, each with its offset to the first of its group."""
    apart: dict[tuple[str, str], list[float]] = {}
    for times in events.values():
        for one in times:
            for other in times:
                if one != other:
                    apart.setdefault((one, other), []).append(median(times[other]) - median(times[one]))
    groups: list[dict[str, Offset]] = []
    for host in sorted({one for one, _ in apart}):
        if not any(host in group for group in groups):
            groups.append(_group(host, apart))
    return groups


def _group(host: str, apart: Mapping[tuple[str, str], list[float]]) -> dict[str, Offset]:
    """Return all hosts that can be compared with this one, directly or through others."""
    group = {host: Offset(0.0, 0.0)}
    reached = [host]
    for near in reached:
        for (one, other), differences in sorted(apart.items()):
            if one == near and other not in group:
                middle = median(differences)
                error = median(abs(difference - middle) for difference in differences)
                group[other] = Offset(group[near].seconds + middle, group[near].error + 3 * error)
                reached.append(other)
    return group
