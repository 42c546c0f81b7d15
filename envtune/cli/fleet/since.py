"""`envtune fleet since DATE`: what changed on hosts since then."""

from __future__ import annotations

import time
from itertools import chain
from pathlib import Path
from typing import Optional

import typer

from envtune.cli import options
from envtune.cli.fleet import common
from envtune.messages import N_, Message

HELP = N_(
    """Show what changed since a date.

Shows checks and facts whose result differs from the host's previous collection.

\b
Examples:
  envtune fleet since 2026-11-01
  envtune fleet since '2026-11-01 08:00' -w node[1-8]

Exit status: 0 nothing changed, 1 something changed, 2 usage error.
"""
)
DATE = typer.Argument(..., metavar="DATE", help=N_("Date, such as 2026-11-01 or '2026-11-01 08:00', in local time."))


def command(
    date: str = DATE,
    nodes: Optional[str] = common.NODES,
    store: Optional[Path] = common.STORE,
    format_: str = options.FORMAT,
    lang: Optional[str] = options.LANG,
    verbose: bool = common.VERBOSE,
) -> None:
    from envtune.report.fleet.data import since_document
    from envtune.report.fleet.text import change_lines

    lang = options.language(lang)
    options.require_choice("--format", format_, options.FORMATS)
    opened, since = common.open_for_reading(store), _seconds(date)
    only = common.named_nodes(nodes)
    common.require_hosts(opened, only)
    runs = opened.runs()
    first = next((run.id for run in runs.values() if run.started >= since), None)
    asked = None if only is None else frozenset(only)
    found = iter(()) if first is None else opened.changes(first)
    rest = (change for change in found if asked is None or change.host in asked)
    changed = next(rest, None)
    changes = chain([] if changed is None else [changed], rest)
    if format_ == "json":
        for part in since_document(changes, runs):
            options.print_document(part)
    else:
        settings = common.text_settings(common.plain(format_), lang, verbose)
        text = Message("no changes on hosts collected again since then")
        common.print_lines(settings.lines(text) if changed is None else change_lines(changes, runs, settings))
    common.end(0 if changed is None else 1)


def _seconds(date: str) -> float:
    """Return a local time in seconds since 1970; raises UsageError."""
    for form in ("%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M"):
        try:
            return time.mktime(time.strptime(date, form))
        except (ValueError, OverflowError):
            continue
    from envtune.errors import UsageError

    raise UsageError(Message("{date}: not a date; write 2026-11-01 or '2026-11-01 08:00'", date=date))
