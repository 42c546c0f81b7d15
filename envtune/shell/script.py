"""What a launch script gives the job it starts, found by executing the script abstractly."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Mapping, NamedTuple, Optional

from envtune.messages import Message
from envtune.shell.budget import Budget, BudgetExceeded
from envtune.shell.builtins import BUILTINS
from envtune.shell.interpreter import Frame, Interpreter
from envtune.shell.machine import CountedMachine, Machine
from envtune.shell.starting.programs import start_program
from envtune.shell.state import Launch, Launches, State


class ScriptResult(NamedTuple):
    """What the job gets, and the files that the script reads, in order."""

    launch: Launch
    files: tuple[str, ...]
    readonly: Mapping[str, str] = {}  # variable -> where the script makes it so
    sourced: frozenset[str] = frozenset()  # those of `files` that are executed in the script's own shell


def execute_script(
    machine: Machine,
    real_path: Callable[[Any, str], str],
    path: str,
    text: str,
    state: State,
    budget: Budget,
    launches: Optional[Launches] = None,
    line: int = 0,
) -> ScriptResult:
    """Return what all lines that start the job give it; without such a line, what the script has exported at its end.

    `text` is the script at `path`; `state` is what it starts with, and is modified. The cost of following it is charged
    to `budget`; if that is not enough, everything is unknown: the rest of the script may set it. `launches` receives
    the lines that start the job; with `line`, the whole text is in that line of the file.
    """
    counted = CountedMachine(machine, budget)
    follow = partial(real_path, counted)
    frame = Frame(path, path, is_line=line > 0)
    interpreter = Interpreter(counted, follow, BUILTINS, start_program, [frame], budget, line=line)
    interpreter.launches = Launches() if launches is None else launches
    try:
        interpreter.execute(text, state)
    except BudgetExceeded as error:
        reason = Message("{reason} ({place})", reason=error.reason, place=error.place)
        return ScriptResult(Launch(error.place, {}, {}, reason), tuple(interpreter.files))
    if not interpreter.launches:
        interpreter.launches.add(path, state)
    return ScriptResult(
        interpreter.launches.common(),
        tuple(interpreter.files),
        dict(state.readonly.items()),
        frozenset(interpreter.sourced),
    )
