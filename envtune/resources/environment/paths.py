"""Whether variables that name a directory or file are valid; they are `paths` in envtune/data/variables.json."""

from __future__ import annotations

import posixpath
from typing import Any, Iterable, Mapping, Optional

from envtune.commandline import quoted
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import Denied, HostError, Missing, NotApplicable, host_error_text
from envtune.host import Host
from envtune.messages import N_, Message, Text
from envtune.model import Command, Evidence, Reading
from envtune.resources.environment.reference import path_variables
from envtune.resources.environment.variables import set_variables
from envtune.resources.npu.devices import ELSEWHERE, runs_elsewhere

_WANTED: Mapping[str, Text] = {
    "dir": Message("a directory that exists"),
    "file": Message("a file that exists"),
    "made": Message("a directory, or a path where one can be created"),
}

_NONE = {"dir": N_("{path} is not a directory"), "file": N_("{path} is not a file")}


@probe("environment.paths")
def paths(context: Context) -> Iterable[Reading]:
    """Whether the file or directory in each path variable of the job exists."""
    present, gaps = set_variables(context, path_variables())
    present = {name: path for name, path in present.items() if path}
    if not present and not gaps:
        raise NotApplicable(
            Message("no variable that names a directory or a file is set"), context.target.environment.description
        )
    return [*(_reading(context, name, path) for name, path in present.items()), *gaps]


def _reading(context: Context, name: str, path: str) -> Reading:
    row = path_variables()[name]
    wanted = _WANTED["made" if row.get("made") else row["kind"]]
    evidence = Evidence(context.target.environment.place(name), f"{name}={path}")

    def unknown(reason: Text, needs_privilege: bool = False) -> Reading:
        return Reading(name, None, evidence, expected=wanted, reason=reason, needs_privilege=needs_privilege)

    if runs_elsewhere(context):
        return unknown(ELSEWHERE)
    if not path.startswith("/"):
        return unknown(Message("{path} is relative, and the job's working directory is unknown", path=path))
    try:
        is_missing, defect = _is_missing(context.host, path), _defect(context.host, path, row)
    except HostError as error:
        return unknown(host_error_text(error), isinstance(error, Denied))
    commands = (Command("fix", f"mkdir -p {quoted(path)}"),) if defect and is_missing and row["kind"] == "dir" else ()
    sound = (
        Message("{path} does not exist yet and is created on use", path=path)
        if is_missing
        else Message("{path} exists", path=path)
    )
    return Reading(name, defect is None, evidence, defect or sound, wanted, commands=commands)


def _defect(host: Host, path: str, row: Mapping[str, Any]) -> Optional[Text]:
    """Return what is wrong with the path; raises HostError if it cannot be examined."""
    try:
        kind = host.stat(path).kind
    except Missing:
        return _no_place(host, path) if row.get("made") else Message("{path} does not exist", path=path)
    if kind != row["kind"]:
        template = _NONE[row["kind"]]
        return Message(template, path=path)
    if "holds" in row and _is_missing(host, posixpath.join(path, row["holds"])):
        return Message("{path} does not exist", path=posixpath.join(path, row["holds"]))
    return None


def _no_place(host: Host, path: str) -> Optional[Text]:
    """Return why no directory can be created there: a parent is not a directory."""
    while path not in ("/", ""):
        path = posixpath.dirname(path)
        if not _is_missing(host, path):
            return None if host.stat(path).kind == "dir" else Message("{path} is not a directory", path=path)
    return None


def _is_missing(host: Host, path: str) -> bool:
    try:
        host.stat(path)
    except Missing:
        return True
    return False
