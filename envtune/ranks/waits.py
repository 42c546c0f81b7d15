"""Who waited for whom: the lines of each process about waiting become waits and links."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Iterator, Mapping, Optional, Sequence

from envtune.ranks.errors import is_vague
from envtune.ranks.processes import Processes
from envtune.ranks.records import WAIT, Link, Note, Process
from envtune.ranks.table import field as named
from envtune.ranks.table import number

LOCAL = ("local", "4294967295")  # the device waited for itself
WAITING = ("notify", "socket", "p2p", "topo", "lost", "store")  # kinds, and prefixes of kinds with a dot


_GROUP = re.compile(r"group_name_[1-9]")  # torch_npu: group_name_0 has all ranks


@dataclass
class Wait:
    """One failed wait. `index` and `tag` identify the collective."""

    process: Process
    kind: str
    note: Note
    comm: str = ""
    tag: str = ""
    index: Optional[int] = None
    count: str = ""
    peers: list[Process] = field(default_factory=list)
    said: Optional[int] = None  # the rank that is named, in the job or in a group

    @property
    def vague(self) -> bool:
        """Whether only the timeout is known."""
        return self.kind == "error" and "known" not in self.note.fields and is_vague(self.note.text)


def waits_of(processes: Processes) -> tuple[list[Wait], list[Link]]:
    """Return all waits in the order of each file, and the links from those that waited."""
    waits: list[Wait] = []
    links: list[Link] = []
    for process in processes.all:
        waits += _Reader(processes, process, links).waits()
    return waits, _distinct(links)


def is_transfer(note: Note) -> bool:
    """Return whether the failed task of a collective was a copy, not a wait: that fails on its own."""
    return note.kind == "notify" and named("task", note.text).startswith(("Memcpy", "Reduce"))


def _distinct(links: Sequence[Link]) -> list[Link]:
    """Return each pair once, the first time it is named."""
    pairs: dict[tuple[int, int, str], Link] = {}
    for link in links:
        pairs.setdefault((id(link.waiter), id(link.peer), link.why), link)
    return list(pairs.values())


class _Reader:
    """The waits of one process; lines that belong together are consecutive in its file."""

    def __init__(self, processes: Processes, process: Process, links: list[Link]) -> None:
        self._processes = processes
        self._process = process
        self._links = links
        self._last: Optional[Wait] = None  # lines of the same collective are added to it

    def waits(self) -> list[Wait]:
        """Return them."""
        return list(self._waits())

    def _waits(self) -> Iterator[Wait]:
        for note in sorted(self._process.notes, key=lambda own: own.place):
            kind = note.kind.partition(".")[0]
            if note.kind == "error" and note.fields.get("meaning") == WAIT:
                yield Wait(self._process, "error", note)
            elif note.kind in ("notify.peer", "notify.group", "notify.data"):
                self._continue(note)
            elif kind == "socket" and note.kind == "socket.detected":
                self._detected(note)
            elif kind in WAITING and note.kind != "socket.self" and not is_transfer(note):
                wait = self._wait(kind, note)
                if kind != "lost" or "status[" not in note.text:
                    yield wait

    def _wait(self, kind: str, note: Note) -> Wait:
        text = note.text
        wait = Wait(self._process, kind, note, named("group", text) if kind == "notify" else "")
        wait.tag = note.fields.get("tag") or named("tag", text)
        wait.comm = wait.comm or self._processes.communicator(wait.tag)
        wait.index = number(note.fields.get("index") or named("index", text))
        if kind == "notify":
            self._last = wait
        peer = self._peer(kind, note, wait)
        if peer is not None:
            self._link(wait, peer, note)
        return wait

    def _continue(self, note: Note) -> None:
        wait = self._last
        if wait is None or wait.note.path != note.path:
            return
        if note.kind == "notify.group":
            wait.comm = named("group", note.text) or wait.comm
        elif note.kind == "notify.data":
            wait.index = (
                number(note.fields.get("index") or note.fields.get("number")) if wait.index is None else wait.index
            )
            wait.tag = wait.tag or note.fields.get("tag", "")
            wait.comm = wait.comm or note.fields.get("group", "")
            wait.count = note.fields.get("count", "")
        else:
            peer = self._in_communicator(named("peer", note.text), wait)
            if peer is not None:
                self._link(wait, peer, note)

    def _peer(self, kind: str, note: Note, wait: Wait) -> Optional[Process]:
        fields = note.fields
        if kind == "store":
            return self._processes.by_rank(0) if self._process.rank else None
        if kind == "lost":
            return self._lost(fields)
        if fields.get("peer_server") and fields.get("peer_device"):
            return self._processes.by_device(fields["peer_server"], int(fields["peer_device"]))
        if fields.get("peer_ip"):
            known = self._processes.by_address(fields["peer_ip"], self._process)
            return known if known is not None else self._in_communicator(fields.get("peer", ""), wait)
        if kind == "p2p" and fields.get("peer_device"):
            return self._processes.by_device(self._process.host, int(fields["peer_device"]))
        if note.kind == "topo.root":
            return self._root(fields["root_ip"])
        if fields.get("peer") or kind == "notify":
            return self._in_communicator(fields.get("peer") or named("peer", note.text), wait)
        return None

    def _lost(self, fields: Mapping[str, str]) -> Optional[Process]:
        lost = self._processes.by_device(fields["server"], int(fields["device"])) if fields["server"] else self._process
        return None if lost is self._process or not (lost.has_log or not self._processes.complete) else lost

    def _in_communicator(self, peer: str, wait: Wait) -> Optional[Process]:
        if peer in LOCAL:
            return self._process
        rank = number(peer.lstrip("0") or "0") if peer else None
        known = self._processes.size(wait.comm) > 0
        if rank is None or (not known and self._has_own_ranks(wait)):
            return None  # a rank in a group with unknown members
        found = self._processes.in_communicator(wait.comm, rank)
        wait.said = rank if not known or (found is not None and found.rank == rank) else None
        return None if not known and _GROUP.search(wait.comm or wait.tag) else found

    def _has_own_ranks(self, wait: Wait) -> bool:
        """Return whether a wait was in a part of the job that numbers its ranks separately."""
        own = number(wait.note.fields.get("own") or named("own", wait.note.text))
        return own is not None and self._process.rank is not None and own != self._process.rank

    def _root(self, address: str) -> Optional[Process]:
        """Return the process that collects the topology: the one that created the communicator on that host."""
        host = self._processes.host(address)
        there = [p for p in self._processes.all if (p.host == host or p.server == address) and p.root_of]
        return there[0] if len(there) == 1 else None

    def _link(self, wait: Wait, peer: Process, note: Note) -> None:
        wait.peers.append(peer)
        self._links.append(Link(wait.process, peer, wait.kind, note))

    def _detected(self, note: Note) -> None:
        """Add what a process learned from others: which connection could not be established."""
        fields = note.fields
        if not (fields["own_server"] and fields["peer_server"]):
            return
        source = self._processes.by_device(fields["own_server"], int(fields["own_device"]))
        peer = self._processes.by_device(fields["peer_server"], int(fields["peer_device"]))
        self._links.append(Link(source, peer, "socket", note))
