"""What a launch script gives the job it starts, found by executing the script abstractly."""

from __future__ import annotations

from typing import Callable, Mapping, NamedTuple

from envtune.shell.builtins import BUILTINS
from envtune.shell.interpreter import Frame, Interpreter
from envtune.shell.machine import Machine
from envtune.shell.programs import start_program
from envtune.shell.state import Launch, State, intersection


class ScriptResult(NamedTuple):
    """What the job gets, and the files that the script leads to, in the order in which they are read."""

    launch: Launch
    files: tuple[str, ...]
    readonly: Mapping[str, str] = {}  # variable -> where the script makes it so


def execute_script(
    machine: Machine, real_path: Callable[[str], str], path: str, text: str, state: State
) -> ScriptResult:
    """Return what all lines that start the job give it; without such a line, what the script has exported at its end.

    `text` is the script at `path`; `state` is what it starts with, and is changed.
    """
    interpreter = Interpreter(machine, real_path, BUILTINS, start_program, [Frame(path, path)])
    interpreter.execute(text, state)
    if interpreter.launches:
        launch = intersection(interpreter.launches)
    else:
        launch = Launch(path, state.environment(), state.places, state.unknown_by_default)
    return ScriptResult(launch, tuple(interpreter.files), state.readonly)
