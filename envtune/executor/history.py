"""Read the journals of earlier runs."""

import json
import os
import re
from typing import Callable, Dict, List, Optional, Set, Tuple

from .common import Record
from .journal import JOURNAL, first_record, open_journal, read_journal
from .problems import RefusedError, errno_problem
from .state import lock_holder

SCHEMA = "envtune.journal/1"
StepKey = Tuple[str, int]  # change, number of the operation


class RecordedRun:
    """The content of one run's journal. `steps` maps (change, number) to its latest records, in the order they began.

    `in_progress` is what was in progress when the journal ends: apply, undo, or empty. `damaged` are lines that cannot
    be read; `last_undo` is the begin record of the latest undo; `version` is the schema of a journal of another
    version, of which only the first record is read.
    """

    def __init__(self, state: str, name: str) -> None:
        if not re.match("[0-9]{8}-[0-9]{6}(-[0-9]+)?$", name):
            raise RefusedError("not-a-run-name", run=name)
        self.name = name
        self.state = state
        self.directory = os.path.join(state, "runs", name)
        self.path = os.path.join(self.directory, JOURNAL)
        if not os.path.exists(self.path):
            raise RefusedError("no-such-run", run=name)
        try:
            self.records, self.damaged = read_journal(self.path)
        except OSError as error:
            raise RefusedError("os-error", path=self.path, reason=errno_problem(error)) from error
        self.begin: Record = {}
        self.last_undo: Record = {}
        self.in_progress = ""
        self.version = ""
        self.steps: Dict[StepKey, Record] = {}
        self._verified: Dict[str, str] = {}  # change -> the outcome of the checks after the run
        self._undo_tried: Set[str] = set()
        for record in self.records:
            self._add(record)

    def _add(self, record: Record) -> None:
        kind = record["type"]
        if kind == "begin":
            self.begin = record
            self.version = "" if record.get("schema") == SCHEMA else str(record.get("schema"))
            self.in_progress = "" if self.version else "apply"
        elif self.version:
            return
        elif kind == "end":
            self.in_progress = ""
        elif kind == "undo-begin":
            self.last_undo, self.in_progress = dict(record, before=self.in_progress), "undo"
        elif kind == "undo-end":
            self.in_progress = self.last_undo.get("before", "") if self.last_undo.get("change") else ""
        elif kind == "verified":
            self._verified.update(record["states"])
        elif kind in ("intent", "done", "reverting", "reverted", "stuck"):
            self._add_step(record)

    def _add_step(self, record: Record) -> None:
        kind, key = record["type"], (record["change"], record["number"])
        if kind == "intent":
            self.steps.pop(key, None)  # begun again: now the latest step
        elif kind != "done" and self.in_progress == "undo":
            self._undo_tried.add(key[0])
        step = self.steps.setdefault(key, {})
        if not (kind == "stuck" and step.get("state") == "done"):
            step["state"] = kind
        step.update({name: record[name] for name in ("operation", "kept", "now", "upgraded") if name in record})

    @property
    def plan(self) -> Record:
        """The plan of the run; without changes if it was killed before it was journaled."""
        plan: Record = {"changes": []} if self.version else self.begin.get("plan", {"changes": []})
        return plan

    @property
    def status(self) -> str:
        """One of interrupted, applied, partly, failed, left, undone, partly-undone, other-version, unreadable, empty.

        `failed` is a run that left nothing on the host, `left` one that failed and could not be reverted; `empty` one
        that was not begun, and `unreadable` one whose journal is too damaged to tell.
        """
        if self.version:
            return "other-version"
        if self.damaged and not self.begin:
            return "unreadable"
        if self.in_progress:
            return "interrupted"
        if self.steps and not self.open_steps():
            return "undone" if self.last_undo else "failed"
        done = [result for result in self.results() if result["status"] == "done"]
        if not self.results():
            return "empty"
        if self.last_undo:
            return "partly-undone"
        if not done:
            return "left" if self.open_steps() else "failed"
        return "applied" if len(done) == len(self.plan["changes"]) else "partly"

    def end_state(self, change: str) -> str:
        """Return how a change ended: a key of `fix.outcome.END_STATES`."""
        steps = [step for key, step in self.steps.items() if key[0] == change]
        reverted = [step for step in steps if step["state"] == "reverted"]
        if change in self._undo_tried:
            return "undone" if len(reverted) == len(steps) else "partly-undone" if reverted else "cannot-be-undone"
        result = {row["change"]: row for row in self.results()}.get(change)
        if result is None:
            return "begun" if len(reverted) < len(steps) else "not-begun"
        if result["status"] == "done":
            return self._verified.get(change, "written")
        if not steps:
            return "not-begun"
        return "failed-restored" if len(reverted) == len(steps) else "failed-left"

    def require_own_version(self) -> None:
        """Raise RefusedError for a run journaled by another version of envtune: that version can undo it."""
        if self.version:
            raise RefusedError("run-of-another-version", run=self.name, version=self.version)

    def results(self) -> List[Record]:
        """Return the latest result of every change that was finished."""
        return list({record["change"]: record for record in self.records if record["type"] == "change"}.values())

    def open_steps(self, change: Optional[str] = None) -> List[StepKey]:
        """Return the steps whose effect is (or may be) on the host, the latest first."""
        keys = [key for key, step in self.steps.items() if step["state"] != "reverted"]
        return [key for key in reversed(keys) if change is None or key[0] == change]


def recorded_runs(state: str) -> List[RecordedRun]:
    """Return every run, the oldest first, in the order in which they were begun, not by the clock."""
    return _readable_runs(state, lambda path: True)


def interrupted_runs(state: str) -> List[RecordedRun]:
    """Return the runs that were killed before they ended; not the one in progress."""
    under_way = (lock_holder(state) or {}).get("run")
    return [run for run in _readable_runs(state, _may_be_open) if run.in_progress and run.name != under_way]


def next_sequence(state: str) -> int:
    """Return the number of the next run: one more than the highest in any journal."""
    return max([0, *_sequences(state).values()]) + 1


def _sequences(state: str) -> Dict[str, int]:
    """Return {run: its number}; one without (of 0.1, or damaged) goes by the time in its name."""
    folder = os.path.join(state, "runs")
    sequences: Dict[str, int] = {}
    latest = 0
    for name in sorted(os.listdir(folder), key=_by_time) if os.path.isdir(folder) else []:
        number = first_record(os.path.join(folder, name, JOURNAL)).get("sequence")
        latest = number if isinstance(number, int) else latest
        sequences[name] = latest
    return sequences


def _readable_runs(state: str, wanted: Callable[[str], bool]) -> List[RecordedRun]:
    runs = []
    sequences = _sequences(state)
    for name in sorted(sequences, key=lambda name: (sequences[name], _by_time(name))):
        path = os.path.join(state, "runs", name, JOURNAL)
        try:
            if os.path.exists(path) and not wanted(path):
                continue
            run = RecordedRun(state, name)
        except (RefusedError, OSError):
            continue
        if run.records or run.damaged:
            runs.append(run)
    return runs


def _by_time(name: str) -> Tuple[str, int]:
    stamp, _, number = name.partition("-")[2].partition("-")
    return name[:9] + stamp, int(number) if number.isdecimal() else 0


def _may_be_open(path: str) -> bool:
    """Return False if the last line of a journal says that the run ended: then there is no need to read all of it."""
    with open_journal(path) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - 65536))
        lines = file.read().splitlines()
    try:
        return json.loads(lines[-1].decode("ascii"))["record"]["type"] not in ("end", "verified")
    except (ValueError, KeyError, TypeError, IndexError):
        return True
