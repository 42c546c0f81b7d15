"""The tables of a store, and how one of an older version is migrated.

A row of `outcome` or `fact` is a span: what was true of a host from run `first` on. `last` is the last run that found
it so; it is NULL while that is the host's last collection. A run in which the host was not collected has a row in
`collected` that says so, and is not part of any span, whatever its number: `IN_RUN` in read.py.

A store of thousands of hosts contains millions of spans, so they are short: an outcome is one number (`STATES`).
Texts are stored once; `zh` is empty if it equals `en`, as for every value of a fact.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import suppress
from pathlib import Path
from typing import Mapping, Optional, Sequence

from envtune.errors import UsageError, system_error_text
from envtune.messages import Literal, Message

VERSION = 3
NAME = "fleet.db"
BUSY = 60.0  # seconds that an audit waits for another one that is writing
_PAUSE = 0.05  # seconds between two attempts where SQLite itself does not wait
# The state of a check: outcome and severity are the two digits of one number. From 40 on it is not fine. A store
# outlives a version: the number of a word never changes.
OUTCOMES: Mapping[str, int] = {
    "pass": 10,
    "notapplicable": 20,
    "fixed": 30,
    "fail": 40,
    "error": 50,
    "unknown": 60,
    "waived": 70,
    "note": 80,
}
SEVERITIES: Mapping[str, int] = {"info": 0, "low": 1, "medium": 2, "high": 3, "critical": 4}
STATES: Mapping[int, tuple[str, str]] = {
    tens + ones: (outcome, severity) for outcome, tens in OUTCOMES.items() for severity, ones in SEVERITIES.items()
}
# What is not fine now. SQLite uses the index below only for a query that contains exactly this expression.
NOT_FINE_NOW = "last IS NULL AND state >= 40"


def _number(column: str, numbers: Mapping[str, int]) -> str:
    """Return SQL that converts a column with one of these words to its number."""
    return f"CASE {column} {' '.join(f'WHEN {word!r} THEN {number}' for word, number in numbers.items())} END"


# version -> what migrates a store of the previous version to it
MIGRATIONS: Sequence[Sequence[str]] = (
    (
        "CREATE TABLE run (id INTEGER PRIMARY KEY, started REAL NOT NULL, ended REAL, source TEXT NOT NULL,"
        " version TEXT NOT NULL, policy TEXT NOT NULL)",
        "CREATE TABLE host (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, attempt INTEGER NOT NULL,"
        " seen INTEGER, before INTEGER)",
        "CREATE TABLE collected (run INTEGER NOT NULL, host INTEGER NOT NULL, collection TEXT NOT NULL, seconds REAL,"
        " verdict TEXT, detail INTEGER, PRIMARY KEY (run, host)) WITHOUT ROWID",
        "CREATE TABLE name (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
        "CREATE TABLE text (id INTEGER PRIMARY KEY, en TEXT NOT NULL, zh TEXT NOT NULL, UNIQUE (en, zh))",
        "CREATE TABLE outcome (host INTEGER NOT NULL, name INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER,"
        " outcome TEXT NOT NULL, severity TEXT NOT NULL, said INTEGER, PRIMARY KEY (host, name, first)) WITHOUT ROWID",
        "CREATE TABLE fact (host INTEGER NOT NULL, name INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER,"
        " value INTEGER, own INTEGER, reason INTEGER, PRIMARY KEY (host, name, first)) WITHOUT ROWID",
    ),
    (  # staged fixes: fixes.py
        "CREATE TABLE fix (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, started REAL NOT NULL, ended REAL,"
        " words TEXT NOT NULL, reach TEXT NOT NULL, stopped_en TEXT, stopped_zh TEXT)",
        "CREATE TABLE fix_host (fix INTEGER NOT NULL, host TEXT NOT NULL, stage INTEGER NOT NULL, state TEXT NOT NULL,"
        " run TEXT NOT NULL, detail TEXT NOT NULL, PRIMARY KEY (fix, host)) WITHOUT ROWID",
        # `last` is always NULL here; without it the index does not cover the query, and every row is looked up.
        "CREATE INDEX IF NOT EXISTS outcome_not_fine ON outcome (name, outcome, severity, said, last, host, first)"
        " WHERE last IS NULL AND outcome IN ('fail', 'error', 'unknown', 'waived', 'note')",
    ),
    (  # outcome and severity as one number, texts without duplicates
        "ALTER TABLE outcome RENAME TO older",
        "CREATE TABLE outcome (host INTEGER NOT NULL, name INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER,"
        " state INTEGER NOT NULL, said INTEGER, PRIMARY KEY (host, name, first)) WITHOUT ROWID",
        "INSERT INTO outcome SELECT host, name, first, last,"
        f" {_number('outcome', OUTCOMES)} + {_number('severity', SEVERITIES)}, said FROM older",
        "DROP TABLE older",
        f"CREATE INDEX outcome_not_fine ON outcome (name, state, said, last, host, first) WHERE {NOT_FINE_NOW}",
        "CREATE INDEX fact_now ON fact (name, value, own, reason, last, host) WHERE last IS NULL",
        "UPDATE OR IGNORE text SET zh = '' WHERE zh = en",
    ),
)


def default_path(environ: os._Environ[str]) -> Path:
    """Return the path of this user's store."""
    state = environ.get("XDG_STATE_HOME", "")
    folder = Path(state) if state.startswith("/") else Path.home() / ".local" / "state"
    return folder / "envtune" / NAME


