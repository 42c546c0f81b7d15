"""How `A=b`, `A+=b` and the arguments of `export` and its like become values."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Optional, Sequence

from envtune.messages import Text
from envtune.shell.expansion import Value, array_assignment, fields_of, unknown, value_of
from envtune.shell.lexer import Token
from envtune.shell.state import State

if TYPE_CHECKING:
    from envtune.shell.interpreter import Run

DECLARING = ("export", "declare", "typeset", "local", "readonly")
ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\[[^\]]*\])?(\+?)=(.*)", re.DOTALL)
_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\$\{[^{}]*\}", re.DOTALL)
_BRACES = re.compile(r"\{[^{}]*(?:,|\.\.)[^{}]*\}")  # brace expansion, which makes several words of one


def split_assignments(words: Sequence[Token]) -> tuple[Sequence[Token], Sequence[Token]]:
    """Leading `A=b` words and the others."""
    count = 0
    while count < len(words) and ASSIGNMENT.match(words[count].text):
        count += 1
    return words[:count], words[count:]


def command_fields(run: Run, words: Sequence[Token], state: State) -> list[Value]:
    """The fields of a command line; what `export` and its like assign is not split."""
    fields: list[Value] = []
    for token in words:
        if fields and fields[0] in DECLARING and ASSIGNMENT.match(token.text):
            name, equals, raw = token.text.partition("=")
            special = array_assignment(raw) or _BRACES.search(_QUOTED.sub("", raw))
            value: Value = unknown(token.text, run.place) if special else value_of(raw, run.shell(state))
            fields.append(Assigned(name, value) if isinstance(value, Text) else name + equals + value)
        else:
            fields += fields_of(token.text, run.shell(state))
    return fields


class Assigned(str):
    """`A=` followed by a value that is not known, as a field of `export` and its like."""

    reason: Text

    def __new__(cls, name: str, reason: Text) -> Assigned:
        made = super().__new__(cls, name + "=")
        made.reason = reason
        return made


def assign(run: Run, raw: str, state: State) -> Optional[str]:
    """Follow `A=b`, `A+=b`, `A=(...)`, `A[0]=b`; the name."""
    found = ASSIGNMENT.match(raw)
    if found is None:
        return None
    name, index, plus, text = found.groups()
    if index or array_assignment(text):
        state.set(name, unknown(f"{name}{index or '=(...)'}", run.place), run.place)
        return name
    value = value_of(text, run.shell(state))
    state.set(name, appended(state.lookup(name), value) if plus else value, run.place)
    return name


def appended(left: Optional[Value], right: Value) -> Value:
    if isinstance(left, Text):
        return left
    return right if isinstance(right, Text) else (left or "") + right


def restore(state: State, name: str, value: Optional[Value], exported: bool) -> None:
    """Put a variable back as it was before `local`."""
    state.exported.discard(name)
    if value is None:
        state.values.pop(name, None)
    else:
        state.values[name] = value
        if exported:
            state.exported.add(name)


def calculate(run: Run, text: str, state: State) -> None:
    """`((A = B + 1))`, `let A=1`: the names assigned are not known afterwards."""
    for name in re.findall(r"([A-Za-z_]\w*)\s*(?:[-+*/%&|^]?=(?!=)|\+\+|--)|(?:\+\+|--)([A-Za-z_]\w*)", text):
        one = name[0] or name[1]
        state.set(one, unknown(f"(({text.strip()}))", run.place), run.place)


def absolute(path: str, cwd: Optional[str]) -> Optional[str]:
    """A path of a script, from its working directory; None when that is not known."""
    if path.startswith("/"):
        return posixpath.normpath(path)
    return None if cwd is None else posixpath.normpath(posixpath.join(cwd, path))
