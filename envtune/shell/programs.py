"""Recognise the commands of a script that start the job, and the environment they give it."""

from __future__ import annotations

import posixpath
import re
from typing import Optional, Sequence

from envtune.errors import HostError, Missing
from envtune.messages import Message, Text
from envtune.shell.assignments import ASSIGNMENT
from envtune.shell.expansion import Value, unknown
from envtune.shell.interpreter import Interpreter
from envtune.shell.state import Launch, State

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


def start_program(interpreter: Interpreter, fields: Sequence[Value], state: State) -> None:
    """Execute a program: the job, a shell script, something that starts one of them, or something else."""
    words = list(fields)
    while words:
        first = words[0]
        if isinstance(first, Text):  # $PYTHON train.py: taken to be the job
            return _record_launch(interpreter, state)
        name = posixpath.basename(first)
        if name == "env":
            words = _env(interpreter, words[1:], state)
        elif name in _WRAPPERS:
            words = _wrapped(words[1:])
        else:
            return _start(interpreter, name, first, words[1:], state)


def _record_launch(interpreter: Interpreter, state: State, reason: Optional[Text] = None) -> None:
    """Record a line that starts the job, with what it gets; `reason`: why all of that is unknown."""
    values = state.environment()
    unknown_by_default = state.unknown_by_default
    if reason is not None:
        values, unknown_by_default = dict.fromkeys(values, reason), reason
    interpreter.launches.append(Launch(interpreter.place, values, dict(state.places), unknown_by_default))


def _start(interpreter: Interpreter, name: str, path: str, arguments: Sequence[Value], state: State) -> None:
    if _PYTHON.fullmatch(name):
        if not _starts_no_job(arguments):
            _record_launch(interpreter, state)
    elif name in _SHELLS:
        _start_shell(interpreter, arguments, state)
    elif name in _OUTSIDE:
        _start_outside(interpreter, name, arguments, state)
    elif name in _STARTERS:
        scripts = [word for word in arguments if isinstance(word, str) and word.endswith(".sh")]
        if scripts:
            _start_script(interpreter, scripts[0], [], state)
        else:
            _record_launch(interpreter, state)
    elif "/" in path or name.endswith(".sh"):
        _start_script(interpreter, path, arguments, state)


def _starts_no_job(arguments: Sequence[Value]) -> bool:
    """Return whether python is started for a line of code, its version or pip, and not for a job."""
    words = [argument for argument in arguments if isinstance(argument, str)]
    if not arguments or (words and words[0] in _NO_JOB):
        return True
    return words[:1] == ["-m"] and len(words) > 1 and words[1] in _NO_JOB_MODULES


def _wrapped(arguments: Sequence[Value]) -> list[Value]:
    """Return what a wrapper such as `taskset -c 0-3` starts: from the first word on that names a known program."""
    for number, argument in enumerate(arguments):
        if isinstance(argument, Text):
            continue
        name = posixpath.basename(argument)
        if _PYTHON.fullmatch(name) or name in _STARTERS | _SHELLS | _WRAPPERS | _OUTSIDE or name.endswith(".sh"):
            return list(arguments[number:])
    return []


def _env(interpreter: Interpreter, arguments: Sequence[Value], state: State) -> list[Value]:
    """Execute `env [-i] [-u NAME] A=b... program`; return the program and its arguments."""
    words = list(arguments)
    while words and isinstance(words[0], str):
        word = words.pop(0)
        assert isinstance(word, str)
        assignment = ASSIGNMENT.match(word)
        if assignment is not None:
            state.set(assignment[1], assignment[4], interpreter.place)
            state.exported.add(assignment[1])
        elif word in ("-i", "-", "--ignore-environment"):
            state.exported, state.unknown_by_default = set(), None
        elif word in ("-u", "--unset") and words and isinstance(words[0], str):
            state.unset(str(words.pop(0)), interpreter.place)
        elif word.startswith("--unset="):
            state.unset(word[8:], interpreter.place)
        elif not word.startswith("-"):
            return [word, *words]
    return words


def _start_outside(interpreter: Interpreter, name: str, arguments: Sequence[Value], state: State) -> None:
    """Execute docker, ssh or sudo: what they run does not get the script's environment."""
    if name == "sudo" and any(argument in ("-E", "--preserve-env") for argument in arguments):
        return start_program(interpreter, _wrapped(arguments), state)
    words = " ".join(argument for argument in arguments if isinstance(argument, str))
    if re.search(r"(?:^|[\s/'\";&])(?:python[0-9.]*|torchrun|[\w.-]+\.sh)(?=$|[\s'\";&])", words):
        reason = Message(
            "{place} starts the job by {name}, which does not pass this environment on",
            place=interpreter.place,
            name=name,
        )
        _record_launch(interpreter, state, reason)


def _start_shell(interpreter: Interpreter, arguments: Sequence[Value], state: State) -> None:
    """Execute `bash [options] file` and `bash -c text`."""
    words = list(arguments)
    while words and isinstance(words[0], str) and words[0].startswith(("-", "+")):
        option = str(words.pop(0))
        if option.endswith("c") and not option.startswith("--"):
            child = state.copy()
            if words and isinstance(words[0], str):
                interpreter.execute(words[0], child)
            elif words:
                _record_launch(interpreter, child, unknown("bash -c", interpreter.place))
            return
    if words:
        if isinstance(words[0], Text):
            return _record_launch(interpreter, state, words[0])
        _start_script(interpreter, words[0], words[1:], state)


def _start_script(interpreter: Interpreter, path: str, arguments: Sequence[Value], state: State) -> None:
    """Execute a script that this one starts; where it cannot be read, what it starts is unknown."""
    file = state.absolute(path)
    try:
        if file is None:
            raise Missing(path)
        if interpreter.machine.read_bytes(file)[:4] == b"\x7fELF":
            return
        interpreter.start_script(file, interpreter.machine.read(file), arguments, state)
    except Missing:
        return
    except HostError as error:
        reason = Message("{place} starts {path}: {error}", place=interpreter.place, path=path, error=error)
        _record_launch(interpreter, state, reason)
