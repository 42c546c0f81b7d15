"""The table of processes: which file, prefix, process id, rank, device and address belong together.

Every line with an identity says that some keys belong to one process (rank 3 is pid 4711 of this host; this file is of
rank 3); keys that are joined by any line are one process. Ranks in a communicator are ranks in the job if the
communicator is the largest one and no line contradicts.
"""

from __future__ import annotations

import re
from typing import Iterable, Iterator, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from envtune.ranks.errors import is_exception
from envtune.ranks.hosts import address_in, own_address, split_hosts
from envtune.ranks.identity import Identity, Place, identity_of, is_labelled, places_of, unmasked
from envtune.ranks.lines import FIELDS
from envtune.ranks.records import Note, Source

Key = Tuple[Union[str, int], ...]  # what is named, and its values: ("pid", host, 4711)
_FIELDS = {name: re.compile(regex) for name, regex in FIELDS.items()}
STARTS = ("start", "root", "vnic", "notify.group")
QUIET = (*STARTS[:3], "address", "self", "said", "world", "launch", "places")  # lines of a normal start
BLOCK = 20  # lines of a CANN message after the line that identifies its process
# What continues such a message: what CANN reports, and how torch_npu formats it.
_CONTINUES = re.compile(
    r"(?:^|: )(?:E[A-Z\d]\d{4}: |\[Error\]: |\s+(?:serverId|Cluster Exception|TraceBack|Solution|Possible Cause))"
    r"|error code is \d|there are\(is\)"
)
# Exceptions that torch_npu raises itself; for others it prints ERR99999 when the process ends.
_OF_DEVICE = re.compile(r"(?:NPU|HCCL)(?: function)? error|error code is \d|ERR\d{5}")
MAX_SIZE = 1 << 20  # ranks; no job has more, and loops over ranks must end
WORLD = "hccl_world_group"  # the communicator of lines that name none


def field(name: str, text: str) -> str:
    """Return the bracketed value of this name in a line; empty if there is none."""
    found = _FIELDS[name].search(text)
    return found[1] if found else ""


def number(text: Optional[str]) -> Optional[int]:
    """Return a valid number, else None."""
    return int(text) if text and text.isdecimal() else None


def job_size(text: Optional[str]) -> Optional[int]:
    """Return a valid number of ranks of a job, else None."""
    value = number(text)
    return value if value is not None and value <= MAX_SIZE else None


class Start(NamedTuple):
    """What one line says about a process and a communicator."""

    comm: str
    rank: Optional[int]
    size: Optional[int]
    server: str
    logic: Optional[int]
    device: Optional[int]
    address: str


def start_of(note: Note) -> Start:
    """Return what a line about a communicator tells about the process that printed it."""
    text = note.text
    group = note.kind == "notify.group"
    ranks = job_size(field("size", text))
    comm = field("group" if group else "comm", text) or ("" if ranks is None else WORLD)
    address = note.fields.get("vnic") or field("device_ip", text)
    return Start(
        comm,
        number(field("own" if group else "rank", text)),
        ranks,
        "" if group else unmasked(field("server", text)),
        number(field("logic", text)),
        number(field("device", text)),
        "" if address in ("0.0.0.0", "::") else address,
    )


class Keys:
    """Sets of keys that are of one process (union-find)."""

    def __init__(self) -> None:
        self._parents: dict[Key, Key] = {}

    def find(self, key: Key) -> Key:
        """Return the representative of the key's set."""
        self._parents.setdefault(key, key)
        while self._parents[key] != key:
            self._parents[key] = key = self._parents[self._parents[key]]
        return key

    def join(self, keys: Sequence[Key]) -> None:
        """Join the sets of the keys."""
        for key in keys:
            self._parents[self.find(key)] = self.find(keys[0])

    def sets(self) -> Mapping[Key, list[Key]]:
        """Return the keys of each set."""
        sets: dict[Key, list[Key]] = {}
        for key in self._parents:
            sets.setdefault(self.find(key), []).append(key)
        return sets


