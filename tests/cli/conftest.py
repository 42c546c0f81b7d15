"""Fixtures of the command line's tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.fix_world import World
from helpers.judged_here import JudgedHere

from envtune.audit import limited


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


@pytest.fixture(autouse=True)
def _judged_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the limited process is for is tested in tests/audit/test_limited.py; here it costs a fork for each call."""
    monkeypatch.setattr(limited, "_Process", JudgedHere)
