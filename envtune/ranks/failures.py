"""Which processes failed on their own: by an error that is not a wait, before every wait, or because they were killed.

An unknown error of a process also counts as its own failure; known waits never do.
"""

from __future__ import annotations

import re
from typing import Iterable, Mapping, NamedTuple, Optional, Sequence

from envtune.ranks.clocks import Clocks
from envtune.ranks.errors import meaning
from envtune.ranks.processes import Processes
from envtune.ranks.records import OWN, UNSURE, WAIT, Note, Process, Root
from envtune.ranks.waits import WAITING, Wait, is_transfer

FAILED, KILLED, REPORTED = "failed", "killed", "reported"  # why a process is the root
_DEADLY = {4, 7, 8, 9, 11}  # signals caused by the process itself or the kernel
# What ends a process: an exception printed last, a signal.
_FATAL = re.compile(
    r"(?:^|[\]\)>:] ?)[\w.]*(?:Error|Exception|Interrupt|Exit)\b(?::|$)"
    r"|Segmentation|Fatal Python|Killed|SIG[A-Z]+|Bus error"
)
_KILL = 9
_WHOLE = ("OOMKilled", "Evicted")  # a container with all of its processes
_OF_JOB = re.compile(r"(?i)python|^pt_|torch|train|infer|vllm|ray|mind|msrun|deepspeed")  # names of its programs
_ENDED = 15  # SIGTERM: sent by the launcher
_SIGNALS = {
    "Segmentation fault": 11,
    "segfault": 11,
    "SIGSEGV": 11,
    "Bus error": 7,
    "SIGBUS": 7,
    "Aborted": 6,
    "SIGABRT": 6,
    "SIGTERM": 15,
    "SIGILL": 4,
    "SIGFPE": 8,
}  # for others it is 9


class Failure(NamedTuple):
    """One process that failed on its own; `certainty` says how likely its error ended it."""

    process: Process
    note: Note
    why: str = FAILED
    certainty: int = 2  # 2: a known cause, an exception, a crash; 1: another error line; 0: a line of CANN

    @property
    def sure(self) -> bool:
        """Whether it is more than a line that may be a consequence of something else."""
        return self.certainty > 0

    @property
    def time(self) -> Optional[float]:
        """When it failed; a launcher reports the end of a process after it happened."""
        return self.note.time if self.why == FAILED else self.process.last

    @property
    def root(self) -> Root:
        """Return it as a root."""
        return Root(self.process, self.why, self.note)


class Report(NamedTuple):
    """A report of a launcher, an actor system or the kernel about the end of a process."""

    process: Process
    note: Note
    signal: int  # 0 if it ended with an exit status
    first: bool  # whether it is the first failure that the launcher saw


def is_own(note: Note) -> bool:
    """Return whether the line is a failure of its process, as far as it tells."""
    meaning = note.fields.get("meaning") if note.kind == "error" else None
    return note.kind == "failed" or meaning in (OWN, UNSURE) or is_transfer(note)


def before(note: Note, other: Note) -> Optional[bool]:
    """Return whether a line of a process is older than another one of it; None if unknown."""
    if note.path == other.path:
        return note.number < other.number
    if note.time is None or other.time is None or note.time == other.time:
        return None
    return note.time < other.time


def failures_of(processes: Processes, waits: Sequence[Wait], reports: Sequence[Report]) -> list[Failure]:
    """Return the failure of each process that has one."""
    by_process: dict[Process, list[Note]] = {}
    for wait in waits:
        by_process.setdefault(wait.process, []).append(wait.note)
    found: dict[Process, Failure] = {}
    for process in processes.all:
        failure = _own_failure(process, by_process.get(process, []))
        if failure is not None:
            failure = _of_reported(failure, reports)
            found[failure.process] = failure
    for failure in _reported_failures(processes, reports):
        known = found.get(failure.process)
        if failure.process not in by_process and (known is None or not known.sure):
            found[failure.process] = failure
    if not found:
        found = _unnamed(processes, reports)
    return list(found.values())


