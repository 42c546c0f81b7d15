"""The runs of `envtune fix` as the executor journals them; its errors become usage errors in the reader's language."""

from __future__ import annotations

import os
from typing import Any, Callable, Mapping, Optional, Sequence, TypeVar

from envtune.errors import UsageError
from envtune.executor.files import read_content
from envtune.executor.history import RecordedRun, recorded_runs
from envtune.executor.plan import stale_changes
from envtune.executor.problems import JournalError, LockedError, RefusedError, problem_of
from envtune.executor.recover import resume_run
from envtune.executor.recover import undo_run as revert_run
from envtune.executor.run import apply_plan
from envtune.executor.run_directory import RunDirectory
from envtune.executor.state import ensure_state_directory, state_directory
from envtune.fix.executor_messages import error_message, problem_message
from envtune.messages import Message, Text

T = TypeVar("T")
Result = Mapping[str, Any]
OnEvent = Callable[[str, Mapping[str, Any]], None]  # kind (start, change, output) and its record


def apply_changes(plan: Mapping[str, Any], on_event: OnEvent, wait: float = 0.0) -> tuple[str, Sequence[Result]]:
    """Carry out a plan in the executor's form: (name of the run, one result per change). Raises UsageError."""
    return _run_executor(lambda: apply_plan(dict(plan), state_directory(), on_event, wait))


def undo_run(name: str, change: Optional[str], force: bool, on_event: OnEvent, wait: float) -> Sequence[Result]:
    """Undo a run, or one change of it: one result per step. Raises UsageError."""
    return _run_executor(lambda: revert_run(state_directory(), name, change, force, on_event, wait))


def finish_run(name: str, on_event: OnEvent, wait: float) -> Sequence[Result]:
    """Finish what an interrupted run began: one result per change. Raises UsageError."""
    return _run_executor(lambda: resume_run(state_directory(), name, on_event, wait))


def recorded_run(name: str) -> RecordedRun:
    """Return what the journal of a run says. Raises UsageError."""
    return _run_executor(lambda: RecordedRun(state_directory(), name))


def latest_run(change: Optional[str]) -> Optional[RecordedRun]:
    """Return the latest run that has something to undo, of that change if one is named."""
    runs = reversed(recorded_runs(state_directory()))
    return next((run for run in runs if run.open_steps(change)), None)


def stale_reasons(plan: Mapping[str, Any]) -> Mapping[str, Text]:
    """Return, by change, why what is there now is not what the plan expected. Reads only."""
    return {change: problem_message(problem.to_wire()) for change, problem in stale_changes(dict(plan)).items()}


def current_text(path: str) -> str:
    """Return what a file holds, empty where there is none; what keeps it from being read, in parentheses."""
    try:
        return (read_content(path) or b"").decode("utf-8", "replace")
    except (OSError, RefusedError) as error:
        return f"({problem_of(error)})"


def save_plan(name: str, text: str) -> str:
    """Write a plan into the state directory, for its owner only, and return the path. Raises UsageError."""
    path = os.path.join(state_directory(), name)
    try:
        ensure_state_directory(os.path.dirname(path))
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
    except (OSError, RefusedError) as error:
        raise UsageError(error_message(error)) from None
    return path


def _run_executor(work: Callable[[], T]) -> T:
    from envtune.collector.redact import redact_text

    RunDirectory.redact = staticmethod(redact_text)  # the executor travels without it
    try:
        return work()
    except (LockedError, RefusedError) as error:
        raise UsageError(error_message(error)) from None
    except JournalError as error:
        raise UsageError(
            Message(
                "the journal cannot be written any more, the run stopped where it was: {reason}",
                reason=error_message(error),
            )
        ) from None
    except OSError as error:
        raise UsageError(
            Message(
                "{reason}: nothing was changed; $ENVTUNE_STATE names another directory for the journal",
                reason=error_message(error),
            )
        ) from None
