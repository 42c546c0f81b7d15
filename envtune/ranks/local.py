"""Local ranks: the first rank of a host, and thus the rank in the job of a local rank.

A launcher assigns the ranks of the job host by host; what it prints before a line, or uses in a file name, is often
only the local rank.
"""

from __future__ import annotations

from typing import Iterable, Mapping, Optional

from envtune.ranks.hosts import launch_of
from envtune.ranks.records import Note
from envtune.ranks.table import Key, Naming, start_of


def join_local_ranks(naming: Naming, notes: Iterable[Note]) -> None:
    """Join each local rank of a host with its rank in the job, if the host's first rank is known."""
    first = _first_ranks(naming, list(notes))
    sets = naming.keys.sets()
    by_rank = {key: own for own in sets.values() for key in own if key[0] == "rank"}
    for own in sets.values():
        named = {key for key in own if key[0] == "local"}
        if len(named) != 1 or any(key[0] == "rank" for key in own):
            continue
        ((_, host, local),) = named
        start = first.get(str(host))
        rank = None if start is None or not isinstance(local, int) else ("rank", start + local)
        if rank is not None and not _another(own, by_rank.get(rank, ())):
            naming.keys.join([rank, *own])


def _another(one: Iterable[Key], other: Iterable[Key]) -> bool:
    """Return whether the keys cannot belong to one process: they differ in pid, local rank or host."""
    names = ("pid", "local")
    own, others = ({key for key in keys if key[0] in names} for keys in (one, other))
    hosts = {str(key[1]) for key in own}, {str(key[1]) for key in others}
    if hosts[1] and not hosts[0] & hosts[1]:
        return True
    values = [({key[2] for key in own if key[0] == n}, {key[2] for key in others if key[0] == n}) for n in names]
    return any(first and second and not first & second for first, second in values)


def _first_ranks(naming: Naming, notes: list[Note]) -> Mapping[str, int]:
    """Return {host: its first rank}: from its processes, else from the options of its launcher."""
    shown: dict[str, set[int]] = {}
    by_device: dict[str, dict[Key, int]] = {}
    ranks = {naming.keys.find(key): key[1] for own in naming.keys.sets().values() for key in own if key[0] == "rank"}
    for own in naming.keys.sets().values():
        rank = ranks.get(naming.keys.find(own[0]))
        for key in own:
            if key[0] == "local" and isinstance(rank, int) and isinstance(key[2], int):
                shown.setdefault(str(key[1]), set()).add(rank - key[2])
    for note in notes:
        found = naming.key(note)
        rank, device = ranks.get(found) if found else None, _device(naming, note)
        if found is not None and isinstance(rank, int) and device is not None:
            by_device.setdefault(naming.host_of(note), {})[found] = rank - device
    for host, apart in by_device.items():
        if len(apart) > 1:
            shown.setdefault(host, set()).update(apart.values())
    started = _started(naming, notes)
    return {**started, **{host: own.pop() for host, own in shown.items() if len(own) == 1 and min(own) >= 0}}


def _device(naming: Naming, note: Note) -> Optional[int]:
    """Return the device number that a process prints, which begins at 0 on each host."""
    device = naming.identity(note).device
    return start_of(note).logic if device is None and note.kind == "start" else device


def _started(naming: Naming, notes: Iterable[Note]) -> Mapping[str, int]:
    """Return {host: first rank} from the options of its launcher."""
    first: dict[str, set[int]] = {}
    for note in notes:
        if note.kind != "launch":
            continue
        node, each = launch_of(note)
        if node is not None and each is not None:
            first.setdefault(naming.host_of(note), set()).add(node * each)
    return {host: own.pop() for host, own in first.items() if len(own) == 1}
