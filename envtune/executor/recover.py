"""Finish or undo what an earlier run did."""

import contextlib
import os
import shutil
import time
from typing import Dict, List, Optional, Tuple

from .common import EventCallback, Record
from .history import RecordedRun, StepKey
from .operations.file import FileOperation
from .plan import operation_of
from .problems import ExecutorError, Problem, RefusedError, failure, problem_of
from .processes import running_commands
from .run import Run
from .state import Lock, require_private_state
from .system.caller import current_caller
from .system.host_lock import exclusive_run
from .system.signals import SignalHandlers
from .system.system_log import log_change

_PRUNED = ".pruned-"  # before the name of a run that is being removed
PATIENCE = 5.0  # seconds for a command of a killed run to end by itself


def resume_run(state: str, name: str, on_event: Optional[EventCallback] = None, wait: float = 0.0) -> List[Record]:
    """Finish a killed run: what is done stays, what was begun is completed, what was not begun is done.

    If the run was killed while it was being undone, undoing continues. Raises ExecutorError or OSError.
    """
    with exclusive_run(state, wait) as lock, SignalHandlers() as signals:
        recorded = _continuable_run(state, name, lock)
        if not recorded.in_progress:
            raise RefusedError("run-not-interrupted", run=name)
        run = Run(state, name, signals, on_event)
        if recorded.in_progress == "undo":
            return _undo(run, recorded, recorded.last_undo.get("change"), recorded.last_undo.get("force", False))
        if recorded.damaged or not recorded.begin:
            raise RefusedError("journal-damaged", journal=recorded.path, lines=recorded.damaged)
        results = recorded.results()
        finished = {result["change"] for result in results}
        ready = []
        for change in recorded.plan["changes"]:
            if change["id"] not in finished:
                done, failed = _revert_unfinished(run, recorded, change["id"])
                if failed is None:
                    ready.append((change, done))
                else:
                    results.append(failed)
                    run.record("change", closing=True, **failed)
        results += run.apply_all(ready)
        run.end("end", results)
        return results


def _revert_unfinished(run: Run, recorded: RecordedRun, change: str) -> Tuple[Dict[int, Record], Optional[Record]]:
    """Revert the unfinished steps of a change: (the steps that are done, the change's result if reverting fails)."""
    done = {}
    for key in recorded.open_steps(change):
        step = recorded.steps[key]
        if step["state"] == "done":
            done[key[1]] = step
            continue
        result = run.revert_step(key, step)
        if result["error"] and step.get("operation", {}).get("op") not in ("run", "signal"):
            reason = {name: result[name] for name in ("error", "problems")}
            return {}, dict(reason, change=change, status="failed", left=True, state="failed-left")
        # a command that cannot be undone is simply tried again
    return done, None


def undo_run(
    state: str,
    name: str,
    change: Optional[str] = None,
    force: bool = False,
    on_event: Optional[EventCallback] = None,
    wait: float = 0.0,
) -> List[Record]:
    """Undo a run, or one change of it, the latest step first. Return one result per step.

    A step is refused if others changed its subject since; with `force` the current state is first kept in the run's
    directory (`copy` in the result). Raises ExecutorError or OSError.
    """
    with exclusive_run(state, wait) as lock, SignalHandlers() as signals:
        recorded = _continuable_run(state, name, lock)
        known = {row["id"] for row in recorded.plan["changes"]} | {key[0] for key in recorded.steps}
        if change is not None and change not in known:
            raise RefusedError("no-such-change", run=name, change=change)
        return _undo(Run(state, name, signals, on_event), recorded, change, force)


