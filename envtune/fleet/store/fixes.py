"""The runs of `envtune fleet fix` in a store: what was to be done on which hosts, and how each ended.

Written before a host is begun and again when it has answered, so that a run whose controller was killed can be
distinguished from one that ended: it has no `ended`.
"""

from __future__ import annotations

import json
import sqlite3
import time
from typing import Any, Iterable, Mapping, Optional, Sequence

from envtune.errors import UsageError
from envtune.fleet.record import Both
from envtune.fleet.store.schema import writing
from envtune.messages import Message, enumerated, nearest
from envtune.records import NamedTuple

_COLUMNS = "id, name, started, ended, words, reach, stopped_en, stopped_zh"


class FixRun(NamedTuple):
    """A run: `words` is what was to be fixed, `reach` how the hosts are reached, `stopped` why it stopped."""

    id: int
    name: str
    started: float
    ended: Optional[float]
    words: str
    reach: Mapping[str, Any]
    stopped: Optional[Both]


class FixHost(NamedTuple):
    """A host of a run: its stage, from 0, its state, the name of its run there, and what went wrong."""

    host: str
    stage: int
    state: str
    run: str = ""
    detail: str = ""


class Fixes:
    """The runs of one store."""

    def __init__(self, store: sqlite3.Connection) -> None:
        self._store = store

    def begin(self, words: str, reach: Mapping[str, Any], hosts: Iterable[FixHost]) -> FixRun:
        """Store a new run with its hosts, and return it."""
        started = time.time()
        stamp = time.strftime("fleet-%Y%m%d-%H%M%S", time.gmtime(started))
        with writing(self._store) as store:
            known = {row[0] for row in store.execute("SELECT name FROM fix WHERE name LIKE ?", (stamp + "%",))}
            name = next(name for name in (stamp, *(f"{stamp}-{n}" for n in range(1, 1000))) if name not in known)
            row = (name, started, words, json.dumps(dict(reach)))
            made = store.execute("INSERT INTO fix (name, started, words, reach) VALUES (?, ?, ?, ?)", row)
            number = int(made.lastrowid or 0)
            rows = [(number, *host) for host in hosts]
            store.executemany("INSERT INTO fix_host VALUES (?, ?, ?, ?, ?, ?)", rows)
        return FixRun(number, name, started, None, words, reach, None)

    def update(self, run: FixRun, hosts: Iterable[FixHost]) -> None:
        """Store the state of hosts."""
        with writing(self._store) as store:
            rows = [(host.state, host.run, host.detail, run.id, host.host) for host in hosts]
            store.executemany("UPDATE fix_host SET state = ?, run = ?, detail = ? WHERE fix = ? AND host = ?", rows)

    def end(self, run: FixRun, stopped: Optional[Both] = None) -> None:
        """Store that a run is over, and why it stopped."""
        english, chinese = stopped or (None, None)
        with writing(self._store) as store:
            row = (time.time(), english, chinese, run.id)
            store.execute("UPDATE fix SET ended = ?, stopped_en = ?, stopped_zh = ? WHERE id = ?", row)

    def runs(self) -> Sequence[FixRun]:
        """Return every run, the latest first."""
        rows = self._store.execute(f"SELECT {_COLUMNS} FROM fix ORDER BY id DESC")
        return [
            FixRun(
                row[0], row[1], row[2], row[3], row[4], json.loads(row[5]), None if row[6] is None else (row[6], row[7])
            )
            for row in rows.fetchall()
        ]

    def named(self, name: str) -> FixRun:
        """Return the run of that name; raises UsageError."""
        runs = {run.name: run for run in self.runs()}
        if name in runs:
            return runs[name]
        near = nearest(name, tuple(runs)) or list(runs)[:3]
        if not near:
            raise UsageError(Message("the store has no run of envtune fleet fix"))
        raise UsageError(Message("the store has no run {name}; it has {runs}", name=name, runs=enumerated(near)))

    def hosts(self, run: FixRun) -> Sequence[FixHost]:
        """Return the hosts of a run, in the order of its stages."""
        rows = self._store.execute(
            "SELECT host, stage, state, run, detail FROM fix_host WHERE fix = ? ORDER BY stage, host", (run.id,)
        )
        return [FixHost(*row) for row in rows.fetchall()]
