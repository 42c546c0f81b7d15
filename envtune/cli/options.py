"""What every verb does the same way: language, width, colour, and how it ends on a mistake."""

from __future__ import annotations

import os
import shutil
import sys
from typing import NoReturn, Optional

import typer

from envtune.messages import Message, Text

USAGE = 2


def language(chosen: Optional[str]) -> str:
    """`--lang`, else the locale's language, else English."""
    if chosen is None:
        locale = os.environ.get("LC_ALL") or os.environ.get("LC_MESSAGES") or os.environ.get("LANG") or ""
        return "zh" if locale.lower().startswith("zh") else "en"
    if chosen not in ("en", "zh"):
        fail(Message("--lang {chosen}: en or zh", chosen=chosen), "en")
    return chosen


def colour_wanted() -> bool:
    """Colour only on a terminal that can show it, and never against NO_COLOR."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def terminal_width() -> int:
    """Columns of the terminal, 100 where there is none; wider than 120 does not read better."""
    return min(shutil.get_terminal_size((100, 24)).columns, 120)


def fail(message: Text, lang: str) -> NoReturn:
    """Say what is wrong on stderr and end with 2."""
    typer.echo(f"envtune: {message.to(lang)}", err=True)
    raise typer.Exit(USAGE)


def fail_to_write(place: str, error: OSError, lang: str) -> NoReturn:
    """Say on stderr why nothing was written to `place` and end with 2."""
    fail(Message("{place}: not written: {words}", place=place, words=error.strerror or str(error)), lang)
