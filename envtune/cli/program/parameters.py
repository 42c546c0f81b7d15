"""The words that stand for values in help, and the options that every verb has: one table for all verbs."""

from __future__ import annotations

from functools import partial
from typing import Any, Mapping

from typer.core import TyperOption

from envtune.cli import options

# name of the parameter -> what stands for its value; one that has a word of its own keeps it
_WORDS: Mapping[str, str] = {
    "catalog": "DIR",
    "change": "IDS",
    "color": "WHEN",
    "env_file": "FILE",
    "fail_on": "LEVEL",
    "faq": "IDS",
    "format_": "FORMAT",
    "hostfile": "FILE",
    "ignore": "IDS",
    "keep": "NAME",
    "logs": "LOG",
    "name": "NAME",
    "older_than": "DAYS",
    "output": "FILE",
    "owner": "USER",
    "peer": "HOST",
    "pid": "PID",
    "plan": "FILE",
    "policy": "FILE",
    "probe": "PROBE",
    "profile": "PROFILE",
    "python": "PYTHON",
    "schema": "N",
    "script": "FILE",
    "select": "IDS",
    "severity": "LEVEL",
    "since": "TIME",
    "snapshot": "SNAPSHOT",
    "step": "STEP",
    "tag": "TAG",
    "until": "TIME",
    "wait": "SECONDS",
    "wheels": "DIR",
}


def complete_parameters(command: Any) -> None:
    """Give the parameters of a verb their words, and the verb the options that all have."""
    command.params.append(_color_option())
    for parameter in command.params:
        if isinstance(parameter.default, float) and parameter.default.is_integer():
            parameter.default = int(parameter.default)  # help shows it
        word = None if parameter.metavar or getattr(parameter, "is_flag", False) else _WORDS.get(parameter.name)
        if hasattr(parameter.type, "_describe_range"):
            parameter.type._describe_range = partial(_range_words, parameter.type)
            parameter.type.name = parameter.type.name.partition(" ")[0]  # "'x' is not a valid float range" tells nobody
        if word is not None:
            several = parameter.param_type_name == "argument" and parameter.nargs != 1
            parameter.metavar = f"[{word}]..." if several else word


def _range_words(kind: Any) -> str:
    """Return the range of a number, for help and usage errors: `1-8`, `>= 0`."""
    if kind.min is None:
        return f"<= {kind.max:g}"
    return f">= {kind.min:g}" if kind.max is None else f"{kind.min:g}-{kind.max:g}"


def group_parameters() -> list[Any]:
    """Return the options of a verb that has verbs of its own."""
    lang = TyperOption(
        param_decls=["--lang"],
        callback=_take_language,
        expose_value=False,
        type=str,
        metavar="LANG",
        help=options.LANG.help,
    )
    color = _color_option()
    color.metavar = _WORDS["color"]
    return [lang, color]


def _take_language(context: Any, parameter: Any, value: Any) -> None:
    if value is not None:
        options.default_language = value


def _color_option() -> Any:
    """Return `--color`, which may stand before the verb as well."""
    return TyperOption(
        param_decls=["--color"],
        callback=lambda context, parameter, value: options.choose_colour(context, value),
        expose_value=False,
        type=str,
        help=options.COLOR_HELP,
    )
