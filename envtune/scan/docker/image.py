"""What the image of a Dockerfile gives its process: the variables of the last stage, and what its command exports.

A stage that is the base of a later one and has its own command counts as a separate image, for `docker build --target`.
An `export` in RUN ends with its layer. ARG is not a variable of the process; a value derived from one is unknown, since
the build may pass a different one. ONBUILD applies to images that are built from this one, including a later stage of
the same file.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import Mapping, NamedTuple, Optional, Sequence, Union

from envtune.messages import Message, Text
from envtune.scan.docker.parse import DockerfileError, Instruction, Setting, instructions, settings
from envtune.scan.model import Jobs, Problem
from envtune.scan.script import NoFiles, Start, joined_jobs, script_jobs
from envtune.shell.expansion import Value

_REFERENCE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?:(:?[-+?])([^}]*)|([#%/][^}]*))?\})|\\(.)", re.DOTALL)
_STAGE = re.compile(r"(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?\s*$", re.IGNORECASE)
_SHELLS = re.compile(r"(?:.*/)?(?:sh|bash|dash|ash|ksh|zsh)")


class Variable(NamedTuple):
    """A value of ENV, or None if it comes from ARG; and where it was set."""

    value: Optional[Value]
    place: str = ""
    is_argument: bool = False


class Program(NamedTuple):
    """CMD or ENTRYPOINT: words in the exec form, a text for the shell in the shell form."""

    words: Union[Sequence[str], str]
    line: int


class Stage:
    """One stage of a build: the state of its image so far."""

    def __init__(self, line: int, parent: Optional[Stage] = None) -> None:
        self.line, self.name = line, ""
        self.is_base = False  # a later stage is based on it
        self.runs = False  # it has its own command
        self.variables: dict[str, Variable] = {}
        self.shell: Sequence[str] = ("/bin/sh", "-c")
        self.command: Optional[Program] = None
        self.entry: Optional[Program] = None
        self.triggers: list[Instruction] = []  # ONBUILD
        if parent is not None:
            self.variables = {name: row for name, row in parent.variables.items() if not row.is_argument}
            self.shell, self.command, self.entry = parent.shell, parent.command, parent.entry


def image_jobs(path: str, text: str) -> Jobs:
    """Return what the process of the image gets: for the last stage, which is built by default.

    Preceded by the stages that later ones are based on and that name a program.
    """
    try:
        stages = _stages(path, text)
    except DockerfileError as error:
        return Jobs((), (Problem(path, error.line, error.reason),))
    bases = [one for one in stages[:-1] if one.is_base and one.runs]
    return joined_jobs([_stage_jobs(path, one, one.name) for one in bases] + [_stage_jobs(path, stages[-1], "")])


def _stage_jobs(path: str, stage: Stage, name: str) -> Jobs:
    set_here = {key: row for key, row in stage.variables.items() if not row.is_argument}
    values: dict[str, Value] = {key: row.value for key, row in set_here.items() if row.value is not None}
    start = Start(values, {key: set_here[key].place for key in values})
    program, line = _program(stage)
    return script_jobs(path, program, NoFiles(), start, name, line if program else stage.line, "/")


def _stages(path: str, text: str) -> list[Stage]:
    defaults: dict[str, str] = {}  # of ARG before the first FROM
    named: dict[str, Stage] = {}
    found: list[Stage] = []
    stage: Optional[Stage] = None
    for instruction in instructions(text):
        if instruction.name == "FROM":
            stage = _begin(instruction, named, defaults)
            found.append(stage)
            for trigger in stage.triggers:
                _apply(trigger, stage, path)
            stage.triggers = []
        elif stage is None:
            if instruction.name != "ARG":
                reason = Message("{name} before the first FROM", name=instruction.name)
                raise DockerfileError(instruction.line, reason)
            defaults.update((one.name, (one.raw or "").strip("\"'")) for one in settings(instruction))
        else:
            _apply(instruction, stage, path)
    if stage is None:
        raise DockerfileError(1, Message("no FROM"))
    return found


def _begin(instruction: Instruction, stages: dict[str, Stage], defaults: Mapping[str, str]) -> Stage:
    named = _STAGE.match(instruction.rest)
    if named is None:
        raise DockerfileError(instruction.line, Message("FROM names no image"))
    image = _REFERENCE.sub(lambda reference: defaults.get(reference[1] or reference[2] or "", ""), named[1])
    parent = stages.get(image.lower())
    stage = Stage(instruction.line, parent)
    if parent is not None:
        parent.is_base = True
        stage.triggers = list(parent.triggers)
    stages[str(len({id(one) for one in stages.values()}))] = stage
    if named[2]:
        stage.name = f"stage {named[2]}"
        stages[named[2].lower()] = stage
    return stage


def _apply(instruction: Instruction, stage: Stage, path: str) -> None:
    name = instruction.name
    if name == "ENV":
        before = dict(stage.variables)
        for one in settings(instruction):
            place = f"{path}:{one.line}"
            stage.variables[one.name] = Variable(_expanded(one, before, place), place)
    elif name == "ARG":
        for one in settings(instruction):
            if one.name not in stage.variables or stage.variables[one.name].is_argument:
                stage.variables[one.name] = Variable(None, "", True)
    else:
        _apply_program(instruction, stage)


def _apply_program(instruction: Instruction, stage: Stage) -> None:
    name = instruction.name
    if name == "SHELL":
        words = _words(instruction.rest)
        if words is None:
            raise DockerfileError(instruction.line, Message("SHELL requires a JSON array"))
        stage.shell = words
    elif name == "CMD":
        stage.command = Program(_words(instruction.rest) or instruction.rest, instruction.line)
        stage.runs = True
    elif name == "ENTRYPOINT":
        stage.entry, stage.command = Program(_words(instruction.rest) or instruction.rest, instruction.line), None
        stage.runs = True
    elif name == "ONBUILD":
        stage.triggers.append(_triggered(instruction))


def _triggered(instruction: Instruction) -> Instruction:
    inner = next(instructions(instruction.rest), None)
    if inner is None:
        raise DockerfileError(instruction.line, Message("{name} requires an argument", name="ONBUILD"))
    return inner._replace(line=instruction.line, starts=((0, instruction.line),))


def _words(rest: str) -> Optional[list[str]]:
    """Return the words of the exec form; None for the shell form."""
    if not rest.startswith("["):
        return None
    try:
        words = json.loads(rest)
    except ValueError:
        return None
    return words if isinstance(words, list) and words and all(isinstance(word, str) for word in words) else None


def _program(stage: Stage) -> tuple[str, int]:
    """Return the container's command as a shell line; empty if the base image defines it."""
    entry, command = stage.entry, stage.command
    if entry is None:
        return ("", stage.line) if command is None else (_line(command.words, stage.shell), command.line)
    if isinstance(entry.words, str) or command is None:
        return _line(entry.words, stage.shell), entry.line
    more = [*stage.shell, command.words] if isinstance(command.words, str) else command.words
    return _line([*entry.words, *more], stage.shell), command.line


