"""Hits -> the answer. Pure: what matched, where and when, becomes at most a few diagnoses, the likeliest first.

An entry is one of: a cause; `waiting` (a timeout that says another rank did not come: an answer only where nothing
else failed); a `wrapper` (says that something failed, not what: an answer only where nothing says more); a
`consequence` (never the answer); or harmless (side: ignore). Within one process the more telling entry comes first;
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

TIER = 100  # precedences of one tier are told apart by time, of different tiers by precedence
Environment = Callable[[], str]  # the named job's variables, a NAME=value line each; empty where no job is named


@dataclass(frozen=True)
class Blamed:
    """Which rank a launcher saw failing first; `host` is empty where it does not say."""

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
    blamed: Optional[Blamed] = None

    @property
    def strong(self) -> bool:
        """Whether at least one signature belongs to this entry alone."""
        return any(hit.pattern.strength == "strong" for hit in self.hits)

    @property
    def first(self) -> Hit:
        """The hit that proves it best: the earliest strong one."""
        return next((hit for hit in self.hits if hit.pattern.strength == "strong"), self.hits[0])

    @property
    def groups(self) -> Mapping[str, str]:
        """What the named groups of all its hits say; the first word wins."""
        told: dict[str, str] = {}
        for hit in self.hits:
            for name, value in hit.groups.items():
                told.setdefault(name, value)
        return told

    @property
    def rank(self) -> Optional[int]:
        """The rank at fault: the one a signature names (`lost_rank`), else the one that printed the first hit."""
        named = self.groups.get("lost_rank", "")
        if named.isdigit():
            return int(named)
        printed = self.printed[self.hits.index(self.first)]
        return printed if printed is not None or self.blamed is None else self.blamed.rank

    @property
    def host(self) -> str:
        """The host at fault; empty when the inputs do not say."""
        told = self.groups.get("lost_host") or self.first.file.host
        return told or (self.blamed.host if self.blamed is not None and self.blamed.rank == self.rank else "")

    @property
    def ranks(self) -> tuple[int, ...]:
        """Every rank that printed it."""
        return tuple(sorted({rank for rank in self.printed if rank is not None}))


@dataclass(frozen=True)
class Resolution:
    """The candidates by what they mean; `diagnoses` best first. `close`: the first two happened on different hosts
    nearer in time than their clocks can be trusted."""

    diagnoses: tuple[Candidate, ...]
    hints: tuple[Candidate, ...]
    harmless: tuple[Candidate, ...]
    consequences: tuple[Candidate, ...]
    close: bool = False


def nothing() -> str:
    """The environment of no job."""
    return ""


def resolve(found: Scan, entries: Iterable[FaqEntry], environment: Environment = nothing) -> Resolution:
    """What the hits mean. `environment` is asked only where a signature wants more than its own line."""
    known = {entry.id: entry for entry in entries}
    hits = _by_precedence([hit for hit in found.hits if _holds(hit, known, found, environment)], known)
    timeline = Timeline(hits)
    candidates = _candidates(sorted(hits, key=timeline.moment), timeline, known, found)
    harmless = [c for c in candidates if c.entry.side == "ignore"]
    rest = [c for c in candidates if c.entry.side != "ignore"]
    consequences = [c for c in rest if c.entry.role == "consequence"]
    hints = [c for c in rest if c.entry.role != "consequence" and not c.strong]
    strong = [c for c in rest if c.entry.role != "consequence" and c.strong]
    role = next((r for r in ("cause", "waiting", "wrapper") if any(c.entry.role == r for c in strong)), "")
    consequences += [c for c in strong if c.entry.role != role]
    chosen = _likeliest_first([c for c in strong if c.entry.role == role], timeline)
    return Resolution(tuple(chosen), tuple(hints), tuple(harmless), tuple(consequences), _close(chosen, timeline))


def _holds(hit: Hit, known: Mapping[str, FaqEntry], found: Scan, environment: Environment) -> bool:
    """Whether the inputs or the job's variables tell all that the signature requires, and nothing that it excludes.

    What it requires may stand in another file (the launcher's and the ranks' output are one story); what excludes it
    must stand in its own.
    """
    signature = known[hit.pattern.owner].signatures[hit.pattern.index]
    here = hit.file.path

    def required(regex: str) -> bool:
        return any(regex == one for one, _ in found.present) or re.search(regex, environment()) is not None

    def excluded(regex: str) -> bool:
        return (regex, here) in found.present or re.search(regex, environment()) is not None

    return all(map(required, signature.requires)) and not any(map(excluded, signature.unless))


def _by_precedence(hits: Sequence[Hit], known: Mapping[str, FaqEntry]) -> list[Hit]:
    """Where several entries match one line, the one of the highest precedence keeps it; strong beats weak."""
    best: dict[tuple[str, int], tuple[bool, int]] = {}
    for hit in hits:
        place = (hit.file.path, hit.line.number)
        best[place] = max(best.get(place, (False, -1)), _weight(hit, known))
    return [hit for hit in hits if _weight(hit, known) == best[(hit.file.path, hit.line.number)]]


def _weight(hit: Hit, known: Mapping[str, FaqEntry]) -> tuple[bool, int]:
    return hit.pattern.strength == "strong", known[hit.pattern.owner].precedence


def _candidates(hits: Sequence[Hit], timeline: Timeline, known: Mapping[str, FaqEntry], found: Scan) -> list[Candidate]:
    """One candidate per entry, in the order in which their first hits happened."""
    grouped: dict[str, list[Hit]] = {}
    for hit in hits:
        grouped.setdefault(hit.pattern.owner, []).append(hit)
    totals: dict[str, int] = {}
    for (owner, _), count in found.counts.items():
        totals[owner] = totals.get(owner, 0) + count
    blamed = _blamed(hit for hit in hits if known[hit.pattern.owner].role == "consequence")
    return [
        Candidate(known[owner], tuple(own), totals.get(owner, len(own)), tuple(map(timeline.rank, own)), blamed)
        for owner, own in grouped.items()
    ]


def _blamed(hits: Iterable[Hit]) -> Optional[Blamed]:
    """The rank that launchers name as the first to fail; None where none or different ones are named."""
    named = [(hit.groups["lost_rank"], hit.groups.get("lost_host", "")) for hit in hits if "lost_rank" in hit.groups]
    if len({rank for rank, _ in named}) != 1:
        return None
    hosts = {host for _, host in named if host}
    return Blamed(int(named[0][0]), hosts.pop() if len(hosts) == 1 else "")


def _likeliest_first(candidates: Sequence[Candidate], timeline: Timeline) -> list[Candidate]:
    """By the process that failed first, within it by how telling the entry is, then by time."""
    began: dict[object, Moment] = {}
    for hit in (hit for c in candidates for hit in _strong(c)):
        process = timeline.process(hit)
        began[process] = min(began.get(process, timeline.moment(hit)), timeline.moment(hit))
    root = min(began.values(), default=None)

    def place(candidate: Candidate) -> tuple[bool, Moment, int, Moment]:
        own = min(_strong(candidate), key=lambda hit: began[timeline.process(hit)])
        start = began[timeline.process(own)]
        assert root is not None
        skewed = start[0] - root[0] <= SKEW and _host(own) != _host_of(root, candidates)
        if skewed or root[0] == float("inf"):  # nothing tells which was first
            start = root
        tier = -(candidate.entry.precedence // TIER)
        return _not_blamed(candidate), start, tier, timeline.moment(candidate.first)

    return sorted(candidates, key=place)


def _strong(candidate: Candidate) -> list[Hit]:
    return [hit for hit in candidate.hits if hit.pattern.strength == "strong"]


def _not_blamed(candidate: Candidate) -> bool:
    """Whether the launcher saw another rank than those of this candidate fail first."""
    return candidate.blamed is not None and bool(candidate.ranks) and candidate.blamed.rank not in candidate.ranks


def _host(hit: Hit) -> str:
    return hit.file.host


def _host_of(moment: Moment, candidates: Sequence[Candidate]) -> str:
    return next((_host(hit) for c in candidates for hit in c.hits if hit.file.path == moment[1]), "")


def _close(chosen: Sequence[Candidate], timeline: Timeline) -> bool:
    if len(chosen) < 2:
        return False
    one, other = (candidate.first for candidate in chosen[:2])
    apart = abs(timeline.moment(one)[0] - timeline.moment(other)[0])
    return bool(_host(one) and _host(other)) and _host(one) != _host(other) and apart <= SKEW
