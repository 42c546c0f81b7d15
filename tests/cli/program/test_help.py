"""Help as it is read: what the program says of itself, and one word for each value."""

from __future__ import annotations

import importlib
import re

import pytest
from helpers.fix_world import RUNNER
from helpers.rows import sampled

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


def verbs_and_groups() -> list[tuple[str, ...]]:
    """Every verb, and the verbs of those that have some."""
    modules = {verb: importlib.import_module(f"envtune.cli.{module}") for verb, module in VERBS.items()}
    return [(verb,) for verb in VERBS] + [
        (verb, inner) for verb, module in modules.items() for inner in getattr(module, "VERBS", {})
    ]


@pytest.mark.parametrize("columns", [60, 80])
@pytest.mark.parametrize("words", verbs_and_groups(), ids=" ".join)
def test_chinese_help_breaks_no_short_bracket(words: tuple[str, ...], columns: int) -> None:
    text = RUNNER.invoke(app, [*words, "--help", "--lang", "zh"], env={**WIDE, "COLUMNS": str(columns)}).stdout
    broken = re.findall(r"（[^（）\n]*\n[^（）]*）|\[[^\[\]\n]*\n[^\[\]]*\]", text)
    assert [found for found in broken if display_width(" ".join(found.split())) <= 30] == []


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("words", sampled(map(list, verbs_and_groups()), 2), ids=" ".join)
def test_help_fits_eighty_columns(words: list[str], lang: str) -> None:
    done = RUNNER.invoke(app, [*words, "--help", "--lang", lang], env=WIDE)
    assert done.exit_code == 0
    assert [line for line in done.stdout.splitlines() if display_width(line) > 80] == []
    assert not re.search(r"[<>]=x|x[<>]=|\\b", done.stdout)


def test_explanations_are_below_their_examples_if_one_does_not_fit() -> None:
    from envtune.cli.program.examples import fitted

    short = "Words.\n\n\b\n  envtune a   one\n  envtune bb  two"
    assert fitted(short, 30) == short
    long = f"Words.\n\n\b\n  envtune a          {'x' * 60}\n  envtune {'b' * 40}  {'y' * 40}"
    made = fitted(long, 78).splitlines()
    assert made[-4:] == ["  envtune a", f"      {'x' * 60}", f"  envtune {'b' * 40}", f"      {'y' * 40}"]
    words = "one two three four five six seven"
    narrow = fitted(f"Words.\n\n\b\n  envtune a  {words}", 20).splitlines()
    assert narrow[-3:] == ["      one two three", "      four five six", "      seven"]


def test_a_summary_says_what_the_value_is_and_not_what_the_code_does() -> None:
    from envtune.catalog.reference import summaries

    found = summaries()
    assert len(found) > 150 and len(set(found)) == len(found)
    assert [row for row in found if re.match(r"(Read|Return|Get|Examine|Look|Find)s?\b", row)] == []
    assert [row for row in found if not row.endswith(".") or ": whether" in row] == []
