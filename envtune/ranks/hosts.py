"""Which host a file or an address belongs to if no directory tells: from its lines, and from file names."""

from __future__ import annotations

import re
from typing import Iterable, Mapping, Optional, Sequence

from envtune.ranks.identity import Identity, Place
from envtune.ranks.records import Note

_NODE = re.compile(r"--(?:node|machine)[_-]rank(?:=|\s+)(\d{1,6})\b")
_SERIES = re.compile(r"\d+")
_ADDRESS = re.compile(r"\d{1,3}(?:[.-]\d{1,3}){3}")
_OWN_ADDRESS = re.compile(
    r"(?<![\w.-])(?:node[_ ]?ip(?:[_ ]address)?|host[_ ]?ip|ip)\s?[=:]\s?(\d{1,3}(?:\.\d{1,3}){3})\b"
)
_OF_ITSELF = ("self", "said", "world")


def launch_of(note: Note) -> tuple[Optional[int], Optional[int]]:
    """Return which node a launcher starts processes on, and how many; None for what it does not tell."""
    option = _NODE.search(note.text)
    node = note.fields.get("node") or (option[1] if option else "")
    each = note.fields.get("each", "")
    return int(node) if node.isdecimal() else None, int(each) if each.isdecimal() else None


def address_in(place: Place) -> str:
    """Return the address in the name of a directory, empty if there is none."""
    found = _ADDRESS.search(place.host)
    return found[0].replace("-", ".") if found else ""


def own_address(note: Note) -> str:
    """Return the host address that a process prints with its rank, empty if there is none."""
    found = _OWN_ADDRESS.search(note.text) if note.kind in _OF_ITSELF else None
    return found[1] if found else ""


def split_hosts(
    places: Mapping[str, Place], notes: Mapping[str, Sequence[Note]], identities: Mapping[tuple[str, int], Identity]
) -> Mapping[str, Place]:
    """Return places in which files of several hosts or pods without separate directories use their names as hosts.

    They belong to several if launchers in them start different nodes, or one pid has different ranks.
    """
    series: dict[str, list[str]] = {}
    for path, place in places.items():
        if not place.host and place.pid is None and place.rank is None:
            series.setdefault(_SERIES.sub("0", path), []).append(path)
    found = dict(places)
    for paths in series.values():
        nodes = {path: _launched(notes.get(path, ())) for path in paths}
        if len({node for node, _ in nodes.values()} - {None}) > 1 or _share_ids(paths, notes, identities):
            for path in paths:
                found[path] = _of_own_host(path, places[path], *nodes[path])
    return found


def _launched(notes: Iterable[Note]) -> tuple[Optional[int], Optional[int]]:
    """Return the node and the number of processes that the launcher in a file was started with."""
    launches = {launch_of(note) for note in notes if note.kind == "launch"}
    return launches.pop() if len(launches) == 1 else (None, None)


def _share_ids(
    paths: Iterable[str], notes: Mapping[str, Sequence[Note]], identities: Mapping[tuple[str, int], Identity]
) -> bool:
    """Return whether the same pid has one rank in one file and a different one in another."""
    ranks: dict[int, tuple[str, int]] = {}
    for path in paths:
        for own in (identities[note.place] for note in notes.get(path, ())):
            if own.pid is not None and own.rank is not None:
                first = ranks.setdefault(own.pid, (path, own.rank))
                if first[0] != path and first[1] != own.rank:
                    return True
    return False


def _of_own_host(path: str, place: Place, node: Optional[int], each: Optional[int]) -> Place:
    """Return the place with the file's name as its host; a launcher says whether the file is of one process."""
    name = re.split(r"[/\\]", path)[-1]
    weak = place.weak_rank if each is None else node if each == 1 else None
    return place._replace(host=re.sub(r"(?:\.[a-z]+)+$", "", name), weak_rank=weak)
