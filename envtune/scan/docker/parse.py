"""Split a Dockerfile into instructions. Source: docs.docker.com/reference/dockerfile, frontend/dockerfile of BuildKit.

Continued lines are joined, comments and empty lines in between left out, here-documents skipped.
"""

from __future__ import annotations

import re
from typing import Iterator, NamedTuple, Optional, Sequence

from envtune.messages import Message, Text, nearest

NAMES = (
    *("ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL", "MAINTAINER"),
    *("ONBUILD", "RUN", "SHELL", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR"),
)
_DIRECTIVE = re.compile(r"#\s*([A-Za-z]+)\s*=\s*(\S.*?)\s*$")
_DOCUMENT = re.compile(r"(?<!<)<<(-?)([\"']?)([A-Za-z_.][\w.-]*)\2")
_WITH_DOCUMENTS = ("ADD", "COPY", "RUN")


class DockerfileError(Exception):
    """The file cannot be parsed from `line` on."""

    def __init__(self, line: int, reason: Text) -> None:
        super().__init__(reason)
        self.line, self.reason = line, reason


class Instruction(NamedTuple):
    """One instruction: its name in capitals, and the rest of it as pieces of lines, each with its number."""

    name: str
    rest: str
    line: int
    starts: tuple[tuple[int, int], ...]  # (offset in `rest`, line) of each piece

    def line_of(self, offset: int) -> int:
        """Return the line of the character at `offset` in `rest`."""
        return next((line for start, line in reversed(self.starts) if start <= offset), self.line)


class _Row(NamedTuple):
    number: int
    text: str


def escape_character(text: str) -> str:
    """Return the character that continues a line: a backslash, unless a directive at the top names the backtick."""
    for row in text.lstrip("\ufeff").split("\n"):
        directive = _DIRECTIVE.match(row.rstrip("\r"))
        if directive is None:
            return "\\"
        if directive[1].lower() == "escape":
            return directive[2]
    return "\\"


def instructions(text: str) -> Iterator[Instruction]:
    """Yield the instructions of a Dockerfile; raises DockerfileError."""
    rows = [_Row(number, row.rstrip("\r")) for number, row in enumerate(text.lstrip("\ufeff").split("\n"), 1)]
    escape = re.compile(re.escape(escape_character(text)) + r"[ \t]*$")
    at = 0
    while at < len(rows):
        row = rows[at]
        if not row.text.strip() or row.text.lstrip().startswith("#"):
            at += 1
            continue
        made, at = _instruction(rows, at, escape)
        yield made
        if made.name in _WITH_DOCUMENTS or made.name == "ONBUILD":
            at = _after_documents(rows, at, made)


def _instruction(rows: Sequence[_Row], at: int, escape: re.Pattern[str]) -> tuple[Instruction, int]:
    """Return the instruction that begins at a row, and the number of the row after it."""
    first = rows[at]
    pieces: list[tuple[str, int]] = []
    while at < len(rows):
        row = rows[at]
        at += 1
        if pieces and (not row.text.strip() or row.text.lstrip().startswith("#")):
            continue
        continued = escape.search(row.text)
        pieces.append((row.text if continued is None else row.text[: continued.start()], row.number))
        if continued is None:
            break
    name, _, _ = pieces[0][0].strip().partition(" ")
    name = re.split(r"[ \t]", name)[0]
    _require_known(name, first.number)
    offset = pieces[0][0].index(name) + len(name)
    rest, starts = "", list[tuple[int, int]]()
    for number, (piece, line) in enumerate(pieces):
        starts.append((len(rest), line))
        rest += piece[offset:] if number == 0 else piece
    left = len(rest) - len(rest.lstrip())
    moved = tuple((max(start - left, 0), line) for start, line in starts)
    return Instruction(name.upper(), rest.strip(), first.number, moved), at


def _require_known(name: str, line: int) -> None:
    if name.upper() in NAMES:
        return
    near = nearest(name, NAMES)
    if near:
        raise DockerfileError(
            line, Message("unknown instruction {name}; did you mean {near}?", name=name, near=near[0])
        )
    raise DockerfileError(line, Message("unknown instruction {name}", name=name))


def _after_documents(rows: Sequence[_Row], at: int, instruction: Instruction) -> int:
    """Return the row after the here-documents of an instruction."""
    for tabs, _, delimiter in _DOCUMENT.findall(instruction.rest):
        while at < len(rows):
            row = rows[at].text
            at += 1
            if (row.lstrip("\t") if tabs else row) == delimiter:
                break
        else:
            raise DockerfileError(instruction.line, Message("unclosed here-document {name}", name=delimiter))
    return at


class Setting(NamedTuple):
    """One `NAME=value` of ENV or ARG, the value as written; None for `ARG NAME`."""

    name: str
    raw: Optional[str]
    line: int


_WORD = re.compile(r"\s*((?:[^\s\"'\\]|\\.|\"(?:[^\"\\]|\\.)*\"|'[^']*')+)")


def settings(instruction: Instruction) -> tuple[Setting, ...]:
    """Return what ENV or ARG sets: `A=b C="d e"`, or of ENV also `A the rest`; raises DockerfileError."""
    rest, at = instruction.rest, 0
    first = re.match(r"[^\s=]+", rest)
    if first is None:
        reason = Message("{name} requires an argument", name=instruction.name)
        raise DockerfileError(instruction.line, reason)
    if instruction.name == "ENV" and not rest.startswith("=", first.end()):
        value = rest[first.end() :].strip()
        if not value:
            raise DockerfileError(instruction.line, Message("ENV {name} has no value", name=first[0]))
        return (Setting(first[0], value, instruction.line),)
    found: list[Setting] = []
    while at < len(rest) and rest[at:].strip():
        word = _WORD.match(rest, at)
        if word is None:
            raise DockerfileError(
                instruction.line_of(at), Message("unclosed quote in {text}", text=rest[at:].strip()[:40])
            )
        name, equals, raw = word[1].partition("=")
        if instruction.name == "ENV" and not equals:
            reason = Message("{text} is not of the form NAME=VALUE", text=name[:40])
            raise DockerfileError(instruction.line_of(word.start(1)), reason)
        found.append(Setting(name, raw if equals else None, instruction.line_of(word.start(1))))
        at = word.end()
    return tuple(found)
