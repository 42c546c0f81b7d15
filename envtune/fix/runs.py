"""The runs of `envtune fix` in the executor's journals; its errors become usage errors in the user's language."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Optional, Sequence, TypeVar

from envtune.commandline import for_this_host
from envtune.errors import UsageError
from envtune.executor.files import read_content
from envtune.executor.history import RecordedRun, recorded_runs
from envtune.executor.problems import ExecutorError, JournalError, LockedError, RefusedError, problem_of
from envtune.executor.recover import preview_undo, prune_runs, resume_run
from envtune.executor.recover import undo_run as revert_run
from envtune.executor.run import apply_plan, record_verified
from envtune.executor.run_directory import RunDirectory
from envtune.executor.state import state_directory
from envtune.fix.executor_messages import error_message
from envtune.messages import Literal, Message, Text, alternatives, nearest

T = TypeVar("T")
_NO_RUN = ("no-such-run", "not-a-run-name")  # the executor's codes for a name that no run has
Result = Mapping[str, Any]
OnEvent = Callable[[str, Mapping[str, Any]], None]  # kind (start, change, output) and its record


def apply_changes(plan: Mapping[str, Any], on_event: OnEvent, wait: float = 0.0) -> tuple[str, Sequence[Result]]:
    """Carry out a plan in the executor's form: (name of the run, one result per change). Raises UsageError."""
    return _run_executor(lambda: apply_plan(dict(plan), state_directory(), on_event, wait), _no_journal)


def undo_run(name: str, change: Optional[str], force: bool, on_event: OnEvent, wait: float) -> Sequence[Result]:
    """Undo a run, or one change of it: one result per step. Raises UsageError."""
    return _run_executor(lambda: revert_run(state_directory(), name, change, force, on_event, wait))


def finish_run(name: str, on_event: OnEvent, wait: float) -> Sequence[Result]:
    """Finish what an interrupted run began: one result per change. Raises UsageError."""
    return _run_executor(lambda: resume_run(state_directory(), name, on_event, wait))


def journal_states(name: str, states: Mapping[str, str]) -> None:
    """Journal how the changes of a run ended, for `history`; a run that began meanwhile takes precedence."""
    try:
        record_verified(state_directory(), name, dict(states))
    except (LockedError, RefusedError, JournalError, OSError):
        return  # then history shows `written`


def recorded_run(name: str) -> RecordedRun:
    """Return the content of a run's journal. Raises UsageError."""
    return _run_executor(lambda: RecordedRun(state_directory(), name))


def latest_run(change: Optional[str]) -> RecordedRun:
    """Return the latest run, which must be interrupted or have something to undo, for that change if one is named.

    Raises UsageError otherwise: an older run is undone only if it is named.
    """
    runs = [
        run for run in recorded_runs(state_directory()) if change is None or run.version or _has_change(run, change)
    ]
    if not runs:
        raise UsageError(Message("no run in {state} can be undone", state=state_directory()))
    latest = runs[-1]
    if latest.open_steps(change) or (latest.in_progress and change is None):  # closing it lets the next run begin
        return latest
    if latest.version:
        reason: Text = Message(
            "is from another version of envtune ({version}), which can undo it", version=latest.version
        )
    elif latest.status == "unreadable":
        reason = Message("is not readable: what it changed is unknown ({path})", path=latest.path)
    else:
        reason = Message("has nothing to undo")
    older = next((run.name for run in reversed(runs) if run.open_steps(change)), None)
    words = " ".join(["envtune undo", *([older] if older else []), *([change] if change and older else [])])
    command = for_this_host(words, same_user=True)
    way = Message("; an older run can be undone: {command}", command=command) if older else Literal("")
    raise UsageError(Message("the latest run, {run}, {reason}{way}", run=latest.name, reason=reason, way=way))


def _has_change(run: RecordedRun, change: str) -> bool:
    return any(row["id"] == change for row in run.plan["changes"])


def undo_preview(run: RecordedRun, change: Optional[str]) -> Sequence[Result]:
    """Return what undoing a run would do, one row per step. Reads only. Raises UsageError."""
    return _run_executor(lambda: preview_undo(run, change))


def remove_runs(names: Sequence[str]) -> Sequence[str]:
    """Remove the records of runs, and return which. Raises UsageError."""
    return _run_executor(lambda: prune_runs(state_directory(), list(names)))


def current_text(path: str) -> str:
    """Return the content of a file, empty if there is none; in parentheses, why it cannot be read."""
    try:
        return (read_content(path) or b"").decode("utf-8", "replace")
    except (OSError, RefusedError) as error:
        return f"({problem_of(error)})"


def _no_journal(reason: Text) -> Text:
    """Return the message that tells where the journal of a new run may go; that of an old run stays in its place."""
    return Message(
        "{reason}: nothing was changed; $ENVTUNE_STATE sets another directory for the journal", reason=reason
    )


def _unchanged(reason: Text) -> Text:
    return reason


def _unknown_run(error: ExecutorError) -> UsageError:
    """Return the error for a name that no run has, with the closest names."""
    message, known = error_message(error), [run.name for run in recorded_runs(state_directory())]
    near = nearest(str(error.problem.fields["run"]), known)
    if near:
        message = Message("{message}; did you mean {guess}?", message=message, guess=alternatives(near))
    command = for_this_host("envtune history", same_user=True)
    hint = Message("to list them: {command}", command=command)
    return UsageError(Message("{problem} ({hints})", problem=message, hints=hint))


def _run_executor(work: Callable[[], T], advice: Callable[[Text], Text] = _unchanged) -> T:
    from envtune.collector.redact import redact_text

    RunDirectory.redact = staticmethod(redact_text)  # the stand-alone executor does not include it
    try:
        return work()
    except (LockedError, RefusedError) as error:
        raise _unknown_run(error) if error.problem.code in _NO_RUN else UsageError(error_message(error)) from None
    except JournalError as error:
        raise UsageError(
            Message(
                "the journal can no longer be written, so the run stopped: {reason}",
                reason=error_message(error),
            )
        ) from None
    except OSError as error:
        raise UsageError(advice(error_message(error))) from None
