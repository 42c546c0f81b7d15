"""The verdict: who failed first.

In this order, the strongest evidence first: a failure of its own (known or not) or a killed process; ranks that did not
connect; a lost heartbeat; broken links; collectives that do not fit; the end of the graph of waits; a process that
prints nothing while all others waited; a rank without a log. A process that only waited is never the root unless it was
late, behind, or did not connect.
"""

from __future__ import annotations

from typing import Callable, Iterable, Optional, Sequence

from envtune.ranks import claims, graph
from envtune.ranks.clocks import Clocks
from envtune.ranks.errors import is_exception, is_vague
from envtune.ranks.failures import FAILED, REPORTED, Failure, Report, failures_of, first_of, reports_of
from envtune.ranks.identity import unmasked
from envtune.ranks.processes import Processes
from envtune.ranks.records import Note, Process, Root, Source, Verdict
from envtune.ranks.runs import latest_run
from envtune.ranks.waits import waits_of

# Why a process is the root; failures.py and claims.py have the others.
AWAITED, ENDED, NO_LOG, SILENT = "awaited", "log ends", "no log", "silent"
BEHIND, LATE, ITSELF = "different collective", "late", "waits for itself"
EARLY = 20.0  # seconds by which a log ends before all others


def investigate(sources: Sequence[Source], notes: Sequence[Note]) -> Verdict:
    """Return who failed first, from the notes of all files."""
    sources, notes = latest_run(sources, [_unmasked(note) for note in notes])
    return _Case(sources, notes).verdict()


def _unmasked(note: Note) -> Note:
    """Return the line without masked addresses, which match all hosts."""
    if not note.fields:
        return note
    return note._replace(fields={name: unmasked(value) for name, value in note.fields.items()})


