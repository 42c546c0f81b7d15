"""Whether `python3` and `pip` on the job's PATH belong to the Python that has torch; nothing is started."""

from __future__ import annotations

from typing import Iterable, Mapping, Optional, Union

from envtune.collector.paths import on_path, search_path
from envtune.collector.python.errors import Unresolved
from envtune.collector.python.interpreter import holds_torch, other_interpreters, pip_commands
from envtune.collector.python.wrappers import script_interpreter
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, NotApplicable, host_error_text
from envtune.job.interpreter import python_at, unresolved_text
from envtune.job.target import PythonTarget
from envtune.messages import Literal, Message, Text, enumerated
from envtune.model import Evidence, Reading
from envtune.resources.python.distributions import NONE, interpreter
from envtune.resources.torch.stack import version_fact


def _variables(context: Context) -> Mapping[str, str]:
    variables = context.target.environment.variables
    return context.host.environ if variables is None else variables


@probe("torch.interpreter", formerly="python_commands.torch")
def torch(context: Context) -> Iterable[Reading]:
    """Whether the Python that the job's command starts has torch; not applicable if no Python on this host has it."""
    job = _started_python(context)
    if _same_installation(job, interpreter(context)):
        has_torch, source = version_fact(context, "torch") != NONE, context.facts["torch"].source
    else:
        has_torch, source = holds_torch(context.host, job.sites), job.prefix
    line = job.path if job.path == job.real else f"{job.path} -> {job.real}"
    if has_torch:
        shown = Message("{line} has torch", line=line)
        yield Reading("python3", True, Evidence(source, line), shown, Message("a Python with torch"))
        return
    if context.facts.value("ascend") == "false":
        raise NotApplicable(
            Message("torch is not installed in {path}, and this host has no Ascend component", path=job.path), source
        )
    others = _others_with_torch(context, job)
    if not others:
        reason = Message("torch is installed neither in {path} nor in any other Python found here", path=job.path)
        raise NotApplicable(reason, source)
    shown = Message("{line} has no torch; {others} has", line=line, others=enumerated(others))
    folder, _, name = others[0].rpartition("/")
    fields = {"directory": folder} if name == "python3" else {}
    yield Reading("python3", False, Evidence(source, line), shown, Literal(" | ".join(others)), fields=fields)


def _started_python(context: Context) -> PythonTarget:
    """Return the Python the job's command starts: the named one, else `python3` on PATH."""
    options, target = context.target.options, interpreter(context)
    if options.python or options.pid is not None:
        return target
    path = on_path(context.host, _variables(context), context.host.cwd, "python3")
    started = _python_at(context, path) if path else None
    return started or target


def _python_at(context: Context, path: str) -> Optional[PythonTarget]:
    try:
        return python_at(context.host, _variables(context), path)
    except (Unresolved, HostError):
        return None


def _same_installation(first: PythonTarget, second: PythonTarget) -> bool:
    return (first.real, first.prefix) == (second.real, second.prefix)


def _others_with_torch(context: Context, job: PythonTarget) -> list[str]:
    """Return the paths of other interpreters of this host that have torch, each installation once."""
    host, variables = context.host, _variables(context)
    candidates = [interpreter(context).path, *other_interpreters(host, variables, host.cwd)]
    seen = {(job.real, job.prefix)}
    others = []
    for path in candidates:
        python = _python_at(context, path)
        if python is None or (python.real, python.prefix) in seen:
            continue
        seen.add((python.real, python.prefix))
        try:
            if holds_torch(host, python.sites):
                others.append(path)
        except HostError:
            continue  # a home directory that this user cannot read contains no Python of this job
    return others


@probe("python.pip_command", formerly="python_commands.pip")
def pip(context: Context) -> Iterable[Reading]:
    """Whether each pip command on the job's PATH installs into the job's Python."""
    host, variables, python = context.host, _variables(context), interpreter(context)
    commands = pip_commands(host, variables, host.cwd, python.version)
    if not commands:
        raise NotApplicable(
            Message("pip is not on PATH, so no other Python's pip can be used"),
            ":".join(search_path(variables, host.cwd)),
        )
    for name, path in commands:
        yield _pip_reading(context, name, path, python)


def _pip_reading(context: Context, name: str, path: str, python: PythonTarget) -> Reading:
    host, variables = context.host, _variables(context)
    expected = Message("installs into {path}", path=python.path)
    try:
        program = script_interpreter(host, variables, host.cwd, path)
    except (Unresolved, HostError) as error:
        return _unknown_pip(name, Evidence(path), expected, error)
    if program is None:
        reason = Message("{path} is not a Python script", path=path)
        return Reading(name, None, Evidence(path), expected=expected, reason=reason)
    evidence = Evidence(path, f"#!{program}")
    try:
        other = python_at(host, variables, program)
    except Unresolved as problem:
        if problem.code != "missing":
            return _unknown_pip(name, evidence, expected, problem)
        shown = Message("{path} needs {program}, which does not exist", path=path, program=program)
        return Reading(name, False, evidence, shown, expected)
    except HostError as error:
        return _unknown_pip(name, evidence, expected, error)
    shown = Message("{path} installs into {program}", path=path, program=program)
    return Reading(name, _same_installation(python, other), evidence, shown, expected)


def _unknown_pip(name: str, evidence: Evidence, expected: Text, error: Union[Unresolved, HostError]) -> Reading:
    """Return the reading of a pip command whose Python could not be determined."""
    reason = unresolved_text(error) if isinstance(error, Unresolved) else host_error_text(error)
    privilege = isinstance(error, PermissionError)
    return Reading(name, None, evidence, expected=expected, reason=reason, needs_privilege=privilege)