class Naming:
    """Who printed which line: joins the keys of identities, files and communicators."""

    def __init__(self, sources: Iterable[Source], notes: Sequence[Note]) -> None:
        labels = {note.path: "" for note in notes}
        places = places_of({**labels, **{source.path: source.host for source in sources}})
        self.keys = Keys()
        self._identities: dict[tuple[str, int], Identity] = {}
        by_file: dict[str, list[Note]] = {path: [] for path in places}
        for note in notes:
            by_file.setdefault(note.path, []).append(note)
            self._identities.setdefault(note.place, identity_of(note.text))
        for own in by_file.values():
            labelled = is_labelled(self._identities[note.place] for note in own)
            for note in own:
                self._identities[note.place] = self._identities[note.place].as_of_rank(labelled)
        self.places = split_hosts(places, by_file, self._identities)
        self._labels = _labels(notes, self.places, self._identities)
        self._ranks_are_local = _repeated(self.places)
        self._owners = {place: own for notes in by_file.values() for place, own in _owners(notes, self._identities)}
        self._single = {path: self._is_single(path, own) for path, own in by_file.items()}
        self._said = _said(by_file, self.places)
        for path, own in by_file.items():
            self._join_file(path, own)
        self._join_hosts()

    def host(self, label: str) -> str:
        """Return the label of a host given by its address or label."""
        return self._labels.get(label, label)

    def host_of(self, note: Note) -> str:
        """Return the host from the prefix of a line or its file's location."""
        own = self.identity(note)
        return self.host(own.host) or self._place(note.path).host or self.host(own.logged)

    def identity(self, note: Note) -> Identity:
        """Return the identity given by the prefixes of its line."""
        return self._identities[note.place]

    def key(self, note: Note) -> Optional[Key]:
        """Return the key of the process that printed it; None in a file of several for a line without a prefix."""
        keys = self._keys_of(note)
        return self.keys.find(keys[0]) if keys else None

    def file_key(self, path: str) -> Optional[Key]:
        """Return the key of the process that owns the file; None for a file of several."""
        return self.keys.find(("file", path)) if self._single.get(path) else None

    def _place(self, path: str) -> Place:
        return self.places.get(path, Place())

    def _keys_of(self, note: Note) -> list[Key]:
        own, place = self._identities[note.place], self._place(note.path)
        host = self.host_of(note)
        pid = place.pid if place.pid is not None else own.pid
        keys: list[Key] = []
        owner = self._owners.get(note.place)
        if owner is not None and not self._single.get(note.path):
            return self._keys_of(owner)
        rank = own.rank if own.rank is not None else _own_rank(note)
        if rank is not None and (own.rank is not None or pid is not None or self._single.get(note.path)):
            keys.append(("rank", rank))
        if pid is not None:
            keys.append(("pid", host, pid))
        if own.local_rank is not None and own.rank is None:
            keys.append(("local", host, own.local_rank))
        if self._single.get(note.path):
            keys.append(("file", note.path))
        return keys

    def _is_single(self, path: str, notes: Sequence[Note]) -> bool:
        place = self._place(path)
        if place.pid is not None:
            return True
        owns = [self._identities[note.place] for note in notes]
        if any(own.worker for own in owns):
            return False  # a driver that prints what its actors say
        ranks = {own.rank for own in owns} | {_own_rank(note) for note in notes}
        ranks.discard(None)
        if place.rank is not None and not self._ranks_are_local and ranks <= {place.rank}:
            return True
        pids = {own.pid for own in owns if own.pid is not None}
        locals_ = {own.local_rank for own in owns if own.local_rank is not None}
        groups = (note for note in notes if note.kind == "start" and field("rank", note.text))
        members: dict[str, set[str]] = {}
        for note in groups:
            members.setdefault(field("comm", note.text), set()).add(field("rank", note.text))
        several = any(len(own) > 1 for own in members.values())
        return max(len(ranks), len(pids), len(locals_)) <= 1 and not several

    def _join_file(self, path: str, notes: Iterable[Note]) -> None:
        place = self._place(path)
        for note in notes:
            self.keys.join(self._keys_of(note))
        if not self._single.get(path):
            return
        owns = [self._identities[note.place] for note in notes]
        keys: list[Key] = [("file", path)]
        if place.pid is not None:
            keys.append(("pid", place.host, place.pid))
        if place.rank is not None:
            others = {own.rank for own in owns} | set(map(_own_rank, notes))  # a rank in the job takes precedence
            local = self._ranks_are_local or not others <= {None, place.rank}
            keys.append(("local", place.host, place.rank) if local else ("rank", place.rank))
        elif place.local_rank is not None:
            keys.append(("local", place.host, place.local_rank))
        elif not _say_rank(notes, owns):
            keys += self._said.get(path) or ([] if place.weak_rank is None else [("rank", place.weak_rank)])
        self.keys.join(keys)

    def _join_hosts(self) -> None:
        """Join a process given by host and pid in one file with the same pid, without a host, in another."""
        hosts: dict[int, set[str]] = {}
        for own in self.keys.sets().values():
            for name, *_, pid in own:
                if name == "pid" and isinstance(pid, int):
                    hosts.setdefault(pid, set()).update(str(key[1]) for key in own if key[0] == name and key[2] == pid)
        directories = {place.host for place in self.places.values()}
        for pid, names in hosts.items():
            named, others = names & directories - {""}, names - directories | names & {""}
            if len(named) == 1 and others:
                (host,) = named
                self.keys.join([("pid", host, pid), *(("pid", other, pid) for other in others)])
            elif not named and len(others) == 2 and "" in others:
                self.keys.join([("pid", other, pid) for other in sorted(others)])


