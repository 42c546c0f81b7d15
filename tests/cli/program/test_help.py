"""Help as it is read: what the program says of itself, and one word for each value."""

from __future__ import annotations

import importlib
import re

import pytest
from helpers.fix_world import RUNNER

from envtune.cli.app import VERBS, app
from envtune.messages import LANGUAGES, Message
from envtune.report.layout import display_width
from envtune.version import __version__

WIDE = {"COLUMNS": "80", "LC_ALL": "C.UTF-8"}


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"]])
def test_envtune_alone_is_its_help(words: list[str]) -> None:
    done = RUNNER.invoke(app, words, env=WIDE)
    assert done.exit_code == 0 and done.stderr == ""
    for first in ("envtune check", "envtune diagnose", "envtune fix"):
        assert f"\n    {first} " in done.stdout


@pytest.mark.parametrize("words", [["--version"], ["-V"], ["version"], ["version", "--lang", "zh"]])
def test_the_version(words: list[str]) -> None:
    done = RUNNER.invoke(app, words)
    assert (done.exit_code, done.stderr) == (0, "")
    assert re.fullmatch(rf"envtune {re.escape(__version__)} \(Python 3\.\d+\.\d+\S*\)\n", done.stdout)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_summaries_fit_a_line_of_eighty_columns(lang: str) -> None:
    done = RUNNER.invoke(app, ["--help", "--lang", lang], env=WIDE)
    assert "..." not in done.stdout.rpartition("Commands:")[2].rpartition("命令：")[2]
    for verb, module in VERBS.items():
        summary = Message(importlib.import_module(f"envtune.cli.{module}").HELP).to(lang).partition("\n")[0]
        assert display_width(summary.rstrip(".。")) <= 45, verb
        assert f"{verb}  " in done.stdout and summary in done.stdout


@pytest.mark.parametrize("verb", VERBS)
def test_every_value_has_a_word(verb: str) -> None:
    done = RUNNER.invoke(app, [verb, "--help"], env=WIDE)
    assert done.exit_code == 0
    options = done.stdout.rpartition("Options:")[2]
    assert not re.search(r"<\w|--[a-z-]+ (TEXT|PATH|INTEGER|FLOAT|STR)\b", options), options
    assert "--color WHEN" in options and "--lang LANG" in options


@pytest.mark.parametrize(
    ("typed", "meant"), [("chekc", "check"), ("diagnos", "diagnose"), ("histroy", "history"), ("undu", "undo")]
)
def test_a_mistyped_verb(typed: str, meant: str) -> None:
    done = RUNNER.invoke(app, [typed])
    assert done.exit_code == 2 and f"No such command '{typed}'. Did you mean '{meant}'?" in done.stderr
    assert "Did you mean" not in RUNNER.invoke(app, ["xyzzy"]).stderr
