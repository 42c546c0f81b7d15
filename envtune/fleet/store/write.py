"""Add the results of a run to a store: new spans if something changed, and nothing if it did not."""

from __future__ import annotations

import sqlite3
import time
from typing import Any, Mapping, Optional

from envtune.fleet.collected import Collection
from envtune.fleet.record import Both, CheckRecord, FactRecord, HostRecord
from envtune.fleet.store.schema import STATES, writing
from envtune.version import __version__

BATCH = 500  # hosts of one transaction
_OUTCOMES = "INSERT INTO outcome (host, name, first, state, said) VALUES (?, ?, ?, ?, ?)"
_NUMBERS = {state: number for number, state in STATES.items()}
_FACTS = "INSERT INTO fact (host, name, first, value, own, reason) VALUES (?, ?, ?, ?, ?, ?)"


class Writer:
    """One run that is being written; `begin` inserts its row."""

    def __init__(
        self, store: sqlite3.Connection, source: str, policy: str = "", started: Optional[float] = None
    ) -> None:
        self._store, self._waiting = store, list[HostRecord]()
        self._names: dict[str, int] = dict(store.execute("SELECT name, id FROM name"))
        self._texts: dict[Both, int] = {}
        with writing(store):
            row = (time.time() if started is None else started, source, __version__, policy)
            self.run = store.execute(
                "INSERT INTO run (started, source, version, policy) VALUES (?, ?, ?, ?)", row
            ).lastrowid

    def add(self, record: HostRecord) -> None:
        """Add a host; it is written in a batch, at the latest by `finish`."""
        self._waiting.append(record)
        if len(self._waiting) >= BATCH:
            self._flush()

    def finish(self, ended: Optional[float] = None) -> None:
        """Write what is left, and that the run is over; texts that are no longer referenced are deleted."""
        self._flush()
        with writing(self._store) as store:
            store.execute("UPDATE run SET ended = ? WHERE id = ?", (time.time() if ended is None else ended, self.run))
            self._drop_unused_texts(store)
        self._store.execute("PRAGMA optimize")

    def _flush(self) -> None:
        """Write the waiting hosts in one transaction."""
        records, self._waiting = self._waiting, []
        if not records:
            return
        self._texts = {}  # for this transaction only: another audit may have deleted one since
        with writing(self._store):
            rows = [(record, *self._host(record)) for record in records]
            collected = [
                (
                    self.run,
                    host,
                    record.collection.value,
                    round(record.seconds, 3),
                    record.verdict or None,
                    self._text((record.detail, record.detail)) if record.detail else None,
                )
                for record, host, _ in rows
            ]
            self._store.executemany("INSERT OR REPLACE INTO collected VALUES (?, ?, ?, ?, ?, ?)", collected)
            for record, host, seen in rows:
                if record.collection is Collection.OK and not self._is_older(seen):
                    self._changes("outcome", _OUTCOMES, host, seen, self._outcome_rows(record.checks))
                    self._changes("fact", _FACTS, host, seen, self._fact_rows(record.facts))

    def _host(self, record: HostRecord) -> tuple[int, Optional[int]]:
        """Return the number of the host and its previous collection, and note this one.

        If a later run has collected it meanwhile, that one is kept.
        """
        found = self._store.execute("SELECT id, seen FROM host WHERE name = ?", (record.host,)).fetchone()
        if found is None:
            seen = self.run if record.collection is Collection.OK else None
            row = (record.host, self.run, seen)
            made = self._store.execute("INSERT INTO host (name, attempt, seen) VALUES (?, ?, ?)", row)
            return int(made.lastrowid or 0), None
        change = "UPDATE host SET attempt = max(attempt, ?1) WHERE id = ?2"
        if record.collection is Collection.OK and not self._is_older(found[1]):
            before = "CASE seen WHEN ?1 THEN before ELSE seen END"
            change = f"UPDATE host SET attempt = max(attempt, ?1), seen = ?1, before = {before} WHERE id = ?2"
        self._store.execute(change, (self.run, found[0]))
        return int(found[0]), found[1]

    def _is_older(self, seen: Optional[int]) -> bool:
        """Return whether a later run has collected the host meanwhile."""
        return seen is not None and self.run is not None and seen > self.run

    def _outcome_rows(self, checks: Mapping[str, CheckRecord]) -> dict[int, tuple[Any, ...]]:
        return {
            self._name(name): (_NUMBERS[check.outcome, check.severity], self._text(check.said))
            for name, check in checks.items()
        }

    def _fact_rows(self, facts: Mapping[str, FactRecord]) -> dict[int, tuple[Any, ...]]:
        rows = {}
        for name, fact in facts.items():
            value = None if fact.value is None else self._text((fact.value, fact.value))
            own = (
                value if fact.own == fact.value else self._text((fact.own, fact.own)) if fact.own is not None else None
            )
            rows[self._name(name)] = (value, own, self._text(fact.reason))
        return rows

    def _changes(
        self, table: str, insert: str, host: int, seen: Optional[int], found: Mapping[int, tuple[Any, ...]]
    ) -> None:
        """Write the spans of a host that begin and those that end; `seen` is its previous collection."""
        if seen is None:
            self._store.executemany(insert, [(host, name, self.run, *row) for name, row in found.items()])
            return
        columns = "state, said" if table == "outcome" else "value, own, reason"
        known = {
            row[0]: row
            for row in self._store.execute(
                f"SELECT name, first, {columns} FROM {table} WHERE host = ? AND last IS NULL", (host,)
            )
        }
        # A span continues with the same outcome and severity, or the same value or its absence.
        ended = [name for name, row in known.items() if name not in found or row[2:-1] != found[name][:-1]]
        begun = [name for name in found if name not in known or name in set(ended)]
        # A second collection of the host by the same run replaces the first.
        again = [name for name in ended if known[name][1] == self.run]
        self._store.executemany(
            f"DELETE FROM {table} WHERE host = ? AND name = ? AND first = ?", [(host, n, self.run) for n in again]
        )
        self._store.executemany(
            f"UPDATE {table} SET last = ? WHERE host = ? AND name = ? AND first = ?",
            [(seen, host, name, known[name][1]) for name in ended if name not in again],
        )
        self._store.executemany(insert, [(host, name, self.run, *found[name]) for name in begun])
        last = columns.rpartition(" ")[2]  # an explanation, which does not start a new span
        goes_on = [name for name in known if name in found and name not in ended]
        texts = [
            (found[name][-1], host, name, known[name][1]) for name in goes_on if found[name][-1] != known[name][-1]
        ]
        self._store.executemany(f"UPDATE {table} SET {last} = ? WHERE host = ? AND name = ? AND first = ?", texts)

    def _name(self, name: str) -> int:
        if name not in self._names:
            self._store.execute("INSERT OR IGNORE INTO name (name) VALUES (?)", (name,))
            self._names[name] = self._store.execute("SELECT id FROM name WHERE name = ?", (name,)).fetchone()[0]
        return self._names[name]

    def _text(self, text: Optional[Both]) -> Optional[int]:
        if text is None:
            return None
        if text not in self._texts:
            row = (text[0], "" if text[1] == text[0] else text[1])
            found = self._store.execute("SELECT id FROM text WHERE en = ? AND zh = ?", row).fetchone()
            if found is None:
                made = self._store.execute("INSERT INTO text (en, zh) VALUES (?, ?)", row)
                found = (made.lastrowid,)
            self._texts[text] = found[0]
        return self._texts[text]

    @staticmethod
    def _drop_unused_texts(store: sqlite3.Connection) -> None:
        store.execute(
            "DELETE FROM text WHERE id NOT IN (SELECT said FROM outcome WHERE said NOT NULL"
            " UNION SELECT value FROM fact WHERE value NOT NULL UNION SELECT own FROM fact WHERE own NOT NULL"
            " UNION SELECT reason FROM fact WHERE reason NOT NULL"
            " UNION SELECT detail FROM collected WHERE detail NOT NULL)"
        )