class _Case:
    """The table, the waits and the claims about one job; each method is one way to find the root."""

    def __init__(self, sources: Sequence[Source], notes: Sequence[Note]) -> None:
        self.notes = notes
        self.processes = Processes(sources, notes)
        self.clocks = Clocks((process, note) for process in self.processes.all for note in process.notes)
        self.reports: list[Report] = reports_of(self.processes, notes)
        self.waits, self.links = waits_of(self.processes)
        self.broken = claims.broken_links(self.processes, notes)
        self.absent = claims.not_connected(self.processes, notes)
        self.failures: list[Failure] = failures_of(self.processes, self.waits, self.reports)
        self.waiting = dict.fromkeys(wait.process for wait in self.waits)
        for process in self._timed_out_alone():
            del self.waiting[process]
        self._ends: dict[str, Process] = {}  # host -> the waiting process there whose log ends first
        for process in self.waiting:
            end = self._ends.get(process.host)
            if process.last is not None and (end is None or end.last is None or process.last < end.last):
                self._ends[process.host] = process
        self.clocks_decide = True

    def verdict(self) -> Verdict:
        """Return the first answer that one of the ways yields."""
        roots: list[Root] = []
        ways: tuple[Callable[[], list[Root]], ...] = (
            self._failed,
            self._not_connected,
            self._lost,
            self._links,
            self._tls,
            self._conflicts,
            self._awaited,
            self._quiet,
            self._different,
            self._reported,
            self._without_log,
            self._circle,
        )
        for way in ways:
            roots = way()
            if roots:
                break
        roots = [self._completed(roots[0])] if len(roots) == 1 else roots
        root = roots[0] if len(roots) == 1 else self._host_of(roots)
        candidates = tuple(roots) if len(roots) > 1 else ()
        chosen = {own.process for own in (candidates or roots)} if root is not None else set()
        failed = {failure.process for failure in self.failures if failure.sure}
        links = (*self.links, *self.broken)
        suspects = {own.process for own in roots}
        reporting = (link.waiter for link in links if link.waiter.has_log and link.waiter not in suspects)
        waiters = tuple(own for own in dict.fromkeys((*self.waiting, *reporting)) if own not in chosen | failed)
        everybody = self.processes.all
        return Verdict(root, candidates, waiters, self._missing(), links, everybody, self.clocks_decide)

    # ------------------------------------------------------------------ the ways

    def _failed(self) -> list[Root]:
        left = [failure for failure in self.failures if not self._is_of_parent(failure)]
        most = max((failure.certainty for failure in left), default=0)
        left = [failure for failure in left if failure.certainty == most]
        if len(left) > 1:
            ends = graph.sinks(self.links, [])
            awaited = [failure for failure in left if failure.process in ends]
            left = awaited or left
        first = first_of(left, self.reports, self.clocks)
        if len(first) > 1:
            self.clocks_decide = len({failure.process.host for failure in first}) == 1
        return [failure.root for failure in sorted(first, key=_time)]

    def _is_of_parent(self, failure: Failure) -> bool:
        """Return whether a process without a rank (a server, a launcher) failed after a rank had given up waiting."""
        process, time = failure.process, failure.time
        if process.rank is not None or process.pid is None or time is None:
            return False
        ended = ((w.process, w.note.time) for w in self.waits if w.process.rank is not None and w.note.time is not None)
        apart = (self.clocks.later(process, time, other, own) for other, own in ended)
        return any(seconds is not None and seconds > 0 for seconds in apart)

    def _not_connected(self) -> list[Root]:
        notes = [note for note in self.notes if note.kind.startswith("topo")]
        line = next((note for note in notes if note.kind != "topo"), None)
        silent = [process for process in self.absent if process not in self.waiting] or self.absent
        return [Root(process, claims.NOT_CONNECTED, line) for process in silent]

    def _lost(self) -> list[Root]:
        found = claims.lost(self.processes, self.notes, self.waiting)
        silent = [(process, note) for process, note in found if process not in self.waiting] or found
        if len(silent) > 1 and len({note.path for _, note in silent}) == 1:
            times = [note.time for _, note in silent if note.time is not None]
            silent = [own for own in silent if own[1].time == min(times)] if times else silent
        return [Root(process, claims.LOST, note) for process, note in silent]

    def _links(self) -> list[Root]:
        ends = claims.ends_of(self.broken)
        silent = [process for process in ends if process.has_log and process not in self.waiting]
        reporters = {link.waiter for link in self.broken}
        ended = [process for process in silent if process not in reporters]
        chosen = ended if len(ended) == 1 and len(ends) > 1 else ends
        return [Root(process, claims.LINK, self.broken[0].note) for process in chosen]

    def _tls(self) -> list[Root]:
        note = next((note for note in self.notes if note.kind == "tls"), None)
        linked = any(wait.kind in ("socket", "p2p") for wait in self.waits)
        found = claims.other_tls(self.processes, self.notes) if linked else []
        return [Root(process, claims.TLS, note) for process in found]

    def _conflicts(self) -> list[Root]:
        note = next((note for note in self.notes if note.kind.startswith("conflict")), None)
        found = claims.conflicts(self.processes, self.notes)
        if len(found) == 1 and note is not None:
            peers = [link.peer for link in self.links if link.waiter is found[0] and link.why == "socket"]
            alone = {self.processes.of(own) for own in self.notes if own.kind.startswith("conflict")} == set(found)
            found += [peer for peer in dict.fromkeys(peers) if alone]
        return [Root(process, claims.DIFFERENT, note) for process in found]

    def _awaited(self) -> list[Root]:
        found = graph.sinks(self.links, self.waiting)
        found = [process for process in found if process.has_log or process.rank is not None or process.host]
        with_log = [process for process in found if process.has_log]
        return [Root(process, self._why(process), self._line_about(process)) for process in with_log or found]

    def _why(self, process: Process) -> str:
        if not process.has_log:
            return NO_LOG
        return ENDED if self._ends_early(process) else AWAITED

    def _line_about(self, process: Process) -> Optional[Note]:
        return next((link.note for link in self.links if link.peer is process), None)

    def _quiet(self) -> list[Root]:
        """Return the processes of the job that report nothing while others waited."""
        if not self.waiting:
            return []
        ranked = any(process.rank is not None for process in self.waiting)
        quiet = [
            process
            for process in self.processes.all
            if process not in self.waiting and (process.rank is not None or (not ranked and process.pid is not None))
        ]
        early = [process for process in quiet if self._ends_early(process)]
        return [Root(process, ENDED if process in early else SILENT) for process in (early or quiet)]

    def _ends_early(self, process: Process) -> bool:
        """Return whether its log ends before those of all that waited."""
        if process.last is None:
            return False
        last = process.last
        apart = [
            self.clocks.later(other, other.last, process, last)
            for other in self._ends.values()
            if other.last is not None and other is not process
        ]
        comparable = [seconds for seconds in apart if seconds is not None]
        return bool(comparable) and all(seconds > EARLY for seconds in comparable)

    def _different(self) -> list[Root]:
        if len(self.waiting) < 2:
            return []
        for way, why in ((self._late, LATE), (self._behind, BEHIND), (self._itself, ITSELF)):
            found = way()
            if found:
                notes = {wait.process: wait.note for wait in reversed(self.waits)}
                return [Root(process, why, notes.get(process)) for process in found]
        return []

    def _late(self) -> list[Process]:
        return graph.late(self.waits, self.clocks)

    def _behind(self) -> list[Process]:
        return graph.behind(self.waits)

    def _itself(self) -> list[Process]:
        return graph.waits_for_itself(self.links)

    def _reported(self) -> list[Root]:
        """Return processes that ended with an error that was not logged."""
        found = [r for r in self.reports if r.process not in self.waiting]
        first = [report for report in found if report.first] or found
        roots = {report.process: Root(report.process, REPORTED, report.note) for report in first}
        return list(roots.values())

    def _without_log(self) -> list[Root]:
        if not self.waiting:
            return []
        return [Root(self.processes.by_rank(rank), NO_LOG) for rank in self._missing()]

    def _circle(self) -> list[Root]:
        found = graph.cycle(self.links) if len(self.waiting) > 1 else []
        return [Root(process, AWAITED, self._line_about(process)) for process in found] if len(found) > 1 else []

    # ------------------------------------------------------------------ what a process says of itself

    def _timed_out_alone(self) -> list[Process]:
        """Return the processes that only report a timeout, while others report waiting for them, or do so later."""
        known = {wait.process for wait in self.waits if not wait.vague}
        awaited = {link.peer for link in self.links if link.peer is not link.waiter}
        found: dict[Process, Note] = {}
        for wait in self.waits:
            if wait.process not in known:
                found.setdefault(wait.process, wait.note)
        return [own for own, note in found.items() if known and (own in awaited or self._is_earlier(own, note, known))]

    def _is_earlier(self, process: Process, note: Note, others: Iterable[Process]) -> bool:
        """Return whether its line is certainly older than all waits of others."""
        first: dict[Process, float] = {}
        for wait in self.waits:
            if wait.process in others and wait.note.time is not None:
                first[wait.process] = min(first.get(wait.process, wait.note.time), wait.note.time)
        time = process.last if note.time is None else note.time
        if time is None or not first:
            return False
        apart = (self.clocks.later(other, own, process, time) for other, own in first.items())
        return all(seconds is not None and seconds > EARLY for seconds in apart)

    def _completed(self, root: Root) -> Root:
        """Return the root with its final error, and with the rank that all others wait for."""
        process, own = root.process, None
        if root.why in (AWAITED, ENDED, SILENT, claims.LOST):
            own = self._last_words(process)
        if process.rank is None:
            process.rank = self._rank_of_all_waits(process)
        return root if own is None else Root(process, FAILED, own)

    def _rank_of_all_waits(self, process: Process) -> Optional[int]:
        """Return the rank that all others wait for, if no process has it; without a log, two must name it."""
        waits = [wait for wait in self.waits if wait.process is not process]
        named = {wait.said for wait in waits} - {None}
        rank = named.pop() if len(named) == 1 else None
        known = (
            process.pid is not None
            or process.has_log
            or len({wait.process for wait in waits if wait.said is not None}) > 1
        )
        return rank if known and all(other.rank != rank for other in self.processes.all) else None

    def _last_words(self, process: Process) -> Optional[Note]:
        """Return the exception that ended a process before others gave up waiting, regardless of its usual meaning."""
        errors = [note for note in process.notes if note.kind == "error" and is_exception(note.text)]
        first = min(errors, key=lambda note: note.place, default=None)
        if first is None or not (is_vague(first.text) or self._ends_early(process)):
            return None
        return first

    # ------------------------------------------------------------------ what goes with it

    def _missing(self) -> tuple[int, ...]:
        """Return the ranks that did not connect, else those without a log if several ranks have one."""
        absent = {process.rank for process in self.absent if process.rank is not None}
        with_log = {process.rank for process in self.processes.all if process.rank is not None}
        if len(with_log) > 1:
            absent |= set(range(self.processes.expected)) - with_log - self.processes.printed
        return tuple(sorted(absent))

    def _host_of(self, roots: Sequence[Root]) -> Optional[Root]:
        """Return the host of several roots if all of its processes are roots."""
        hosts = {root.process.host for root in roots}
        if len(hosts) != 1 or "" in hosts or roots[0].why in (FAILED, claims.LINK, BEHIND):
            return None
        (host,) = hosts
        there = {process for process in self.processes.all if process.host == host}
        several = len({process.host for process in self.processes.all}) > 1
        if not several or not there <= {root.process for root in roots}:
            return None
        return Root(
            Process(host, files=[file for root in roots for file in root.process.files]), roots[0].why, roots[0].note
        )


def _time(failure: Failure) -> tuple[float, str, int]:
    time = failure.time
    return float("inf") if time is None else time, failure.note.path, failure.note.number
