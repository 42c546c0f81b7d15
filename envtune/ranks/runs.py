"""Leave out earlier runs: a log directory often contains those of several jobs."""

from __future__ import annotations

from typing import Sequence

from envtune.ranks.records import Note, Source
from envtune.ranks.table import STARTS, Naming, start_of

APART = 1.0  # seconds between the end of one run and the start of the next


def latest_run(sources: Sequence[Source], notes: Sequence[Note]) -> tuple[Sequence[Source], Sequence[Note]]:
    """Return the sources and notes without the files of a process whose rank or device a later process has."""
    old = _outdated(sources, notes)
    if not old:
        return sources, notes
    return [own for own in sources if own.path not in old], [note for note in notes if note.path not in old]


def _outdated(sources: Sequence[Source], notes: Sequence[Note]) -> set[str]:
    naming = Naming(sources, [note for note in notes if note.kind in STARTS])
    spans: dict[tuple[str, int], list[float]] = {}
    files: dict[tuple[str, int], set[str]] = {}
    for source in sources:
        place = naming.places[source.path]
        if place.pid is not None and source.first is not None and source.last is not None:
            key = place.host, place.pid
            spans.setdefault(key, []).extend((source.first, source.last))
            files.setdefault(key, set()).add(source.path)
    old: set[str] = set()
    for pids in _slots(naming, notes).values():
        timed = sorted((pid for pid in pids if pid in spans), key=lambda pid: min(spans[pid]))
        for earlier, later in zip(timed, timed[1:]):
            if max(spans[earlier]) + APART <= min(spans[later]):
                old |= files[earlier]
    return old


def _slots(naming: Naming, notes: Sequence[Note]) -> dict[tuple[str, str, int], set[tuple[str, int]]]:
    """Return {device of a host: the processes that used it}."""
    slots: dict[tuple[str, str, int], set[tuple[str, int]]] = {}
    for note in notes:
        place = naming.places.get(note.path)
        if place is None or place.pid is None or note.kind not in STARTS:
            continue
        start = start_of(note)
        for name, value in (("device", start.device), ("logic", start.logic)):
            if value is not None:
                slots.setdefault((place.host, name, value), set()).add((place.host, place.pid))
    return slots
