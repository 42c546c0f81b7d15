"""Rank what was found in logs. Pure: what matched, where and when, becomes a few diagnoses at most, likeliest first.

An entry is one of: a cause; `waiting` (a timeout that says another rank did not come: a diagnosis only where nothing
else failed); a `wrapper` (says that something failed, not what: a diagnosis only where nothing says more); a
`consequence` (never the diagnosis); or harmless (side: ignore). Within one process the more specific entry comes first;
where several ranks failed, the process that failed first does. Clocks of hosts differ by seconds, so time decides only
between causes, and not between hosts that are closer than SKEW; a rank that merely waited never wins by an early clock.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Callable, Iterable, Mapping, Optional, Sequence

from envtune.diagnose.scan import Hit, Scan
from envtune.diagnose.timeline import SKEW, Moment, Timeline
from envtune.model import FaqEntry
from envtune.ranges import decimal

TIER = 100  # precedences of one tier are ordered by time, of different tiers by precedence
Environment = Callable[[], str]  # the named job's variables, a NAME=value line each; empty where no job is named


@dataclass(frozen=True)
class ReportedFailure:
    """The rank that a launcher reports as the first to fail; `host` is empty where it does not say."""

    rank: int
    host: str = ""


@dataclass(frozen=True)
class Candidate:
    """One entry and everything in the inputs that speaks for it, in the order in which it happened.

    `printed` holds the rank that printed each hit, None where nothing tells.
    """

    entry: FaqEntry
    hits: tuple[Hit, ...]
    count: int
    printed: tuple[Optional[int], ...]
    reported_first_failure: Optional[ReportedFailure] = None

    @property
    def strong(self) -> bool:
        """Whether at least one signature belongs to no other entry."""
        return any(hit.pattern.strength == "strong" for hit in self.hits)

    @property
    def first(self) -> Hit:
        """The hit that proves it best: the earliest strong one."""
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
    def rank(self) -> Optional[int]:
        """The rank at fault: the one a signature names (`lost_rank`), else the one that printed the first hit."""
        named = decimal(self.groups.get("lost_rank", ""))
        if named is not None:
            return named
        printed, reported = self.printed[self.hits.index(self.first)], self.reported_first_failure
        return printed if printed is not None or reported is None else reported.rank

    @property
    def host(self) -> str:
        """The host at fault; empty when the inputs do not say."""
        host = self.groups.get("lost_host") or self.first.file.host
        reported = self.reported_first_failure
        return host or (reported.host if reported is not None and reported.rank == self.rank else "")

    @property
    def ranks(self) -> tuple[int, ...]:
        """Every rank that printed it."""
        return tuple(sorted({rank for rank in self.printed if rank is not None}))


@dataclass(frozen=True)
class Resolution:
    """The candidates by what they mean; `diagnoses` best first.

    `undecided_order`: the first two happened on different hosts, nearer in time than their clocks can be trusted.
    """

    diagnoses: tuple[Candidate, ...]
    hints: tuple[Candidate, ...]
    harmless: tuple[Candidate, ...]
    consequences: tuple[Candidate, ...]
    undecided_order: bool = False


def no_environment() -> str:
    """Return the environment of no job."""
    return ""


def resolve(scan: Scan, entries: Iterable[FaqEntry], environment: Environment = no_environment) -> Resolution:
    """Return what the hits mean. `environment` is called only where a signature needs more than its own line."""
    by_id = {entry.id: entry for entry in entries}
    hits = _by_precedence([hit for hit in scan.hits if _holds(hit, by_id, scan, environment)], by_id)
    timeline = Timeline(hits)
    candidates = _candidates(sorted(hits, key=timeline.moment), timeline, by_id, scan)
    harmless = [c for c in candidates if c.entry.side == "ignore"]
    errors = [c for c in candidates if c.entry.side != "ignore"]
    consequences = [c for c in errors if c.entry.role == "consequence"]
    hints = [c for c in errors if c.entry.role != "consequence" and not c.strong]
    strong = [c for c in errors if c.entry.role != "consequence" and c.strong]
    role = next((r for r in ("cause", "waiting", "wrapper") if any(c.entry.role == r for c in strong)), "")
    consequences += [c for c in strong if c.entry.role != role]
    diagnoses = _likeliest_first([c for c in strong if c.entry.role == role], timeline)
    undecided = _is_order_undecided(diagnoses, timeline)
    return Resolution(tuple(diagnoses), tuple(hints), tuple(harmless), tuple(consequences), undecided)


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
    """Return the hits of the entry with the highest precedence where several match one line; strong beats weak."""
    best: dict[tuple[str, int], tuple[bool, int]] = {}
    for hit in hits:
        place = (hit.file.path, hit.line.number)
        best[place] = max(best.get(place, (False, -1)), _weight(hit, by_id))
    return [hit for hit in hits if _weight(hit, by_id) == best[(hit.file.path, hit.line.number)]]


def _weight(hit: Hit, by_id: Mapping[str, FaqEntry]) -> tuple[bool, int]:
    return hit.pattern.strength == "strong", by_id[hit.pattern.owner].precedence


def _candidates(hits: Sequence[Hit], timeline: Timeline, by_id: Mapping[str, FaqEntry], scan: Scan) -> list[Candidate]:
    """Return one candidate per entry, in the order in which their first hits happened."""
    grouped: dict[str, list[Hit]] = {}
    for hit in hits:
        grouped.setdefault(hit.pattern.owner, []).append(hit)
    totals: dict[str, int] = {}
    for (owner, _), count in scan.counts.items():
        totals[owner] = totals.get(owner, 0) + count
    reported = _reported_failure(hit for hit in hits if by_id[hit.pattern.owner].role == "consequence")
    return [
        Candidate(by_id[owner], tuple(own), totals.get(owner, len(own)), tuple(map(timeline.rank, own)), reported)
        for owner, own in grouped.items()
    ]


def _reported_failure(hits: Iterable[Hit]) -> Optional[ReportedFailure]:
    """Return the rank that launchers report as the first to fail; None where they report none or different ones."""
    named = [(hit.groups["lost_rank"], hit.groups.get("lost_host", "")) for hit in hits if "lost_rank" in hit.groups]
    rank = decimal(named[0][0]) if named else None
    if rank is None or len({rank for rank, _ in named}) != 1:
        return None
    hosts = {host for _, host in named if host}
    return ReportedFailure(rank, hosts.pop() if len(hosts) == 1 else "")


def _likeliest_first(candidates: Sequence[Candidate], timeline: Timeline) -> list[Candidate]:
    """Sort by the process that failed first, within it by how specific the entry is, then by time."""
    began: dict[object, Moment] = {}
    for hit in (hit for c in candidates for hit in _strong(c)):
        process = timeline.process(hit)
        began[process] = min(began.get(process, timeline.moment(hit)), timeline.moment(hit))
    root = min(began.values(), default=None)

    def order(candidate: Candidate) -> tuple[bool, Moment, int, Moment]:
        earliest = min(_strong(candidate), key=lambda hit: began[timeline.process(hit)])
        start = began[timeline.process(earliest)]
        assert root is not None
        skewed = start[0] - root[0] <= SKEW and earliest.file.host != _host_of(root, candidates)
        if skewed or root[0] == float("inf"):  # nothing tells which was first
            start = root
        tier = -(candidate.entry.precedence // TIER)
        return _reported_elsewhere(candidate), start, tier, timeline.moment(candidate.first)

    return sorted(candidates, key=order)


def _strong(candidate: Candidate) -> list[Hit]:
    return [hit for hit in candidate.hits if hit.pattern.strength == "strong"]


def _reported_elsewhere(candidate: Candidate) -> bool:
    """Return whether the launcher reports that another rank than those of this candidate failed first."""
    reported = candidate.reported_first_failure
    return reported is not None and bool(candidate.ranks) and reported.rank not in candidate.ranks


def _host_of(moment: Moment, candidates: Sequence[Candidate]) -> str:
    return next((hit.file.host for c in candidates for hit in c.hits if hit.file.path == moment[1]), "")


def _is_order_undecided(diagnoses: Sequence[Candidate], timeline: Timeline) -> bool:
    if len(diagnoses) < 2:
        return False
    first, second = (candidate.first for candidate in diagnoses[:2])
    hosts = {first.file.host, second.file.host}
    apart = abs(timeline.moment(first)[0] - timeline.moment(second)[0])
    return "" not in hosts and len(hosts) == 2 and apart <= SKEW
