"""Fixtures of the command line's tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.fix_world import World


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)
