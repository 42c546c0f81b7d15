"""Recognize the commands of a script that start the job, and the environment they give it."""

from __future__ import annotations

import posixpath
import re
from collections import deque
from typing import Sequence

from envtune.errors import Elsewhere, HostError, Missing
from envtune.messages import Message, Text
from envtune.shell.assignments import ASSIGNMENT, UnknownAssignment
from envtune.shell.expansion import Value, unknown
from envtune.shell.interpreter import Interpreter
from envtune.shell.starting.options import CONTAINER, MPI, set_options
from envtune.shell.starting.shells import SHELLS, names_script, program_of_shell, reads_input, reads_input_outside
from envtune.shell.starting.slurm import Option, apply_exports, directive_exports, export_option
from envtune.shell.state import State

# What starts a training job; other programs leave the variables of the script unchanged.
_PYTHON = re.compile(r"(?:python|pypy)[0-9.]*|ipython3?")
_STARTERS = frozenset(
    (
        *("torchrun", "torch_run", "deepspeed", "accelerate", "msrun", "colossalai"),
        *("horovodrun", "mpirun", "mpiexec", "srun", "sbatch"),
    )
)
_STARTERS_OF_ANYTHING = frozenset(("mpirun", "mpiexec", "srun"))
_WRAPPERS = frozenset(
    (
        *("nohup", "time", "taskset", "numactl", "nice", "ionice", "stdbuf", "setsid", "timeout", "unbuffer", "chrt"),
        *("env", "exec", "command", "builtin"),
    )
)
_OUTSIDE = frozenset(
    ("docker", "podman", "nerdctl", "kubectl", "ssh", "pdsh", "sudo", "su", "ctr", "crictl", "singularity", "apptainer")
)
_PROGRAMS = _STARTERS | SHELLS | _WRAPPERS | _OUTSIDE
_NO_JOB = frozenset(("-c", "-V", "--version", "-h", "--help"))
_NO_JOB_MODULES = frozenset(("pip", "venv", "virtualenv", "ensurepip", "compileall", "site", "json.tool"))


def start_program(interpreter: Interpreter, fields: Sequence[Value], state: State) -> None:
    """Execute a program: the job, a shell script, something that starts one of them, or something else."""
    words = deque(fields)
    while words:
        first = words.popleft()
        if isinstance(first, Text):  # $PYTHON train.py: assumed to be the job
            return interpreter.launches.add(interpreter.place, state)
        name = posixpath.basename(first)
        if name == "env":
            _env(interpreter, words, state)
        elif name in _WRAPPERS:
            _skip_to_program(words)
        else:
            return _start(interpreter, name, first, words, state)


def _start(interpreter: Interpreter, name: str, path: str, words: deque[Value], state: State) -> None:
    arguments = list(words)
    if _PYTHON.fullmatch(name):
        if not _starts_no_job(arguments):
            interpreter.launches.add(interpreter.place, state)
    elif name in SHELLS:
        _start_shell(interpreter, arguments, state)
    elif name in _OUTSIDE:
        _start_outside(interpreter, name, arguments, state)
    elif name in _STARTERS:
        _start_job(interpreter, name, arguments, state)
    elif "/" in path or name.endswith(".sh"):
        _start_script(interpreter, path, arguments, state)


def _start_job(interpreter: Interpreter, name: str, arguments: list[Value], state: State) -> None:
    """Execute torchrun, srun and the like: the job itself, a script, or with srun and mpirun `bash -c text`."""
    if name in ("srun", "sbatch"):
        option = export_option(arguments)
        if option is not None:
            apply_exports(option, state, interpreter.place)
    if name in ("mpirun", "mpiexec"):
        set_options(arguments, MPI, state, interpreter.place)
    if name in _STARTERS_OF_ANYTHING:
        words = _from_shell(arguments)
        if len(words) > 1 and re.fullmatch("-[a-z]*c", str(words[1])):
            return _start_shell(interpreter, words[1:], state)
        if words and interpreter.stdin is not None and reads_input(words[1:]):
            return interpreter.execute_input(state.child(), state)
    if name == "sbatch" and interpreter.stdin is not None and not names_script(arguments):
        return _submit_input(interpreter, arguments, state)
    _start_named(interpreter, arguments, state)


def _from_shell(arguments: Sequence[Value]) -> Sequence[Value]:
    """Return the arguments starting at the name of a shell."""
    for at, word in enumerate(arguments):
        if isinstance(word, str) and posixpath.basename(word) in SHELLS:
            return arguments[at:]
    return ()


def _start_named(interpreter: Interpreter, arguments: Sequence[Value], state: State) -> None:
    """Execute the script among the arguments; if there is none, the job is started."""
    scripts = [word for word in arguments if isinstance(word, str) and word.endswith(".sh")]
    if scripts:
        return _start_script(interpreter, scripts[0], [], state)
    interpreter.launches.add(interpreter.place, state)


