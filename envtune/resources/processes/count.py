"""How many processes of a name there are."""

from __future__ import annotations

import posixpath
from typing import Annotated, Iterable

from envtune.context import Context
from envtune.context.registry import probe
from envtune.messages import N_, plural
from envtune.model import Evidence, Reading

NAME_LENGTH = 15  # characters that the kernel keeps of a process's name, TASK_COMM_LEN - 1


@probe("process.count")
def count(
    context: Context, *, name: Annotated[str, N_("Name of the program, such as `chronyd`.")]
) -> Iterable[Reading]:
    """Number of running processes with a given name, without zombies."""
    running = [
        process
        for process in context.host.processes()
        if process.state != "Z" and (process.name == name[:NAME_LENGTH] or _program(process.argv) == name)
    ]
    pids = ", ".join(str(process.pid) for process in running[:10])
    shown = plural("{count} process", "{count} processes", len(running))
    return [Reading(name, len(running), Evidence("/proc", f"pid {pids}" if pids else ""), shown)]


def _program(argv: tuple[str, ...]) -> str:
    return posixpath.basename(argv[0]) if argv else ""
