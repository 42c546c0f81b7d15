"""`envtune version`, `--version` and `-V`: which envtune this is; every report of an error needs it."""

from __future__ import annotations

import sys
from typing import Optional

import typer

from envtune.cli import options
from envtune.messages import N_
from envtune.version import __version__

HELP = N_("""Show the version of envtune and Python.""")


def command(lang: Optional[str] = options.LANG) -> None:
    options.language(lang)
    print_version()


def print_version() -> None:
    """Print one line: the same in every language."""
    typer.echo(f"envtune {__version__} (Python {sys.version.split()[0]})")
