"""What processes report about others: not connected, heartbeat lost, link broken, another collective called."""

from __future__ import annotations

import re
from typing import Container, Iterable, Mapping, Optional, Sequence

from envtune.ranks.processes import Processes
from envtune.ranks.records import Link, Note, Process

NOT_CONNECTED, LOST, LINK, DIFFERENT = "not connected", "heartbeat lost", "link", "different collective"
TLS = "TLS differs"
_FINE = {"OK", "HEARTBEAT_OK"}
_GRAVITY = ("CQE", "STUCK", "LOST")  # of a heartbeat's status, in HCCL's own order


def not_connected(processes: Processes, notes: Iterable[Note]) -> list[Process]:
    """Return the ranks that did not join the communicator, as reported by its root and the others."""
    missing: dict[tuple[str, int], None] = {}
    connected: dict[tuple[str, str], set[int]] = {}
    for note in notes:
        comm = _communicator(processes, note)
        fields = note.fields
        if note.kind == "topo.missing":
            missing.update(dict.fromkeys((comm, rank) for rank in _numbers(fields["missing"])))
        elif note.kind == "topo.peer" and fields["peer"].isdecimal():
            missing[comm, int(fields["peer"])] = None
        elif note.kind == "topo.connected":
            connected.setdefault((note.path, comm), set()).update(_ranks(fields["connected"]))
    for (_, comm), ranks in connected.items():
        size = processes.size(comm) or processes.expected
        missing.update(dict.fromkeys((comm, rank) for rank in range(size) if rank not in ranks))
    found = dict.fromkeys(processes.in_communicator(comm, rank) for comm, rank in missing)
    return [process for process in found if process is not None]


def _communicator(processes: Processes, note: Note) -> str:
    """Return the largest communicator of the process: the lines about its topology do not name it."""
    process = processes.of(note)
    own = process.communicators if process is not None else {}
    return max(own, key=processes.size, default="")


def _numbers(text: str) -> list[int]:
    return [int(word) for word in re.findall(r"\d{1,18}", text)]


def _ranks(text: str) -> list[int]:
    """Return the ranks of `[0000000000000001],[0000000000000003]`, each optionally followed by an address."""
    return [int(word) for word in re.findall(r"\[(\d{1,18})\]?(?=[,:;\]]|\s|$)", text)]


def lost(processes: Processes, notes: Iterable[Note], waiting: Container[Process] = ()) -> list[tuple[Process, Note]]:
    """Return the processes whose heartbeat is lost, the most serious status first, then in the order reported."""
    found: dict[Process, tuple[int, int, Note]] = {}
    for order, note in enumerate(notes):
        status = (note.fields.get("status") or "LOST").upper()
        if status in _FINE:
            continue
        gravity = next((n for n, word in enumerate(_GRAVITY) if word in status), len(_GRAVITY))
        for process in _lost(processes, note, waiting):
            if process not in found or gravity < found[process][0]:
                found[process] = (gravity, order, note)
    gravest = min((gravity for gravity, _, _ in found.values()), default=0)
    return [(process, note) for process, (gravity, _, note) in found.items() if gravity == gravest]


def _lost(processes: Processes, note: Note, waiting: Container[Process]) -> list[Process]:
    """Return whose heartbeat is lost according to a line; by number alone, only a process that did not wait, if any."""
    if note.kind == "gone":
        silent = [process for process in processes.named(note) if process not in waiting]
        return silent if len(silent) == 1 or len({process.host for process in silent} - {""}) == 1 else []
    if note.kind != "lost":
        return []
    device = int(note.fields["device"])
    if note.fields["server"]:
        process = processes.by_device(note.fields["server"], device)
        return [process] if process.has_log or not processes.complete else []  # else it belongs to another job
    silent = [p for p in processes.all if device in (p.device, p.logic) and p not in waiting and p.has_log]
    return silent if len(silent) == 1 else []


def broken_links(processes: Processes, notes: Iterable[Note]) -> list[Link]:
    """Return the links on which packets were not answered."""
    found = []
    for note in notes:
        if note.kind != "cqe":
            continue
        fields, printer = note.fields, processes.of(note)
        reporter = _end(processes, fields, "own", printer) or printer
        peer = _end(processes, fields, "peer", printer)
        if reporter is not None and peer is not None and peer is not reporter:
            found.append(Link(reporter, peer, "cqe", note))
    return found


def _end(
    processes: Processes, fields: Mapping[str, Optional[str]], name: str, printer: Optional[Process]
) -> Optional[Process]:
    address, server, device = fields.get(f"{name}_ip"), fields.get(f"{name}_server"), fields.get(f"{name}_device")
    found = processes.by_address(address, printer or Process()) if address else None
    if found is None and server and device:
        found = processes.by_device(server, int(device))
    if found is None and address and name == "peer":
        found = processes.by_unknown_address(address)
    return found


def ends_of(links: Sequence[Link]) -> list[Process]:
    """Return the process that all the links have in common, else all that they connect."""
    if len(links) > 1:
        common = set.intersection(*({link.waiter, link.peer} for link in links))
        if len(common) == 1:
            return list(common)
        reporters: dict[Process, set[Process]] = {}
        for link in links:
            reporters.setdefault(link.peer, set()).add(link.waiter)
        most = max(len(own) for own in reporters.values())
        named = [process for process, own in reporters.items() if len(own) == most]
        if most > 1 and len(named) == 1:
            return named
    return list(dict.fromkeys(end for link in links for end in (link.peer, link.waiter)))


def other_tls(processes: Processes, notes: Iterable[Note]) -> list[Process]:
    """Return the processes whose TLS switch differs from that of most others."""
    values: dict[str, dict[Process, None]] = {}
    for note in notes:
        process = processes.of(note)
        if note.kind == "tls" and process is not None:
            value = {"ENABLE": "1", "DISABLE": "0"}.get(note.fields["tls"], note.fields["tls"])
            values.setdefault(value, {})[process] = None
    fewest = sorted(values.values(), key=len)
    return list(fewest[0]) if len(fewest) == 2 and len(fewest[0]) < len(fewest[1]) else []


def conflicts(processes: Processes, notes: Iterable[Note]) -> list[Process]:
    """Return those that called a collective with different arguments: one against all others, else all in conflict."""
    values: dict[str, dict[str, set[Process]]] = {}
    involved: dict[Process, None] = {}
    for note in notes:
        process = processes.of(note)
        if process is None or not note.kind.startswith("conflict"):
            continue
        involved[process] = None
        if note.kind == "conflict":
            own = values.setdefault(note.fields["field"], {})
            own.setdefault(note.fields["own_value"], set()).add(process)
            own.setdefault(note.fields["peer_value"], set())
    for own in values.values():
        fewest = sorted(own.values(), key=len)
        if len(own) == 2 and len(fewest[0]) == 1 and len(fewest[1]) > 1:
            return list(fewest[0])
        if len(own) == 2 and not fewest[0] and len(fewest[1]) > 1:
            others = [p for p in processes.all if p not in involved and p.rank is not None]
            return others if len(others) == 1 else list(involved)
    return list(involved)
