"""Runs that were killed at any point are finished and undone."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from helpers.executor_runs import apply, end, last, quiet
from helpers.killed_runs import (
    NEW,
    OLD,
    build,
    forked,
    killed_after,
    killed_at,
    tree,
)

from envtune.executor.history import interrupted_runs, recorded_runs
from envtune.executor.plan import operation_of
from envtune.executor.problems import RefusedError
from envtune.executor.processes import running_commands
from envtune.executor.recover import resume_run, undo_run
from envtune.executor.run import apply_plan


def judge(root: Path, state: str) -> None:
    """Every file is old or new, and the journal knows which."""
    found = tree(root)
    litter = {name for name in found if ".envtune-" in name}
    site = {name for name in (*OLD, *NEW) if name.startswith("site/")}  # trees are replaced by commands, not at once
    for name in set(found) - litter - site - {"marks", "marks.new"}:
        assert found[name] in (OLD.get(name), NEW.get(name)), name
    lost = [name for name in set(OLD) - site - set(found) if name in NEW]
    assert not lost
    runs = recorded_runs(state)
    if not runs or not runs[-1].begin:
        assert {**found, "marks": b""} == {**OLD, "marks": b""}
        return
    for change_ in runs[-1].plan["changes"]:
        for number, operation in enumerate(change_["operations"]):
            step = runs[-1].steps.get((change_["id"], number), {"state": "untouched"})
            judge_step(operation, step)


def judge_step(operation: Any, step: Any) -> None:
    observe = operation_of(operation).observe
    if step["state"] == "done":
        assert observe() == step["now"]
    elif step["state"] == "reverted":
        assert observe() == step["kept"]["was"]
    elif step["state"] == "untouched" and "expect" in operation:
        assert observe() == operation["expect"]


EVERY = pytest.mark.parametrize(  # each failpoint once finished and once undone; the fast part takes every 61st
    ("odd", "stride"),
    [(1, 61), *(pytest.param(odd, 1, marks=[pytest.mark.slow, pytest.mark.exhaustive]) for odd in (0, 1))],
)


@EVERY
def test_killed_at_every_failpoint(tmp_path: Path, no_sync: None, odd: int, stride: int) -> None:
    for number in range(0, 10_000, stride):
        root = tmp_path / str(number)
        plan, state = build(root), str(root / "state")
        ended = killed_at(number, lambda plan=plan, state=state: apply_plan(plan, state))  # type: ignore[misc]
        quiet(state)
        judge(root, state)
        end(root, state, "finish" if number % 2 == odd else "undo")
        shutil.rmtree(root)
        if ended:
            break
    assert number > 100  # that many places were tried


@pytest.mark.slow
@pytest.mark.exhaustive
@EVERY
def test_killed_at_every_failpoint_of_an_undo(tmp_path: Path, no_sync: None, odd: int, stride: int) -> None:
    """An undo that was killed is an interrupted run, too; finishing it means to finish the undo."""
    for number in range(0, 10_000, stride):
        root = tmp_path / str(number)
        plan, state = build(root), str(root / "state")
        name, _ = apply_plan(plan, state)
        ended = killed_at(number, lambda state=state, name=name: undo_run(state, name))  # type: ignore[misc]
        quiet(state)
        judge(root, state)
        for past in interrupted_runs(state):
            again = resume_run if number % 2 == odd else undo_run
            assert {result["status"] for result in again(state, past.name)} <= {"undone"}
        end(root, state, "undo")
        shutil.rmtree(root)
        if ended:
            break
    assert number > 50


@pytest.mark.parametrize("stride", [71, pytest.param(23, marks=[pytest.mark.slow, pytest.mark.exhaustive])])
def test_killed_while_it_was_finished(tmp_path: Path, no_sync: None, stride: int) -> None:
    for number in range(0, 400, stride):
        root = tmp_path / str(number)
        plan, state = build(root), str(root / "state")
        killed_at(60, lambda plan=plan, state=state: apply_plan(plan, state))  # type: ignore[misc]
        (past,) = interrupted_runs(state)
        ended = killed_at(number, lambda state=state, past=past: resume_run(state, past.name))  # type: ignore[misc]
        quiet(state)
        judge(root, state)
        end(root, state, "finish" if number % 2 else "undo")
        shutil.rmtree(root)
        if ended:
            break
    else:
        pytest.fail("it never came to its end")


@pytest.mark.slow
@pytest.mark.exhaustive
def test_killed_at_200_random_moments(tmp_path: Path) -> None:
    chance = random.Random(20260101)
    plan, state = build(tmp_path / "measure"), str(tmp_path / "measure/state")
    began = time.monotonic()
    os.waitpid(forked(lambda: apply_plan(plan, state)), 0)
    whole, killed = time.monotonic() - began, 0
    for number in range(1000):
        root = tmp_path / str(number)
        plan, state = build(root), str(root / "state")
        moment = chance.uniform(0, whole)
        ended = killed_after(moment, lambda plan=plan, state=state: apply_plan(plan, state))  # type: ignore[misc]
        whole *= 0.99 if ended else 1.002  # the machine is not always as fast as when it was measured
        quiet(state)
        judge(root, state)
        end(root, state, chance.choice(["finish", "undo"]))
        shutil.rmtree(root)
        killed += not ended
        if killed == 200:
            break
    assert killed == 200


def test_a_command_of_a_killed_run_that_still_runs_is_waited_for(
    tmp_path: Path, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation = {"op": "run", "argv": ["sleep", "600"], "check": {"argv": ["false"]}}
    pid = forked(lambda: apply(state, operation))
    for _ in range(6_000):
        if recorded_runs(state) and running_commands(last(state).directory):
            break
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    (past,) = interrupted_runs(state)
    (running,) = running_commands(past.directory)
    monkeypatch.setattr("envtune.executor.recover.PATIENCE", 0.1)
    with pytest.raises(RefusedError, match=f"still running: process {running}"):
        undo_run(state, past.name)
    os.kill(running, signal.SIGKILL)
    for _ in range(6_000):
        if not running_commands(past.directory):
            break
        time.sleep(0.02)
    assert undo_run(state, past.name)[0]["status"] == "undone"


def test_nothing_is_written_on_top_of_an_interrupted_run(tmp_path: Path, no_sync: None) -> None:
    plan, state = build(tmp_path), str(tmp_path / "state")
    killed_at(60, lambda: apply_plan(plan, state))
    with pytest.raises(RefusedError, match="was interrupted"):
        apply_plan({"changes": []}, state)
