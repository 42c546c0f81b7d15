"""Carry out a plan, change by change, each operation logged ahead in the journal."""

import os
import shutil
import time
from typing import Any, Dict, List, Optional, Tuple

from .common import EventCallback, Record, fsync_directory, utc_now
from .history import SCHEMA, RecordedRun, StepKey, interrupted_runs, next_sequence
from .journal import JOURNAL, RESERVE, Journal
from .operations.base import Operation
from .plan import operation_of, plan_fault, require_expected
from .problems import FailedError, JournalError, Problem, RefusedError, failure, problem_of
from .run_directory import RunDirectory
from .system.caller import current_caller
from .system.host_lock import exclusive_run
from .system.packages import changed_versions, package_database, require_finished_packages
from .system.signals import SignalHandlers
from .system.system_log import log_change


class Run:
    """One journaled run. `on_event(kind, record)` is called for progress; `signals` may end it early."""

    def __init__(
        self,
        state: str,
        name: str,
        signals: SignalHandlers,
        on_event: Optional[EventCallback] = None,
        reserve: int = 65536,
    ) -> None:
        self.name = name
        self.signals = signals
        path = os.path.join(state, "runs", name)
        if not os.path.isdir(path):
            os.mkdir(path, 0o700)
            fsync_directory(os.path.dirname(path))
        self.journal = Journal(path, reserve)
        self.directory = RunDirectory(path, lambda line: self._notify("output", {"line": line}))
        self._on_event = on_event

    def record(self, kind: str, closing: bool = False, **fields: Any) -> None:
        """Journal one record and report it."""
        record = dict(fields, type=kind, time=utc_now())
        self.journal.append(record, closing)
        self._notify(kind, record)

    def end(self, kind: str, results: List[Record]) -> None:
        """Journal the last record, with all results and the signal that asked to end early."""
        signal = {"signal": self.signals.number} if self.signals.number else {}
        self.signals.reported = bool(signal)
        self.record(kind, closing=True, results=results, **signal)
        undoable = kind == "end" and any(result["status"] == "done" or result.get("left") for result in results)
        self.journal.close(keep_reserve=undoable)

    def _notify(self, kind: str, record: Record) -> None:
        if self._on_event is not None:
            try:
                self._on_event(kind, record)
            except OSError:
                self._on_event = None  # the listener is gone; that is no reason to stop

    def apply(self, change: Record, done: Optional[Dict[int, Record]] = None) -> Record:
        """Do all operations of one change, or none: if one fails, the earlier ones are reverted. Return the result.

        `done` contains the steps that a killed run had already finished.
        """
        steps: Dict[int, Record] = dict(done or {})
        result: Record = {"change": change["id"], "status": "done", "error": None}
        self._notify("start", change)
        try:
            for number, wire in enumerate(change["operations"]):
                if number not in steps:
                    self._perform(change, number, operation_of(wire), steps)
        except JournalError:
            raise
        except (KeyboardInterrupt, Exception) as error:
            status = "stopped" if isinstance(error, KeyboardInterrupt) else _failed_status(error)
            result.update(status=status, **failure(problem_of(error)))
            self._revert_all(change["id"], steps, result)
        result["state"] = _end_state(result, bool(steps))
        self.record("change", closing=True, **result)
        log_change(self.name, change, result["status"] + (", not taken back" if result.get("left") else ""))
        return result

    def apply_all(self, pending: List[Tuple[Record, Dict[int, Record]]]) -> List[Record]:
        """Apply changes, each with its steps that are already done; after a signal no further one is begun."""
        results: List[Record] = []
        for change, done in pending:
            if self.signals.number:
                not_begun = failure(Problem("not-begun"))
                results.append(dict(not_begun, change=change["id"], status="stopped", state="not-begun"))
            else:
                results.append(self.apply(change, done))
        return results

    def _revert_all(self, change: str, steps: Dict[int, Record], result: Record) -> None:
        for number in sorted(steps, reverse=True):
            reverted = self.revert_step((change, number), steps[number])
            if reverted["error"]:
                _add_problems(result, reverted["error"], reverted["problems"])
                result["left"] = True
            if reverted.get("upgraded"):
                upgraded = ", ".join("%s %s -> %s" % (name, *row) for name, row in reverted["upgraded"].items())
                stay = failure(Problem("packages-upgraded", packages=upgraded))
                _add_problems(result, stay["error"], stay["problems"])

    def _perform(self, change: Record, number: int, operation: Operation, steps: Dict[int, Record]) -> None:
        current = operation.observe()
        if current == operation.final_state():
            self.record("same", change=change["id"], number=number)
            return
        require_expected(operation, current)
        with self.signals.interruptible():
            saved = dict(operation.backup(self.directory))
        packages = package_database(operation.wire)
        if packages is not None:
            saved["unfinished"] = sorted(packages.unfinished)
        self.record("intent", change=change["id"], number=number, operation=operation.wire, kept=saved)
        steps[number] = {"state": "intent", "operation": operation.wire, "kept": saved, "packages": packages}
        with self.signals.interruptible():
            operation.apply(saved, self.directory)
            if not operation.is_applied(saved):
                raise FailedError("not-as-written", subject=operation.wire.get("path") or change.get("target"))
        more: Record = {"now": operation.observe()}
        after = package_database(operation.wire)
        if packages is not None and after is not None:
            more["upgraded"] = changed_versions(packages, after)
        self.record("done", closing=True, change=change["id"], number=number, **more)
        steps[number].update(state="done", **more)

    def revert_step(self, key: StepKey, step: Record, force: bool = False) -> Record:
        """Undo one step; refused if others changed its subject since, unless `force`, which keeps a copy."""
        result: Record = {"change": key[0], "number": key[1], "status": "undone", "error": None}
        if "operation" not in step:
            return dict(result, status="failed", **failure(Problem("intent-damaged")))
        operation, saved = operation_of(step["operation"]), step["kept"]
        try:
            operation.clean_up(saved)
            if not operation.is_reverted(saved):
                self._copy_foreign(operation, key, step, force, result)
                self.record("reverting", closing=True, change=key[0], number=key[1])
                operation.revert(saved, self.directory)
                if not operation.is_reverted(saved):
                    raise FailedError("not-restored")
            operation.clean_up(saved)
            require_finished_packages(operation.wire, saved.get("unfinished", ()))
            self.record("reverted", closing=True, change=key[0], number=key[1])
            result.update(_upgraded(step))
        except (RefusedError, FailedError, OSError, ValueError) as error:
            self._record_failed_revert(key, step, error, result)
        return result

    def _record_failed_revert(self, key: StepKey, step: Record, error: Exception, result: Record) -> None:
        """Journal why a step could not be undone, and what a failed package manager has left."""
        problems = [problem_of(error)]
        if problems[0].code != "packages-unfinished":
            try:
                require_finished_packages(step["operation"], step["kept"].get("unfinished", ()))
            except FailedError as left:
                problems.append(left.problem)
        reason = {
            "error": "; ".join(map(str, problems)),
            "problems": [problem.to_wire() for problem in problems],
        }
        result.update(status=_failed_status(error), **reason)
        self.record("stuck", closing=True, change=key[0], number=key[1], **reason)

    def _copy_foreign(self, operation: Operation, key: StepKey, step: Record, force: bool, result: Record) -> None:
        """Keep a copy of what others wrote, and return its name; refuse without `force`."""
        foreign = operation.changed_by_others(step["kept"], step)
        if not foreign:
            return
        if not force:
            result["foreign"] = foreign
            raise RefusedError("changed-since", subject=operation.subject, found=foreign, recorded=step.get("now"))
        copy = operation.save_copy(self.directory)
        if copy is not None:
            result["copy"] = os.path.join(self.directory.path, copy)
        self.record("set-aside", closing=True, change=key[0], number=key[1], copy=copy)


