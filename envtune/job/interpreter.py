"""Find the interpreter of the job by reading, never by starting it. Uses the collector's search, as for recording."""

from __future__ import annotations

import re
from typing import Any, Mapping, Optional, Union

from envtune.collector.python.errors import Unresolved
from envtune.collector.python.interpreter import describe_interpreter, find_interpreter
from envtune.errors import HostError, host_error_text
from envtune.host import Host
from envtune.job.target import PythonTarget, TargetOptions
from envtune.messages import N_, Literal, Message, Text


def find_python(
    host: Host, options: TargetOptions, variables: Optional[Mapping[str, str]]
) -> Union[PythonTarget, Text]:
    """Return the interpreter of the job, or the reason why it is unknown.

    Without the job's variables (a shell cleared by sudo) envtune's own PATH decides; the header names the result.
    """
    environ = host.environ if variables is None else variables
    try:
        interpreter = find_interpreter(host, environ, host.cwd, options.python or "", options.pid)
    except Unresolved as problem:
        return unresolved_text(problem)
    except HostError as error:
        return host_error_text(error)
    return _target(interpreter, _chosen_text(interpreter["chosen"], options))


def python_at(host: Host, variables: Mapping[str, str], path: str) -> PythonTarget:
    """Return the interpreter behind `path`; raises Unresolved or a HostError."""
    return _target(describe_interpreter(host, variables, host.cwd, path), Literal(path))


def _target(interpreter: Mapping[str, Any], chosen: Text) -> PythonTarget:
    return PythonTarget(
        interpreter["path"],
        interpreter["real"],
        interpreter["version"],
        interpreter["kind"],
        interpreter["prefix"],
        tuple(interpreter["sites"]),
        chosen,
    )


def _chosen_text(code: str, options: TargetOptions) -> Text:
    """Return why this interpreter was chosen."""
    if code == "named":
        return Message("from --python {python}", python=options.python)
    if code == "pid":
        return Message("runs process {pid}", pid=options.pid)
    if code == "PATH":
        return Message("the first python3 on PATH")
    return Message("the environment of ${variable}", variable=code)


def unresolved_text(problem: Unresolved) -> Text:
    """Return why the interpreter is unknown, with the path where the search stopped."""
    template = _UNRESOLVED[problem.code]
    if not problem.detail:
        template = _WITHOUT_DETAIL.get(problem.code, template)
    process = re.match(r"/proc/(\d+)", problem.path)
    return Message(
        template, path=problem.path, detail=problem.detail or problem.path, pid=process[1] if process else problem.path
    )


# code of Unresolved -> the sentence
_UNRESOLVED: Mapping[str, str] = {
    "not-on-path": N_("{detail} is not on PATH"),
    "missing": N_("{path} does not exist"),
    "no-python-in": N_("{path} is a directory without bin/python3"),
    "no-process": N_("no process {pid}"),
    "other-namespace": N_("process {pid} has other file systems (it runs in a container): run envtune inside it"),
    "not-python": N_("process {pid} runs {detail}, which is not a Python"),
    "circle": N_("{path} points to itself"),
    "not-a-file": N_("{path} is not a file"),
    "not-an-interpreter": N_("{path} is neither a program nor a script"),
    "pyenv": N_("{path} is a pyenv shim, and no version of {detail} has this program"),
    "wrapper": N_("{path} is a script; which Python it starts is unknown: {detail}"),
    "version": N_("the version of {path} is unknown (libraries of {detail})"),
    "no-library": N_("no {detail} above {path}"),
}
_WITHOUT_DETAIL: Mapping[str, str] = {
    "wrapper": N_("{path} is a script; which Python it starts is unknown"),
    "version": N_("the version of {path} is unknown (no lib/pythonX.Y)"),
}
