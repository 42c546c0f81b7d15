"""What error codes add to the signatures: an answer if there is none, or only a wrapper. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Iterable, Mapping, Sequence

from envtune.catalog.codes import Codes
from envtune.diagnose.processes import Job
from envtune.diagnose.rank import Candidate, Resolution, candidate_of, follows, of_root
from envtune.diagnose.scan import Hit, Scan
from envtune.model import ErrorCode, FaqEntry


@dataclass(frozen=True)
class FoundCode:
    """A code, the first lines that print it, and how many do."""

    code: ErrorCode
    hits: tuple[Hit, ...]
    count: int


def found_codes(scan: Scan, codes: Codes, job: Job) -> tuple[FoundCode, ...]:
    """Return the known codes in lines that report an error, in the order in which they happened."""
    grouped: dict[str, list[Hit]] = {}
    for hit in sorted(scan.codes, key=job.moment):
        grouped.setdefault(hit.pattern.owner, []).append(hit)
    totals: dict[str, int] = {}
    for (owner, _), count in scan.counts.items():
        totals[owner] = totals.get(owner, 0) + count
    known = ((codes.find(code), hits) for code, hits in grouped.items())
    return tuple(FoundCode(code, tuple(hits), totals[code.code]) for code, hits in known if code is not None)


def with_codes(resolution: Resolution, found: Sequence[FoundCode], entries: Iterable[FaqEntry]) -> Resolution:
    """Return the resolution with what the codes add: an answer if there is none, or only a wrapper.

    An entry's own signature wins; a code with a specific meaning comes before a wrapper, which says only that something
    failed. If a code belongs to an entry, that entry is the answer. With several processes, the codes of the one that
    failed first come first; codes printed only by processes waiting for it are consequences of its failure.
    """
    if any(candidate.entry.role != "wrapper" for candidate in resolution.diagnoses):
        return resolution
    by_id = {entry.id: entry for entry in entries}
    harmless = {(h.file.path, h.line.number) for c in resolution.harmless for h in c.hits}
    job = resolution.processes
    everything = sorted(_candidates(found, by_id, harmless, job), key=lambda c: not of_root(c, job))
    followed = tuple(c for c in everything if c.entry.role == "cause" and follows(c, job))
    candidates = [c for c in everything if c not in followed]
    roles: tuple[str, ...] = ("cause", "waiting") if resolution.diagnoses else ("cause", "waiting", "wrapper")
    if not resolution.diagnoses and any(c.entry.role in ("waiting", "wrapper") for c in resolution.consequences):
        roles = ("cause",)  # they are only consequences of an unknown error
    role = next((r for r in roles if any(c.entry.role == r for c in candidates)), "")
    chosen = tuple(c for c in candidates if c.entry.role == role)
    ids = {candidate.entry.id for candidate in (*chosen, *resolution.consequences)}
    followed = tuple(c for c in followed if c.entry.id not in ids)
    return replace(
        resolution,
        diagnoses=chosen or resolution.diagnoses,
        hints=tuple(c for c in resolution.hints if not chosen or c.entry.id not in ids),
        consequences=(*resolution.consequences, *(resolution.diagnoses if chosen else ()), *followed),
    )


def _candidates(
    found: Sequence[FoundCode], by_id: Mapping[str, FaqEntry], harmless: set[tuple[str, int]], job: Job
) -> list[Candidate]:
    """Return a candidate for each entry that the codes belong to, and for each code that belongs to none."""
    grouped: dict[str, tuple[FaqEntry, list[Hit], int]] = {}
    for one in found:
        hits = [hit for hit in one.hits if (hit.file.path, hit.line.number) not in harmless]
        if hits:
            entry = by_id.get(one.code.faq) or one.code.entry()
            if one.code.generic and entry.role == "cause":
                entry = one.code.entry()
            _, others, count = grouped.get(entry.id, (entry, [], 0))
            grouped[entry.id] = entry, [*others, *hits], count + one.count
    return [candidate_of(entry, hits, count, job) for entry, hits, count in grouped.values()]
