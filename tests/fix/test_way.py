"""The way of a fix from the command line to the journal, as the stack shows it when the journal is written."""

from __future__ import annotations

import sys
from typing import Any, Iterator

import pytest
from helpers.fix_world import World

from envtune.executor.journal import Journal


def modules_on_the_stack() -> Iterator[str]:
    """The modules of envtune that are being run, the innermost first; calls within one module are one visit."""
    frame, last = sys._getframe(2), ""
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name.startswith("envtune.") and name != last:
            yield name
            last = name
        frame = frame.f_back  # type: ignore[assignment]


@pytest.mark.parametrize("words", [("fix", "--apply", "--yes"), ("undo", "--yes")])
def test_no_module_is_visited_twice(words: tuple[str, ...], world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    if words[0] == "undo":
        world.run("fix", "--apply", "--yes")
    ways: set[tuple[str, ...]] = set()
    append = Journal.append

    def noted(self: Journal, *arguments: Any, **named: Any) -> None:
        ways.add(tuple(modules_on_the_stack()))
        append(self, *arguments, **named)

    monkeypatch.setattr(Journal, "append", noted)
    done = world.run(*words)
    assert done.exit_code == 0, done.output
    assert ways
    for way in ways:
        assert len(set(way)) == len(way) <= 6, way
        assert way[0].startswith("envtune.executor."), "the journal has one writer"