def _line(words: Union[Sequence[str], str], shell: Sequence[str]) -> str:
    if not isinstance(words, str):
        return shlex.join(words)
    return words if _SHELLS.fullmatch(shell[0]) else ""


def _expanded(setting: Setting, variables: Mapping[str, Variable], place: str) -> Value:
    """Return a value of ENV: quotes removed, variables from before this instruction expanded."""
    made: list[str] = []
    unknown: Optional[Text] = None
    for piece, quote in _pieces(setting.raw or ""):
        if quote == "'":
            made.append(piece)
            continue
        at = 0
        for reference in _REFERENCE.finditer(piece):
            made.append(piece[at : reference.start()])
            value = _referred(reference, variables, quote, place)
            if isinstance(value, Text):
                unknown = unknown or value
            else:
                made.append(value)
            at = reference.end()
        made.append(piece[at:])
    return "".join(made) if unknown is None else unknown


def _pieces(raw: str) -> list[tuple[str, str]]:
    """Split a value into quoted parts, by kind of quote, and unquoted ones."""
    found, at = list[tuple[str, str]](), 0
    pattern = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|((?:[^\"'\\]|\\.)+|.)", re.DOTALL)
    while at < len(raw):
        piece = pattern.match(raw, at)
        assert piece is not None
        number = piece.lastindex or 3
        found.append((piece[number], {1: '"', 2: "'", 3: ""}[number]))
        at = piece.end()
    return found


def _referred(reference: re.Match[str], variables: Mapping[str, Variable], quote: str, place: str) -> Value:
    if reference[6] is not None:  # an escape
        return reference[6] if not quote or reference[6] in '"$\\' else "\\" + reference[6]
    name = reference[1] or reference[2]
    row, operator, other = variables.get(name), reference[3], reference[4] or ""
    if row is None or row.is_argument or isinstance(row.value, Text) or reference[5]:
        if row is None:
            return Message("${name} comes from the base image, or is not set ({place})", name=name, place=place)
        return Message("${name} is known only when the image is built ({place})", name=name, place=place)
    value = row.value or ""
    if operator is None or operator.endswith("?"):
        return value
    is_given = bool(value) or not operator.startswith(":")
    if operator.endswith("-"):
        return value if is_given else other
    return other if is_given else ""
