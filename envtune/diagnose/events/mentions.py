"""Take out of a scan what is no event: words that a page quotes, and errors that a run outlived. Pure.

One quotation is a question, and gets its answer; where a page quotes MANY families and nothing in it is a line of a
log, it is a catalog of errors.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, Container, Iterable, NamedTuple, Optional, Sequence

from envtune.diagnose.events.forms import CATALOGUE, CODE, QUOTED
from envtune.diagnose.events.pages import CHAT, DOCUMENT
from envtune.diagnose.events.severity import only_names_code, states_failure
from envtune.diagnose.patterns import is_symptom
from envtune.diagnose.processes import EXPLAINED
from envtune.diagnose.scan import Hit, Scan
from envtune.model import FaqEntry

MANY = 3  # families
OTHER = "other"  # the line states no failure, and another one does
WRITTEN = (DOCUMENT, CHAT, CODE)  # forms of what somebody wrote


class Mention(NamedTuple):
    """A line that holds a signature and reports no event, or one that the run outlived; `why` is a code."""

    hit: Hit
    why: str


class Mentioned(NamedTuple):
    """The mentions of one entry for one reason: the first, and how many lines are known."""

    entry: FaqEntry
    hit: Hit
    why: str
    lines: int


def of_entries(
    mentions: Iterable[Mention], entry_of: Callable[[str], Optional[FaqEntry]], reported: Container[str]
) -> tuple[Mentioned, ...]:
    """Return the mentions by entry and reason, without entries of which the report tells anyway."""
    grouped: dict[tuple[str, str], list[Hit]] = {}
    entries: dict[str, FaqEntry] = {}
    for hit, why in mentions:
        entry = entry_of(hit.pattern.owner)
        if entry is not None and entry.id not in reported:
            entries[entry.id] = entry
            grouped.setdefault((entry.id, why), []).append(hit)
    return tuple(
        Mentioned(entries[id_], hits[0], why, len({_place(hit) for hit in hits}))
        for (id_, why), hits in grouped.items()
    )


def without_mentions(scan: Scan) -> tuple[Scan, tuple[Mention, ...]]:
    """Return the scan with events only, and the mentions."""
    why: dict[tuple[str, int], str] = {}
    everything = [*scan.hits, *scan.codes]
    for path in dict.fromkeys(hit.file.path for hit in everything):
        own = [hit for hit in everything if hit.file.path == path]
        written = [hit for hit in scan.mentions if hit.file.path == path and hit.form in WRITTEN]
        why.update(((path, hit.line.number), CATALOGUE) for hit in _catalogue(own, written))
    known = {_place(hit) for hit in everything if not hit.pattern.harmless}
    others = {path for path, lines in scan.deaths.items() if lines and not any((path, n) in known for n in lines)}
    failing = {error.file.path for error in scan.errors}
    for hit in everything:
        reason = "" if is_symptom(hit.pattern.owner) or hit.pattern.harmless else _outlived(scan, hit, others, failing)
        if reason:
            why.setdefault(_place(hit), reason)
    mentions = (*(Mention(hit, hit.form) for hit in scan.mentions), *_mentions(everything, why))
    return _without(scan, why), mentions


def _place(hit: Hit) -> tuple[str, int]:
    return hit.file.path, hit.line.number


def _mentions(hits: Iterable[Hit], why: dict[tuple[str, int], str]) -> list[Mention]:
    return [Mention(hit, why[_place(hit)]) for hit in hits if _place(hit) in why]


def _catalogue(hits: Sequence[Hit], written: Sequence[Hit]) -> list[Hit]:
    """Return the hits of a page that only quotes; the quotations alone where it holds lines of a log, too.

    `written` are those of which the page alone has told that somebody writes about them.
    """
    quoted = [hit for hit in hits if hit.form == QUOTED]
    if len(_families([*quoted, *written])) < MANY:
        return []
    logged = any(hit.line.time is not None or hit.line.pid is not None or hit.line.level for hit in hits)
    return quoted if logged or 2 * len(_families(quoted)) < len(_families(hits)) else list(hits)


def _families(hits: Iterable[Hit]) -> set[str]:
    """Return the entries of the lines, the first of each line."""
    first: dict[int, str] = {}
    for hit in hits:
        first.setdefault(hit.line.number, hit.pattern.owner)
    return set(first.values())


def _outlived(scan: Scan, hit: Hit, others: Container[str], failing: Container[str]) -> str:
    path, text = hit.file.path, hit.line.text
    if (path in others and not states_failure(text)) or (path in failing and only_names_code(text)):
        return OTHER
    progress = scan.progress.get(hit.file.path)
    return hit.outlived or ("" if progress is None else progress.why_outlived(hit.line.number))


def _without(scan: Scan, why: dict[tuple[str, int], str]) -> Scan:
    """Return the scan without what stands in these lines, and without the errors that a run outlived."""

    def counts(path: str, line: int) -> bool:
        progress = scan.progress.get(path)
        return (path, line) not in why and (progress is None or not progress.why_outlived(line))

    def left(hits: Iterable[Hit]) -> list[Hit]:
        return [hit for hit in hits if _place(hit) not in why]

    kept = replace(scan, hits=left(scan.hits), codes=left(scan.codes))
    kept.errors = [error for error in scan.errors if counts(error.file.path, error.line.number)]
    failing = ("error", *EXPLAINED)
    notes = [n for n in scan.notes.notes if n.kind.partition(".")[0] not in failing or counts(*n.place)]
    kept.notes = replace(scan.notes, notes=notes)
    owners = {(hit.pattern.owner, hit.file.path) for hit in (*kept.hits, *kept.codes)}
    kept.counts = {key: count for key, count in scan.counts.items() if key in owners}
    return kept
