"""Values of facts in words: what is not set, yes and no, and long lists of paths by the entries that differ."""

from __future__ import annotations

from typing import Optional, Sequence

from envtune.audit.settings import PACKAGE, VARIABLE
from envtune.messages import Literal, Message, Text, clauses, enumerated, in_context
from envtune.report.layout import printable, short_paths

LONGEST = 100  # characters of a value that are shown
_WORDS = {
    "none": in_context("value of a fact", "none"),
    "true": in_context("value of a fact", "yes"),
    "false": in_context("value of a fact", "no"),
}


def value_text(name: str, value: Optional[str]) -> Text:
    """Return a value of a fact, variable or package as a person reads it."""
    if value is None:
        return Message("not installed") if name.startswith(PACKAGE) else in_context("variable", "not set")
    if not value and name.startswith(VARIABLE):
        return in_context("variable", "empty")
    if ":" not in name and value in _WORDS:
        return _WORDS[value]
    shown = printable(value)
    if len(shown) > LONGEST and ":" in shown:
        first, *others = shown.split(":")
        return Message("{names} and {count} more", names=short_paths(first), count=len(others))
    return Literal(shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}...")


def contrast(name: str, value: Optional[str], other: Optional[str]) -> Text:
    """Return a value as it differs from another one: of long lists of paths only the entries that one of them has."""
    if value is None or other is None or min(len(value), len(other)) <= LONGEST or ":" not in value:
        return value_text(name, value)
    entries, others = value.split(":"), other.split(":")
    gone, more = _missing(others, entries), _missing(entries, others)
    parts = [Message("lacks {paths}", paths=_shown(gone))] if gone else []
    parts += [Message("also has {paths}", paths=_shown(more))] if more else []
    return clauses(parts) if parts else Message("the same entries in another order")


def _shown(paths: Sequence[str]) -> Text:
    return enumerated(printable(path) or Message("(empty)") for path in paths)


def _missing(entries: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return the entries that are not among the others."""
    return [entry for entry in dict.fromkeys(entries) if entry not in others]
