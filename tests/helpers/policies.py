"""The catalog that policies of the tests go over."""

from __future__ import annotations

from functools import cache

from envtune.catalog import Catalogue, load


@cache
def shipped() -> Catalogue:
    return load()
