"""`envtune list`: what the catalog holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterator, List, Mapping, Optional

import typer

from envtune.cli import options
from envtune.messages import N_, Message, Text, alternatives, in_context, nearest

if TYPE_CHECKING:
    from envtune.catalog import Catalogue
    from envtune.report.pages.entry import Entry

HELP = N_(
    """List checks, errors or playbooks.

One line per entry; also the probes, steps and facts used in a catalog.

\b
Examples:
  envtune list
  envtune list checks
  envtune list faq --lang zh
  envtune list playbooks --format json
  envtune list codes
  envtune list probes
"""
)
REFERENCES = ("probes", "steps", "facts")
KINDS = ("checks", "faq", "playbooks", "codes", *REFERENCES)
KIND = typer.Argument(
    None, metavar="[KIND]", help=N_("checks, faq, playbooks, codes, probes, steps or facts (default: list the kinds).")
)
_ABOUT: Mapping[str, Text] = {
    "checks": Message("what envtune check checks"),
    "faq": Message("known errors, which envtune diagnose finds in logs"),
    "playbooks": Message("how envtune fix fixes what a check found"),
    "codes": Message("error codes of CANN, HCCL and the driver"),
    "probes": Message("what a custom check can read"),
    "steps": Message("what a custom playbook can do"),
    "facts": Message("what a custom check can depend on"),
}


def command(
    kind: Optional[str] = KIND,
    format_: str = options.FORMAT,
    lang: Optional[str] = options.LANG,
    catalog: Optional[List[Path]] = options.CATALOG,
) -> None:
    lang = options.language(lang)
    options.require_choice("--format", format_, options.FORMATS)
    if kind is None:
        _print_kinds(format_, lang)
        return
    if kind not in KINDS:
        raise _unknown_kind(kind)
    if kind in REFERENCES:
        _print_references(kind, format_, lang)
        return
    catalogue = options.load_catalogue(catalog, lang)
    if format_ == "json":
        options.print_json(code_rows(catalogue, lang) if kind == "codes" else rows(catalogue, kind, lang), 1)
        return
    for line in table(catalogue, kind, lang, options.terminal_width()):
        typer.echo(line)


def _print_references(kind: str, format_: str, lang: str) -> None:
    from envtune.report.pages import reference

    if format_ == "json":
        options.print_json(reference.rows(kind, lang), 1)
        return
    for line in reference.table(kind, lang, options.terminal_width()):
        typer.echo(line)


def _print_kinds(format_: str, lang: str) -> None:
    from envtune.report.layout import pad

    if format_ == "json":
        options.print_json([{"kind": kind, "title": _ABOUT[kind].to(lang)} for kind in KINDS], 1)
        return
    column = max(map(len, KINDS))
    for kind in KINDS:
        typer.echo(f"{pad(kind, column)}  {_ABOUT[kind].to(lang)}")


def _unknown_kind(word: str) -> Exception:
    from envtune.errors import UsageError

    message = Message("unknown list '{word}'; use {names}", word=word, names=alternatives(KINDS))
    near = nearest(word, KINDS)
    if near:
        message = Message("{message}; did you mean {guess}?", message=message, guess=alternatives(near))
    return UsageError(message)


def rows(catalogue: Catalogue, kind: str, lang: str) -> list[dict[str, Any]]:
    """Return the entries of a kind as plain data, titles in `lang`."""
    files = catalogue.files(kind)
    return [{**_row(entry, lang), "file": files[entry.id]} for entry in _entries(catalogue, kind)]


def _entries(catalogue: Catalogue, kind: str) -> tuple[Entry, ...]:
    if kind == "checks":
        return catalogue.checks
    if kind == "codes":
        return tuple(code.entry() for code in catalogue.codes)
    return catalogue.faq if kind == "faq" else catalogue.playbooks


def code_rows(catalogue: Catalogue, lang: str) -> list[dict[str, Any]]:
    """Return the error codes as plain data, their sentences in `lang`."""
    return [
        {
            "code": code.code,
            "kind": "code",
            "meaning": code.meaning.to(lang),
            "action": code.action.to(lang),
            "side": code.side,
            "faq": code.faq or None,
            "source": code.source,
        }
        for code in catalogue.codes
    ]


def _row(entry: Entry, lang: str) -> dict[str, Any]:
    from envtune.model import Check, FaqEntry

    title = entry.title.to(lang)
    if isinstance(entry, Check):
        row: dict[str, Any] = {"id": entry.id, "name": entry.name, "kind": "check", "severity": entry.severity.value}
        row.update(status=entry.status, tags=list(entry.tags), title=title, family=entry.family, origin=entry.origin)
        row.update(probe=entry.probe, applies=dict(entry.applies), faq=list(entry.faq), seed=entry.seed)
        return row
    if isinstance(entry, FaqEntry):
        row = {"id": entry.id, "name": entry.name, "kind": "faq", "title": title, "side": entry.side}
        row.update(confirm=list(entry.checks), aliases=list(entry.aliases), seed=entry.seed)
        return row
    row = {"id": entry.id, "kind": "playbook", "title": title, "fixes": list(entry.fixes), "safety": entry.safety}
    row.update(disruption=entry.disruption, root=entry.root, seed=entry.seed)
    return row


def table(catalogue: Catalogue, kind: str, lang: str, width: int) -> Iterator[str]:
    """Yield a line per entry: id, what matters most about it, title; longer titles go on below themselves."""
    from envtune.report.layout import display_width, indent, pad, printable

    lines = [(entry.id, _mark(entry, lang), printable(_title(entry, lang))) for entry in _entries(catalogue, kind)]
    first = max((len(id_) for id_, _, _ in lines), default=0)
    second = max((display_width(mark) for _, mark, _ in lines), default=0)
    for id_, mark, title in lines:
        start = f"{pad(id_, first)}  {pad(mark, second)}  "
        yield from (line.rstrip() for line in indent(title, width, start, " " * (first + second + 4)))


def _title(entry: Entry, lang: str) -> str:
    """Return the title; of a check that runs only when it is named, with the reason."""
    status = getattr(entry, "status", "stable")
    words = {"experimental": Message("{title} (experimental)", title=entry.title)}
    words["deprecated"] = Message("{title} (deprecated)", title=entry.title)
    return words.get(status, entry.title).to(lang)


_MARKS: Mapping[str, Text] = {
    "host": in_context("list", "host"),
    "code": in_context("list", "script"),
    "escalate": in_context("list", "support"),
    "ignore": in_context("list", "harmless"),
    "safe": in_context("list", "safe"),
    "confirm": in_context("list", "asks"),
    "manual": in_context("list", "by hand"),
}


def _mark(entry: Entry, lang: str) -> str:
    from envtune.model import Check, FaqEntry
    from envtune.report.words import SEVERITIES

    if isinstance(entry, Check):
        return SEVERITIES[entry.severity].to(lang)
    return _MARKS[entry.side if isinstance(entry, FaqEntry) else entry.safety].to(lang)
