"""Check a host by reusing what it has in common with an earlier one: most hosts of a fleet differ little.

For a few hosts it is noted what each fact and each check read from the snapshot (`reads.py`). The next host's snapshot
is compared with the most similar of those, entry by entry; facts and checks that read only equal entries are reused,
the others are evaluated on the host itself. The findings are the same as when checking the host alone: they depend only
on the snapshot and the query.
"""

from __future__ import annotations

from typing import Any, Iterator, Mapping, Sequence

from envtune.audit import examine, read_facts
from envtune.context import Context
from envtune.errors import NO_MEMORY
from envtune.fleet.alike.reads import (
    ALL,
    EVERYTHING,
    FACT,
    FILES,
    MTIME,
    TARGET,
    Notes,
    Read,
    ReadContext,
    ReadHost,
    tables,
)
from envtune.job.target import Target
from envtune.model import Check, Fact, Finding, Outcome
from envtune.records import NamedTuple
from envtune.snapshot.host import SnapshotHost

MOST = 8  # hosts that are kept
MOST_ENTRIES = 20_000  # of a host that is kept
MOST_TEXT = 4 << 20  # characters of one, roughly
_NOTHING = object()

Found = tuple[tuple[Fact, ...], tuple[tuple[Finding, ...], ...]]  # the facts; the findings of each check


class Kept(NamedTuple):
    """A checked host: its snapshot, its job, and the result and reads of every fact, shared reading and check."""

    tables: Mapping[str, Mapping[Any, Any]]
    files: frozenset[str]
    target: Target
    units: Mapping[Read, tuple[Any, frozenset[Read]]]
    findings: Sequence[tuple[tuple[Finding, ...], frozenset[Read]]]


class Alike:
    """Checks hosts one after the other, and keeps a few."""

    def __init__(self, checks: Sequence[Check]) -> None:
        self._checks = checks
        self._kept: list[Kept] = []

    def check(self, host: SnapshotHost, context: Context) -> Found:
        """Return the facts and the findings of a host."""
        nearest = min(self._kept, key=lambda kept: _distance(kept, host), default=None)
        if nearest is None:
            return self._read_all(host, context)
        changed = differing(nearest, host, context.target)
        _take_over(nearest.units, context, changed)
        own = [not reads.isdisjoint(changed) for _, reads in nearest.findings]
        if sum(own) > len(own) // 4 and len(self._kept) < MOST:
            return self._read_all(host, context)
        return read_facts(context), tuple(
            examine(check, context) if is_own else kept
            for check, (kept, _), is_own in zip(self._checks, nearest.findings, own)
        )

    def _read_all(self, host: SnapshotHost, context: Context) -> Found:
        """Check a host and keep it, unless it is too large."""
        if not _is_small(host):
            return read_facts(context), tuple(examine(check, context) for check in self._checks)
        notes = Notes()
        watched = ReadContext(context, ReadHost(host, notes), notes)
        facts = read_facts(watched)
        findings = []
        for check in self._checks:
            with notes.kept() as reads:
                findings.append((examine(check, watched), frozenset(reads)))
        found = facts, tuple(rows for rows, _ in findings)
        if _is_certain(*found):
            files = frozenset(host.data[FILES])
            self._kept.append(Kept(tables(host), files, context.target, watched.units, findings))
        return found


def _is_certain(facts: Sequence[Fact], findings: Sequence[Sequence[Finding]]) -> bool:
    """Return whether only the snapshot decided: no error in envtune, no lack of memory."""
    if any(fact.value is None and (fact.source == fact.name or fact.reason == NO_MEMORY) for fact in facts):
        return False
    return not any(row.outcome is Outcome.ERROR or row.reason == NO_MEMORY for rows in findings for row in rows)


def _is_small(host: SnapshotHost) -> bool:
    entries = host.data[FILES]
    return len(entries) <= MOST_ENTRIES and sum(len(repr(table)) for table in tables(host).values()) <= MOST_TEXT


def _distance(kept: Kept, host: SnapshotHost) -> int:
    """Return in how many paths two hosts differ; kernel and architecture count much."""
    uname = kept.tables["uname"]
    apart: int = sum(uname.get(name) != host.uname.get(name) for name in ("machine", "release"))
    return len(kept.files.symmetric_difference(host.data[FILES])) + 1000 * apart


def differing(kept: Kept, host: SnapshotHost, target: Target) -> set[Read]:
    """Return the entries of the snapshots in which two hosts differ."""
    changed: set[Read] = {EVERYTHING}
    changed.update((FILES, path) for path in host.data[FILES].keys() ^ kept.files)
    for name, rows in tables(host).items():
        changed.update(_differing(name, kept.tables[name], rows))
    if target != kept.target:
        changed.add(TARGET)
    return changed


def _differing(table: str, old: Mapping[Any, Any], new: Mapping[Any, Any]) -> Iterator[Read]:
    if old == new:
        return
    yield table, ALL
    for key in old.keys() | new.keys():
        one, other = old.get(key, _NOTHING), new.get(key, _NOTHING)
        if one != other:
            if table == FILES:
                yield MTIME, key
                if isinstance(one, dict) and isinstance(other, dict) and _timeless(one) == _timeless(other):
                    continue
            yield table, key


def _timeless(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name != MTIME}


def _take_over(units: Mapping[Read, tuple[Any, frozenset[Read]]], context: Context, changed: set[Read]) -> None:
    """Give the context what the hosts have in common; what it reads itself and is different goes to `changed`."""
    for unit, (value, reads) in units.items():
        kind, key = unit
        same = reads.isdisjoint(changed)
        if same and kind == FACT:
            context.facts.give(value)
        elif same:
            context.give(key, value)
        elif not _is_read_again(context, kind, key, value):
            changed.add(unit)


def _is_read_again(context: Context, kind: str, key: Any, value: Any) -> bool:
    """Return whether the host itself yields the same value."""
    if kind == FACT:
        return bool(context.facts[key] == value)
    try:
        return bool(context.cached(key[0], *key[1]) == value)
    except Exception:  # it is raised again for the caller
        return False
