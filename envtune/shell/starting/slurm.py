"""What `--export` of sbatch and srun gives a job. Source: man srun(1), sbatch(1) of Slurm 23.02, option --export.

`ALL,A=1`: everything that is exported, and A; if the caller also exports A, its value wins according to the manual. A
list without ALL, and NONE: only what is listed, and Slurm's own variables.
"""

from __future__ import annotations

import re
from typing import Iterator, NamedTuple, Optional, Sequence

from envtune.messages import Message, Text
from envtune.shell.assignments import UnknownAssignment
from envtune.shell.expansion import Value
from envtune.shell.state import LeftOpen, State

_NAME = re.compile(r"[A-Za-z_]\w*")
_DIRECTIVE = re.compile(r"#SBATCH[ \t]+(.*)")
_WORD = re.compile(r"(?:[^\s'\"]|'[^']*'|\"[^\"]*\"|['\"])+")
_COMMENT = re.compile(r"\s#.*")
_PART = re.compile(r"((?:[^,'\"]|'[^']*'|\"[^\"]*\")*)(?:,|$)")


class Exports(NamedTuple):
    """One `--export`: its variables (None: passed on unchanged), and whether everything else is passed on, too."""

    everything: bool
    variables: dict[str, Optional[str]]


def parse_exports(text: str) -> Exports:
    """Parse the value of `--export`; quotes keep a comma in a value."""
    variables: dict[str, Optional[str]] = {}
    everything = False
    for part in _parts(text):
        name, equals, value = part.partition("=")
        if _NAME.fullmatch(name) is None:
            continue
        if not equals and name.upper() in ("ALL", "NONE", "NIL"):
            everything = everything or name.upper() == "ALL"
        else:
            variables[name] = re.sub(r"['\"]", "", value) if equals else None
    return Exports(everything, variables)


def _parts(text: str) -> list[str]:
    parts, at = list[str](), 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None:
            return [*parts, text[at:]]  # an unclosed quote
        parts.append(part[1])
        at = part.end()
    return parts


def directive_exports(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and value of every `#SBATCH --export`; sbatch reads up to the first line that is a command."""
    for number, row in enumerate(text.split("\n"), 1):
        row = row.rstrip("\r")
        if row.strip() and not row.lstrip().startswith("#"):
            return
        directive = _DIRECTIVE.match(row)
        if directive is None:
            continue
        words = _WORD.findall(_COMMENT.sub("", directive[1]))
        for at, word in enumerate(words):
            if word.startswith("--export="):
                yield number, word[len("--export=") :]
            elif word == "--export" and at + 1 < len(words):
                yield number, words[at + 1]


class Option(NamedTuple):
    """The text of an `--export`, and why the values that it leaves empty are unknown."""

    text: str
    reason: Optional[Text] = None


def export_option(arguments: Sequence[Value]) -> Optional[Option]:
    """Return the last `--export` before the program."""
    found: Optional[Option] = None
    for at, word in enumerate(arguments):
        if not isinstance(word, str):
            continue
        if word.startswith("--export="):
            value = word[len("--export=") :]
            found = Option(value[:-1], word.reason) if isinstance(word, UnknownAssignment) else Option(value)
        elif word == "--export" and at + 1 < len(arguments) and isinstance(arguments[at + 1], str):
            found = Option(str(arguments[at + 1]))
        elif not word.startswith("-") and found is not None:
            break
    return found


def apply_exports(option: Option, state: State, place: str) -> None:
    """Change the state to that of a program started with this option."""
    exports = parse_exports(option.text)
    before = state.copy()
    if not exports.everything:
        _clear(state, set(exports.variables))
    for name, value in exports.variables.items():
        given: Optional[Value] = option.reason if value == "" and option.reason is not None else value
        if given is None:
            continue
        own = before.variable(name)
        if exports.everything and own.exported and own.value is not None and own.value != given:
            given = _either(name, place)
        state.set(name, given, place)
        state.export(name)


def _either(name: str, place: str) -> Text:
    return Message("{name} is exported already, and --export=ALL keeps that value ({place})", name=name, place=place)


def _clear(state: State, kept: set[str]) -> None:
    for name, _ in list(state.variables.items()):
        if name not in kept:
            state.export(name, False)
    if not isinstance(state.unknown_by_default, LeftOpen):
        state.unknown_by_default = None
