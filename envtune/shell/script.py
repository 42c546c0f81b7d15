"""What a launch script gives the job it starts, found by executing the script abstractly."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Mapping, NamedTuple

from envtune.messages import Message
from envtune.shell.budget import Budget, BudgetExceeded
from envtune.shell.builtins import BUILTINS
from envtune.shell.interpreter import Frame, Interpreter
from envtune.shell.machine import CountedMachine, Machine
from envtune.shell.programs import start_program
from envtune.shell.state import Launch, State


class ScriptResult(NamedTuple):
    """What the job gets, and the files that the script leads to, in the order in which they are read."""

    launch: Launch
    files: tuple[str, ...]
    readonly: Mapping[str, str] = {}  # variable -> where the script makes it so


def execute_script(
    machine: Machine, real_path: Callable[[Any, str], str], path: str, text: str, state: State, budget: Budget
) -> ScriptResult:
    """Return what all lines that start the job give it; without such a line, what the script has exported at its end.

    `text` is the script at `path`; `state` is what it starts with, and is changed. What following it costs is taken
    from `budget`; where that does not suffice, everything is unknown: the rest of the script may set it.
    """
    counted = CountedMachine(machine, budget)
    follow = partial(real_path, counted)
    interpreter = Interpreter(counted, follow, BUILTINS, start_program, [Frame(path, path)], budget)
    try:
        interpreter.execute(text, state)
    except BudgetExceeded as error:
        reason = Message("{reason} ({place})", reason=error.reason, place=error.place)
        return ScriptResult(Launch(error.place, {}, {}, reason), tuple(interpreter.files))
    if not interpreter.launches:
        interpreter.launches.add(path, state)
    return ScriptResult(interpreter.launches.common(), tuple(interpreter.files), dict(state.readonly.items()))
