"""Finish or undo what an earlier run did."""

import contextlib
import time
from typing import Dict, List, Optional, Tuple

from .common import EventCallback, Record
from .history import RecordedRun
from .operations.file import FileOperation
from .problems import ExecutorError, Problem, RefusedError, failure
from .processes import running_commands
from .run import Run
from .state import Lock

PATIENCE = 5.0  # seconds for a command of a killed run to end by itself


def resume_run(state: str, name: str, on_event: Optional[EventCallback] = None, wait: float = 0.0) -> List[Record]:
    """Finish a killed run: what is done stays, what was begun is ended, what was not begun is done.

    A run that was killed while it was undone is undone further. Raises ExecutorError or OSError.
    """
    with Lock(state, wait) as lock:
        recorded = _continuable_run(state, name, lock)
        if not recorded.in_progress:
            raise RefusedError("run-not-interrupted", run=name)
        run = Run(state, name, on_event)
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
        results += [run.apply(change, done) for change, done in ready]
        run.end("end", results)
        return results


def _revert_unfinished(run: Run, recorded: RecordedRun, change: str) -> Tuple[Dict[int, Record], Optional[Record]]:
    """Revert what was only begun of a change: (the steps that are done, the change's result if that fails)."""
    done = {}
    for key in recorded.open_steps(change):
        step = recorded.steps[key]
        if step["state"] == "done":
            done[key[1]] = step
            continue
        result = run.revert_step(key, step)
        if result["error"] and step.get("operation", {}).get("op") not in ("run", "signal"):
            reason = {name: result[name] for name in ("error", "problems")}
            return {}, dict(reason, change=change, status="failed", left=True)
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

    A step is refused where others changed its subject since; with `force` what is there now is kept in the run's
    directory first (`copy` in the result). Raises ExecutorError or OSError.
    """
    with Lock(state, wait) as lock:
        recorded = _continuable_run(state, name, lock)
        known = {row["id"] for row in recorded.plan["changes"]} | {key[0] for key in recorded.steps}
        if change is not None and change not in known:
            raise RefusedError("no-such-change", run=name, change=change)
        return _undo(Run(state, name, on_event), recorded, change, force)


def _undo(run: Run, recorded: RecordedRun, change: Optional[str], force: bool) -> List[Record]:
    run.record("undo-begin", closing=True, change=change, force=force)
    results = [run.revert_step(key, recorded.steps[key], force) for key in recorded.open_steps(change)]
    if recorded.damaged and change is None:
        problem = Problem("damaged-lines-not-undone", journal=recorded.path, lines=recorded.damaged)
        results.append(dict(failure(problem), change="", number=-1, status="failed"))
    for step in recorded.steps.values():  # directories that an earlier undo of one change had to leave
        if step.get("operation", {}).get("op") == "file":
            with contextlib.suppress(ExecutorError, OSError):
                FileOperation(step["operation"]).clean_up(step["kept"])
    run.end("undo-end", results)
    return results


def _continuable_run(state: str, name: str, lock: Lock) -> RecordedRun:
    """Return the run once none of its commands runs any more, and note it in the lock."""
    recorded = RecordedRun(state, name)
    deadline = time.monotonic() + PATIENCE
    while running_commands(recorded.directory) and time.monotonic() < deadline:
        time.sleep(0.1)
    running = running_commands(recorded.directory)
    if running:
        raise RefusedError("command-still-running", run=name, processes=", ".join(map(str, running)))
    lock.describe(name)
    return recorded
