"""The options for compiling operators that the job's program passes to torch.npu.set_option."""

from __future__ import annotations

import posixpath
import re
from typing import Iterable, Mapping, Optional

from envtune.collector.sources.job import OPTION_DIRECTORIES, SET_OPTION
from envtune.commandline import quoted
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Missing, NotApplicable, Undetermined, host_error_text
from envtune.messages import Literal, Message, Text
from envtune.model import Command, Evidence, Reading
from envtune.resources.npu.command import job_folder, job_program

MODE, DIRECTORY = "ACL_OP_COMPILER_CACHE_MODE", "ACL_OP_COMPILER_CACHE_DIR"
# Source: porting guide 003:2764-2801; set_option in the migration guides of CANN 7.0 (the *_for_all values).
VALUES: Mapping[str, tuple[str, ...]] = {
    "ACL_OP_SELECT_IMPL_MODE": (
        "high_precision", "high_performance", "high_precision_for_all", "high_performance_for_all",
    ),
    "ACL_OP_DEBUG_LEVEL": ("0", "3"),
    MODE: ("enable", "disable", "force"),
}  # fmt: skip


IMPLEMENTED = "ACL_OPTYPELIST_FOR_IMPLMODE"  # 003:2764-2801: one of these; later releases accept others
OPERATORS = ("Pooling", "SoftmaxV2", "LRN", "ROIAlign")


@probe("config.compile_options")
def compile_options(context: Context) -> Iterable[Reading]:
    """Whether each operator compile option that the program sets suits training."""
    program = job_program(context)
    if program is None:
        raise NotApplicable(Message("no job given whose program could be read"), "--script, --pid")
    lines = (line for line in program.text.splitlines() if not line.lstrip().startswith("#"))
    options = dict(re.findall(SET_OPTION, "\n".join(lines)))
    readings = [found for name, value in options.items() if (found := _option(context, program.path, name, value))]
    pair = _pair(context, program.path, options)
    if not readings and pair is None:
        raise NotApplicable(Message("{path} sets no compile option", path=program.path), program.path)
    return readings if pair is None else [*readings, pair]


def _option(context: Context, source: str, name: str, value: str) -> Optional[Reading]:
    evidence = Evidence(source, f"{name}: {value}")
    if name in OPTION_DIRECTORIES:
        return _directory(context, evidence, name, value)
    allowed = OPERATORS if name == IMPLEMENTED and not _is_newer(context) else VALUES.get(name)
    if allowed is None:
        return None
    expected = Message("one of {allowed}", allowed=", ".join(allowed))
    return Reading(name, value in allowed, evidence, Literal(value), expected)


def _directory(context: Context, evidence: Evidence, name: str, value: str) -> Reading:
    path = posixpath.normpath(posixpath.join(job_folder(context), value))
    expected = Message("a directory that exists")
    try:
        right = context.host.stat(path).kind == "dir"
    except Missing:
        fix = (Command("fix", f"mkdir -p {quoted(path)}"),)
        shown = Message("{path} does not exist", path=path)
        return Reading(name, False, evidence, shown, expected, commands=fix)
    except HostError as error:
        return Reading(name, None, evidence, expected=expected, reason=host_error_text(error))
    shown = Message("{path} exists", path=path) if right else Message("{path} is not a directory", path=path)
    return Reading(name, right, evidence, shown, expected)


def _pair(context: Context, source: str, options: Mapping[str, str]) -> Optional[Reading]:
    """Judge mode and directory of the cache, which belong together; newer releases have a default directory."""
    given = {name: _is_given(context, options, name) for name in (MODE, DIRECTORY)}
    if not any(name in options for name in given) or None in given.values():
        return None
    right = given[MODE] == given[DIRECTORY] or (bool(given[MODE]) and _is_newer(context))
    lacking: Text = Message("both are set")
    if given[MODE] != given[DIRECTORY]:
        lacking = Message("{name} is not set", name=DIRECTORY if given[MODE] else MODE)
    return Reading(f"{MODE} / {DIRECTORY}", right, Evidence(source), lacking, Message("both, or neither"))


def _is_newer(context: Context) -> bool:
    """Return whether torch is newer than the releases that the guide describes."""
    return not (context.facts.value("torch") or "").startswith("1.")


def _is_given(context: Context, options: Mapping[str, str], name: str) -> Optional[bool]:
    if name in options:
        return True
    try:
        return bool(context.target.variables().get(name))
    except Undetermined:
        return None