def _undo(run: Run, recorded: RecordedRun, change: Optional[str], force: bool) -> List[Record]:
    run.record("undo-begin", closing=True, change=change, force=force, **current_caller())
    results: List[Record] = []
    for key in recorded.open_steps(change):
        if run.signals.number:
            stopped = dict(failure(Problem("not-begun")), change=key[0], number=key[1], status="stopped")
            results.append(stopped)
        else:
            results.append(run.revert_step(key, recorded.steps[key], force))
    if recorded.damaged and change is None:
        problem = Problem("damaged-lines-not-undone", journal=recorded.path, lines=recorded.damaged)
        results.append(dict(failure(problem), change="", number=-1, status="failed"))
    for step in recorded.steps.values():  # directories that an earlier undo of a single change had to leave
        if step.get("operation", {}).get("op") == "file":
            with contextlib.suppress(ExecutorError, OSError):
                FileOperation(step["operation"]).clean_up(step["kept"])
    run.end("undo-end", results)
    _log_undo(run, recorded, results)
    return results


def _log_undo(run: Run, recorded: RecordedRun, results: List[Record]) -> None:
    changes = {row["id"]: row for row in recorded.plan["changes"]}
    statuses: Dict[str, List[str]] = {}
    for result in results:
        statuses.setdefault(result["change"], []).append(result["status"])
    for change, each in statuses.items():
        undone = "undone" if set(each) == {"undone"} else "undo: " + ", ".join(each)
        log_change(run.name, changes.get(change, {"id": change}), undone)


def preview_undo(recorded: RecordedRun, change: Optional[str] = None) -> List[Record]:
    """Return what undoing a run, or one change of it, would do, one row per step. Reads only.

    `status` is undone (nothing to do), ready, or refused if others changed the subject since. To determine it, commands
    from the journal are run: raises RefusedError for a journal that others could have written.
    """
    require_private_state(recorded.state)
    recorded.require_own_version()
    return [_preview_step(key, recorded.steps[key]) for key in recorded.open_steps(change)]


def _preview_step(key: StepKey, step: Record) -> Record:
    result: Record = {"change": key[0], "number": key[1], "status": "ready", "error": None}
    if "operation" not in step:
        return dict(result, status="failed", **failure(Problem("intent-damaged")))
    operation, saved = operation_of(step["operation"]), step["kept"]
    try:
        if operation.is_reverted(saved):
            return dict(result, status="undone")
        foreign = operation.changed_by_others(saved, step)
    except (ExecutorError, OSError, ValueError) as error:
        return dict(result, status="refused", **failure(problem_of(error)))
    if foreign:
        problem = Problem("changed-since", subject=operation.subject, found=foreign, recorded=step.get("now"))
        return dict(result, status="refused", foreign=foreign, **failure(problem))
    return result


def prune_runs(state: str, names: List[str]) -> List[str]:
    """Remove the directories of runs, and return which were removed: never one that is interrupted or not ours.

    A run that could still be undone is removed, too: the caller has asked. Raises ExecutorError, OSError.
    """
    removed = []  # type: List[str]
    folder = os.path.join(state, "runs")
    if not os.path.isdir(folder):
        return removed  # nothing was ever changed here: the lock would be the first file of ours on this host
    with exclusive_run(state, 0.0), SignalHandlers() as signals:
        for name in os.listdir(folder):
            if name.startswith(_PRUNED):  # left by a prune that was killed
                shutil.rmtree(os.path.join(folder, name))
        for name in names:
            recorded = RecordedRun(state, name)
            if signals.number or recorded.in_progress or recorded.version:
                continue
            hidden = os.path.join(folder, _PRUNED + name)  # atomic: half a run must not be found as a run
            os.rename(recorded.directory, hidden)
            shutil.rmtree(hidden)
            removed.append(name)
    return removed


def _continuable_run(state: str, name: str, lock: Lock) -> RecordedRun:
    """Return the run once none of its commands is running any more, and note it in the lock."""
    recorded = RecordedRun(state, name)
    recorded.require_own_version()
    deadline = time.monotonic() + PATIENCE
    while running_commands(recorded.directory) and time.monotonic() < deadline:
        time.sleep(0.1)
    running = running_commands(recorded.directory)
    if running:
        raise RefusedError("command-still-running", run=name, processes=", ".join(map(str, running)))
    lock.describe(name)
    return recorded
