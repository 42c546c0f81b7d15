"""Whether `python3` and `pip` on the job's PATH belong to the Python that has torch. Nothing is started."""

from __future__ import annotations

from typing import Iterable, Mapping, Optional

from envtune.collector.paths import on_path, search_path
from envtune.collector.python.errors import Unresolved
from envtune.collector.python.interpreter import holds_torch, other_interpreters, pip_commands
from envtune.collector.python.wrappers import script_interpreter
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, NotApplicable, host_error_text
from envtune.job.interpreter import python_at, unresolved_text
from envtune.job.target import PythonTarget
from envtune.messages import Literal, Message
from envtune.model import Evidence, Reading
from envtune.resources.python.distributions import NONE, interpreter
from envtune.resources.torch.stack import told_version


def _variables(context: Context) -> Mapping[str, str]:
    known = context.target.environment.variables
    return context.host.environ if known is None else known


@probe("torch.interpreter", formerly="python_commands.torch")
def torch(context: Context) -> Iterable[Reading]:
    """Whether the Python that the job's command starts has torch; NotApplicable when no Python here has it."""
    job = _started(context)
    own = interpreter(context)
    if _same(job, own):
        version = told_version(context, "torch")
        has, source = version != NONE, context.facts["torch"].source
    else:
        has, source = holds_torch(context.host, job.sites), job.prefix
    line = job.path if job.path == job.real else f"{job.path} -> {job.real}"
    if has:
        shown = Message("{line} has torch", line=line)
        yield Reading("python3", True, Evidence(source, line), shown, Message("a Python with torch"))
        return
    if context.facts.value("ascend") == "false":
        words = Message("torch is {NONE} in {path} and ascend is false", NONE=NONE, path=job.path)
        raise NotApplicable(words, source)
    others = _with_torch(context, job)
    if not others:
        reason = Message("torch is {NONE} in {path} and in every other Python found here", NONE=NONE, path=job.path)
        raise NotApplicable(reason, source)
    listed = ", ".join(others)
    shown = Message("{line} has no torch; {listed} has", line=line, listed=listed)
    yield Reading("python3", False, Evidence(source, line), shown, Literal(" | ".join(others)))


def _started(context: Context) -> PythonTarget:
    """The Python the job's command starts: the named one, else what `python3` means on PATH."""
    options, own = context.target.options, interpreter(context)
    if options.python or options.pid is not None:
        return own
    path = on_path(context.host, _variables(context), context.host.cwd, "python3")
    found = _described(context, path) if path else None
    return found or own


def _described(context: Context, path: str) -> Optional[PythonTarget]:
    try:
        return python_at(context.host, _variables(context), path)
    except (Unresolved, HostError):
        return None


def _same(one: PythonTarget, other: PythonTarget) -> bool:
    return (one.real, one.prefix) == (other.real, other.prefix)


def _with_torch(context: Context, job: PythonTarget) -> list[str]:
    """Paths of other interpreters of this host that hold torch, each installation once."""
    host, variables = context.host, _variables(context)
    candidates = [interpreter(context).path, *other_interpreters(host, variables, host.cwd)]
    seen = {(job.real, job.prefix)}
    found = []
    for path in candidates:
        python = _described(context, path)
        if python is None or (python.real, python.prefix) in seen:
            continue
        seen.add((python.real, python.prefix))
        try:
            if holds_torch(host, python.sites):
                found.append(path)
        except HostError:
            continue  # a home directory that is closed to us holds no Python of this job
    return found


@probe("python.pip_command", formerly="python_commands.pip")
def pip(context: Context) -> Iterable[Reading]:
    """Per pip command of the job's PATH whether it installs into the job's Python, by its `#!` line."""
    host, variables, own = context.host, _variables(context), interpreter(context)
    commands = pip_commands(host, variables, host.cwd, own.version)
    if not commands:
        raise NotApplicable(
            Message("pip is not on PATH: nothing can be mixed up"),
            ":".join(search_path(variables, host.cwd)),
        )
    for name, path in commands:
        yield _pip_reading(context, name, path, own)


def _pip_reading(context: Context, name: str, path: str, own: PythonTarget) -> Reading:
    host, variables = context.host, _variables(context)
    wanted = Message("installs into {path}", path=own.path)
    try:
        program = script_interpreter(host, variables, host.cwd, path)
    except Unresolved as problem:
        return Reading(name, None, Evidence(path), expected=wanted, reason=unresolved_text(problem))
    except HostError as error:
        needs_privilege = isinstance(error, PermissionError)
        return Reading(
            name, None, Evidence(path), expected=wanted, reason=host_error_text(error), needs_privilege=needs_privilege
        )
    if program is None:
        reason = Message("{path} is no Python script", path=path)
        return Reading(name, None, Evidence(path), expected=wanted, reason=reason)
    evidence = Evidence(path, f"#!{program}")
    try:
        other = python_at(host, variables, program)
    except Unresolved as problem:
        if problem.code == "missing":
            shown = Message("{path} wants {program}, which is not there", path=path, program=program)
            return Reading(name, False, evidence, shown, wanted)
        return Reading(name, None, evidence, expected=wanted, reason=unresolved_text(problem))
    except HostError as error:
        needs_privilege = isinstance(error, PermissionError)
        return Reading(
            name, None, evidence, expected=wanted, reason=host_error_text(error), needs_privilege=needs_privilege
        )
    shown = Message("{path} installs into {program}", path=path, program=program)
    return Reading(name, _same(own, other), evidence, shown, wanted)