def _owners(
    notes: Iterable[Note], identities: Mapping[tuple[str, int], Identity]
) -> Iterator[tuple[tuple[str, int], Note]]:
    """Yield, for lines without an identity in the output of several, their place and the line with one they belong to.

    torch_npu prints the process of an error after the exception and before CANN's message.
    """
    there = sorted((note for note in notes if note.number > 0), key=lambda note: note.number)
    last: Optional[Note] = None
    for note, following in zip(there, [*there[1:], None]):
        own = identities[note.place]
        if not own.empty:
            last = note
            continue
        if following is not None and _is_next(note, following, identities):
            yield note.place, following
        elif last is not None and _continues(note, last, identities):
            yield note.place, last


def _continues(note: Note, last: Note, identities: Mapping[tuple[str, int], Identity]) -> bool:
    """Return whether a line continues a message that began earlier in the same output."""
    near = note.number - last.number <= BLOCK and identities[note.place].host == identities[last.place].host
    return near and _CONTINUES.search(note.text) is not None


def _is_next(note: Note, following: Note, identities: Mapping[tuple[str, int], Identity]) -> bool:
    """Return whether torch_npu names the process that raised an exception in the next line of the same output."""
    own, other = identities[note.place], identities[following.place]
    adjacent = following.number == note.number + 1 and own.host == other.host and not other.empty
    its = "ERR99999" in following.text or _OF_DEVICE.search(note.text) is not None
    return adjacent and its and "RankID:" in following.text and is_exception(note.text)


def _say_rank(notes: Iterable[Note], owns: Iterable[Identity]) -> bool:
    """Return whether the lines of a file tell its rank."""
    starts = (note for note in notes if note.kind == "start")
    ranks = [*(own.rank for own in owns), *(start_of(note).rank for note in starts), *map(_own_rank, notes)]
    return any(rank is not None for rank in ranks)


def _said(by_file: Mapping[str, Sequence[Note]], places: Mapping[str, Place]) -> Mapping[str, list[Key]]:
    """Return {file: the rank given in plain words before any error, if there is only one}.

    If files of several hosts give the same one, it is the local rank.
    """
    found: dict[str, int] = {}
    hosts: dict[int, set[str]] = {}
    for path, notes in by_file.items():
        others = (note.number for note in notes if note.number > 0 and note.kind not in QUIET)
        first = min(others, default=float("inf"))
        ranks = {int(note.fields["rank"]) for note in notes if note.kind == "said" and note.number < first}
        if len(ranks) == 1:
            found[path] = ranks.pop()
            hosts.setdefault(found[path], set()).add(places[path].host)
    local = any(len(own) > 1 for own in hosts.values())
    return {path: [("local", places[path].host, rank) if local else ("rank", rank)] for path, rank in found.items()}


def _own_rank(note: Note) -> Optional[int]:
    """Return the rank that a line gives for its process, in a job of several."""
    if note.kind != "self" or number(note.fields.get("size")) == 1:
        return None
    return number(note.fields.get("rank"))


def _labels(
    notes: Iterable[Note], places: Mapping[str, Place], identities: Mapping[tuple[str, int], Identity]
) -> Mapping[str, str]:
    """Return {host address: label of the directory whose files print it as their own}."""
    found: dict[str, set[str]] = {}
    for note in notes:
        label = places.get(note.path, Place()).host
        if not label:
            continue
        own = start_of(note).server if note.kind == "start" else note.fields.get("own_server", "")
        if note.kind == "socket.detected":
            own = ""
        elif note.kind != "start" and not (own or identities[note.place].host):
            own = own_address(note)
        if own:
            found.setdefault(own, set()).add(label)
    for place in places.values():
        if address_in(place):
            found.setdefault(address_in(place), set()).add(place.host)
    return {address: next(iter(labels)) for address, labels in found.items() if len(labels) == 1}


def _repeated(places: Mapping[str, Place]) -> bool:
    """Return whether files of several hosts have the same rank in their names: then it is a local rank."""
    hosts: dict[int, set[str]] = {}
    for place in places.values():
        if place.rank is not None and place.host:
            hosts.setdefault(place.rank, set()).add(place.host)
    return any(len(own) > 1 for own in hosts.values())
