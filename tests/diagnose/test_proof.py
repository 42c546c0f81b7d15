"""What a host proves: the own example of every entry against hosts that have nothing to do with it, and its own."""

from __future__ import annotations

from functools import cache
from typing import Any, Iterator, Mapping, Optional, Sequence

import pytest
import yaml
from helpers.examples import ROOT
from helpers.faq import entries, examples, found_in
from helpers.recorded import host_names
from helpers.shipped import parsed

from envtune.audit import examine
from envtune.audit.applicability import excluded
from envtune.catalog import load
from envtune.catalog.examples import example_data
from envtune.context import Context
from envtune.context.open import open_context, recorded_options
from envtune.diagnose.proof import PROVED, Judgement, judge
from envtune.model import Fact, FaqEntry, Finding
from envtune.snapshot.host import SnapshotHost

# Recorded hosts with defects of their own, and those where nothing is wrong with what an entry is about.
TROUBLED = {
    "910a-ubuntu1804-mixed",
    "910b-openeuler2203-troubled",
    "910b-ubuntu2004-residual",
    "910a-centos76-nnae202",
    "container-without-driver",
    "vm-ubuntu2204",  # no CANN
}
BREAKAGES = ROOT / "tests" / "cases" / "proof" / "breakages.yaml"


class Asked:
    """A recorded host with every check that an entry names, each judged once."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._findings: dict[str, Sequence[Finding]] = {}

    numbers_devices = True

    def holds(self, when: Mapping[str, Any]) -> Optional[tuple[Fact, ...]]:
        facts = self.context.facts
        return tuple(facts[name] for name in when) if excluded(when, facts)[0] is None else None

    def judge(self, entry: FaqEntry, groups: Mapping[str, str]) -> Judgement:
        found = [finding for id_ in entry.checks for finding in self._examined(id_)]
        return judge(entry, groups, found, self)

    def _examined(self, id_: str) -> Sequence[Finding]:
        if id_ not in self._findings:
            self._findings[id_] = examine(checks()[id_], self.context)
        return self._findings[id_]


@cache
def checks() -> Mapping[str, Any]:
    return {check.id: check for check in load().checks}


@cache
def told() -> tuple[tuple[FaqEntry, str, Mapping[str, str]], ...]:
    """Every example of every entry with what its signatures capture."""
    known = {entry.id: entry for entry in entries()}
    rows = []
    for parameter in examples("match"):
        id_, text = parameter.values
        hits = [hit for hit in found_in(text).hits if hit.pattern.owner == id_]
        groups = {name: value for hit in hits for name, value in hit.groups.items()}
        rows.append((known[id_], text, groups))
    return tuple(rows)


def proved(host: Asked) -> dict[str, str]:
    """The entries that are proved on a host by one of their examples, and by what."""
    rows = {}
    for entry, _, groups in told():
        judged = host.judge(entry, groups)
        if judged.verdict == PROVED:
            rows[entry.id] = ", ".join(g.finding.id if g.finding else "facts" for g in judged.grounds)
    return rows


def recorded(name: str, change: Mapping[str, Any] = {}, replace: Mapping[str, Sequence[str]] = {}) -> Asked:
    """A recorded host with some of it changed; `replace` is old and new text in the answer of a command."""
    data = dict(example_data({"like": name, **change}, _source))
    for command, (old, new) in replace.items():
        assert old in data["commands"][command], command
        data["commands"] = {**data["commands"], command: data["commands"][command].replace(old, new)}
    return Asked(open_context(SnapshotHost(data), recorded_options(data.get("target") or {})))


def _source(name: str) -> Mapping[str, Any]:
    for folder in (ROOT / "tests" / "hosts", ROOT / "checks" / "examples"):
        if (folder / f"{name}.yaml").exists():
            return dict(parsed(folder / f"{name}.yaml"))
    raise LookupError(name)


@pytest.mark.parametrize("name", [name for name in host_names() if name not in TROUBLED])
def test_a_healthy_host_and_one_without_an_npu_prove_nothing(name: str) -> None:
    assert proved(recorded(name)) == {}


@cache
def rows() -> Sequence[Mapping[str, Any]]:
    cases: Sequence[Mapping[str, Any]] = yaml.safe_load(BREAKAGES.read_text("utf-8"))["breakages"]
    return cases


def breakages() -> Iterator[Any]:
    for number, row in enumerate(rows()):
        yield pytest.param(row, id=f"{number}-{row['name']}")


@pytest.mark.parametrize("row", list(breakages()))
def test_a_breakage_proves_what_it_breaks_and_nothing_else(row: Mapping[str, Any]) -> None:
    host = recorded(row["like"], row.get("change", {}), row.get("replace", {}))
    assert set(proved(host)) == set(row["proves"])


def test_every_entry_that_can_be_proved_is_proved_by_a_breakage_of_its_own() -> None:
    wanted = {entry.id for entry in entries() if entry.proves}
    assert wanted - {id_ for row in rows() for id_ in row["proves"]} == set()
