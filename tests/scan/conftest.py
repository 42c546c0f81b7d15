"""The catalog, loaded once."""

from __future__ import annotations

import pytest

from envtune.catalog import Catalogue, load


@pytest.fixture(scope="package")
def catalogue() -> Catalogue:
    return load()
