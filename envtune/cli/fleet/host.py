"""`envtune fleet host NAME`: what is known of one host."""

from __future__ import annotations

from pathlib import Path
from typing import List, Optional

import typer

from envtune.cli import options
from envtune.cli.fleet import common
from envtune.messages import N_

HELP = N_(
    """Show the results of one host.

Facts, checks that did not pass, changes and collections.

\b
Example:
  envtune fleet host node7

Exit status: 0 success, 2 the host is not in the store.
"""
)
NAME = typer.Argument(..., metavar="HOST", help=N_("Host to show."))


def command(
    name: str = NAME,
    store: Optional[Path] = common.STORE,
    format_: str = options.FORMAT,
    lang: Optional[str] = options.LANG,
    catalog: Optional[List[Path]] = options.CATALOG,
) -> None:
    from envtune.fleet.one_host import one_host
    from envtune.report.fleet.entries import Entries
    from envtune.report.fleet.host import host_page_data, host_page_lines

    lang = options.language(lang)
    options.require_choice("--format", format_, options.FORMATS)
    found = one_host(common.open_for_reading(store), name)
    entries = Entries(options.load_catalogue(catalog, lang))
    if format_ == "json":
        options.print_json(host_page_data(found, entries, lang), 1)
    else:
        settings = common.text_settings(common.plain(format_), lang, True)
        common.print_lines(host_page_lines(found, entries, settings))