def _add_problems(result: Record, error: str, problems: List[Record]) -> None:
    result["error"] = "%s; %s" % (result["error"], error)
    result["problems"] = result["problems"] + problems


def _upgraded(step: Record) -> Record:
    """Return as `upgraded` the packages whose version a step changed, which undo cannot revert; empty if none."""
    upgraded = step.get("upgraded")
    if upgraded is None and step.get("packages") is not None:  # it failed before it was journaled
        after = package_database(step["operation"])
        upgraded = {} if after is None else changed_versions(step["packages"], after)
    return {"upgraded": upgraded} if upgraded else {}


def _end_state(result: Record, begun: bool) -> str:
    """Return how a change ended, as `RecordedRun.end_state` reads it from the journal."""
    if result["status"] == "done":
        return "written"
    return "failed-left" if result.get("left") else "failed-restored" if begun else "not-begun"


def _failed_status(error: BaseException) -> str:
    return "refused" if isinstance(error, RefusedError) else "failed"


def apply_plan(
    plan: Record, state: str, on_event: Optional[EventCallback] = None, wait: float = 0.0
) -> Tuple[str, List[Record]]:
    """Carry out every change of `plan`: (run name, one result per change).

    Ctrl-C, SIGTERM and SIGHUP revert the current change, and no further one is begun. Raises RefusedError (the plan is
    malformed, or an earlier run was interrupted), LockedError after `wait` seconds, JournalError, OSError if there is
    no room for a journal.
    """
    fault = plan_fault(plan)
    if fault is not None:
        raise RefusedError("malformed-plan", fault=fault)
    with exclusive_run(state, wait) as lock, SignalHandlers() as signals:
        interrupted = interrupted_runs(state)
        if interrupted:
            raise RefusedError("run-interrupted", run=interrupted[0].name)
        _remove_unbegun(state)
        name = _new_run_name(state)
        lock.describe(name)
        sequence = next_sequence(state)
        steps = sum(len(change["operations"]) for change in plan["changes"])
        run = Run(state, name, signals, on_event, 16384 + 1024 * (steps + len(plan["changes"])))
        run.record("begin", schema=SCHEMA, plan=plan, pid=os.getpid(), sequence=sequence, **current_caller())
        results = run.apply_all([(change, {}) for change in plan["changes"]])
        run.end("end", results)
        return name, results


def record_verified(state: str, name: str, states: Dict[str, str]) -> None:
    """Journal the outcome of the checks for the changes of a finished run: {change: end state}.

    Raises LockedError if another run has begun meanwhile, JournalError, OSError.
    """
    with exclusive_run(state, 0.0), SignalHandlers() as signals:
        if RecordedRun(state, name).in_progress:
            return
        run = Run(state, name, signals)
        run.record("verified", closing=True, states=states)
        run.journal.close(keep_reserve=True)


def _remove_unbegun(state: str) -> None:
    """Remove the remains of a run killed before the first record of its journal: it has changed nothing.

    If there is anything besides the journal, such as a saved original, nothing is removed.
    """
    for entry in os.scandir(os.path.join(state, "runs")):
        if not entry.is_dir(follow_symlinks=False) or not set(os.listdir(entry.path)) <= {JOURNAL, RESERVE}:
            continue
        journal = os.path.join(entry.path, JOURNAL)
        if os.path.isfile(journal) and os.path.getsize(journal) == 0:
            shutil.rmtree(entry.path)


def _new_run_name(state: str) -> str:
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    name, number = stamp, 0
    while os.path.lexists(os.path.join(state, "runs", name)):
        number += 1
        name = "%s-%d" % (stamp, number)
    return name
