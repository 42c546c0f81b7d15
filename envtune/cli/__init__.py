"""The command line: the only importer of typer. One module per verb, imported when it is called."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the `envtune` command."""
    from envtune.cli.app import COMPLETION_VARIABLE, app

    try:
        app(complete_var=COMPLETION_VARIABLE)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)  # what a shell shows for SIGPIPE
