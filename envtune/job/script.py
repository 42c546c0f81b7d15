"""The environment that a shell launch script gives the job it starts, told by reading the script.

The script is taken to be started in its own directory. What it exports counts where it starts the job (python, torchrun
and the like, also through other scripts); without such a line, what it has exported at its end. A variable is not
known, with the reason and file:line, when it is set under a condition that cannot be told, differs between the lines
that start the job, or comes from an argument or from a command's output.
"""

from __future__ import annotations

import posixpath

from envtune.errors import Denied, HostError, host_error_text
from envtune.host import Host
from envtune.job.target import JobEnvironment
from envtune.messages import Text
from envtune.shell.interpreter import Frame, Run
from envtune.shell.state import Launch, State, agreed


def script_environment(host: Host, path: str, under: JobEnvironment, sourced: bool = False) -> JobEnvironment:
    """The job's variables by `path`, over those it is started with.

    `sourced`: an env file for a shell (`set -a; . file`), of which every assignment counts.
    """
    try:
        text = host.read(path)
    except HostError as error:
        return JobEnvironment(None, path, host_error_text(error), needs_privilege=isinstance(error, Denied))
    return text_environment(host, path, text, under, sourced)


def text_environment(host: Host, path: str, text: str, under: JobEnvironment, sourced: bool = False) -> JobEnvironment:
    """The job's variables if the script at `path` held `text`."""
    launch, _ = follow(host, path, text, under, sourced)
    known = {name: value for name, value in launch.values.items() if isinstance(value, str)}
    untold = {name: value for name, value in launch.values.items() if isinstance(value, Text)}
    source = f"{path} over {under.source}" if under.variables is not None else f"{path} alone"
    # What a script that is judged alone does not name counts as not set by it.
    rest = None if under.variables is None and launch.rest is under.reason else launch.rest
    return JobEnvironment(known, source, None, False, untold, rest, {**under.places, **launch.places})


def follow(
    host: Host, path: str, text: str, under: JobEnvironment, sourced: bool = False
) -> tuple[Launch, tuple[str, ...]]:
    """What the job gets where the script starts it, and the files the script leads to."""
    base = dict(under.variables or {})
    state = State({**base, **under.untold}, {*base, *under.untold}, dict(under.places), under.rest)
    if under.variables is None:
        state.rest = under.reason
    state.cwd, state.allexport = posixpath.dirname(path), sourced
    run = Run(host, [Frame(path, path)])
    run.follow(text, state)
    last = Launch(path, state.environment(), state.places, state.rest)
    return agreed(run.launches) if run.launches else last, tuple(run.files)