def _of_reported(failure: Failure, reports: Sequence[Report]) -> Failure:
    """Attribute the failure to the process that a launcher reports, if its file does not say whose it is."""
    process = failure.process
    if process.rank is not None or process.pid is not None:
        return failure
    here = [report for report in reports if report.note.path in process.files]
    reported = {report.process for report in here if report.first} or {report.process for report in here}
    if len(reported) != 1:
        return failure
    (named,) = reported
    killed = next((report for report in here if report.signal == _KILL), None)
    if killed is not None:
        return Failure(named, killed.note, KILLED)  # such a process prints nothing: the line is its launcher's
    named.files += [file for file in process.files if file not in named.files]
    return failure._replace(process=named)


def _reported_failures(processes: Processes, reports: Iterable[Report]) -> Iterable[Failure]:
    """Yield the processes that were killed, and the actors whose exceptions the driver prints."""
    for report in reports:
        if report.signal in _DEADLY:
            yield Failure(report.process, report.note, KILLED)
    for process, note in _raised(processes):
        yield Failure(process, note)


def _own_failure(process: Process, waits: Sequence[Note]) -> Optional[Failure]:
    found: list[Failure] = []
    for note in process.notes:
        if not is_own(note) or any(before(wait, note) for wait in waits):
            continue
        certainty = _certainty(note)
        if certainty > 1 or not waits:  # a process that waits later had not ended before
            found.append(Failure(process, note, FAILED, certainty))
    return min(found, key=_order, default=None)


def _certainty(note: Note) -> int:
    if note.fields.get("meaning") == UNSURE:
        return 0
    return 2 if note.kind != "error" or "known" in note.fields or _FATAL.search(note.text) else 1


def _order(failure: Failure) -> tuple[int, float, str, int]:
    time = failure.note.time
    return -failure.certainty, float("inf") if time is None else time, failure.note.path, failure.note.number


def _raised(processes: Processes) -> Iterable[tuple[Process, Note]]:
    """Yield the actors whose exceptions the driver prints."""
    for notes in (*(process.notes for process in processes.all), processes.unnamed):
        for note in notes:
            if note.kind == "raised" and meaning(note.fields["error"]) == OWN:
                yield processes.by_pid(note.fields["host"], int(note.fields["pid"])), note


def _unnamed(processes: Processes, reports: Sequence[Report]) -> dict[Process, Failure]:
    """Return the first failure of a file of several processes that does not say whose it is."""
    notes = [note for note in processes.unnamed if is_own(note) and note.fields.get("meaning") != UNSURE]
    if not notes:
        return {}
    note = min(notes, key=lambda own: own.place)
    reported = [report for report in reports if report.first] or list(reports)
    named = len({report.process for report in reported}) == 1
    process = reported[0].process if named else Process(processes.host_of_line(note))
    if note.path not in process.files:
        process.files.append(note.path)
    return {process: Failure(process, note)}


# ---------------------------------------------------------------------- launchers


def reports_of(processes: Processes, notes: Iterable[Note]) -> list[Report]:
    """Return the reports about the end of processes, except those ended by a launcher itself."""
    found = []
    for note in notes:
        if note.kind not in ("first", "exit", "died"):
            continue
        signal = _signal(note.fields)
        process = _reported(processes, note) if signal != _ENDED else None
        if process is not None and not note.fields.get("how", "").startswith("INTENDED"):
            found.append(Report(process, note, signal, note.kind == "first"))
    return found


def _reported(processes: Processes, note: Note) -> Optional[Process]:
    fields, host = note.fields, note.fields.get("host", "")
    printer = processes.of(note)
    host = host or processes.host_of_line(note) or (printer.host if printer is not None else "")
    if fields.get("pid", "0") != "0":
        process = processes.by_pid(host, int(fields["pid"]))
        if process.has_log:
            return _completed(processes, process, fields, host)
        if "rank" not in fields:
            return _of_unknown_id(processes, note, process, host)
    if "rank" in fields:
        return _completed(processes, processes.by_rank(int(fields["rank"])), fields, host)
    if "local" in fields:
        return processes.by_local_rank(host, int(fields["local"]))
    whole = processes.pod(note) != "" or fields.get("how") in _WHOLE
    return _silent(processes.named(note), printer, whole)