def _submit_input(interpreter: Interpreter, arguments: Sequence[Value], state: State) -> None:
    """Execute `sbatch <<END`: its directives set variables unless an option of the command does."""
    child, document = state.child(), interpreter.stdin.document if interpreter.stdin is not None else None
    if document is not None and export_option(arguments) is None:
        for number, text in deque(directive_exports(document.text or ""), 1):  # the last one counts
            line = document.line + interpreter.frame.offset + number - 1
            apply_exports(Option(text), child, f"{interpreter.frame.path}:{line}")
    interpreter.execute_input(child, state)


def _starts_no_job(arguments: Sequence[Value]) -> bool:
    """Return whether python is started for a line of code, its version or pip, and not for a job."""
    words = [argument for argument in arguments if isinstance(argument, str)]
    if not arguments or (words and words[0] in _NO_JOB):
        return True
    return words[:1] == ["-m"] and len(words) > 1 and words[1] in _NO_JOB_MODULES


def _skip_to_program(words: deque[Value]) -> None:
    """Drop a wrapper such as `taskset -c 0-3` before what it starts, the first name of a known program."""
    while words:
        if isinstance(words[0], str):
            name = posixpath.basename(words[0])
            if _PYTHON.fullmatch(name) or name in _PROGRAMS or name.endswith(".sh"):
                return
        words.popleft()


def _env(interpreter: Interpreter, words: deque[Value], state: State) -> None:
    """Execute `env [-i] [-u NAME] A=b... program`; the program and its arguments are left in `words`."""
    while words and isinstance(words[0], str):
        word = words[0]
        assert isinstance(word, str)
        assignment = ASSIGNMENT.match(word)
        if assignment is None and not word.startswith("-"):
            return
        words.popleft()
        if assignment is not None:
            value = word.reason if isinstance(word, UnknownAssignment) else assignment[4]
            state.set(assignment[1], value, interpreter.place)
            state.export(assignment[1])
        elif word in ("-i", "-", "--ignore-environment"):
            interpreter.budget.look(len(state.variables))
            for name, _ in list(state.variables.items()):
                state.export(name, False)
            state.unknown_by_default = None
        elif word in ("-u", "--unset") and words and isinstance(words[0], str):
            state.unset(str(words.popleft()), interpreter.place)
        elif word.startswith("--unset="):
            state.unset(word[8:], interpreter.place)


def _start_outside(interpreter: Interpreter, name: str, arguments: list[Value], state: State) -> None:
    """Execute docker, ssh or sudo: what they run does not get the script's environment."""
    if name == "sudo" and any(argument in ("-E", "--preserve-env") for argument in arguments):
        words = deque(arguments)
        _skip_to_program(words)
        return start_program(interpreter, words, state)
    if interpreter.stdin is not None and reads_input_outside(name, arguments):
        inside = State(unknown_by_default=state.unknown_by_default)
        set_options(arguments, CONTAINER, inside, interpreter.place)
        return interpreter.execute_input(inside, state)
    line = " ".join(argument for argument in arguments if isinstance(argument, str))
    interpreter.budget.make(len(line))
    if re.search(r"(?:^|[\s/'\";&])(?:python[0-9.]*|torchrun|[\w.-]+\.sh)(?=$|[\s'\";&])", line):
        reason = Message(
            "{place} starts the job through {name}, which does not pass on this environment",
            place=interpreter.place,
            name=name,
        )
        inside = State(unknown_by_default=state.unknown_by_default)
        set_options(arguments, CONTAINER, inside, interpreter.place)
        interpreter.launches.add_outside(interpreter.place, reason, state, inside)


def _start_shell(interpreter: Interpreter, arguments: Sequence[Value], state: State) -> None:
    """Execute `bash [options] file`, `bash -c text`, and `bash` with a here-document."""
    found = program_of_shell(arguments)
    if isinstance(found, Text):
        return interpreter.launches.add_unread(interpreter.place, found, state)
    if found.text:
        return _start_text(interpreter, found.words, state)
    if found.words and not found.stdin:
        return _start_script(interpreter, str(found.words[0]), found.words[1:], state, is_script=True)
    child = state.child()
    child.arguments = found.words
    interpreter.execute_input(child, state)


def _start_text(interpreter: Interpreter, words: Sequence[Value], state: State) -> None:
    child = state.copy()
    if words and isinstance(words[0], str):
        interpreter.execute_line(words[0], child)
    elif words:
        interpreter.launches.add_unread(interpreter.place, unknown("bash -c", interpreter.place), state)


def _start_script(
    interpreter: Interpreter, path: str, arguments: Sequence[Value], state: State, is_script: bool = False
) -> None:
    """Execute a script that this one starts; if it cannot be read, what it starts is unknown."""
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
        if isinstance(error, Elsewhere) and not is_script and not path.endswith(".sh"):
            return  # not a script
        reason = Message("{place} starts {path}: {error}", place=interpreter.place, path=path, error=error)
        interpreter.launches.add_unread(interpreter.place, reason, state)
