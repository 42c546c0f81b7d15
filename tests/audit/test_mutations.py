"""One recorded fact of a host changes: exactly the checks that depend on it say something else.

A row that flips too much is as wrong as one that flips nothing; every check has a row (tests/helpers/mutations/).
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Iterator

import pytest
from helpers.mutations import Row, mutate, rows
from helpers.recorded import catalogue, flipped, host_data, report
from helpers.rows import sampled

from envtune.model import Finding

STABLE = tuple(check.id for check in catalogue().checks if check.status == "stable")
# What no recorded fact decides: other hosts have to answer (tests/resources/network/test_peers.py, with sockets).
ELSEWHERE = ("NET102",)


def params() -> Iterator[Any]:
    """The first change of each family of checks at once, the others where slow tests run."""
    seen: set[str] = set()
    for row in rows():
        families = set(re.findall("[A-Z]+", " ".join(row.ids)))
        marks = pytest.mark.slow if families <= seen else ()
        seen |= families
        yield pytest.param(row, id=f"{row.host[:4]}-{row.what}", marks=marks)


@cache
def _unchanged(host: str, ids: tuple[str, ...]) -> tuple[Finding, ...]:
    return report(host_data(host), (*STABLE, *ids)).findings


def said(row: Row, *changes: Any) -> tuple[Finding, ...]:
    """What the stable checks say of the host of a row, and those that the row is about."""
    data = host_data(row.host)
    for change in changes:
        data = mutate(data, change)
    return report(data, (*STABLE, *row.ids)).findings


@pytest.mark.parametrize("row", sampled(params(), 3))
def test_one_change_flips_exactly_its_checks(row: Row) -> None:
    extra = tuple(check for check in row.ids if check not in STABLE)
    before = said(row, row.base) if row.base else _unchanged(row.host, extra)
    assert flipped(before, said(row, row.base, row.change)) == set(row.ids)


def test_every_check_has_a_change_that_flips_it() -> None:
    changed = {check for row in rows() for check in row.ids}
    assert {check.id for check in catalogue().checks} - changed - set(ELSEWHERE) == set()
