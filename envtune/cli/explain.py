"""`envtune explain`: everything the catalogue knows about one check, FAQ entry or playbook."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, List, Optional

import typer

from envtune.cli.options import colour_wanted, fail, language, terminal_width
from envtune.messages import Message

if TYPE_CHECKING:
    from envtune.catalog import Catalogue
    from envtune.report.entry import Entry

HELP = """What a check looks at and why, what a known error means, what a playbook does.

\b
  envtune explain CPU001                       a check, by id
  envtune explain governor-not-performance     or by name
  envtune explain F06                          an entry of the FAQ
  envtune explain set-bios-power-policy        a playbook
"""


def command(
    entry_id: str = typer.Argument(..., metavar="ID", help="Id or name; see `envtune list`."),
    lang: Optional[str] = typer.Option(None, "--lang", help="en or zh (default: your locale)."),
    catalog: Optional[List[Path]] = typer.Option(None, "--catalog", help="More entries, by id over the shipped ones."),
) -> None:
    from envtune.catalog import load
    from envtune.errors import EnvtuneError
    from envtune.report.entry import terminal_page

    lang = language(lang)
    try:
        catalogue = load(tuple(catalog or []))
        entry = find_entry(catalogue, entry_id)
    except EnvtuneError as error:
        fail(error.message, lang)
    for note in catalogue.notes:
        typer.echo(f"envtune: {note.to(lang)}", err=True)
    typer.echo(terminal_page(entry, catalogue, lang, width=terminal_width(), colour=colour_wanted()))


def find_entry(catalogue: Catalogue, word: str) -> Entry:
    """The entry with that id or name; UsageError with the nearest ones when there is none."""
    from envtune.catalog.compile import PLANNED
    from envtune.catalog.selection import unknown
    from envtune.errors import UsageError

    known: dict[str, Entry] = {}
    entries: tuple[Entry, ...] = (*catalogue.checks, *catalogue.faq, *catalogue.playbooks)
    for entry in entries:
        known[entry.id.lower()] = entry
        known.setdefault(str(getattr(entry, "name", entry.id)), entry)
    found = known.get(word.lower())
    if found is not None:
        return found
    if word.upper() in PLANNED:
        id_ = word.upper()
        raise UsageError(Message("{id}: this FAQ entry is not yet described", id=id_))
    names = [str(getattr(entry, "name", entry.id)) for entry in entries]
    raise unknown(word, [entry.id for entry in entries] + names)
