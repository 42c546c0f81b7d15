"""Whether a command exists, as the job would find it."""

from __future__ import annotations

from typing import Annotated, Iterable

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import Missing, Undetermined
from envtune.messages import N_, Message
from envtune.model import Reading
from envtune.resources.files.value import missing, reading


@probe("command.path")
def path(context: Context, *, name: Annotated[str, N_("Name of the command, without a slash.")]) -> Iterable[Reading]:
    """Path of a command, searched for on the job's PATH; `missing` if not found."""
    if "/" in name:
        raise Undetermined(Message("{name} is a path: use file.kind", name=name), name)
    folders = context.target.variables().get("PATH", "")
    for folder in dict.fromkeys(part.rstrip("/") for part in folders.split(":") if part.startswith("/")):
        file = f"{folder}/{name}"
        try:
            found = context.host.stat(file)
        except Missing:
            continue
        if found.kind == "file" and found.mode & 0o111:
            return [reading(name, file, file)]
    shown = Message("no {name} on PATH ({folders})", name=name, folders=folders or "-")
    return [missing(name, "PATH")._replace(shown=shown)]
