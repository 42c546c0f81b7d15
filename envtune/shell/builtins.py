"""The shell's own commands: what they do to the variables of a script."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Callable, Mapping, Optional, Sequence

from envtune.errors import HostError, Missing
from envtune.messages import Message, Text
from envtune.shell.assignments import Assigned, absolute, appended, calculate
from envtune.shell.conditions import bracket
from envtune.shell.expansion import Value, unknown
from envtune.shell.programs import program
from envtune.shell.state import State

if TYPE_CHECKING:
    from envtune.shell.interpreter import Run

Status = Optional[bool]
_CONDA = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "CONDA_SHLVL", "VIRTUAL_ENV")


def _export(run: Run, arguments: Sequence[Value], state: State) -> Status:
    return _declare(run, arguments, state, export="-n" not in arguments, unexport="-n" in arguments)


def _typeset(run: Run, arguments: Sequence[Value], state: State) -> Status:
    options = "".join(one for one in arguments if isinstance(one, str) and one.startswith("-"))
    if "f" in options or "F" in options:
        return True
    if run.frame.function and "g" not in options:
        _hide(run, arguments, state)
    return _declare(run, arguments, state, export="x" in options, array="a" in options or "A" in options)


def _local(run: Run, arguments: Sequence[Value], state: State) -> Status:
    _hide(run, arguments, state)
    return _declare(run, arguments, state, export=any(one == "-x" for one in arguments))


def _hide(run: Run, arguments: Sequence[Value], state: State) -> None:
    for one in arguments:
        name = str(one).partition("=")[0] if isinstance(one, str) else "-"
        if not name.startswith("-") and name not in run.frame.hidden:
            run.frame.hidden[name] = (state.values.get(name), name in state.exported)


def _readonly(run: Run, arguments: Sequence[Value], state: State) -> Status:
    return _declare(run, arguments, state)


def _declare(
    run: Run,
    arguments: Sequence[Value],
    state: State,
    export: bool = False,
    unexport: bool = False,
    array: bool = False,
) -> Status:
    for one in arguments:
        if isinstance(one, Text):  # export $(cat .env): names and values are not known
            state.forget(one)
            return None
        if one.startswith("-") and not isinstance(one, Assigned):
            continue
        name = _declared(run, one, state, array)
        if export:
            state.exported.add(name)
        if unexport:
            state.exported.discard(name)
    return True


def _declared(run: Run, field: str, state: State, array: bool) -> str:
    """Follow one argument, `A=b` or `A`; the name."""
    name, equals, value = field.partition("=")
    if equals:
        told: Value = field.reason if isinstance(field, Assigned) else value
        if name.endswith("+"):
            name = name[:-1]
            told = appended(state.lookup(name), told)
        state.set(name, unknown(f"{name}=(...)", run.place) if array else told, run.place)
    elif name not in state.values and state.rest is not None and re.fullmatch(r"[A-Za-z_]\w*", name):
        state.values[name] = state.rest
    return name


def _unset(run: Run, arguments: Sequence[Value], state: State) -> Status:
    functions = "-f" in arguments
    for one in arguments:
        if isinstance(one, Text):
            state.forget(one)
        elif functions:
            state.functions.pop(one, None)
        elif not one.startswith("-"):
            state.unset(one, run.place)
    return True


def _source(run: Run, arguments: Sequence[Value], state: State) -> Status:
    if not arguments:
        return False
    path = arguments[0]
    if isinstance(path, Text):
        state.forget(path)
        return None
    if posixpath.basename(path) == "activate" and "/" not in path:
        return _conda(run, ["activate"], state)
    where = absolute(path, state.cwd)
    if where is None:
        state.forget(unknown(f"source {path}", run.place))
        return None
    try:
        text = run.host.read(where)
    except Missing:
        return False
    except HostError as error:
        reason = Message(
            "{where} is sourced and cannot be read: {error} ({place})", where=where, error=error, place=run.place
        )
        state.forget(reason)
        return None
    if where in (frame.path for frame in run.frames) or run.files.count(where) > 8:
        state.forget(Message("{where} sources itself ({place})", where=where, place=run.place))
        return None
    return run.source(where, text, arguments[1:] or None, state)


def _set(run: Run, arguments: Sequence[Value], state: State) -> Status:
    words = [one if isinstance(one, str) else "" for one in arguments]
    for number, word in enumerate(words):
        if word == "--":
            state.arguments = list(arguments[number + 1 :])
            break
        named = word[1:].endswith("o") and words[number + 1 : number + 2] == ["allexport"]
        if re.fullmatch(r"[-+][A-Za-z]+", word) and (named or "a" in word[1:]):
            state.allexport = word[0] == "-"
    return True


def _cd(run: Run, arguments: Sequence[Value], state: State) -> Status:
    target: Value = arguments[-1] if arguments else state.lookup("HOME") or ""
    goal = None if isinstance(target, Text) or target in ("-", "") else absolute(target, state.cwd)
    try:
        found = goal is not None and run.host.stat(goal).kind == "dir"
    except Missing:  # stays where it is, unless the script has made the directory itself
        state.cwd = None
        return None
    except HostError:
        found = False
    state.cwd = goal
    return found or None


def _popd(run: Run, arguments: Sequence[Value], state: State) -> Status:
    state.cwd = None
    return None


def _eval(run: Run, arguments: Sequence[Value], state: State) -> Status:
    for one in arguments:
        if isinstance(one, Text):
            if re.search(r"\b(conda|mamba|micromamba|pyenv)\b", one.en):
                return _conda(run, ["activate"], state)
            state.forget(one)
            return None
    run.follow(" ".join(str(one) for one in arguments), state)
    return None


def _conda(run: Run, arguments: Sequence[Value], state: State) -> Status:
    if arguments[:1] in (["activate"], ["deactivate"], ["shell"]):
        for name in _CONDA:
            state.set(name, unknown("conda activate", run.place), run.place)
            state.exported.add(name)
    return None


def _module(run: Run, arguments: Sequence[Value], state: State) -> Status:
    if arguments[:1] not in (["list"], ["avail"]):
        state.forget(unknown("module load", run.place))
    return None


def _read(run: Run, arguments: Sequence[Value], state: State) -> Status:
    for one in arguments:
        if isinstance(one, str) and re.fullmatch(r"[A-Za-z_]\w*", one):
            state.set(one, unknown(f"read {one}", run.place), run.place)
    return None


def _getopts(run: Run, arguments: Sequence[Value], state: State) -> Status:
    return _read(run, [*arguments[1:2], "OPTARG", "OPTIND"], state)


def _printf(run: Run, arguments: Sequence[Value], state: State) -> Status:
    if arguments[:1] == ["-v"]:
        _read(run, arguments[1:2], state)
    return True


def _let(run: Run, arguments: Sequence[Value], state: State) -> Status:
    for one in arguments:
        if isinstance(one, str):
            calculate(run, one, state)
    return None


def _exit(run: Run, arguments: Sequence[Value], state: State) -> Status:
    state.alive = False
    return None


def _return(run: Run, arguments: Sequence[Value], state: State) -> Status:
    if len(run.frames) > 1:
        run.frame.returns.append(state.copy())
    state.alive = False
    return None


def _exec(run: Run, arguments: Sequence[Value], state: State) -> Status:
    if arguments:
        program(run, arguments, state.copy())
        state.alive = False
    return True


def _shift(run: Run, arguments: Sequence[Value], state: State) -> Status:
    if state.arguments is not None:
        count = int(arguments[0]) if arguments and isinstance(arguments[0], str) and arguments[0].isdigit() else 1
        state.arguments = list(state.arguments)[count:]
    return True


def _bracket(run: Run, arguments: Sequence[Value], state: State) -> Status:
    fields = list(arguments)
    return bracket(fields[:-1] if fields[-1:] == ["]"] else fields, run.host, state.cwd)


def _same_command(run: Run, arguments: Sequence[Value], state: State) -> Status:
    builtin = BUILTINS.get(arguments[0]) if arguments and isinstance(arguments[0], str) else None
    if builtin is not None:
        return builtin(run, arguments[1:], state)
    program(run, arguments, state.copy())
    return None


Builtin = Callable[["Run", Sequence[Value], State], Status]
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
    "true": lambda run, arguments, state: True,
    ":": lambda run, arguments, state: True,
    "echo": lambda run, arguments, state: True,
    "false": lambda run, arguments, state: False,
}
