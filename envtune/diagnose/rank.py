"""Rank what was found in logs. Pure: matches, with place and time, become at most a few diagnoses, likeliest first.

An entry is one of: a cause; `waiting` (a timeout that says another rank did not come: a diagnosis only if nothing else
failed, known or not); a `wrapper` (says that something failed, not what: a diagnosis only if nothing is more specific);
a `consequence` (never the diagnosis); or harmless (side: ignore). envtune/ranks finds which process failed first, from
everything the logs say about processes; what that process printed comes first, ordered by how specific the entry is. If
an entry is about waiting, it is attributed to the process that all waited for, never to one that waited.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Callable, Iterable, Mapping, Optional, Sequence

from envtune.diagnose.processes import Job, Moment, job_of, without_text
from envtune.diagnose.scan import Hit, Scan
from envtune.model import FaqEntry
from envtune.ranges import decimal
from envtune.ranks.failures import FAILED, KILLED
from envtune.ranks.records import Process, Verdict

TIER = 100  # precedences of one tier are ordered by time, of different tiers by precedence
NO_JOB = Verdict()
NO_PROCESSES = Job(NO_JOB, {}, None, {})
Environment = Callable[[], str]  # the named job's variables, one NAME=value per line; empty if no job is named


@dataclass(frozen=True)
class ReportedFailure:
    """The rank that a launcher reports as the first to fail; `host` is empty if unknown."""

    rank: int
    host: str = ""


@dataclass(frozen=True)
class Candidate:
    """One entry and everything in the inputs that speaks for it, in the order in which it happened.

    `printed` has the rank that printed each hit, None if unknown; `rank` and `host` are those at fault.
    """

    entry: FaqEntry
    hits: tuple[Hit, ...]
    count: int
    printed: tuple[Optional[int], ...]
    hosts: tuple[str, ...] = ()  # of the processes that printed each hit
    rank: Optional[int] = None
    host: str = ""

    @property
    def strong(self) -> bool:
        """Whether at least one signature belongs to no other entry."""
        return any(hit.pattern.strength == "strong" for hit in self.hits)

    @property
    def confident(self) -> bool:
        """Whether there is more than weak evidence for it."""
        return self.strong or any(hit.pattern.role == "code" for hit in self.hits)

    @property
    def first(self) -> Hit:
        """The best evidence: the earliest strong hit."""
        return next((hit for hit in self.hits if hit.pattern.strength == "strong"), self.hits[0])

    @property
    def groups(self) -> Mapping[str, str]:
        """What the named groups of all its hits captured; the first value wins."""
        groups: dict[str, str] = {}
        for hit in self.hits:
            for name, value in hit.groups.items():
                groups.setdefault(name, value)
        return groups

    @property
    def ranks(self) -> tuple[int, ...]:
        """Every rank that printed it."""
        return tuple(sorted({rank for rank in self.printed if rank is not None}))


@dataclass(frozen=True)
class Resolution:
    """The candidates by role; `diagnoses` best first.

    `undecided_order`: several failed on hosts whose clocks cannot be compared.
    """

    diagnoses: tuple[Candidate, ...]
    hints: tuple[Candidate, ...]
    harmless: tuple[Candidate, ...]
    consequences: tuple[Candidate, ...]
    undecided_order: bool = False
    job: Verdict = NO_JOB
    processes: Job = NO_PROCESSES


def no_environment() -> str:
    """Return the environment if there is no job."""
    return ""


def resolve(scan: Scan, entries: Iterable[FaqEntry], environment: Environment = no_environment) -> Resolution:
    """Return the meaning of the hits. `environment` is called only if a signature needs more than its own line."""
    by_id = {entry.id: entry for entry in entries}
    hits = _by_precedence([hit for hit in scan.hits if _holds(hit, by_id, scan, environment)], by_id)
    job = job_of(scan, hits, by_id)
    candidates = _candidates(sorted(hits, key=job.moment), job, by_id, scan)
    harmless = [c for c in candidates if c.entry.side == "ignore"]
    errors = [c for c in candidates if c.entry.side != "ignore"]
    consequences = [c for c in errors if c.entry.role == "consequence"]
    hints = [c for c in errors if c.entry.role != "consequence" and not c.strong]
    strong = [c for c in errors if c.entry.role != "consequence" and c.strong]
    role = next((r for r in ("cause", "waiting", "wrapper") if any(c.entry.role == r for c in strong)), "")
    if role != "cause" and _fails_unknown(strong, job):
        role = ""
    followed = [c for c in strong if c.entry.role != role or follows(c, job)]
    consequences += followed
    diagnoses = _likeliest_first([c for c in strong if c not in followed], job)
    undecided = len(diagnoses) > 1 and not job.verdict.clocks_decide
    verdict = without_text(job.verdict) if job.several else NO_JOB
    return Resolution(tuple(diagnoses), tuple(hints), tuple(harmless), tuple(consequences), undecided, verdict, job)


def follows(candidate: Candidate, job: Job) -> bool:
    """Return whether only waiting processes or launchers printed it although another process failed on its own."""
    root = job.verdict.root
    if candidate.entry.role == "waiting" or root is None or root.why not in (FAILED, KILLED) or not job.several:
        return False
    processes = [job.process(hit) for hit in _telling(candidate)]
    launchers = {p for p in processes if p is not None and p.rank is None and p.pid is None}
    if root.why == KILLED and launchers:
        return False  # they are the ones to report that it was killed
    others = job.waiting | launchers
    return root.process not in processes and all(process in others for process in processes)


def of_root(candidate: Candidate, job: Job) -> bool:
    """Return whether the process that failed first printed it."""
    root = job.verdict.root
    return root is not None and any(job.process(hit) is root.process for hit in _telling(candidate))


def _fails_unknown(candidates: Iterable[Candidate], job: Job) -> bool:
    """Return whether the root is a process that failed on its own and printed no known error."""
    root = job.verdict.root
    if root is None or root.why != FAILED or not job.several:
        return False
    return all(job.process(hit) is not root.process for candidate in candidates for hit in candidate.hits)


def _holds(hit: Hit, by_id: Mapping[str, FaqEntry], scan: Scan, environment: Environment) -> bool:
    """Return whether the inputs or the job's variables show all that the signature requires and nothing it excludes.

    What it requires may be in another file (the launcher's and the ranks' output belong together); what excludes it
    must be in its own.
    """
    signature = by_id[hit.pattern.owner].signatures[hit.pattern.index]
    path = hit.file.path

    def required(regex: str) -> bool:
        return any(regex == present for present, _ in scan.present) or re.search(regex, environment()) is not None

    def excluded(regex: str) -> bool:
        return (regex, path) in scan.present or re.search(regex, environment()) is not None

    return all(map(required, signature.requires)) and not any(map(excluded, signature.unless))


def _by_precedence(hits: Sequence[Hit], by_id: Mapping[str, FaqEntry]) -> list[Hit]:
    """Return, if several match one line, the hits of the entry with the highest precedence; strong beats weak."""
    best: dict[tuple[str, int], tuple[bool, int]] = {}
    for hit in hits:
        place = (hit.file.path, hit.line.number)
        best[place] = max(best.get(place, (False, -1)), _weight(hit, by_id))
    return [hit for hit in hits if _weight(hit, by_id) == best[(hit.file.path, hit.line.number)]]


def _weight(hit: Hit, by_id: Mapping[str, FaqEntry]) -> tuple[bool, int]:
    return hit.pattern.strength == "strong", by_id[hit.pattern.owner].precedence


def _candidates(hits: Sequence[Hit], job: Job, by_id: Mapping[str, FaqEntry], scan: Scan) -> list[Candidate]:
    """Return one candidate per entry, in the order in which their first hits happened."""
    grouped: dict[str, list[Hit]] = {}
    for hit in hits:
        grouped.setdefault(hit.pattern.owner, []).append(hit)
    totals: dict[str, int] = {}
    for (owner, _), count in scan.counts.items():
        totals[owner] = totals.get(owner, 0) + count
    reported = _reported_failure(hit for hit in hits if by_id[hit.pattern.owner].role == "consequence")
    return [_candidate(by_id[owner], own, totals.get(owner, len(own)), job, reported) for owner, own in grouped.items()]


def _candidate(
    entry: FaqEntry, hits: Sequence[Hit], count: int, job: Job, reported: Optional[ReportedFailure]
) -> Candidate:
    processes = [job.process(hit) for hit in hits]
    printed = tuple(_rank(process) for process in processes)
    hosts = tuple(hit.file.host if process is None else process.host for process, hit in zip(processes, hits))
    rank, host = _at_fault(entry, hits, processes, job)
    if reported is not None and entry.role != "waiting" and job.waiting.isdisjoint(p for p in processes if p):
        rank = reported.rank if rank is None else rank
        host = reported.host if not host and rank == reported.rank else host
    return Candidate(entry, tuple(hits), count, printed, hosts, rank, host)


def _rank(process: Optional[Process]) -> Optional[int]:
    """Return the rank in the job, else the local rank on the host."""
    if process is None:
        return None
    return process.rank if process.rank is not None or not process.host else process.local_rank


def _at_fault(
    entry: FaqEntry, hits: Sequence[Hit], processes: Sequence[Optional[Process]], job: Job
) -> tuple[Optional[int], str]:
    """Return the rank and the host at fault: for an entry about waiting, those of the root."""
    root, waiters = job.verdict.root, job.waiting
    at_root = (None, "") if root is None else (root.process.rank, root.process.host)
    shows_root = {None if root is None or root.note is None else root.note.place}
    if entry.role == "waiting" or any((hit.file.path, hit.line.number) in shows_root for hit in hits):
        return at_root
    for hit in hits:
        lost = decimal(hit.groups.get("lost_rank", ""))
        if lost is not None:
            return at_root if any(lost == p.rank for p in waiters) else (lost, hit.groups.get("lost_host", ""))
    strong = [number for number, hit in enumerate(hits) if hit.pattern.strength == "strong"] or [0]
    by_root = [number for number in strong if root is not None and processes[number] is root.process]
    others = [number for number in strong if processes[number] not in waiters]
    if not by_root and not others and job.several:
        return at_root  # printed only by processes that waited
    number = (by_root or others or strong)[0]
    process = processes[number]
    reports_root = root is not None and root.note is not None and root.note.path == hits[number].file.path
    if reports_root and root is not None and root.why == KILLED and (process is None or process.rank is None):
        return at_root  # printed by its launcher
    return _rank(process), hits[number].file.host if process is None else process.host


def candidate_of(entry: FaqEntry, hits: Sequence[Hit], count: int, job: Job) -> Candidate:
    """Return the candidate for what was found outside the signatures."""
    return _candidate(entry, hits, count, job, None)


def _reported_failure(hits: Iterable[Hit]) -> Optional[ReportedFailure]:
    """Return the rank that launchers report as the first to fail; None if they report none or different ones."""
    named = [(hit.groups["lost_rank"], hit.groups.get("lost_host", "")) for hit in hits if "lost_rank" in hit.groups]
    rank = decimal(named[0][0]) if named else None
    if rank is None or len({rank for rank, _ in named}) != 1:
        return None
    hosts = {host for _, host in named if host}
    return ReportedFailure(rank, hosts.pop() if len(hosts) == 1 else "")


def _likeliest_first(candidates: Sequence[Candidate], job: Job) -> list[Candidate]:
    """Sort by the process that failed first, then by how specific the entry is, then by time."""
    verdict = job.verdict
    roots = [root.process for root in verdict.candidates] or ([verdict.root.process] if verdict.root else [])
    began: dict[object, Moment] = {}
    for hit in (hit for c in candidates for hit in _strong(c)):
        process = _process(hit, job)
        began[process] = min(began.get(process, job.moment(hit)), job.moment(hit))
    start = min(began.values(), default=None)

    def order(candidate: Candidate) -> tuple[bool, Moment, int, Moment]:
        hits = _strong(candidate)
        of_root = any(job.process(hit) in roots for hit in hits)
        own = start if of_root else min(began[_process(hit, job)] for hit in hits)
        assert own is not None
        return bool(roots) and not of_root, own, -(candidate.entry.precedence // TIER), job.moment(candidate.first)

    return sorted(candidates, key=order)


def _process(hit: Hit, job: Job) -> object:
    """Return the processes that printed it; the same for all if the inputs show only one process."""
    return (job.process(hit) or hit.file.path) if job.several else ""


def _telling(candidate: Candidate) -> list[Hit]:
    """Return its strong hits, if any."""
    return _strong(candidate) or list(candidate.hits)


def _strong(candidate: Candidate) -> list[Hit]:
    return [hit for hit in candidate.hits if hit.pattern.strength == "strong"]
