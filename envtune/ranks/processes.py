"""From joined keys to processes, and from references in a line (a rank, an address) to the process."""

from __future__ import annotations

import re
from typing import Iterable, Mapping, Optional, Sequence

from envtune.ranks.local import join_local_ranks
from envtune.ranks.records import Note, Process, Source
from envtune.ranks.table import STARTS, Key, Naming, Start, job_size, number, start_of

OWN_ENDS = ("socket", "socket.self", "p2p", "lost", "cqe", "notify.device")  # lines that identify their process


class Processes:
    """All processes: those that printed something, and those that others name (added on demand)."""

    def __init__(self, sources: Sequence[Source], notes: Sequence[Note]) -> None:
        self._naming = Naming(sources, notes)
        self._sizes: dict[str, int] = {}
        self._starts = [(note, start_of(note)) for note in notes if note.kind in STARTS]
        self._join_communicators()
        join_local_ranks(self._naming, notes)
        self._by_key: dict[Key, Process] = {}
        self._named: dict[Key, Process] = {}  # processes without any log
        self.unnamed: list[Note] = []  # lines without an identity, in files of several processes
        self._add_notes(notes)
        self._add_sources(sources)
        self._describe(notes)
        self.printed = {own.rank for own in map(self._naming.identity, notes)} - {None}  # ranks that printed lines
        self.expected = self._expected(notes)
        self._homes = _homes(self, notes)
        self._pods = _pods(notes)
        self._workers = {note.fields["node"]: int(note.fields["rank"]) for note in notes if note.kind == "placed"}
        self._add_addresses(notes)
        self.all = tuple(self._by_key.values())
        self._by_rank = {process.rank: process for process in reversed(self.all) if process.rank is not None}
        self._members = {(name, rank): p for p in reversed(self.all) for name, rank in p.communicators.items()}

    # ------------------------------------------------------------------ who printed it

    def of(self, note: Note) -> Optional[Process]:
        """Return the process that printed the line."""
        key = self._naming.key(note)
        return None if key is None else self._by_key.get(key)

    def _join_communicators(self) -> None:
        """Join processes with their rank, if the largest communicators do not contradict the lines."""
        for _, start in self._starts:
            if start.size is not None:
                self._sizes[start.comm] = max(start.size, self._sizes.get(start.comm, 0))
        largest = max(self._sizes.values(), default=0)
        keys = self._naming.keys
        said = {keys.find(key): key[1] for own in keys.sets().values() for key in own if key[0] == "rank"}
        by_comm: dict[str, dict[Key, int]] = {}
        for note, start in self._starts:
            key = self._naming.key(note)
            if key is not None and start.rank is not None and largest > 1 and self._sizes.get(start.comm) == largest:
                by_comm.setdefault(start.comm, {}).setdefault(key, start.rank)
        found = _ranks_of(by_comm.values())
        self._parts_only = any(by_comm.values()) and not found  # no communicator has all ranks
        if all(said.get(key, rank) == rank for key, rank in found.items()):
            for key, rank in found.items():
                keys.join([("rank", rank), key])

    def _process(self, key: Key) -> Process:
        key = self._naming.keys.find(key)
        return self._by_key.setdefault(key, Process())

    def _add_notes(self, notes: Iterable[Note]) -> None:
        for note in notes:
            key = self._naming.key(note)
            if key is None:
                self.unnamed.append(note)
                continue
            process = self._process(key)
            process.notes.append(note)
            if note.path not in process.files:
                process.files.append(note.path)
            own = self._naming.identity(note)
            process.host = process.host or self._naming.places[note.path].host or own.host or own.logged
            process.logic = own.device if process.logic is None else process.logic
            if note.time is not None:
                process.first = note.time if process.first is None else min(process.first, note.time)
                process.last = note.time if process.last is None else max(process.last, note.time)

    def _add_sources(self, sources: Iterable[Source]) -> None:
        for source in sources:
            key = self._naming.file_key(source.path)
            if key is None:
                continue
            process, place = self._process(key), self._naming.places[source.path]
            if source.path not in process.files:
                process.files.append(source.path)
            process.host = process.host or place.host
            process.device = place.device if process.device is None else process.device
            if source.first is not None and source.last is not None:
                process.first = source.first if process.first is None else min(process.first, source.first)
                process.last = source.last if process.last is None else max(process.last, source.last)

    def _describe(self, notes: Iterable[Note]) -> None:
        for key, own in self._naming.keys.sets().items():
            if key in self._by_key:
                _add_keys(self._by_key[key], own)
        for note, start in self._starts:
            found = self.of(note)
            if found is not None:
                _add_start(found, note, start)
        ends = [(self.of(note), note.fields) for note in notes if note.kind in OWN_ENDS]
        for process, fields in ends:
            if process is not None:
                self._add_own(process, fields)
        self._claim_ranks(ends)
        for process in self._by_key.values():
            process.device = process.logic if process.device is None else process.device
            process.host = process.host or process.server
        self._add_local_ranks()

    def _add_own(self, process: Process, fields: Mapping[str, str]) -> None:
        """Add what a line about a link tells about the end that prints it."""
        if fields.get("own_ip"):
            process.addresses.add(fields["own_ip"])
        process.server = process.server or fields.get("own_server") or ""
        process.device = number(fields.get("own_device")) if process.device is None else process.device

    def _claim_ranks(self, ends: Iterable[tuple[Optional[Process], Mapping[str, str]]]) -> None:
        """Assign ranks from lines about links to processes, unless they are ranks of several groups."""
        claims: dict[int, set[Process]] = {}
        for process, fields in ends:
            rank = number(fields.get("own"))
            if process is not None and rank is not None:
                claims.setdefault(rank, set()).add(process)
        ranks = {process.rank for process in self._by_key.values()}
        if all(len(own) == 1 for own in claims.values()):
            for rank, (claiming,) in claims.items():
                if claiming.rank is None and rank not in ranks:
                    claiming.rank = rank

    def _add_local_ranks(self) -> None:
        """Use local ranks as ranks of the job if all processes are on one host."""
        if len({process.host for process in self._by_key.values()}) == 1:
            self._take_devices()
            ranks = {process.rank for process in self._by_key.values()}
            for process in self._by_key.values():
                if process.rank is None and process.local_rank is not None and process.local_rank not in ranks:
                    process.rank = process.local_rank
        for process in self._by_key.values():
            if process.device is None and process.local_rank is not None:
                process.device = process.local_rank

    def _take_devices(self) -> None:
        """Use devices as local ranks if no process gives its rank and each has its own device."""
        devices = [process.logic for process in self._by_key.values() if process.logic is not None]
        unranked = all(process.rank is process.local_rank is None for process in self._by_key.values())
        if unranked and len(devices) > 1 and len(set(devices)) == len(devices):
            for process in self._by_key.values():
                process.local_rank = process.logic

    def _add_addresses(self, notes: Iterable[Note]) -> None:
        """Add the addresses of devices that a file of the host lists."""
        for note in notes:
            if note.kind == "address":
                host, device = self.label(note.path), number(note.fields["device"])
                for process in self._by_key.values():
                    if process.host == host and process.device == device:
                        process.addresses.add(note.fields["address"])

    def _expected(self, notes: Iterable[Note]) -> int:
        """Return the number of ranks of the job, 0 if no line gives it."""
        sizes = [job_size(note.fields.get("size")) or 0 for note in notes if note.kind in ("self", "world")]
        ranks = [process.rank + 1 for process in self._by_key.values() if process.rank is not None]
        largest = max([*self._sizes.values(), *sizes], default=0)
        return largest if largest >= max(ranks, default=0) else 0

    # ------------------------------------------------------------------ whom a line is about

    def by_rank(self, rank: int) -> Process:
        """Return the process of a rank of the job."""
        if rank not in self._by_rank:
            self._by_rank[rank] = self._name(("rank", rank), Process(self._homes.get(rank, ""), rank))
        return self._by_rank[rank]

    def complete_rank(self, process: Process, rank: int) -> None:
        """Assign a rank to a process, unless it or another one already has it."""
        if process.rank is None and rank not in self._by_rank:
            process.rank = rank
            self._by_rank[rank] = process

    def in_communicator(self, comm: str, rank: int) -> Optional[Process]:
        """Return the process of a rank in a communicator; in an unknown one it counts as the rank in the job.

        None if there is no such rank.
        """
        if comm and (comm, rank) in self._members:
            return self._members[comm, rank]
        size = self._sizes.get(comm)
        if rank >= (size or self.expected or rank + 1):
            return None
        if size is None or (size == max(self._sizes.values(), default=0) and not self._parts_only):
            return self.by_rank(rank)
        return self._name(("comm", comm, rank), Process())

    def communicator(self, tag: str) -> str:
        """Return the longest name of a communicator that is in a tag."""
        return max((name for name in self._sizes if name and name in tag), key=len, default="")

    def by_address(self, address: str, near: Process) -> Optional[Process]:
        """Return the process whose device has the address; a virtual one repeats on each host."""
        found = [process for process in self._by_key.values() if address in process.addresses]
        own = [process for process in found if process.host == near.host]
        return own[0] if own else found[0] if len(found) == 1 else None

    def by_unknown_address(self, address: str) -> Process:
        """Return a process known only by the address of its device."""
        return self._name(("address", address), Process(addresses={address}))

    def host_of_line(self, note: Note) -> str:
        """Return the host from a line's prefix or its file's location."""
        return self._naming.host_of(note)

    def label(self, path: str) -> str:
        """Return the host from a file's location."""
        return self._naming.places[path].host if path in self._naming.places else ""

    def by_device(self, server: str, device: int) -> Process:
        """Return the process of a device on a host, given by its label or address."""
        host = self._naming.host(server)
        there = [p for p in self._everybody() if host == p.host or (server and server in (p.server, p.host))]
        physical = [process for process in there if process.device == device]
        named = physical or [process for process in there if process.logic == device] or self._alone(server, device)
        if named:
            return named[0]
        offsets = {p.rank - p.device for p in there if p.rank is not None and p.device is not None}
        if len(offsets) == 1:
            rank = offsets.pop() + device
            known_rank = self._by_rank.get(rank)
            if known_rank is not None and not known_rank.host:
                known_rank.host, known_rank.device = host, device
                return known_rank
            if known_rank is None:
                self._by_rank[rank] = Process(host, rank, device, server=server)
                return self._name(("device", host, device), self._by_rank[rank])
        return self._name(("device", host, device), Process(host, None, device, server=server))

    def _alone(self, server: str, device: int) -> list[Process]:
        """Return the process of a device on a host whose address no line gives, if there is only one host.

        Processes that report the loss of the device are excluded: then it is on another host.
        """
        hosts = {process.host for process in self._by_key.values()}
        known = any(process.server for process in self._by_key.values())
        if known or len(hosts) != 1 or any(host[:1].isdigit() for host in hosts):
            return []
        processes = list(self._by_key.values())
        found = [process for process in processes if process.device == device]
        offsets = {p.rank - p.device for p in processes if p.rank is not None and p.device is not None} or {0}
        if not found and len(offsets) == 1:
            found = [process for process in processes if process.rank == offsets.copy().pop() + device]
        return [process for process in found if not any(_reports(note, server, device) for note in process.notes)]

    def by_pid(self, host: str, pid: int) -> Process:
        """Return the process with a pid; if only one process has it, regardless of the host name."""
        label = self._naming.host(host)
        found = [process for process in self._by_key.values() if process.pid == pid]
        near = [p for p in found if label in (p.host, p.server) or host in (p.host, p.server)]
        if near or (len(found) == 1 and not self._is_elsewhere(found[0], label)):
            return (near or found)[0]
        return self._name(("pid", label, pid), Process(label, pid=pid))

    def _is_elsewhere(self, process: Process, host: str) -> bool:
        """Return whether a process is on a different host than this one, on which others are."""
        return bool(process.host) and process.host != host and bool(self.at(host))

    def named(self, note: Note) -> list[Process]:
        """Return the processes of the pod, program or workers named by a line, its file or its host."""
        if note.fields.get("node") or note.fields.get("nodes"):
            workers = re.findall(r"[\w.-]+", note.fields.get("node") or note.fields["nodes"])
            return [
                self.by_rank(rank)
                for rank in (self._workers.get(own, number(own)) for own in workers)
                if rank is not None
            ]
        name = self.pod(note)
        if not name:
            host = note.fields.get("host") or self.host_of_line(note)
            return self.at(host) or self._named_in(note.path) or self._of_the_only_host(host)
        return self.at(name) or [p for p in self._by_key.values() if any(_calls(file, name) for file in p.files)]

    def pod(self, note: Note) -> str:
        """Return the name of the pod, container or program that a line is about, empty if unknown."""
        return note.fields.get("name") or self._pods.get(note.place, "")

    def at(self, host: str) -> list[Process]:
        """Return the processes of a host, given by its label or address."""
        label = self._naming.host(host)
        return [p for p in self._by_key.values() if host and label in (p.host, p.server)]

    def _of_the_only_host(self, host: str) -> list[Process]:
        """Return all processes if nothing tells which host a line is from and they are all on one host."""
        known = list(self._by_key.values())
        return known if not host and len({process.host for process in known}) == 1 else []

    def _named_in(self, path: str) -> list[Process]:
        """Return the processes of a pod whose name is in that of the file: `describe_train-2.txt`."""
        others = [p for p in self._by_key.values() if path not in p.files]
        return [p for p in others if p.host and _calls(path, p.host)] or [
            p for p in others if any(_calls(path, _stem(file)) for file in p.files)
        ]

    def by_local_rank(self, host: str, rank: int) -> Optional[Process]:
        """Return the process of a local rank on a host."""
        there = [process for process in self._by_key.values() if not host or process.host == host]
        found = [p for p in there if p.local_rank == rank] or [p for p in there if p.device == rank]
        started = sorted(own for own, home in self._homes.items() if home == host)
        if not found and rank < len(started):
            return self.by_rank(started[rank])
        if not found and len({process.host for process in there if process.rank is not None}) == 1:
            found = [process for process in there if process.rank == rank]
        return found[0] if len(found) == 1 else None

    @property
    def complete(self) -> bool:
        """Whether the ranks of all processes of the job are known from their own lines."""
        ranks = {process.rank for process in self._by_key.values()} - {None}
        return 0 < self.expected == len(ranks)

    def size(self, comm: str) -> int:
        """Return how many ranks a communicator has, 0 if unknown."""
        return self._sizes.get(comm, 0)

    def host(self, label: str) -> str:
        """Return the label of a host given by its address or label."""
        return self._naming.host(label)

    def _everybody(self) -> list[Process]:
        return [*self._by_key.values(), *self._named.values()]

    def _name(self, key: Key, process: Process) -> Process:
        return self._named.setdefault(key, process)


