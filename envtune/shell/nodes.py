"""The parts a shell script is made of, as the parser returns them and the interpreter executes them."""

from __future__ import annotations

from typing import NamedTuple, Optional, Union

from envtune.shell.lexer import Token


class Simple(NamedTuple):
    """Assignments and words, without redirections except for the here-document or here-string that it reads."""

    words: tuple[Token, ...]
    line: int
    stdin: Optional[Token] = None


class Group(NamedTuple):
    """`{ ...; }` or, as a subshell, `( ... )`."""

    body: Body
    subshell: bool


class If(NamedTuple):
    """Conditions with their bodies, and what is executed when none holds."""

    branches: tuple[tuple[Body, Body], ...]
    other: Body


class Loop(NamedTuple):
    """for (with its variable and words), select, while or until (with a condition).

    `leaves`: `break` or `continue` is somewhere in the body.
    """

    variable: str
    words: Optional[tuple[Token, ...]]
    condition: Body
    body: Body
    line: int
    leaves: bool
    until: bool = False


class Case(NamedTuple):
    """A word and its branches: patterns with their bodies."""

    word: Token
    branches: tuple[tuple[tuple[Token, ...], Body], ...]


class Function(NamedTuple):
    """A function definition."""

    name: str
    body: Command
    line: int


class Test(NamedTuple):
    """`[[ ... ]]`."""

    words: tuple[Token, ...]
    line: int


class Arithmetic(NamedTuple):
    """`(( ... ))`."""

    text: str
    line: int


class Pipeline(NamedTuple):
    """Commands joined by `|`."""

    commands: tuple[Command, ...]
    negated: bool


class AndOr(NamedTuple):
    """Pipelines joined by `&&` and `||`, in the background or not."""

    first: Pipeline
    others: tuple[tuple[str, Pipeline], ...]  # `&&` or `||`, and what follows it
    background: bool


Command = Union[Simple, Group, If, Loop, Case, Function, Test, Arithmetic]
Body = tuple[AndOr, ...]
