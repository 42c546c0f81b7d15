"""Answer a request of `envtune fleet fix`: carry out a plan, undo what a run did here, or report what it did here.

The journaled plan contains the name of the fleet's run (`fleet`), so that a host can be asked about it later, even if
the connection was lost. A run is claimed once on a host, by the first request that arrives: a plan that is sent twice,
or that arrives after the host was asked about the run, is not carried out. So an answer stays true.
"""

import base64
import fcntl
import hashlib
import json
import os
import re
import zlib
from typing import Any, Dict, List, Optional, Tuple

from ..common import Record
from ..files import make_directory
from ..history import RecordedRun, recorded_runs
from ..problems import ExecutorError, Problem, RefusedError, failure, problem_of
from ..recover import undo_run
from ..run import apply_plan
from ..state import ensure_state_directory

MOST_RESULTS = 50  # results, in an answer, of changes that were not done
# status of a recorded run -> what it means for the fleet's run
_STATES = {
    "applied": "changed",
    "partly": "partly",
    "failed": "failed",
    "left": "left",
    "undone": "undone",
    "partly-undone": "partly-undone",
    "empty": "unchanged",
    "interrupted": "interrupted",
}
_DEVICE = re.compile("/dev/davinci[0-9]+$")


def answer_request(request: Record, state: str) -> Record:
    """Execute the request. Return `state`, the `runs` of this host, and what went wrong."""
    try:
        if request["action"] == "apply":
            return _apply_request(request, state)
        if request["action"] == "undo":
            return _undo_request(request, state)
        with _Claim(state, request["run"]) as claim:
            return _fleet_state(state, request["run"]) if claim.is_locked else {"state": "running", "runs": []}
    except (ExecutorError, OSError, ValueError, KeyError) as error:
        return dict(failure(problem_of(error)), state="refused", runs=[])


def framed_answer(answer: Record) -> str:
    """Return an answer as a frame: a few lines of text that can be found among banners and other output."""
    payload = base64.b64encode(zlib.compress(json.dumps(answer).encode("ascii"), 9)).decode("ascii")
    digest = hashlib.sha256(payload.encode("ascii")).hexdigest()[:16]
    return "\n@@ENVTUNE/1 %d %s\n%s\n@@END\n" % (len(payload), digest, payload)


def _apply_request(request: Record, state: str) -> Record:
    with _Claim(state, request["run"]) as claim:
        if not claim.is_first:
            return _fleet_state(state, request["run"])
        problem = _npu_problem(_npu_processes())
        if problem is not None:
            return dict(failure(problem), state="busy", runs=[])
        _, results = apply_plan(dict(request["plan"], fleet=request["run"]), state)
        return _with_results(_fleet_state(state, request["run"]), results)


class _Claim:
    """A file of the state directory, locked while a request about a run of the fleet is answered.

    `is_locked`: it could be locked, so no plan of the run is being carried out. `is_first`: no earlier request had it.
    """

    def __init__(self, state: str, fleet_run: str) -> None:
        if not re.match("[A-Za-z0-9-]{1,60}$", fleet_run):
            raise RefusedError("not-a-run-name", run=fleet_run)
        ensure_state_directory(state)
        folder = os.path.join(state, "fleet")
        make_directory(folder, 0o700)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._descriptor = os.open(os.path.join(folder, fleet_run), flags, 0o600)
        self.is_locked, self.is_first = True, False

    def __enter__(self) -> "_Claim":
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.is_locked = False
            return self
        self.is_first = os.fstat(self._descriptor).st_size == 0
        if self.is_first:
            os.write(self._descriptor, b"claimed\n")
            os.fsync(self._descriptor)
        return self

    def __exit__(self, *error: Any) -> None:
        os.close(self._descriptor)


def _undo_request(request: Record, state: str) -> Record:
    results: List[Record] = []
    for run in reversed(_runs_of_fleet(state, request["run"])):
        if run.open_steps() or run.in_progress:
            results += undo_run(state, run.name, None, bool(request.get("force")))
    return _with_results(_fleet_state(state, request["run"]), results)


def _with_results(answer: Record, results: List[Record]) -> Record:
    """Return the answer with the unsuccessful results."""
    wrong = [row for row in results if row["status"] not in ("done", "undone")]
    return dict(answer, results=wrong[:MOST_RESULTS], more=max(0, len(wrong) - MOST_RESULTS))


def _fleet_state(state: str, fleet_run: str) -> Record:
    """Return what a run of the fleet has left on this host, according to its journals."""
    runs = _runs_of_fleet(state, fleet_run)
    found = [_STATES.get(run.status, "unknown") for run in runs] or ["unchanged"]
    changes = {row["id"]: run.end_state(row["id"]) for run in runs for row in run.plan["changes"]}
    written = [change for change, end in changes.items() if end not in ("not-begun", "undone", "failed-restored")]
    return {"state": found[-1], "runs": [run.name for run in runs], "written": len(written)}


def _runs_of_fleet(state: str, fleet_run: str) -> List[RecordedRun]:
    return [run for run in recorded_runs(state) if run.plan.get("fleet") == fleet_run]


def _npu_processes() -> Tuple[Dict[int, str], bool]:
    """Return the processes that have an NPU open, and whether every process could be examined."""
    if not any(_DEVICE.match("/dev/" + name) for name in os.listdir("/dev")):
        return {}, True
    found, complete = {}, True
    for number in filter(str.isdigit, os.listdir("/proc")):
        folder = "/proc/%s/fd" % number
        try:
            entries = os.listdir(folder)
        except FileNotFoundError:  # it has ended
            continue
        except OSError:
            complete = False
            continue
        used = [link for link in map(_link, (os.path.join(folder, entry) for entry in entries)) if _DEVICE.match(link)]
        if used:
            found[int(number)] = used[0]
    return found, complete


def _link(path: str) -> str:
    """Return the target of a link; empty if it is gone."""
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _npu_problem(processes: Tuple[Dict[int, str], bool]) -> Optional[Problem]:
    found, complete = processes
    if found:
        shown = ", ".join("%d (%s)" % row for row in sorted(found.items())[:8])
        return Problem("npu-in-use", processes=shown)
    return None if complete else Problem("npu-use-unknown")
