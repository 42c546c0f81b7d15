"""Options that set variables for what a program starts: of mpirun, and of docker and the like."""

from __future__ import annotations

import re
from typing import Sequence

from envtune.shell.assignments import ASSIGNMENT, UnknownAssignment
from envtune.shell.expansion import Value
from envtune.shell.state import State

# Open MPI `-x A=1`; MPICH and Intel MPI `-genv A 1`, `-env A 1`. Sources: their manual pages of mpirun.
MPI = re.compile("-x|-genv|-env")
CONTAINER = re.compile("-e|--env")  # docker run, podman run, nerdctl run: `-e A=1`, `--env=A=1`


def set_options(arguments: Sequence[Value], names: re.Pattern[str], state: State, place: str) -> None:
    """Set and export in `state` what options with these names set."""
    for at, word in enumerate(arguments):
        if not isinstance(word, str):
            continue
        name, equals, rest = word.partition("=")
        if names.fullmatch(word) is not None:
            following = [one for one in arguments[at + 1 : at + 3] if isinstance(one, str)]
            if word.endswith("env") and word != "--env" and len(following) == 2:
                _set(f"{following[0]}={following[1]}", state, place)
            elif following:
                _set(following[0], state, place)
        elif equals and names.fullmatch(name) is not None:
            _set(rest, state, place)


def _set(text: str, state: State, place: str) -> None:
    setting = ASSIGNMENT.fullmatch(text)
    if setting is None or setting[2] or setting[3]:
        return
    state.set(setting[1], text.reason if isinstance(text, UnknownAssignment) else setting[4], place)
    state.export(setting[1])