def _reports(note: Note, server: str, device: int) -> bool:
    fields = note.fields
    return note.kind == "lost" and fields["server"] == server and number(fields["device"]) == device


def _ranks_of(communicators: Iterable[Mapping[Key, int]]) -> Mapping[Key, int]:
    """Return {process: rank}; empty if several processes share a rank: then ranks are those of parts of the job."""
    found: dict[Key, int] = {}
    for own in sorted(communicators, key=len, reverse=True):
        for key, rank in own.items():
            found.setdefault(key, rank)
    return found if len(set(found.values())) == len(found) else {}


def _stem(path: str) -> str:
    return re.sub(r"(?:\.[a-z]+)+$", "", re.split(r"[/\\]", path)[-1])


def _calls(path: str, name: str) -> bool:
    """Return whether a file name contains a name, not as part of a longer one."""
    return re.search(rf"(?<![A-Za-z\d-]){re.escape(name)}(?![A-Za-z\d-])", _stem(path)) is not None


def _pods(notes: Iterable[Note]) -> Mapping[tuple[str, int], str]:
    """Return {place of a line about the end of a pod: the last pod named above it in its file}."""
    found: dict[tuple[str, int], str] = {}
    path = name = ""
    for note in sorted((note for note in notes if note.kind in ("pod", "exit", "gone")), key=lambda own: own.place):
        name = note.fields["name"] if note.kind == "pod" else name if note.path == path else ""
        path = note.path
        found[note.place] = name
    return found


