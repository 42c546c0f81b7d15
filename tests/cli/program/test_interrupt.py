"""Ctrl-C: one line on stderr, exit status 130, and what was changed by then."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.fix_world import World
from helpers.program import program
from helpers.rows import sampled
from typer.core import TyperGroup

from envtune.cli.app import VERBS
from envtune.fix import apply as fix_apply

SAID = {"en": "Interrupted.\n", "zh": "已中断。\n"}


def interrupted(*args: Any, **more: Any) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(("verb", "lang"), sampled([(verb, lang) for verb in VERBS for lang in SAID], 3))
def test_every_verb_says_so(verb: str, lang: str) -> None:
    def put_in_place() -> None:
        TyperGroup.invoke = interrupted  # type: ignore[method-assign, assignment]

    ended = program("--lang", lang, verb, before=put_in_place)
    assert (ended.status, ended.out, ended.err.decode()) == (130, b"", SAID[lang])


def test_the_prolog_of_slurm_says_so() -> None:
    """It does without typer."""

    def put_in_place() -> None:
        from envtune.cli.hook import quick

        quick.parse = interrupted  # type: ignore[assignment]

    ended = program("hook", "slurm-prolog", before=put_in_place)
    assert (ended.status, ended.err.decode()) == (130, SAID["en"])


def test_after_the_changes_were_made_it_names_the_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fix_apply, "_check_again", interrupted)
    done = world.run("fix", "--apply", "--yes")
    assert done.exit_code == 130 and world.contents() == ("good", "good")
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("Interrupted."))
    assert "checks were not run again. To undo it: envtune undo 2" in line