def open_store(path: Path, create: bool = True) -> sqlite3.Connection:
    """Return the store, migrated to this version, for the caller to close.

    Raises UsageError if it cannot be used, or is missing.
    """
    store = None
    if not create and not path.exists():
        raise UsageError(Message("{path} does not exist: run envtune fleet audit first", path=str(path)))
    try:
        if create:
            _make_private(path)
        store = sqlite3.connect(str(path), timeout=BUSY, isolation_level=None)
        _prepare(store, path)
        opened, store = store, None
    except OSError as error:
        raise UsageError(Message("{path}: {reason}", path=str(path), reason=system_error_text(error))) from None
    except sqlite3.Error as error:
        raise UsageError(Message("{path}: {reason}", path=str(path), reason=Literal(str(error)))) from None
    finally:
        if store is not None:
            store.close()
    return opened


def _make_private(path: Path) -> None:
    """Create the file, readable for its owner only: it says what is wrong with every host."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))


def _use_write_ahead_log(store: sqlite3.Connection) -> None:
    """Switch the journal mode, which SQLite refuses at once while another audit writes to a store that is new."""
    end = time.monotonic() + BUSY
    while True:
        try:
            store.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
        time.sleep(_PAUSE)


def _prepare(store: sqlite3.Connection, path: Path) -> None:
    _use_write_ahead_log(store)
    store.execute("PRAGMA synchronous = NORMAL")
    store.execute("PRAGMA cache_size = -65536")
    if _version(store) == VERSION:
        return
    with writing(store):
        found = _version(store)  # another audit may have been faster
        if found > VERSION:
            raise UsageError(
                Message(
                    "{path} has version {found}; this envtune reads version {version}",
                    path=str(path),
                    found=found,
                    version=VERSION,
                )
            )
        for step in MIGRATIONS[found:]:
            for statement in step:
                store.execute(statement)
        store.execute(f"PRAGMA user_version = {VERSION}")
    if 0 < found < VERSION:
        with suppress(sqlite3.Error):  # the disk is full, or another audit is writing: the file keeps its size
            store.execute("VACUUM")


def _version(store: sqlite3.Connection) -> int:
    return int(store.execute("PRAGMA user_version").fetchone()[0])


class writing:
    """A transaction: begun immediately, so that no other audit writes in between; rolled back on an error."""

    def __init__(self, store: sqlite3.Connection) -> None:
        self._store = store

    def __enter__(self) -> sqlite3.Connection:
        self._store.execute("BEGIN IMMEDIATE")
        return self._store

    def __exit__(self, kind: Optional[type], *_: object) -> None:
        self._store.execute("COMMIT" if kind is None else "ROLLBACK")
