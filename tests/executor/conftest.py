"""Fixtures of the executor's tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def state(tmp_path: Path) -> str:
    return str(tmp_path / "state")


@pytest.fixture
def no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed process loses nothing that it wrote: only a power cut needs fsync, and 10,000 of them take minutes."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
