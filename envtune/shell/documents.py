"""Expand the here-documents that a script passes to a shell, like the shell that runs the script.

In a document whose delimiter is not quoted, parameters and commands are expanded, and a backslash escapes `$`, a
backtick or a backslash; quotes are ordinary characters. Source: Bash Reference Manual, Here Documents.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Union

from envtune.messages import Message, Text
from envtune.shell.expansion import Shell, Value, value_of
from envtune.shell.lexer import ShellSyntaxError, end_of_quoted

_PLAIN = re.compile(r"[^\\$`]+")
_PARAMETER = re.compile(r"\$(?:[A-Za-z_]\w*|[0-9@*#?$!-])")


class Content(NamedTuple):
    """The text of a document, and the values it refers to by internal names: unknown ones, and those of lines."""

    text: str
    values: dict[str, Value]


def expanded(text: str, shell: Shell) -> Union[Content, Text]:
    """Return what the reader of a here-document gets, or why that is unknown. It has as many lines as `text`."""
    pieces, values, at = list[str](), dict[str, Value](), 0
    while at < len(text):
        plain, parameter = _PLAIN.match(text, at), _PARAMETER.match(text, at)
        if plain is not None:
            piece, at = plain[0], plain.end()
        elif parameter is not None:
            piece, at = _value(parameter[0], shell, values), parameter.end()
        elif text[at] == "\\":
            piece, at = text[at : at + 2], at + 2
            piece = piece[1:] if piece[1:] in ("$", "`", "\\") else piece
        else:
            try:
                end = end_of_quoted(text, at)
            except ShellSyntaxError as error:
                return Message("the here-document cannot be analyzed: {reason}", reason=error.reason)
            piece, at = _value(text[at:end], shell, values), end
        shell.budget.make(len(piece))
        pieces.append(piece)
    return Content("".join(pieces), values)


def _value(piece: str, shell: Shell, values: dict[str, Value]) -> str:
    """Return the value of an expansion, or the name under which it is kept in `values`."""
    if piece == "$":
        return piece
    value = value_of(f'"{piece}"', shell)
    if isinstance(value, str) and "\n" not in value:
        return value + "\\\n" * piece.count("\n")
    name = f"_envtune_{len(values)}"
    values[name] = value
    return f"${{{name}}}" + "\\\n" * piece.count("\n")
