"""The configuration of dumps: acl.json, and the file passed to set_dump."""

from __future__ import annotations

import json
import posixpath
import re
from typing import Any, Iterable, Mapping, Optional

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Missing, NotApplicable, host_error_text
from envtune.messages import Message, Text, clauses
from envtune.model import Evidence, Reading
from envtune.resources.npu.command import job_folder, job_program

VARIABLE = "TORCH_ACL_INIT_CONFIG_PATH"
NAMES = ("acl.json", "dump.json")
MODES = ("input", "output", "all")
SWITCHES = ("on", "off")
_SET_DUMP = re.compile(r"set_dump\(\s*[\"']([^\"'\n]+)[\"']")


@probe("config.dump")
def dump(context: Context) -> Iterable[Reading]:
    """State of each dump configuration of the job: `valid`, `invalid`, or `missing` if its dump path does not exist.

    Examines the file of TORCH_ACL_INIT_CONFIG_PATH, the one passed to set_dump, and acl.json and dump.json in the job's
    working directory. Source: porting guide 003:1789-1804, 2611-2682; reference of aclInit.
    """
    readings = [found for found in (_judged(context, path) for path in _paths(context)) if found is not None]
    if not readings:
        raise NotApplicable(Message("the job has no acl.json or dump.json"), job_folder(context))
    return readings


def _paths(context: Context) -> Iterable[str]:
    folder, program = job_folder(context), job_program(context)
    named = [context.target.variables().get(VARIABLE, "")]
    named += _SET_DUMP.findall(program.text) if program is not None else []
    paths = [posixpath.join(folder, name) for name in named if name] + [posixpath.join(folder, name) for name in NAMES]
    return dict.fromkeys(map(posixpath.normpath, paths))


def _judged(context: Context, path: str) -> Optional[Reading]:
    expected = Message("JSON with a dump section whose directory can be made")
    try:
        text = context.host.read(path)
    except Missing:
        return None  # for a variable, another check reports it
    except HostError as error:
        return Reading(path, None, Evidence(error.path, str(error)), reason=host_error_text(error))
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        shown = Message("not JSON: {error}", error=error)
        return Reading(path, "invalid", Evidence(path, text[:400]), shown, expected)
    section = data.get("dump") if isinstance(data, dict) else None
    if section is None and isinstance(data, dict):
        return Reading(path, "valid", Evidence(path, text[:400]), Message("without a dump section"), expected)
    defects = list(_defects(section))
    if defects:
        return Reading(path, "invalid", Evidence(path, text[:400]), clauses(defects), expected)
    return _with_place(context, path, section or {}, text)


def _defects(section: Any) -> Iterable[Text]:
    """Yield what is wrong with a dump section; missing settings have defaults."""
    if not isinstance(section, dict):
        yield Message("dump is not an object")
        return
    if not isinstance(section.get("dump_list", []), list):
        yield Message("dump_list is not a list")
    for key, allowed in (("dump_mode", MODES), ("dump_op_switch", SWITCHES)):
        value = section.get(key, allowed[0])
        if value not in allowed:
            yield Message("{key} is {value!r}, not one of {allowed}", key=key, value=value, allowed=", ".join(allowed))


def _with_place(context: Context, path: str, section: Mapping[str, Any], text: str) -> Reading:
    """Judge the dump path: it, or the directory in which it would be created, must exist."""
    expected = Message("JSON with a dump section whose directory can be made")
    place = section.get("dump_path")
    if not isinstance(place, str) or not place:
        return Reading(path, "valid", Evidence(path, text[:400]), Message("without dump_path"), expected)
    place = posixpath.normpath(posixpath.join(job_folder(context), place))
    for folder in (place, posixpath.dirname(place)):
        try:
            if context.host.stat(folder).kind == "dir":
                return Reading(path, "valid", Evidence(path, text[:400]), Message("dumps to {place}", place=place))
        except Missing:
            continue
        break
    shown = Message("dump_path {place} does not exist and cannot be made", place=place)
    return Reading(path, "missing", Evidence(path, text[:400]), shown, expected)
