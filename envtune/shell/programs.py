"""Which commands of a script start the job, and with which environment."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Optional, Sequence

from envtune.errors import HostError, Missing
from envtune.messages import Message, Text
from envtune.shell.assignments import ASSIGNMENT, absolute
from envtune.shell.expansion import Value, unknown
from envtune.shell.state import Launch, State

if TYPE_CHECKING:
    from envtune.shell.interpreter import Run

Status = Optional[bool]
# What starts a training job; every other program leaves the variables of the script as they are.
_PYTHON = re.compile(r"(?:python|pypy)[0-9.]*|ipython3?")
_STARTERS = frozenset(
    (
        *("torchrun", "torch_run", "deepspeed", "accelerate", "msrun", "colossalai"),
        *("horovodrun", "mpirun", "mpiexec", "srun"),
    )
)
_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh"))
_WRAPPERS = frozenset(
    (
        *("nohup", "time", "taskset", "numactl", "nice", "ionice", "stdbuf", "setsid", "timeout", "unbuffer", "chrt"),
        *("env", "exec", "command", "builtin"),
    )
)
_OUTSIDE = frozenset(
    ("docker", "podman", "nerdctl", "kubectl", "ssh", "pdsh", "sudo", "su", "ctr", "crictl", "singularity", "apptainer")
)
_NO_JOB = frozenset(("-c", "-V", "--version", "-h", "--help"))
_NO_JOB_MODULES = frozenset(("pip", "venv", "virtualenv", "ensurepip", "compileall", "site", "json.tool"))


def launch(run: Run, state: State, reason: Optional[Text] = None) -> None:
    """Record a line that starts the job, with what it gets; `reason`: why that is not known at all."""
    values = state.environment()
    rest = state.rest
    if reason is not None:
        values, rest = dict.fromkeys(values, reason), reason
    run.launches.append(Launch(run.place, values, dict(state.places), rest))


def program(run: Run, fields: Sequence[Value], state: State) -> None:
    """A program is started: the job, a shell script, something that starts one of them, or something else."""
    left = list(fields)
    while left:
        first = left[0]
        if isinstance(first, Text):  # $PYTHON train.py: taken to be the job
            return launch(run, state)
        name = posixpath.basename(first)
        if name == "env":
            left = _env(run, left[1:], state)
        elif name in _WRAPPERS:
            left = _wrapped(left[1:])
        else:
            return _started(run, name, first, left[1:], state)


def _started(run: Run, name: str, path: str, arguments: Sequence[Value], state: State) -> None:
    if _PYTHON.fullmatch(name):
        if not _does_something_else(arguments):
            launch(run, state)
    elif name in _SHELLS:
        _shell_script(run, arguments, state)
    elif name in _OUTSIDE:
        _started_outside(run, name, arguments, state)
    elif name in _STARTERS:
        scripts = [one for one in arguments if isinstance(one, str) and one.endswith(".sh")]
        if scripts:
            _nested(run, scripts[0], [], state)
        else:
            launch(run, state)
    elif "/" in path or name.endswith(".sh"):
        _nested(run, path, arguments, state)


def _does_something_else(arguments: Sequence[Value]) -> bool:
    """Whether python was started for a line of code, its version or pip, and not for a job."""
    words = [one for one in arguments if isinstance(one, str)]
    options = [word for word in words[:1] if word in _NO_JOB]
    return (
        bool(options) or not arguments or (words[:1] == ["-m"] and words[1:2] and words[1] in _NO_JOB_MODULES) is True
    )


def _wrapped(arguments: Sequence[Value]) -> list[Value]:
    """What a wrapper such as `taskset -c 0-3` starts: the first word that looks like a program of ours."""
    for number, one in enumerate(arguments):
        if isinstance(one, Text):
            continue
        name = posixpath.basename(one)
        if _PYTHON.fullmatch(name) or name in _STARTERS | _SHELLS | _WRAPPERS | _OUTSIDE or name.endswith(".sh"):
            return list(arguments[number:])
    return []


def _env(run: Run, arguments: Sequence[Value], state: State) -> list[Value]:
    """`env [-i] [-u NAME] A=b... program`: sets the variables; the program and its arguments are left."""
    left = list(arguments)
    while left and isinstance(left[0], str):
        word = left.pop(0)
        assert isinstance(word, str)
        found = ASSIGNMENT.match(word)
        if found is not None:
            state.set(found[1], found[4], run.place)
            state.exported.add(found[1])
        elif word in ("-i", "-", "--ignore-environment"):
            state.exported, state.rest = set(), None
        elif word in ("-u", "--unset") and left and isinstance(left[0], str):
            state.unset(str(left.pop(0)), run.place)
        elif word.startswith("--unset="):
            state.unset(word[8:], run.place)
        elif not word.startswith("-"):
            return [word, *left]
    return left


def _started_outside(run: Run, name: str, arguments: Sequence[Value], state: State) -> None:
    """docker, ssh, sudo: what runs there does not get the script's environment."""
    if name == "sudo" and any(one in ("-E", "--preserve-env") for one in arguments):
        return program(run, _wrapped(arguments), state)
    words = " ".join(one for one in arguments if isinstance(one, str))
    if re.search(r"(?:^|[\s/'\";&])(?:python[0-9.]*|torchrun|[\w.-]+\.sh)(?=$|[\s'\";&])", words):
        reason = Message(
            "{place} starts the job by {name}, which does not pass this environment on", place=run.place, name=name
        )
        launch(run, state, reason)


def _shell_script(run: Run, arguments: Sequence[Value], state: State) -> None:
    """`bash [options] file` and `bash -c text`."""
    left = list(arguments)
    while left and isinstance(left[0], str) and left[0].startswith(("-", "+")):
        option = str(left.pop(0))
        if option.endswith("c") and not option.startswith("--"):
            child = state.copy()
            if left and isinstance(left[0], str):
                run.follow(left[0], child)
            elif left:
                launch(run, child, unknown("bash -c", run.place))
            return
    if left:
        if isinstance(left[0], Text):
            return launch(run, state, left[0])
        _nested(run, left[0], left[1:], state)


def _nested(run: Run, path: str, arguments: Sequence[Value], state: State) -> None:
    """A script that this one starts: followed when it can be read, otherwise what it starts is not known."""
    where = absolute(path, state.cwd)
    try:
        if where is None:
            raise Missing(path)
        if run.host.read_bytes(where)[:4] == b"\x7fELF":
            return
        run.script(where, run.host.read(where), arguments, state)
    except Missing:
        return
    except HostError as error:
        launch(run, state, Message("{place} starts {path}: {error}", place=run.place, path=path, error=error))
