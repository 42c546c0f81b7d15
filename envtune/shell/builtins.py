"""Execute the shell's own commands: what they do to the variables of a script."""

from __future__ import annotations

import posixpath
import re
from typing import Mapping, Sequence

from envtune.errors import Elsewhere, HostError, Missing, host_error_text
from envtune.messages import Message, Text
from envtune.ranges import decimal
from envtune.shell.assignments import UnknownAssignment, UnknownPath, invalidate_calculated
from envtune.shell.conditions import bracket
from envtune.shell.expansion import Value, joined, unknown
from envtune.shell.interpreter import Builtin, Interpreter, Status
from envtune.shell.starting.programs import start_program
from envtune.shell.state import State

MAX_SOURCED = 8  # times that one file is sourced
_SET_BY_CONDA = (
    "PATH",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "CONDA_PREFIX",
    "CONDA_DEFAULT_ENV",
    "CONDA_SHLVL",
    "VIRTUAL_ENV",
)
# Their set_env.sh exports these and nothing else (cann-toolkit 8.0 to 8.3; nnal 8.0: also variables with its prefixes)
_SET_ENV = re.compile(r"/(?:ascend-toolkit|nnae|nnrt|cann(?:-[^/]*)?|nnal|latest|atb|asdsip)/(?:[^/]+/)*set_env\.sh$")
_SET_ENV_OF_VARIABLE = re.compile(r"\$\{?(?:ASCEND|CANN)\w*[^/]*(?:/[^/]+)*/set_env\.sh")
_SET_BY_CANN = (
    *("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "CMAKE_PREFIX_PATH", "TOOLCHAIN_HOME", "ATB_HOME_PATH"),
    *("ASCEND_TOOLKIT_HOME", "ASCEND_HOME_PATH", "ASCEND_AICPU_PATH", "ASCEND_OPP_PATH"),
)
_SET_BY_NNAL = ("ATB_", "ASDOPS_", "LCAL_", "LCCL_", "ASDSIP_")


def _export(interpreter: Interpreter, arguments: Sequence[Value], state: State) -> Status:
    return _declare(interpreter, arguments, state, export="-n" not in arguments, unexport="-n" in arguments)


def _typeset(interpreter: Interpreter, arguments: Sequence[Value], state: State) -> Status:
    options = "".join(argument for argument in arguments if isinstance(argument, str) and argument.startswith("-"))
    if "f" in options or "F" in options:
        return True
    if interpreter.frame.is_function and "g" not in options:
        _make_local(interpreter, arguments, state)
    status = _declare(interpreter, arguments, state, export="x" in options, array="a" in options or "A" in options)
    if "r" in options and ("g" in options or not interpreter.frame.is_function):
        _freeze(interpreter, arguments, state)
    return status


def _local(interpreter: Interpreter, arguments: Sequence[Value], state: State) -> Status:
    _make_local(interpreter, arguments, state)
    return _declare(interpreter, arguments, state, export=any(argument == "-x" for argument in arguments))


def _make_local(interpreter: Interpreter, arguments: Sequence[Value], state: State) -> None:
    for argument in arguments:
        name = str(argument).partition("=")[0] if isinstance(argument, str) else "-"
        if not name.startswith("-") and name not in interpreter.frame.locals:
            interpreter.frame.locals[name] = state.variable(name)


def _readonly(interpreter: Interpreter, arguments: Sequence[Value], state: State) -> Status:
    status = _declare(interpreter, arguments, state)
    _freeze(interpreter, arguments, state)
    return status


def _freeze(interpreter: Interpreter, arguments: Sequence[Value], state: State) -> None:
    for argument in arguments:
        if isinstance(argument, str) and not argument.startswith("-"):
            name = argument.partition("=")[0]
            if name not in state.readonly:
                state.readonly[name] = interpreter.place


def _declare(
    interpreter: Interpreter,
    arguments: Sequence[Value],
    state: State,
    export: bool = False,
    unexport: bool = False,
    array: bool = False,
) -> Status:
    for argument in arguments:
        if isinstance(argument, Text):  # export $(cat .env): names and values are unknown
            interpreter.invalidate(state, argument)
            return None
        if argument.startswith("-") and not isinstance(argument, UnknownAssignment):
            continue
        name = _declared(interpreter, argument, state, array)
        if export:
            state.export(name)
        if unexport:
            state.export(name, False)
    return True


def _declared(interpreter: Interpreter, field: str, state: State, array: bool) -> str:
    """Execute one argument, `A=b` or `A`; return the name."""
    name, equals, text = field.partition("=")
    if equals:
        value: Value = field.reason if isinstance(field, UnknownAssignment) else text
        if name.endswith("+"):
            name = name[:-1]
            value = joined([state.lookup(name) or "", value], interpreter.shell(state))
        state.set(name, unknown(f"{name}=(...)", interpreter.place) if array else value, interpreter.place)
    elif state.unknown_by_default is not None and not state.is_set(name) and re.fullmatch(r"[A-Za-z_]\w*", name):
        state.variables[name] = state.variable(name)._replace(value=state.unknown_by_default)
    return name


def _unset(interpreter: Interpreter, arguments: Sequence[Value], state: State) -> Status:
    functions = "-f" in arguments
    for argument in arguments:
        if isinstance(argument, Text):
            interpreter.invalidate(state, argument)
        elif functions:
            state.functions.discard(argument)
        elif not argument.startswith("-"):
            state.unset(argument, interpreter.place)
    return True


def _source(interpreter: Interpreter, arguments: Sequence[Value], state: State) -> Status:
    if not arguments:
        return False
    path = arguments[0]
    if isinstance(path, (Text, UnknownPath)):
        return _source_unknown(interpreter, path, state)
    if posixpath.basename(path) == "activate" and "/" not in path:
        return _conda(interpreter, ["activate"], state)
    file = state.absolute(path)
    if file is None:
        interpreter.invalidate(state, unknown(f"source {path}", interpreter.place))
        return None
    try:
        text = interpreter.machine.read(file)
    except Missing:
        return False
    except HostError as error:
        return _source_unread(interpreter, file, error, state)
    if file in (frame.path for frame in interpreter.frames) or interpreter.files.get(file, 0) > MAX_SOURCED:
        interpreter.invalidate(state, Message("{file} sources itself ({place})", file=file, place=interpreter.place))
        return None
    return interpreter.source(file, text, arguments[1:] or None, state)


def _source_unknown(interpreter: Interpreter, path: Text | UnknownPath, state: State) -> Status:
    """Execute an unknown file: only those of CANN and nnal are known to set just a few variables."""
    reason = path if isinstance(path, Text) else path.reason
    if isinstance(path, UnknownPath) and (_SET_ENV.search(path) or _SET_ENV_OF_VARIABLE.fullmatch(path)):
        return _set_env(interpreter, reason, state)
    interpreter.invalidate(state, reason)
    return None


def _source_unread(interpreter: Interpreter, file: str, error: HostError, state: State) -> Status:
    """Execute a file that cannot be read: it may set anything, unless it is known to set only a few variables."""
    if isinstance(error, Elsewhere) and _SET_ENV.search(file):
        return _set_env(interpreter, host_error_text(error), state)
    interpreter.invalidate(state, _unreadable(file, error, interpreter.place))
    return None


def _set_env(interpreter: Interpreter, reason: Text, state: State) -> Status:
    """Execute set_env.sh of CANN or of nnal, which was not read: what it sets is unknown, everything else stays."""
    own = [name for name, _ in state.variables.items() if name.startswith(_SET_BY_NNAL)]
    for name in (*_SET_BY_CANN, *own):
        state.set(name, reason, interpreter.place)
        state.export(name)
    return None


def _unreadable(file: str, error: HostError, place: str) -> Text:
    if isinstance(error, Elsewhere):
        return Message("{file} is sourced, and was not read ({place})", file=file, place=place)
    return Message("{file} is sourced but cannot be read: {error} ({place})", file=file, error=error, place=place)


def _set(interpreter: Interpreter, arguments: Sequence[Value], state: State) -> Status:
    words = [argument if isinstance(argument, str) else "" for argument in arguments]
    for number, word in enumerate(words):
        if word == "--":
            state.arguments = list(arguments[number + 1 :])
            break
        by_name = word[1:].endswith("o") and words[number + 1 : number + 2] == ["allexport"]
        if re.fullmatch(r"[-+][A-Za-z]+", word) and (by_name or "a" in word[1:]):
            state.allexport = word[0] == "-"
    return True


def _cd(interpreter: Interpreter, arguments: Sequence[Value], state: State) -> Status:
    target: Value = arguments[-1] if arguments else state.lookup("HOME") or ""
    directory = None if isinstance(target, Text) or target in ("-", "") else state.absolute(target)
    try:
        is_directory = directory is not None and interpreter.machine.stat(directory).kind == "dir"
    except Missing:  # the working directory stays, unless the script has created the directory itself
        state.cwd = None
        return None
    except HostError:
        is_directory = False
    state.cwd = directory
    return is_directory or None


def _popd(interpreter: Interpreter, arguments: Sequence[Value], state: State) -> Status:
    state.cwd = None
    return None


def _eval(interpreter: Interpreter, arguments: Sequence[Value], state: State) -> Status:
    for argument in arguments:
        if isinstance(argument, Text):
            if re.search(r"\b(conda|mamba|micromamba|pyenv)\b", argument.en):
                return _conda(interpreter, ["activate"], state)
            interpreter.invalidate(state, argument)
            return None
    text = " ".join(str(argument) for argument in arguments)
    interpreter.budget.make(len(text))
    interpreter.execute_line(text, state)
    return None


def _conda(interpreter: Interpreter, arguments: Sequence[Value], state: State) -> Status:
    if arguments[:1] in (["activate"], ["deactivate"], ["shell"]):
        for name in _SET_BY_CONDA:
            state.set(name, unknown("conda activate", interpreter.place), interpreter.place)
            state.export(name)
    return None


def _module(interpreter: Interpreter, arguments: Sequence[Value], state: State) -> Status:
    if arguments[:1] not in (["list"], ["avail"]):
        interpreter.invalidate(state, unknown("module load", interpreter.place))
    return None


def _read(interpreter: Interpreter, arguments: Sequence[Value], state: State) -> Status:
    for argument in arguments:
        if isinstance(argument, str) and re.fullmatch(r"[A-Za-z_]\w*", argument):
            state.set(argument, unknown(f"read {argument}", interpreter.place), interpreter.place)
    return None


def _getopts(interpreter: Interpreter, arguments: Sequence[Value], state: State) -> Status:
    return _read(interpreter, [*arguments[1:2], "OPTARG", "OPTIND"], state)


def _printf(interpreter: Interpreter, arguments: Sequence[Value], state: State) -> Status:
    if arguments[:1] == ["-v"]:
        _read(interpreter, arguments[1:2], state)
    return True


def _let(interpreter: Interpreter, arguments: Sequence[Value], state: State) -> Status:
    for argument in arguments:
        if isinstance(argument, str):
            invalidate_calculated(argument, state, interpreter.place)
    return None


def _exit(interpreter: Interpreter, arguments: Sequence[Value], state: State) -> Status:
    state.alive = False
    return None


def _return(interpreter: Interpreter, arguments: Sequence[Value], state: State) -> Status:
    if len(interpreter.frames) > 1:
        interpreter.frame.returns.append(state.copy())
    state.alive = False
    return None


def _exec(interpreter: Interpreter, arguments: Sequence[Value], state: State) -> Status:
    if arguments:
        start_program(interpreter, arguments, state.copy())
        state.alive = False
    return True


def _shift(interpreter: Interpreter, arguments: Sequence[Value], state: State) -> Status:
    if state.arguments is not None:
        given = decimal(arguments[0]) if arguments and isinstance(arguments[0], str) else None
        count = 1 if given is None else given
        interpreter.budget.look(len(state.arguments))
        state.arguments = state.arguments[count:]
    return True


def _bracket(interpreter: Interpreter, arguments: Sequence[Value], state: State) -> Status:
    fields = list(arguments)
    return bracket(fields[:-1] if fields[-1:] == ["]"] else fields, interpreter.machine, state.cwd)


def _same_command(interpreter: Interpreter, arguments: Sequence[Value], state: State) -> Status:
    builtin = BUILTINS.get(arguments[0]) if arguments and isinstance(arguments[0], str) else None
    if builtin is not None:
        return builtin(interpreter, arguments[1:], state)
    start_program(interpreter, arguments, state.copy())
    return None


BUILTINS: Mapping[str, Builtin] = {
    "export": _export,
    "declare": _typeset,
    "typeset": _typeset,
    "local": _local,
    "readonly": _readonly,
    "unset": _unset,
    "source": _source,
    ".": _source,
    "set": _set,
    "cd": _cd,
    "pushd": _cd,
    "popd": _popd,
    "eval": _eval,
    "conda": _conda,
    "mamba": _conda,
    "module": _module,
    "ml": _module,
    "read": _read,
    "mapfile": _read,
    "readarray": _read,
    "getopts": _getopts,
    "printf": _printf,
    "let": _let,
    "exit": _exit,
    "return": _return,
    "exec": _exec,
    "shift": _shift,
    "[": _bracket,
    "test": _bracket,
    "command": _same_command,
    "builtin": _same_command,
    "true": lambda interpreter, arguments, state: True,
    ":": lambda interpreter, arguments, state: True,
    "echo": lambda interpreter, arguments, state: True,
    "false": lambda interpreter, arguments, state: False,
}