def _homes(processes: Processes, notes: Iterable[Note]) -> Mapping[int, str]:
    """Return {rank: the host on which a launcher starts it}."""
    homes: dict[int, str] = {}
    for note in notes:
        if note.kind == "placed":
            homes[int(note.fields["rank"])] = processes.host(note.fields["host"])
        elif note.kind == "places" and note.fields.get("ranks"):
            printer = processes.of(note)
            host = printer.host if printer is not None and printer.host else processes.label(note.path)
            homes.update((int(rank), host) for rank in re.findall(r"\d{1,18}", note.fields["ranks"]) if host)
        elif note.kind == "places":
            for host, ranks in re.findall(r"'([^']+)': ?\[([\d, ]*)\]", note.fields.get("mapping", "")):
                homes.update((int(rank), host) for rank in re.findall(r"\d{1,18}", ranks))
    return homes


def _add_keys(process: Process, keys: Iterable[Key]) -> None:
    for name, *_, value in keys:
        if not isinstance(value, int):
            continue
        if name == "rank" and process.rank is None:
            process.rank = value
        elif name == "pid":
            process.pid = value
        elif name == "local":
            process.local_rank = value


def _add_start(process: Process, note: Note, start: Start) -> None:
    if note.kind == "root":
        process.root_of.add(start.comm)
        return
    if start.comm and start.rank is not None:
        process.communicators.setdefault(start.comm, start.rank)
    process.server = process.server or start.server
    process.logic = start.logic if process.logic is None else process.logic
    process.device = start.device if process.device is None else process.device
    if start.address:
        process.addresses.add(start.address)
