"""No test reads or writes the user's own cache, or sees this machine's /etc/envtune."""

from __future__ import annotations

from pathlib import Path

import pytest

from envtune.catalog import layers


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all: to compile the shipped catalog takes a second."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def own_place(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setattr(layers, "SITE", str(tmp_path / "etc"))
    monkeypatch.chdir(tmp_path)
