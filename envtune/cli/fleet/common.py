"""What the verbs of `envtune fleet` do the same way: where the store is, which hosts are meant, the documents."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterable, List, NoReturn, Optional, Sequence

import typer

from envtune.cli import options
from envtune.messages import N_, Message

if TYPE_CHECKING:
    from sqlite3 import Connection

    from envtune.catalog import Catalogue
    from envtune.fleet.questions import Overview
    from envtune.fleet.store.read import Store
    from envtune.model import Severity
    from envtune.report.output import Output

NODES: Any = typer.Option(None, "--nodes", "-w", metavar="NODESET", help=N_("Hosts, such as node[1-64,80] or @group."))
STORE: Any = typer.Option(None, "--store", metavar="FILE", help=N_("File with the results (SQLite)."))
GROUP: Any = typer.Option(
    None, "--group", metavar="NODESET", help=N_("Compare these hosts with each other (repeatable).")
)
FORMATS = ("text", "json", "csv", "html")
FORMAT: Any = options.format_option(N_("text, json, csv or html; html=FILE writes a file; repeat for several."))
VERBOSE: Any = typer.Option(False, "--verbose", "-v", help=N_("Show all details."))


def store_path(named: Optional[Path]) -> Path:
    """Return where the store is."""
    from envtune.fleet.store.schema import default_path

    return named or default_path(os.environ)


def open_for_reading(named: Optional[Path]) -> Store:
    """Return the store as it is now, whatever another audit writes meanwhile; raises UsageError where there is none."""
    import gc

    from envtune.fleet.store.read import Store

    store = open_until_end(store_path(named), create=False)
    store.execute("PRAGMA cache_size = -8192")  # KiB: tables are read from end to end, once
    store.execute("BEGIN")
    gc.disable()  # all that is read is kept to the end: of 10,000 hosts the search for cycles takes a tenth of the time
    options.until_end.callback(gc.enable)
    return Store(store)


def open_until_end(path: Path, create: bool = True) -> Connection:
    """Return the store at `path`, which is closed when the command ends; raises as `open_store`."""
    from envtune.fleet.store.schema import open_store

    store = open_store(path, create)
    options.until_end.callback(store.close)
    return store


def named_nodes(nodes: Optional[str]) -> Optional[Sequence[str]]:
    """Return the hosts of -w; None for all."""
    if nodes is None:
        return None
    from envtune.fleet.hosts import node_set

    return node_set(nodes)


def named_groups(groups: Optional[List[str]]) -> list[Sequence[str]]:
    """Return the hosts of each --group."""
    if not groups:
        return []
    from envtune.fleet.hosts import node_set

    return [node_set(group) for group in groups]


def wants_matrix(wanted: Sequence[Output]) -> bool:
    """Return whether a document shows the outcome of every check on every host."""
    return any(output.format == "html" for output in wanted)


def require_hosts(store: Store, *named: Optional[Sequence[str]]) -> None:
    """Raise UsageError for a store without hosts, and for hosts that were named none of which is in it."""
    from envtune.errors import UsageError

    known = store.host_names()
    if not known:
        raise UsageError(Message("the store has no hosts: run envtune fleet audit first"))
    if any(hosts is not None and known.isdisjoint(hosts) for hosts in named):
        raise UsageError(Message("none of these hosts is in the store"))


def show_overview(found: Overview, catalogue: Catalogue, wanted: Sequence[Output], lang: str, verbose: bool) -> bool:
    """Write the overview in every format; return whether all could be written."""
    from envtune.report.fleet.entries import Entries

    entries = Entries(catalogue)
    return options.write(wanted, lambda output: overview_document(found, entries, output, lang, verbose), lang)


def end_with(
    found: Overview,
    catalogue: Catalogue,
    wanted: Sequence[Output],
    threshold: Optional[Severity],
    lang: str,
    verbose: bool,
) -> NoReturn:
    """Write the overview and end; the status says whether a problem is at or above the threshold."""
    written = show_overview(found, catalogue, wanted, lang, verbose)
    end(found.exit_code(threshold) if written else options.USAGE)


def overview_document(found: Overview, entries: Any, output: Output, lang: str, verbose: bool) -> str:
    """Return the overview as one document."""
    if output.format == "json":
        from envtune.report.fleet.data import overview_data
        from envtune.trust.characters import json_text

        return json_text(overview_data(found, entries, lang), 1) + "\n"
    if output.format == "csv":
        from envtune.report.fleet.data import overview_csv

        return overview_csv(found, lang)
    if output.format == "html":
        from envtune.report.fleet.html import render_fleet

        return render_fleet(found, entries, lang)
    from envtune.report.fleet.text import render

    return render(found, entries, text_settings(output, lang, verbose))


def text_settings(output: Output, lang: str, verbose: bool) -> Any:
    """Return how a text is laid out."""
    from envtune.report.fleet.text import Settings

    width, colour = options.screen(output)
    return Settings(lang, width, colour, verbose)


def end(status: int) -> NoReturn:
    """End with an exit status."""
    raise typer.Exit(status)


def plain(format_: str) -> Output:
    """Return the document on standard output."""
    from envtune.report.output import Output

    return Output(format_)


def print_lines(lines: Iterable[str]) -> None:
    """Print the lines of a text."""
    from envtune.report.output import print_text

    text = "\n".join(line.rstrip(" ") for line in lines).lstrip("\n")
    print_text(plain("text"), text + "\n")
