"""`envtune npu`: the NPUs of a host in a table."""

from __future__ import annotations

from pathlib import Path
from typing import List, Optional

import typer

from envtune.cli import options
from envtune.messages import N_

HELP = N_(
    """Show a table of this host's NPUs.

Model, health, temperature, memory and owner. Read-only. An unknown cell is `?`, with the reason below the table.

\b
Examples:
  envtune npu                          this host
  envtune npu --snapshot host.tar.gz   a recorded host
  envtune npu --format json            the same as data

Exit status: 0 everything is known, 2 usage error, 3 something is unknown or no NPU was found.
"""
)
SNAPSHOT = typer.Option(None, "--snapshot", help=N_("Show a recorded host (directory or tar.gz)."))


def command(
    format_: str = options.FORMAT,
    lang: Optional[str] = options.LANG,
    snapshot: Optional[List[Path]] = SNAPSHOT,
) -> None:
    from envtune.context.open import open_context, open_host
    from envtune.report.npu import render, render_json
    from envtune.resources.processes.inventory import inventory

    lang = options.language(lang)
    options.require_choice("--format", format_, options.FORMATS)
    recorded = options.single_snapshot(snapshot)
    options.limit_reading(recorded, lang)
    host = open_host(recorded)
    rows = inventory(open_context(host))
    if format_ == "json":
        options.print_document(render_json(host.name, rows, lang) + "\n")
    else:
        typer.echo(render(host.name, rows, lang, width=options.terminal_width(), colour=options.colour_wanted()))
    if not rows or any(row.unknown for row in rows):
        raise typer.Exit(options.NOT_READ)
