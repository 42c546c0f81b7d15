"""The runs of `envtune fix` as the executor journals them; its errors become usage errors in the reader's language."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Optional, Sequence, TypeVar

from envtune.errors import UsageError
from envtune.executor.files import read_content
from envtune.executor.history import RecordedRun, recorded_runs
from envtune.executor.problems import JournalError, LockedError, RefusedError, problem_of
from envtune.executor.recover import resume_run
from envtune.executor.recover import undo_run as revert_run
from envtune.executor.run import apply_plan
from envtune.executor.state import state_directory
from envtune.fix.executor_messages import error_message
from envtune.messages import Message

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


def current_text(path: str) -> str:
    """Return what a file holds, empty where there is none; what keeps it from being read, in parentheses."""
    try:
        return (read_content(path) or b"").decode("utf-8", "replace")
    except (OSError, RefusedError) as error:
        return f"({problem_of(error)})"


def _run_executor(work: Callable[[], T]) -> T:
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