def _of_unknown_id(processes: Processes, note: Note, process: Process, host: str) -> Optional[Process]:
    """Return the process a line refers to by an id that is in no log; None if it is not part of the job."""
    printer = processes.of(note)
    if printer is not None and printer.rank is not None and note.fields.keys() == {"pid", "how"}:
        return printer  # the shell that started the process writes to the same file
    program = note.fields.get("program", "")
    silent = _silent(processes.at(host), printer) if not program or _OF_JOB.search(program) else None
    if silent is not None:
        return silent  # in a container it has another id
    foreign = processes.complete or (program and not _OF_JOB.search(program))
    return None if foreign else _completed(processes, process, note.fields, host)


def _silent(there: Sequence[Process], printer: Optional[Process], whole: bool = False) -> Optional[Process]:
    """Return the only one of these processes that did not report waiting; for a pod that ended whole, their host."""
    others = (process for process in there if process.has_log and (process is not printer or process.rank is not None))
    silent = [process for process in others if not any(map(_gives_up, process.notes))]
    hosts = {process.host for process in silent}
    if whole and len(silent) > 1 and len(hosts) == 1 and "" not in hosts:
        return Process(hosts.pop(), files=[file for process in silent for file in process.files])
    return silent[0] if len(silent) == 1 else None


def _gives_up(note: Note) -> bool:
    return note.kind.partition(".")[0] in WAITING or note.fields.get("meaning") == WAIT


def _completed(processes: Processes, process: Process, fields: Mapping[str, str], host: str) -> Process:
    """Return the process with what the report adds."""
    if "rank" in fields:
        processes.complete_rank(process, int(fields["rank"]))
    if fields.get("group") == "0":  # the actors of the first host
        processes.complete_rank(process, int(fields["local"]))
    if process.local_rank is None and "local" in fields:
        process.local_rank = int(fields["local"])
        process.device = process.local_rank if process.device is None else process.device
    process.host = process.host or host
    return process


def _signal(fields: Mapping[str, str]) -> int:
    """Return the signal that ended it, 0 for none; a shell reports 128 plus the signal."""
    if fields.get("signal"):
        return int(fields["signal"])
    how = fields.get("how", "")
    if how:
        if how.startswith("Exited"):
            return max(int(how.split()[-1]) - 128, 0)
        return _SIGNALS.get(how, 9)
    status = fields.get("exit")
    if status is None:
        return 9  # the kernel, an executor: it did not exit by itself
    number = int(status)
    return -number if number < 0 else max(number - 128, 0)


# ---------------------------------------------------------------------- which was the first


def first_of(failures: Sequence[Failure], reports: Sequence[Report], clocks: Clocks) -> list[Failure]:
    """Return the earliest failure, or those among which nothing decides."""
    most = max((failure.certainty for failure in failures), default=0)
    left = _first_of_hosts([failure for failure in failures if failure.certainty == most])
    earlier = [one for one in left if not any(_is_before(other, one, clocks) for other in left)]
    if len(earlier) > 1:
        reported = [one for one in earlier if any(r.first and r.process is one.process for r in reports)]
        return reported if len(reported) == 1 else earlier
    return earlier


def _first_of_hosts(failures: Sequence[Failure]) -> list[Failure]:
    """Return the earliest failures of each host, and those without a time."""
    first: dict[str, float] = {}
    for failure in failures:
        if failure.time is not None:
            host = failure.process.host
            first[host] = min(first.get(host, failure.time), failure.time)
    return [failure for failure in failures if failure.time is None or failure.time == first[failure.process.host]]


def _is_before(one: Failure, other: Failure, clocks: Clocks) -> bool:
    if one is other or one.time is None or other.time is None:
        return False
    apart = clocks.later(other.process, other.time, one.process, one.time)
    return apart is not None and apart > 0
