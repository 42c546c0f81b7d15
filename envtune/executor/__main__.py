"""The executor as a stand-alone program."""

import json
import sys
from typing import List, Optional, Tuple

from ..trust.characters import visible
from .common import Record
from .fleet.requests import answer_request, framed_answer
from .history import interrupted_runs
from .problems import ExecutorError, problem_of
from .recover import resume_run, undo_run
from .run import apply_plan
from .state import state_directory

_USAGE = "usage: executor.py apply PLAN.json|- | undo RUN [CHANGE] | resume RUN | pending | fleet -\n"


def main(argv: Optional[List[str]] = None) -> int:
    """Run the command in the arguments and print the results as JSON. Return 0, 1 on failure, 2 for usage errors."""
    words = sys.argv[1:] if argv is None else argv
    state = state_directory()
    try:
        if words == ["pending"]:
            sys.stdout.write(json.dumps([run.name for run in interrupted_runs(state)]) + "\n")
            return 0
        if words == ["fleet", "-"]:
            sys.stdout.write(framed_answer(answer_request(json.load(sys.stdin), state)))
            return 0
        done = _execute(words, state)
    except (ExecutorError, OSError, ValueError) as error:
        sys.stderr.write("envtune executor: %s\n" % visible(str(problem_of(error))))
        return 2
    if done is None:
        sys.stderr.write(_USAGE)
        return 2
    name, results = done
    sys.stdout.write(json.dumps({"run": name, "results": results}) + "\n")
    return 0 if all(result["status"] in ("done", "undone") for result in results) else 1


def _execute(words: List[str], state: str) -> Optional[Tuple[str, List[Record]]]:
    """Return the name of the run and its results; None if the arguments are invalid."""
    if words[:1] == ["apply"] and len(words) == 2:
        with sys.stdin if words[1] == "-" else open(words[1], encoding="utf-8") as file:
            return apply_plan(json.load(file), state)
    if words[:1] == ["undo"] and len(words) in (2, 3):
        return words[1], undo_run(state, words[1], words[2] if len(words) == 3 else None)
    if words[:1] == ["resume"] and len(words) == 2:
        return words[1], resume_run(state, words[1])
    return None


if __name__ == "__main__":
    raise SystemExit(main())
