"""Describe a probe, a step or a fact: `list` and `explain` print it on a terminal, docs/generate.py as Markdown."""

from __future__ import annotations

from typing import Any, Iterator, Optional

from envtune.catalog import Catalogue
from envtune.catalog.reference import PLACEHOLDER, REQUIRED, Argument, Reference, example_text, references
from envtune.expect import value_text
from envtune.messages import Literal, Message, Text, in_context, listed
from envtune.report.layout import indent, pad
from envtune.report.pages.entry import Section, page

KIND_NAMES = {
    "probes": Message("probe: what a check reads"),
    "steps": Message("step of a playbook"),
    "facts": Message("fact: what `applies` in a check refers to"),
}


def rows(kind: str, lang: str) -> list[dict[str, Any]]:
    """Return all of a kind as plain data, texts in `lang`."""
    return [
        {
            "id": row.id,
            "kind": kind[:-1],
            "summary": row.summary.to(lang),
            "arguments": [argument_data(argument, lang) for argument in row.arguments],
        }
        for row in references(kind)
    ]


def argument_data(argument: Argument, lang: str) -> dict[str, Any]:
    """Return an argument as plain data; `default` only where it is not required."""
    required = argument.default is REQUIRED
    data = {"name": argument.name, "type": argument.type.to(lang), "required": required}
    return {**data, **({} if required else {"default": argument.default}), "summary": argument.summary.to(lang)}


def table(kind: str, lang: str, width: int) -> Iterator[str]:
    """Yield a line each: the name and what it is for; longer texts go on below themselves."""
    every = references(kind)
    column = max(len(row.id) for row in every)
    for row in every:
        start = f"{pad(row.id, column)}  "
        yield from (line.rstrip() for line in indent(row.summary.to(lang), width, start, " " * len(start)))


def sections(row: Reference, catalogue: Catalogue) -> tuple[Section, ...]:
    """Return everything that is known of one, without empty sections."""
    arguments = tuple(argument_text(argument) for argument in row.arguments)
    example = tuple(Literal(line) for line in (example_of(row) or _shipped_use(row, catalogue)).splitlines())
    found = (
        Section(Message("Arguments"), "list", arguments),
        Section(in_context("reference", "Example"), "code", example),
        Section(Message("Used by"), "list", tuple(_users(row, catalogue))),
    )
    return tuple(section for section in found if section.lines)


def argument_text(argument: Argument) -> Text:
    """Return name, type, default and meaning of an argument in one line."""
    parts: list[Text] = [argument.type]
    if argument.default is not REQUIRED:
        parts.append(Message("optional, default {default}", default=value_text(argument.default) or '""'))
    words = listed(parts)
    return Message("{name} ({type}): {summary}", name=argument.name, type=words, summary=argument.summary)


def example_of(row: Reference) -> Optional[str]:
    """Return a whole check that uses the probe, or a whole playbook with the step; None without one."""
    return None if row.kind == "facts" else example_text(row.kind, row.id)


def _shipped_use(row: Reference, catalogue: Catalogue) -> str:
    """Return the lines of a shipped check or playbook that use it; nothing for a fact, or without one."""
    import yaml

    data: dict[str, Any] = {}
    if row.kind == "probes":
        check = next((check for check in catalogue.checks if check.probe == row.id), None)
        data = {} if check is None else {"probe": {row.id: dict(check.arguments)}, "expect": dict(check.expect)}
    elif row.kind == "steps":
        steps = (step for playbook in catalogue.playbooks for step in playbook.steps if step.kind == row.id)
        data = {"steps": [{row.id: dict(step.arguments)} for step in steps][:1]}
    lines = (yaml.safe_dump({key: value}, default_flow_style=None, width=100) for key, value in data.items() if value)
    return "".join(lines)


def _users(row: Reference, catalogue: Catalogue) -> Iterator[Text]:
    """Yield the checks or playbooks of the catalog that use it."""
    if row.kind == "probes":
        users = [(check.id, check.title) for check in catalogue.checks if check.probe == row.id]
    elif row.kind == "facts":
        users = [(check.id, check.title) for check in catalogue.checks if row.id in check.applies]
    else:
        users = [(book.id, book.title) for book in catalogue.playbooks if row.id in [step.kind for step in book.steps]]
    yield from (Message("{id}: {title}", id=id_, title=title) for id_, title in users if id_ != PLACEHOLDER)


def terminal_page(row: Reference, catalogue: Catalogue, lang: str, *, width: int, colour: bool) -> str:
    """Return the page for a terminal of `width` columns."""
    files = [file for kind in ("checks", "playbooks") for file in catalogue.files(kind).values()]
    site = any(file.startswith("/") for file in files)  # whose titles or steps may be on the page
    parts = sections(row, catalogue)
    return page(row.id, row.summary, KIND_NAMES[row.kind], parts, lang, width=width, colour=colour, site=site)
