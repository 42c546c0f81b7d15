"""`envtune explain`: everything the catalog knows about one check, FAQ entry or playbook."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, List, Optional

import typer

from envtune.cli import options
from envtune.messages import N_, Message

if TYPE_CHECKING:
    from envtune.catalog import Catalogue
    from envtune.report.pages.entry import Entry

HELP = N_(
    """Explain a check, error or playbook.

What a check reads, why it matters and how to fix it; what an error means; what a playbook does; which arguments a
probe or playbook step takes.

\b
Examples:
  envtune explain CPU001                       a check, by id
  envtune explain governor-not-performance     or by name
  envtune explain F06                          an entry of the FAQ
  envtune explain 507011                       an error code: 507011, EI0006, ERR02200, HCCL7
  envtune explain set-bios-power-policy        a playbook
  envtune explain sysctl.value                 a probe, with its arguments and an example
  envtune explain sysctl.set                   a step of a playbook
"""
)
ENTRY = typer.Argument(..., metavar="ID", help=N_("Id or name; see `envtune list`."))


_REFERENCES = ("probes", "steps")


def command(
    entry_id: str = ENTRY,
    lang: Optional[str] = options.LANG,
    catalog: Optional[List[Path]] = options.CATALOG,
    policy: Optional[str] = options.POLICY,
) -> None:
    from envtune.cli.policy.loading import load_with_policy
    from envtune.report.pages.entry import terminal_page

    lang = options.language(lang)
    loaded = load_with_policy(catalog, lang, policy)
    catalogue = loaded.catalogue
    width, colour = options.terminal_width(), options.colour_wanted()
    reference = _reference_page(entry_id, catalogue, lang, width, colour)
    if reference is not None:
        typer.echo(reference)
        return
    entry = loaded.explained(find_entry(catalogue, entry_id))
    typer.echo(terminal_page(entry, catalogue, lang, width=width, colour=colour))


def _reference_page(word: str, catalogue: Catalogue, lang: str, width: int, colour: bool) -> Optional[str]:
    """Return the page of a probe or step (a name with a dot), or of a fact; None for other words."""
    from envtune.context.registry import fact_names

    if "." not in word and word not in fact_names():
        return None
    from envtune.catalog.reference import find_reference, references
    from envtune.report.pages.reference import terminal_page

    try:
        row = find_reference(word)
    except KeyError:
        from envtune.catalog.selection import unknown_name

        raise unknown_name(word, [row.id for kind in _REFERENCES for row in references(kind)], _REFERENCES) from None
    return terminal_page(row, catalogue, lang, width=width, colour=colour)


def find_entry(catalogue: Catalogue, word: str) -> Entry:
    """Return the entry with that id or name; raises UsageError with the nearest ones when there is none."""
    from envtune.catalog.compile import PLANNED
    from envtune.catalog.selection import unknown_name
    from envtune.errors import UsageError

    known: dict[str, Entry] = {}
    entries: tuple[Entry, ...] = (*catalogue.checks, *catalogue.faq, *catalogue.playbooks)
    for entry in entries:
        known[entry.id.lower()] = entry
        known.setdefault(str(getattr(entry, "name", entry.id)), entry)
    for faq in catalogue.faq:
        for alias in faq.aliases:
            known.setdefault(alias.lower(), faq)
    named = known.get(word.lower())
    if named is not None:
        return named
    code = catalogue.codes.find(word.upper())
    if code is not None:
        return code.entry()
    if word.upper() in PLANNED:
        raise UsageError(Message("{id}: this FAQ entry is not yet described", id=word.upper()))
    names = [str(getattr(entry, "name", entry.id)) for entry in entries]
    raise unknown_name(
        word,
        [entry.id for entry in entries] + names,
        ("checks", "faq", "playbooks", "codes", "probes", "steps", "facts"),
    )
