"""The parts a shell script is made of, as the parser returns them and the interpreter executes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Union

from envtune.shell.lexer import Token


@dataclass(frozen=True)
class Simple:
    """Assignments and words, redirections left out."""

    words: tuple[Token, ...]
    line: int


@dataclass(frozen=True)
class Group:
    """`{ ...; }` or, as a subshell, `( ... )`."""

    body: Body
    subshell: bool


@dataclass(frozen=True)
class If:
    """Conditions with their bodies, and what is executed when none holds."""

    branches: tuple[tuple[Body, Body], ...]
    other: Body


@dataclass(frozen=True)
class Loop:
    """for (with its variable and words), select, while or until (with a condition)."""

    variable: str
    words: Optional[tuple[Token, ...]]
    condition: Body
    body: Body
    line: int
    until: bool = False


@dataclass(frozen=True)
class Case:
    """A word and its branches: patterns with their bodies."""

    word: Token
    branches: tuple[tuple[tuple[Token, ...], Body], ...]


@dataclass(frozen=True)
class Function:
    """A function definition."""

    name: str
    body: Command


@dataclass(frozen=True)
class Test:
    """`[[ ... ]]`."""

    words: tuple[Token, ...]
    line: int


@dataclass(frozen=True)
class Arithmetic:
    """`(( ... ))`."""

    text: str
    line: int


@dataclass(frozen=True)
class Pipeline:
    """Commands joined by `|`."""

    commands: tuple[Command, ...]
    negated: bool


@dataclass(frozen=True)
class AndOr:
    """Pipelines joined by `&&` and `||`, in the background or not."""

    first: Pipeline
    others: tuple[tuple[str, Pipeline], ...]  # `&&` or `||`, and what follows it
    background: bool


Command = Union[Simple, Group, If, Loop, Case, Function, Test, Arithmetic]
Body = tuple[AndOr, ...]
