"""Ask envtune/ranks which process of a job failed first, with what the FAQ knows about each line."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Iterable, Mapping, Optional, Sequence

from envtune.diagnose.logs.lines import NO_YEAR, in_year, is_error, level_of, year_of
from envtune.diagnose.scan import Hit, Scan
from envtune.model import FaqEntry
from envtune.ranks.errors import meaning
from envtune.ranks.records import AFTER, OWN, UNSURE, WAIT, Note, Process, Root, Verdict
from envtune.ranks.root import investigate

Moment = tuple[float, str, int]  # seconds (infinite where unknown), file, line
Place = tuple[str, int]
_MEANINGS = {"cause": OWN, "waiting": WAIT, "wrapper": UNSURE, "consequence": AFTER}
_ORDER = (OWN, UNSURE, WAIT, AFTER)
EXPLAINED = (
    "notify",
    "socket",
    "p2p",
    "topo",
    "lost",
    "gone",
    "store",
    "cqe",
    "conflict",
    "first",
    "exit",
    "died",
    "raised",
    "failed",
)
_BENIGN = ("INFO", "WARNING", "WARN", "DEBUG", "EVENT")


@dataclass(frozen=True)
class Job:
    """The processes of the inputs: who printed which hit, and who failed first."""

    verdict: Verdict
    _printers: Mapping[Place, Process]
    _year: Optional[int]
    _first_times: Mapping[str, float]
    waiting: frozenset[Process] = frozenset()  # those that only waited

    @cached_property
    def several(self) -> bool:
        """Whether the inputs show more than one process of a job: a file with the ids of two need not."""
        root, processes = self.verdict.root, self.verdict.processes
        if root is not None and not root.process.has_log:
            return True
        ranks = {process.rank for process in processes if process.rank is not None}
        files = {file for process in processes for file in process.files}
        hosts = {process.host for process in processes}
        return len(processes) > 1 and max(len(ranks), len(files), len(hosts)) > 1

    def process(self, hit: Hit) -> Optional[Process]:
        """Return the process that printed it, None if unknown."""
        return self._printers.get(_place(hit))

    def moment(self, hit: Hit) -> Moment:
        """Return a key that sorts by the time as it was logged, then by reading order.

        Lines before the first time in a file get that one.
        """
        time = _in_year(hit.line.time, self._year)
        if time is None:
            time = self._first_times.get(hit.file.path, float("inf"))
        return time, hit.file.path, hit.line.number


def job_of(scan: Scan, hits: Sequence[Hit], entries: Mapping[str, FaqEntry]) -> Job:
    """Return the processes of a scan; `hits` are those with valid signatures."""
    notes = [*_lines(scan), *_errors(scan, hits, entries)]
    years = {year_of(note.time) for note in notes if note.time is not None} - {NO_YEAR}
    year = years.pop() if len(years) == 1 else None
    sources = [
        source._replace(first=_in_year(source.first, year), last=_in_year(source.last, year))
        for source in scan.notes.sources
    ]
    notes = [note._replace(time=_in_year(note.time, year)) for note in notes]
    first_times: dict[str, float] = {}
    for note in notes:
        if note.time is not None:
            first_times[note.path] = min(note.time, first_times.get(note.path, note.time))
    verdict = investigate(sources, notes)
    printers = {note.place: process for process in verdict.processes for note in process.notes}
    return Job(verdict, printers, year, first_times, frozenset(verdict.waiters))


def _place(hit: Hit) -> Place:
    return hit.file.path, hit.line.number


def _in_year(time: Optional[float], year: Optional[int]) -> Optional[float]:
    return in_year(time, year) if time is not None and year is not None and year_of(time) == NO_YEAR else time


def _lines(scan: Scan) -> Iterable[Note]:
    """Return the notes that are not errors."""
    return (note for note in scan.notes.notes if note.kind != "error")


def _errors(scan: Scan, hits: Sequence[Hit], entries: Mapping[str, FaqEntry]) -> list[Note]:
    """Return error lines and hits, each once, with their meaning for their process."""
    explained = {note.place for note in _lines(scan) if note.kind.partition(".")[0] in EXPLAINED}
    known: dict[Place, list[str]] = {}
    proven: set[Place] = set()
    notes = {_place(hit): Note("hit", *_place(hit), hit.line.time, hit.line.text) for hit in (*hits, *scan.codes)}
    for hit in hits:
        said_by_entry = _meaning_of_hit(hit, entries[hit.pattern.owner])
        known.setdefault(_place(hit), []).append(said_by_entry)
        if said_by_entry in (OWN, WAIT):
            proven.add(_place(hit))
    for note in scan.notes.notes:
        if note.kind == "error":
            notes.setdefault(note.place, note)
            if note.place not in known:
                known[note.place] = [meaning(note.text)]
    found = []
    for place, note in notes.items():
        said = next((each for each in _ORDER if each in known.get(place, ())), "")
        if place in explained or not said:
            found.append(note._replace(kind="hit"))
        else:
            fields = {"meaning": said, **({"known": "1"} if place in proven else {})}
            found.append(note._replace(kind="error", fields=fields))
    return found


def _meaning_of_hit(hit: Hit, entry: FaqEntry) -> str:
    """Return what a known error means for its process; empty if it is not an error of it."""
    text = hit.line.text
    if entry.side == "ignore" or hit.pattern.strength != "strong" or level_of(text) in _BENIGN:
        return ""
    said = _MEANINGS[entry.role]
    return UNSURE if said == OWN and not is_error(text) else said


def without_text(verdict: Verdict) -> Verdict:
    """Return the verdict without the text of log lines, which a report does not need and which may hold secrets."""
    for process in verdict.processes:
        process.notes = []
    links = tuple(link._replace(note=_without_text(link.note)) for link in verdict.links)
    candidates = tuple(_root_without_text(root) for root in verdict.candidates)
    root = None if verdict.root is None else _root_without_text(verdict.root)
    return verdict._replace(root=root, candidates=candidates, links=links)


def _root_without_text(root: Root) -> Root:
    return root if root.note is None else root._replace(note=_without_text(root.note))


def _without_text(note: Note) -> Note:
    return note._replace(text="", fields={})
