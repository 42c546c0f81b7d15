"""Machines that differ in one thing: what a report must say of it, and what it must not say of a healthy one.

`tests/cases/variations/hosts.yaml` holds healthy hosts by name. Each other file is a list of cases:

    name     what is different
    host     the host that is varied
    says     `{id: outcome}`: what the checks must say; empty for a machine as healthy as the host
    may      further checks that may complain, too (`*`: any); every other new complaint is wrong
    only     the checks that are looked at, where the rest is of no interest
    edit     `{path: [[old, new]]}` in files, `edit_commands` the same in what commands print
    files, environ, commands, processes, disks, euid, target   as in the catalog's examples
"""

from __future__ import annotations

from functools import cache
from typing import Any, Iterator, Mapping

import pytest
from helpers.recorded import HOSTS, ROOT, SHARED, catalogue
from helpers.rows import sampled
from helpers.shipped import parsed
from helpers.yaml_text import load_yaml

from envtune.audit import audit
from envtune.catalog.examples import example_data
from envtune.context.open import open_context, recorded_options
from envtune.model import Finding, Outcome
from envtune.snapshot.host import SnapshotHost

CASES = ROOT / "tests/cases/variations"
CONTENT = ("files", "environ", "commands", "processes", "disks", "euid", "target")
COMPLAINTS = (Outcome.FAIL, Outcome.ERROR)
FILES = sorted(path.stem for path in CASES.glob("*.yaml") if path.stem != "hosts")


@cache
def _hosts() -> Mapping[str, Any]:
    hosts: Mapping[str, Any] = load_yaml((CASES / "hosts.yaml").read_text("utf-8"))
    return hosts


def _source(name: str) -> Mapping[str, Any]:
    if name in _hosts():
        own: Mapping[str, Any] = _hosts()[name]
        return own
    found = next(path for path in (HOSTS / f"{name}.yaml", SHARED / f"{name}.yaml") if path.exists())
    data: Mapping[str, Any] = parsed(found)
    return data


def _findings(data: Mapping[str, Any], only: frozenset[str] = frozenset()) -> tuple[Finding, ...]:
    """The findings of these checks, of all of them where none is named."""
    context = open_context(SnapshotHost(data), recorded_options(data.get("target") or {}))
    return audit([check for check in catalogue().checks if not only or check.id in only], context)


@cache
def _complaints(host: str) -> frozenset[str]:
    """The checks that complain about a host as it is."""
    return complaints(_findings(example_data({"like": host}, _source)))


def complaints(findings: tuple[Finding, ...]) -> frozenset[str]:
    return frozenset(found.id for found in findings if found.outcome in COMPLAINTS)


def _edited(text: str, edits: list[list[str]]) -> str:
    for old, new in edits:
        assert old in text, f"{old!r} is not in what is edited"
        text = text.replace(old, new)
    return text


def varied(case: Mapping[str, Any]) -> dict[str, Any]:
    """The host of a case, with what is different."""
    own = {key: case[key] for key in CONTENT if key in case}
    data = dict(example_data({"like": case["host"], **own}, _source))
    for part, edits in (("files", case.get("edit", {})), ("commands", case.get("edit_commands", {}))):
        data[part] = {**data[part], **{path: _edited(data[part][path], edits[path]) for path in edits}}
    return data


def _cases() -> Iterator[Any]:
    for name in FILES:
        for case in load_yaml((CASES / f"{name}.yaml").read_text("utf-8")):
            yield pytest.param(case, id=f"{name}/{case['name'].replace(' ', '-')}")


@pytest.mark.parametrize("case", sampled(_cases(), 10))
def test_variation(case: Mapping[str, Any]) -> None:
    only = frozenset((*case["only"], *case["says"])) if "*" in case.get("may", ()) else frozenset[str]()
    after = _findings(varied(case), only)
    said = {(found.id, found.outcome.value) for found in after}
    assert {row for row in case["says"].items() if row not in said} == set()
    new = complaints(after) - _complaints(case["host"])
    assert new - {*case["says"], *case.get("may", ())} == set()
