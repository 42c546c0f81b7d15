"""Every command line of envtune in the hand-written pages: its verbs, options and values are those of the program."""

from __future__ import annotations

import re
import shlex
from typing import Any, Iterator, Sequence

import pytest
import typer
from helpers.examples import ROOT

from envtune.cli.app import app

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
_BLOCK = re.compile(r"```(?:sh|console|bash)\n(.*?)```", re.DOTALL)
# Up to the end of the command; what is quoted may hold anything.
_COMMAND = re.compile(
    r"""(?:^|[|;&(]\s*|sudo |-- )(?:\S*/)?envtune(?:\.pyz)?\s+([a-z](?:[^|;&)>#"']|"[^"]*"|'[^']*')*)"""
)


def command_lines() -> Iterator[Any]:
    seen: set[str] = set()
    for page in PAGES:
        for block in _BLOCK.findall(page.read_text("utf-8")):
            for line in block.replace("\\\n", " ").splitlines():
                for found in _COMMAND.findall(line.strip().removeprefix("$ ").removeprefix("# ")):
                    if found.strip() not in seen:
                        seen.add(found.strip())
                        yield pytest.param(found.strip(), id=f"{page.name}: {found.strip()}")


def parse(group: Any, context: Any, words: Sequence[str]) -> None:
    """Parse as the program does, without running anything; raises what a usage error is."""
    name, command, rest = group.resolve_command(context, list(words))
    if hasattr(command, "list_commands"):
        with command.make_context(name, [], parent=context, resilient_parsing=True, obj="en") as inner:
            parse(command, inner, rest)
    elif not {"-h", "--help"} & set(rest):
        command.make_context(name, list(rest), parent=context, obj="en").close()


LINES = list(command_lines())


@pytest.mark.parametrize("line", LINES)
def test_it_can_be_typed(line: str) -> None:
    group: Any = typer.main.get_command(app)
    with group.make_context("envtune", ["--lang", "en"], resilient_parsing=True) as context:
        parse(group, context, shlex.split(line))


def test_there_are_many() -> None:
    assert len(LINES) > 70
