"""Where AOE stores its results: the directory of TUNE_BANK_PATH."""

from __future__ import annotations

from typing import Iterable

from envtune.commandline import quoted
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Missing, NotApplicable, Undetermined, host_error_text
from envtune.messages import Message, Text
from envtune.model import Command, Evidence, FileStat, Reading
from envtune.resources.npu.devices import ELSEWHERE, runs_elsewhere

NAME = "TUNE_BANK_PATH"


@probe("config.tuning_bank")
def tuning_bank(context: Context) -> Iterable[Reading]:
    """State of the directory in TUNE_BANK_PATH: `usable`, `missing`, `other` (no directory) or `closed` (not writable).

    Source: porting guide 003:1563-1583; envref_07_0104 of CANN 8.0-9.1.
    """
    environment = context.target.environment
    path = context.target.variables().get(NAME, "")
    if not path:
        raise NotApplicable(Message("TUNE_BANK_PATH is not set"), environment.description)
    evidence, expected = Evidence(environment.place(NAME), f"{NAME}={path}"), Message("a directory this user may write")
    if not path.startswith("/"):
        reason = Message("{path} is relative, and the job's working directory is unknown", path=path)
        raise Undetermined(reason, evidence.source)
    if runs_elsewhere(context):
        raise Undetermined(ELSEWHERE, evidence.source)
    return [_bank(context, path, evidence, expected)]


def _bank(context: Context, path: str, evidence: Evidence, expected: Text) -> Reading:
    try:
        found = context.host.stat(path)
    except Missing:
        fix = (Command("fix", f"mkdir -p {quoted(path)}"),)
        return Reading(NAME, "missing", evidence, Message("{path} does not exist", path=path), expected, commands=fix)
    except HostError as error:
        return Reading(NAME, None, evidence, expected=expected, reason=host_error_text(error))
    if found.kind != "dir":
        return Reading(NAME, "other", evidence, Message("{path} is not a directory", path=path), expected)
    if _may_write(context, found):
        return Reading(NAME, "usable", evidence, Message("{path} exists", path=path), expected)
    shown = Message("this user may not write in {path}", path=path)
    return Reading(NAME, "closed", evidence, shown, expected)


def _may_write(context: Context, found: FileStat) -> bool:
    """Return whether this user may use a directory; any group counts as one of the user's, as it may be."""
    euid = context.host.euid
    parts = (0o700,) if found.uid == euid else (0o070, 0o007)
    return euid == 0 or any(found.mode & part == part for part in parts)
