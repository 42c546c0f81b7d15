"""Runs in a store: what a killed controller leaves there, and what the next one makes of it."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any, Sequence

import pytest

from envtune.errors import UsageError
from envtune.executor.fleet.requests import framed_answer
from envtune.fleet.fix import rollout
from envtune.fleet.fix.folder import Answer, RunFolder
from envtune.fleet.fix.rollout import Way
from envtune.fleet.fix.stages import BEGUN, PLANNED
from envtune.fleet.fix.undo import hosts_to_undo, interrupted_runs, reconcile_run
from envtune.fleet.ssh import Ssh
from envtune.fleet.store.fixes import Fixes, FixHost, FixRun
from envtune.fleet.store.schema import MIGRATIONS
from tests.helpers.stores import open_store

WAY = Way(Ssh())
CHANGED = framed_answer({"state": "changed", "runs": ["20260102-030406"]})


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "fleet.db"


def begun(store: Path, states: Sequence[str]) -> tuple[Fixes, FixRun, RunFolder]:
    """A run of hosts h0, h1, ... in these states, whose controller has ended."""
    fixes = Fixes(open_store(store))
    run = fixes.begin("CPU001", {"become": True}, [FixHost(f"h{n}", 0, PLANNED) for n in range(len(states))])
    folder = RunFolder(store, run.name)
    folder.make()
    fixes.update(run, [FixHost(f"h{n}", 0, state) for n, state in enumerate(states)])
    return fixes, run, folder


def states(fixes: Fixes, run: FixRun) -> list[str]:
    return [host.state for host in fixes.hosts(run)]


def test_a_run_is_kept_with_its_hosts(store: Path) -> None:
    fixes, run, _ = begun(store, ["changed", "refused", PLANNED])
    fixes.end(run, ("why", "原因"))
    kept = fixes.named(run.name)
    assert (kept.words, kept.reach, kept.stopped) == ("CPU001", {"become": True}, ("why", "原因"))
    assert [host.host for host in hosts_to_undo(fixes, run)] == ["h0"]
    with pytest.raises(UsageError, match=run.name):
        fixes.named("fleet-20000101-000000")
    assert fixes.begin("", {}, []).name != run.name


def test_a_store_of_the_version_before(store: Path) -> None:
    old = sqlite3.connect(store)
    for statement in MIGRATIONS[0]:
        old.execute(statement)
    old.execute("PRAGMA user_version = 1")
    old.commit()
    old.close()
    assert Fixes(open_store(store)).runs() == []


def test_a_run_that_is_under_way_is_nobody_elses(store: Path) -> None:
    fixes, run, folder = begun(store, [BEGUN])
    assert interrupted_runs(fixes, store) == []
    folder.release()
    assert [one.name for one in interrupted_runs(fixes, store)] == [run.name]
    fixes.end(run)
    assert interrupted_runs(fixes, store) == []


@pytest.mark.parametrize("asked", [{"h2": Answer("changed", "r")}, {"h2": Answer("unchanged")}, {}])
def test_what_a_killed_run_has_left(store: Path, asked: dict[str, Answer], monkeypatch: pytest.MonkeyPatch) -> None:
    """h0 had answered, h1 answered into the folder, h2 was begun and silent, h3 never begun."""
    fixes, run, folder = begun(store, ["changed", BEGUN, BEGUN, BEGUN])
    folder.write("begun/h1", b"")
    folder.write("output/h1", json.dumps([CHANGED, "", 0]).encode())
    folder.write("begun/h2", b"")
    folder.release()
    questions: list[Sequence[str]] = []

    def ask(hosts: Sequence[str], *_: Any) -> dict[str, Answer]:
        questions.append(hosts)
        return asked

    monkeypatch.setattr(rollout, "ask_hosts", ask)
    hosts = reconcile_run(fixes, run, store, WAY)
    assert questions == [["h2"]]
    third = asked["h2"].state if asked else BEGUN
    assert [host.state for host in hosts] == states(fixes, run) == ["changed", "changed", third, PLANNED]
    assert [one.name for one in interrupted_runs(fixes, store)] == ([] if asked else [run.name])
