"""Follows simple commands, and the command substitutions that can be told by reading."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Optional, Sequence

from envtune.errors import HostError
from envtune.host import realpath
from envtune.messages import Text
from envtune.shell.assignments import absolute, assign, command_fields, split_assignments
from envtune.shell.builtins import BUILTINS
from envtune.shell.expansion import Value, unknown
from envtune.shell.lexer import Broken, Token
from envtune.shell.nodes import Simple
from envtune.shell.parser import statements
from envtune.shell.programs import program
from envtune.shell.state import State

if TYPE_CHECKING:
    from envtune.shell.interpreter import Run

Status = Optional[bool]


def simple(run: Run, command: Simple, state: State) -> Status:
    """Follow assignments and words."""
    assignments, words = split_assignments(command.words)
    fields = command_fields(run, words, state)
    if not fields:
        for token in assignments:
            assign(run, token.text, state)
        return None if any("$(" in token.text or "`" in token.text for token in assignments) else True
    name = fields[0]
    if isinstance(name, str) and name in state.functions:
        return run.call(state.functions[name], fields[1:], state)
    if isinstance(name, str) and name in BUILTINS:
        return BUILTINS[name](run, fields[1:], state)
    program(run, fields, _with_prefix(run, assignments, state))
    return None


def _with_prefix(run: Run, assignments: Sequence[Token], state: State) -> State:
    """The state that `A=b program` gives the program."""
    prefixed = state.copy()
    for token in assignments:
        name = assign(run, token.text, prefixed)
        if name is not None:
            prefixed.exported.add(name)
    return prefixed


def output_of(run: Run, state: State, text: str) -> Value:
    """What `$(...)` prints, for the few commands that depend on nothing but what is known: the script's own place."""
    inside, printed = state.copy(), ""
    try:
        found = list(statements(text))
    except (Broken, RecursionError):
        return unknown(f"$({text})", run.place)
    for statement in found:
        for pipeline in (statement.first, *(part for operator, part in statement.rest if operator == "&&")):
            command = pipeline.commands[0]
            if len(pipeline.commands) > 1 or not isinstance(command, Simple) or statement.background:
                return unknown(f"$({text})", run.place)
            if any(operator == "||" for operator, _ in statement.rest):
                return unknown(f"$({text})", run.place)
            fields = command_fields(run, command.words, inside)
            one = _printed(run, fields, inside)
            if isinstance(one, Text) or one is None:
                return one or unknown(f"$({text})", run.place)
            printed += one
    return printed.rstrip("\n")


def _printed(run: Run, fields: Sequence[Value], state: State) -> Optional[Value]:
    """The output of one command that is known without running it; None for every other."""
    for field in fields:
        if isinstance(field, Text):
            return field
    words = [str(field) for field in fields if field != "--"]
    if words in (["pwd"], ["pwd", "-P"], ["pwd", "-L"]):
        return None if state.cwd is None else state.cwd + "\n"
    if words in (["arch"], ["uname", "-m"]):
        return run.host.uname.get("machine") or None
    if words[:1] == ["echo"] and words[1:2] != ["-e"] and not any("\\" in word for word in words):
        return " ".join(words[1:] if words[1:2] != ["-n"] else words[2:]) + "\n"
    return _printed_path(run, words[:-1], words[-1], state) if words else None


def _printed_path(run: Run, command: Sequence[str], path: str, state: State) -> Optional[str]:
    """What a command that takes one path prints; `cd` moves and prints nothing."""
    if command == ["cd"]:
        return "" if BUILTINS["cd"](run, [path], state) is not False and state.cwd is not None else None
    if command == ["dirname"]:
        return (posixpath.dirname(path.rstrip("/") or "/") or ".") + "\n"
    if command == ["basename"]:
        return posixpath.basename(path.rstrip("/")) + "\n"
    return _real(run, path, state) if command in (["readlink", "-f"], ["realpath"]) else None


def _real(run: Run, path: str, state: State) -> Optional[str]:
    where = absolute(path, state.cwd)
    try:
        return None if where is None else realpath(run.host, where) + "\n"
    except HostError:
        return None
