"""`envtune collector`: the recorder as one file, for hosts on which nothing is installed."""

from __future__ import annotations

import sys
from typing import Optional

import typer

from envtune.cli.options import fail_to_write, language

HELP = """Print the recorder as one Python program, for hosts on which nothing is installed.

It needs Python 3.6 or newer and nothing else, and writes nothing but a snapshot, as `envtune snapshot` does. Examples:

\b
  envtune collector | ssh HOST python3 - > host.tar.gz    record another host from here
  envtune collector > collector.py                        a file to copy: python3 collector.py -o host.tar.gz

Exit status: 0, or 2.
"""


def command(lang: Optional[str] = typer.Option(None, "--lang", help="en or zh (default: your locale).")) -> None:
    from envtune.assemble import shipped

    lang = language(lang)
    try:
        sys.stdout.write(shipped("collector"))
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        fail_to_write("-", error, lang)
