"""SIGINT, SIGTERM and SIGHUP at any moment: the step in hand is taken back, no child is left, the journal is closed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any, Callable

import pytest
from helpers.executor_runs import apply, last
from helpers.killed_runs import OLD, build, forked, tree
from helpers.rows import sampled

from envtune.executor.common import failpoint_hooks
from envtune.executor.history import interrupted_runs
from envtune.executor.processes import RUN_VARIABLE, running_commands
from envtune.executor.recover import undo_run
from envtune.executor.run import apply_plan

MOMENTS = 50  # of each signal
AFTER_THE_END = 3  # failpoints of the last record: what comes there comes after the run
BEFORE_THE_RUN = "directory-made"  # of the journal: a signal there ends the program, with nothing done
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
MANY = pytest.mark.parametrize("moments", [5, pytest.param(MOMENTS, marks=[pytest.mark.slow, pytest.mark.exhaustive])])
EACH = pytest.mark.parametrize("number", sampled(SIGNALS, 3), ids=lambda number: number.name)


def signalled_at(place: int, number: signal.Signals, work: Callable[[], Any]) -> None:
    """Run `work` in a child that sends itself a signal at that failpoint; it must end by itself."""

    def counted() -> None:
        left = iter(range(place))

        def send(name: str) -> None:
            if name != BEFORE_THE_RUN and next(left, None) is None:
                failpoint_hooks.remove(send)
                os.kill(os.getpid(), number)

        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests under nohup ignore it
        failpoint_hooks.append(send)
        work()

    _, status = os.waitpid(forked(counted), 0)
    assert status == 0, status


def count_failpoints(root: Path) -> int:
    plan, seen = build(root), []
    failpoint_hooks.append(seen.append)
    try:
        apply_plan(plan, str(root / "state"))
    finally:
        failpoint_hooks.remove(seen.append)
    return len(seen) - seen.count(BEFORE_THE_RUN)


@MANY
@EACH
def test_a_run_that_is_stopped_takes_its_step_back(
    tmp_path: Path, no_sync: None, number: signal.Signals, moments: int
) -> None:
    count, stopped = count_failpoints(tmp_path / "count"), 0
    assert count > MOMENTS
    for place in range(number % 3, count - AFTER_THE_END, max(1, count // moments)):
        root = tmp_path / str(place)
        plan, state = build(root), str(root / "state")
        signalled_at(place, number, lambda plan=plan, state=state: apply_plan(plan, state))  # type: ignore[misc]
        assert interrupted_runs(state) == []
        run = last(state)
        assert running_commands(run.directory) == []
        end = next(record for record in run.records if record["type"] == "end")
        assert end["signal"] == number
        states = [run.end_state(change["id"]) for change in plan["changes"]]
        order = [{"written": 0, "failed-restored": 1, "not-begun": 2}[state_] for state_ in states]
        assert order == sorted(order) and order.count(1) <= 1
        stopped += "failed-restored" in states
        assert {row["status"] for row in undo_run(state, run.name)} <= {"undone"}
        assert tree(root) == OLD
        shutil.rmtree(root)
    assert stopped > moments // 5


@pytest.mark.slow
@EACH
def test_an_undo_that_is_stopped_ends_its_step_and_is_gone_on_with(
    tmp_path: Path, no_sync: None, number: signal.Signals
) -> None:
    for place in range(5, 100, 30):
        root = tmp_path / str(place)
        plan, state = build(root), str(root / "state")
        name, _ = apply_plan(plan, state)
        signalled_at(place, number, lambda state=state, name=name: undo_run(state, name))  # type: ignore[misc]
        assert interrupted_runs(state) == [] and last(state).status in ("partly-undone", "undone")
        undo_run(state, name)
        assert tree(root) == OLD and last(state).status == "undone"
        shutil.rmtree(root)


def test_what_a_command_started_in_a_session_of_its_own_ends_with_it(tmp_path: Path, state: str) -> None:
    script = f"setsid sh -c 'echo $$ >{tmp_path}/pid; exec sleep 300' & until test -s {tmp_path}/pid; do :; done; "
    run = {"op": "run", "argv": ["/bin/sh", "-c", script + "echo ready; wait"], "check": {"argv": ["false"]}}

    def stop(kind: str, record: Any) -> None:
        if kind == "output" and record["line"] == "ready":
            os.kill(os.getpid(), signal.SIGTERM)

    result = apply(state, run, on_event=stop)
    assert result["status"] == "stopped" and result["error"].startswith("stopped by SIGTERM")
    assert running_commands(last(state).directory) == []
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_what_such_a_command_starts_while_it_is_ended_ends_too(
    tmp_path: Path, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at the processes and the signal another one is started: a script of a package, by dpkg."""
    started: list[subprocess.Popen[bytes]] = []

    def listed(run: str) -> list[int]:
        found = running_commands(run)
        if not started:
            started.append(subprocess.Popen(["sleep", "300"], env={**os.environ, RUN_VARIABLE: run}))
            while started[0].pid not in running_commands(run):  # on a busy machine exec shows no environment yet
                pass
        return found

    def stop(kind: str, record: Any) -> None:
        if kind == "output":
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr("envtune.executor.commands.running_commands", listed)
    detached = f"setsid sh -c '>{tmp_path}/detached; exec sleep 300' & until test -e {tmp_path}/detached; do :; done; "
    run = {"op": "run", "argv": ["/bin/sh", "-c", detached + "echo ready; wait"], "check": {"argv": ["false"]}}
    assert apply(state, run, on_event=stop)["status"] == "stopped"
    assert started[0].wait(10) == -signal.SIGKILL and running_commands(last(state).directory) == []


def test_a_signal_that_is_ignored_stays_ignored(tmp_path: Path, state: str) -> None:
    previous = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # nohup
    try:
        run = {"op": "run", "argv": ["/bin/sh", "-c", f"kill -HUP {os.getpid()}; >{tmp_path}/made"]}
        assert apply(state, {**run, "check": {"argv": ["test", "-e", str(tmp_path / "made")]}})["status"] == "done"
    finally:
        signal.signal(signal.SIGHUP, previous)
