"""The environment that a shell launch script passes to the job it starts, determined by reading the script.

The script is assumed to be started in its own directory. What counts is what it has exported where it starts the job
(python, torchrun and the like, also through other scripts); without such a line, at its end. A variable is unknown,
with the reason and file:line, if it is set under a condition that cannot be decided by reading, differs between the
lines that start the job, or comes from an argument or from a command's output.
"""

from __future__ import annotations

import posixpath

from envtune.errors import Denied, HostError, host_error_text
from envtune.host import Host, realpath
from envtune.job.foreign import foreign_environment
from envtune.job.language import foreign_language
from envtune.job.target import JobEnvironment, alone, layered
from envtune.messages import Text
from envtune.shell.budget import Budget
from envtune.shell.machine import script_text
from envtune.shell.script import ScriptResult, execute_script
from envtune.shell.state import State


def script_environment(host: Host, path: str, base: JobEnvironment, sourced: bool = False) -> JobEnvironment:
    """Return the job's variables after the script at `path`, on top of those it is started with.

    `sourced`: an env file for a shell (`set -a; . file`), in which every assignment counts.
    """
    try:
        text = script_text(path, host.read_bytes(path))
    except HostError as error:
        return JobEnvironment(None, path, host_error_text(error), needs_privilege=isinstance(error, Denied))
    return text_environment(host, path, text, base, sourced)


def text_environment(host: Host, path: str, text: str, base: JobEnvironment, sourced: bool = False) -> JobEnvironment:
    """Return the job's variables if the script at `path` contained `text`."""
    language = None if sourced else foreign_language(path, text)
    if language is not None:
        return foreign_environment(path, text, language, base)
    launch = read_script(host, path, text, base, sourced).launch
    known = {name: value for name, value in launch.values.items() if isinstance(value, str)}
    unknown = {name: value for name, value in launch.values.items() if isinstance(value, Text)}
    source = layered(path, base.source) if base.variables is not None else alone(path)
    # A variable not mentioned by a script that is judged on its own counts as not set by it.
    inherited = base.variables is None and launch.unknown_by_default is base.reason
    default = None if inherited else launch.unknown_by_default
    return JobEnvironment(known, source, None, False, unknown, default, {**base.places, **launch.places})


def read_script(host: Host, path: str, text: str, base: JobEnvironment, sourced: bool = False) -> ScriptResult:
    """Return what the job gets where the script starts it, and the files that the script reads."""
    variables = dict(base.variables or {})
    default = base.reason if base.variables is None else base.unknown_by_default
    state = State.started({**variables, **base.unknown}, base.places, default, posixpath.dirname(path))
    state.allexport = sourced
    return execute_script(host, realpath, path, text, state, Budget())
