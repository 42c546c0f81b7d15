"""How `A=b`, `A+=b` and the arguments of `export` and the like become values."""

from __future__ import annotations

import re
from typing import Optional, Sequence

from envtune.messages import Text
from envtune.shell.expansion import (
    Shell,
    Value,
    calculated_names,
    fields_of,
    is_array,
    joined,
    unknown,
    unquoted,
    value_of,
)
from envtune.shell.lexer import Token
from envtune.shell.state import State

DECLARING = ("export", "declare", "typeset", "local", "readonly")
ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\[[^\]]*\])?(\+?)=(.*)", re.DOTALL)
_EXPORTS = re.compile(r"['\"]?--export=([A-Za-z_].*)", re.DOTALL)
_BRACES = re.compile(r"\{([^{}]*)\}")  # brace expansion, which makes several words of one, has `,` or `..` in it


class UnknownAssignment(str):
    """`A=` followed by an unknown value, as a field of `export` and the like."""

    reason: Text

    def __new__(cls, name: str, reason: Text) -> UnknownAssignment:
        """Return the field for variable `name`, whose value is unknown for `reason`."""
        assignment = super().__new__(cls, name + "=")
        assignment.reason = reason
        return assignment


class UnknownPath(str):
    """A path as written with an unknown part, as the field of `source`."""

    reason: Text

    def __new__(cls, raw: str, reason: Text) -> UnknownPath:
        """Return the field for a word, unknown for `reason`."""
        path = super().__new__(cls, raw)
        path.reason = reason
        return path


def split_assignments(words: Sequence[Token]) -> tuple[Sequence[Token], Sequence[Token]]:
    """Return the leading `A=b` words and the others."""
    count = 0
    while count < len(words) and ASSIGNMENT.match(words[count].text):
        count += 1
    return words[:count], words[count:]


def command_fields(words: Sequence[Token], shell: Shell) -> list[Value]:
    """Return the fields of a command line; what `export` and the like assign is not split."""
    fields: list[Value] = []
    for token in words:
        if fields and fields[0] in DECLARING and ASSIGNMENT.match(token.text):
            name, equals, raw = token.text.partition("=")
            special = is_array(raw) or _has_braces(raw)
            value: Value = shell.unknown(token.text) if special else value_of(raw, shell)
            fields.append(UnknownAssignment(name, value) if isinstance(value, Text) else name + equals + value)
        else:
            made = fields_of(token.text, shell)
            fields += _named(token.text, made, fields) if len(made) == 1 and isinstance(made[0], Text) else made
    return fields


def _named(raw: str, unknown_field: Sequence[Value], before: Sequence[Value]) -> Sequence[Value]:
    """Keep what is known of `env A=$B`, `--export=ALL,A=$B` and `source $A/env.sh`: the names."""
    reason = unknown_field[0]
    assert isinstance(reason, Text)
    if len(before) == 1 and before[0] in ("source", "."):
        return [UnknownPath(re.sub(r"['\"]", "", raw), reason)]
    if ASSIGNMENT.match(raw) and ("env" in before or before[-1:] in (["-e"], ["--env"], ["-x"])):
        return [UnknownAssignment(raw.partition("=")[0], reason)]
    exports = _EXPORTS.match(raw)
    if exports is None:
        return unknown_field
    names = [part.partition("=")[0] + "=" * ("=" in part) for part in exports[1].split(",")]
    return [UnknownAssignment("--export=" + ",".join(names), reason)]


def _has_braces(raw: str) -> bool:
    """Return whether brace expansion makes several words of this one."""
    return "{" in raw and any("," in inside or ".." in inside for inside in _BRACES.findall(unquoted(raw)))


def assign(raw: str, state: State, shell: Shell) -> Optional[str]:
    """Execute `A=b`, `A+=b`, `A=(...)` or `A[0]=b`; return the name, None if the word is not an assignment."""
    assignment = ASSIGNMENT.match(raw)
    if assignment is None:
        return None
    name, index, plus, text = assignment.groups()
    if index or is_array(text):
        state.set(name, shell.unknown(f"{name}{index or '=(...)'}"), shell.place)
        return name
    value = value_of(text, shell)
    state.set(name, joined([state.lookup(name) or "", value], shell) if plus else value, shell.place)
    return name


def invalidate_calculated(text: str, state: State, place: str) -> None:
    """Execute `((A = B + 1))` or `let A=1`: the assigned variables are unknown afterwards."""
    reason = unknown(f"(({text.strip()}))", place)
    for name in calculated_names(text):
        state.set(name, reason, place)
