"""Stores of a fleet that a test opens: they are closed when it ends."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from envtune.fleet.store import schema

_OPENED: list[sqlite3.Connection] = []


def open_store(path: Path, create: bool = True) -> sqlite3.Connection:
    """Return the store at `path`; `close_stores` closes it, from the same thread."""
    store = schema.open_store(path, create)
    _OPENED.append(store)
    return store


def close_stores() -> None:
    """Close every store that `open_store` has returned."""
    while _OPENED:
        _OPENED.pop().close()
