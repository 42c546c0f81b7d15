"""Hits -> the answer. Pure: what matched, where and when, becomes at most a few diagnoses, the likeliest first.

An entry is one of: a cause; `waiting` (a timeout that says another rank did not come: an answer only where nothing
else failed); a `wrapper` (says that something failed, not what: an answer only where nothing says more); a
`consequence` (never the answer); or harmless (side: ignore). Where several ranks failed, the root is
the first failure in time that is not a consequence. Clocks of hosts differ by seconds, so time decides only between
causes; a rank that merely waited never wins by an early clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterable, Mapping, Optional, Sequence

from envtune.diagnose.scan import Hit, Scan
from envtune.model import FaqEntry

TIER = 100  # precedences of one tier are told apart by time, of different tiers by precedence


@dataclass(frozen=True)
class Candidate:
    """One entry and everything in the inputs that speaks for it, in reading order."""

    entry: FaqEntry
    hits: tuple[Hit, ...]
    count: int

    @property
    def strong(self) -> bool:
        """Whether at least one signature belongs to this entry alone."""
        return any(hit.pattern.strength == "strong" for hit in self.hits)

    @property
    def first(self) -> Hit:
        """The hit that proves it best: the earliest strong one."""
        chosen = [hit for hit in self.hits if hit.pattern.strength == "strong"] or list(self.hits)
        return min(chosen, key=_moment)

    @property
    def groups(self) -> Mapping[str, str]:
        """What the named groups of all its hits say; the first word wins."""
        told: dict[str, str] = {}
        for hit in sorted(self.hits, key=_moment):
            for name, value in hit.groups.items():
                told.setdefault(name, value)
        return told

    @property
    def rank(self) -> Optional[int]:
        """The rank at fault: the one a signature names (`lost_rank`), else the one that printed the first hit."""
        named = self.groups.get("lost_rank", "")
        return int(named) if named.isdigit() else self.first.rank

    @property
    def host(self) -> str:
        """The host at fault; empty when the inputs do not say."""
        return self.groups.get("lost_host") or self.first.file.host

    @property
    def ranks(self) -> tuple[int, ...]:
        """Every rank that printed it."""
        return tuple(sorted({hit.rank for hit in self.hits if hit.rank is not None}))


@dataclass(frozen=True)
class Resolution:
    """The candidates by what they mean; `diagnoses` best first."""

    diagnoses: tuple[Candidate, ...]
    hints: tuple[Candidate, ...]
    harmless: tuple[Candidate, ...]
    consequences: tuple[Candidate, ...]


def _moment(hit: Hit) -> tuple[float, str, int]:
    return (hit.line.time if hit.line.time is not None else float("inf"), hit.file.path, hit.line.number)


def resolve(found: Scan, entries: Iterable[FaqEntry]) -> Resolution:
    """What the hits mean."""
    known = {entry.id: entry for entry in entries}
    hits = _by_precedence([hit for hit in found.hits if _holds(hit, known, found)], known)
    candidates = _candidates(hits, known, found)
    harmless = [c for c in candidates if c.entry.side == "ignore"]
    rest = [c for c in candidates if c.entry.side != "ignore"]
    consequences = [c for c in rest if c.entry.role == "consequence"]
    hints = [c for c in rest if c.entry.role != "consequence" and not c.strong]
    strong = [c for c in rest if c.entry.role != "consequence" and c.strong]
    role = next((r for r in ("cause", "waiting", "wrapper") if any(c.entry.role == r for c in strong)), "")
    consequences += [c for c in strong if c.entry.role != role]
    chosen = sorted((c for c in strong if c.entry.role == role), key=_likelihood)
    return Resolution(tuple(chosen), _by_time(hints), _by_time(harmless), _by_time(consequences))


def _holds(hit: Hit, known: Mapping[str, FaqEntry], found: Scan) -> bool:
    """Whether everything the signature requires is in the same file, and nothing it excludes."""
    signature = known[hit.pattern.owner].signatures[hit.pattern.index]
    here = hit.file.path
    return all((regex, here) in found.present for regex in signature.requires) and not any(
        (regex, here) in found.present for regex in signature.unless
    )


def _by_precedence(hits: Sequence[Hit], known: Mapping[str, FaqEntry]) -> list[Hit]:
    """Where several entries match one line, the one of the highest precedence keeps it; strong beats weak."""
    best: dict[tuple[str, int], tuple[bool, int]] = {}
    for hit in hits:
        place = (hit.file.path, hit.line.number)
        best[place] = max(best.get(place, (False, -1)), _weight(hit, known))
    return [hit for hit in hits if _weight(hit, known) == best[(hit.file.path, hit.line.number)]]


def _weight(hit: Hit, known: Mapping[str, FaqEntry]) -> tuple[bool, int]:
    return hit.pattern.strength == "strong", known[hit.pattern.owner].precedence


def _candidates(hits: Sequence[Hit], known: Mapping[str, FaqEntry], found: Scan) -> list[Candidate]:
    grouped: dict[str, list[Hit]] = {}
    for hit in hits:
        grouped.setdefault(hit.pattern.owner, []).append(hit)
    totals: dict[str, int] = {}
    for (owner, _), count in found.counts.items():
        totals[owner] = totals.get(owner, 0) + count
    return [Candidate(known[owner], tuple(own), totals.get(owner, len(own))) for owner, own in grouped.items()]


def _likelihood(candidate: Candidate) -> tuple[int, float, str, int]:
    return (-(candidate.entry.precedence // TIER), *_moment(candidate.first))


def _by_time(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    return tuple(sorted(candidates, key=lambda c: _moment(c.first)))
