"""Every usage error of every verb, for somebody who reads Chinese: options with wrong values, of every verb."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any, Iterator, Sequence

import pytest
import typer
from helpers.command_line import run
from helpers.rows import sampled

from envtune.cli.app import VERBS, app

ENGLISH = re.compile("[A-Za-z]{2,} [a-z]{2,}")
# What is no sentence: quoted words, options, paths, commands of envtune, what stands for a value in a usage.
NAMES = re.compile(r"'[^']*'|“[^”]*”|--?[a-zA-Z][\w-]*|envtune [a-z-]+( [a-z-]+)?|[\[{][^\]}]*[\]}]|/\S+")
# Options whose value is looked at before anything else happens; `-5` and a word are wrong for every number.
CHECKED = {"lang", "color", "severity", "fail_on", "format_", "stale", "schema", "snapshot", "since", "until"}
FILES = {"policy", "catalog", "script", "env_file", "hostfile", "plan", "wheels"}
HOOKS = "hook"  # a file that is not there is a fault of the hook's own, which changes nothing; its log is English


def verbs() -> Iterator[tuple[str, ...]]:
    for verb, module in VERBS.items():
        inner = getattr(importlib.import_module(f"envtune.cli.{module}"), "VERBS", {})
        yield from ((verb, one) for one in inner) if inner else ((verb,),)


def command_of(words: Sequence[str]) -> Any:
    command: Any = typer.main.get_command(app)
    context = command.make_context("envtune", ["--help", *words], resilient_parsing=True)
    for word in words:
        command = command.get_command(context, word)
    return command


def mistakes(words: Sequence[str]) -> Iterator[list[str]]:
    """Yield what is typed after the verb."""
    yield ["--zzz"]
    for parameter in command_of(words).params:
        option = max(parameter.opts, key=len)
        if parameter.param_type_name == "argument" or parameter.name == "help":
            continue
        if parameter.is_flag or parameter.count:
            yield [f"{option}=x"]
            continue
        yield [option]  # without its value
        if hasattr(parameter.type, "clamp"):
            yield from ([option, "x"], [option, "-5"])
        elif parameter.type.name in ("integer", "int", "float"):
            yield [option, "x"]
        elif parameter.name in CHECKED or (parameter.name in FILES and words[0] not in (HOOKS, "fix", "list")):
            yield [option, "zz-zz"]


@pytest.mark.parametrize("verb", sampled(map(" ".join, verbs()), 8))
def test_no_usage_error_is_english(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = verb.split()
    for name, value in {"LANG": "zh_CN.UTF-8", "LC_ALL": "", "HOME": tmp_path, "ENVTUNE_STATE": tmp_path}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.chdir(tmp_path)
    for typed in mistakes(words):
        done = run(*words, *typed)
        assert done.exit_code == 2, (typed, done.stdout, done.stderr)
        told = [line for line in done.stderr.splitlines() if line and not line.startswith("用法：")]
        assert told, typed
        for line in told:
            assert not ENGLISH.search(NAMES.sub("", line)), (typed, line)
            assert re.search("[\u4e00-\u9fff]", line), (typed, line)
