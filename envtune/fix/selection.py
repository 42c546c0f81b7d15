"""Which checks a fix is about: words, FAQ entries, playbooks, or those a saved plan names."""

from __future__ import annotations

from pathlib import Path
from typing import Iterator, Sequence

from envtune.catalog import Catalogue, select
from envtune.errors import PlanError, UsageError
from envtune.fix.plan import Plan, fixed_checks, with_playbook_safety
from envtune.messages import Message
from envtune.model import Check, Severity


def choose_checks(
    catalogue: Catalogue,
    words: Sequence[str],
    faq: Sequence[str],
    ignore: Sequence[str] = (),
    tags: Sequence[str] = (),
    floor: Severity = Severity.INFO,
) -> tuple[Check, ...]:
    """Return the checks that a fix is about: as `check` selects them, and by playbook and FAQ entry.

    Raises UsageError for what names nothing.
    """
    selectors = _selectors(words, faq, catalogue)
    return select(catalogue.checks, selectors or None, ignore, tags, floor)


def _selectors(words: Sequence[str], faq: Sequence[str], catalogue: Catalogue) -> list[str]:
    """Replace a playbook by its checks and an FAQ entry by those about it; all else is a selector of `check`."""
    playbooks = {playbook.id: playbook for playbook in catalogue.playbooks}
    known = {check.id for check in catalogue.checks}
    chosen: list[str] = []
    for word in _pieces(words):
        fixes = playbooks[word].fixes if word in playbooks else (word,)
        chosen += [check for check in fixes if check in known or word not in playbooks]
    for entry in map(str.upper, _pieces(faq)):
        about = list(_about(entry, catalogue))
        if not about:
            raise UsageError(Message("--faq {entry}: no check is about it", entry=entry))
        chosen += about
    if (words or faq) and not any(chosen):
        named = " ".join([*words, *faq]).strip()
        raise UsageError(Message("'{named}' names no check", named=named))
    return list(dict.fromkeys(word for word in chosen if word))


def _pieces(words: Sequence[str]) -> list[str]:
    return [piece.strip() for part in words for piece in part.split(",")]


def _about(entry: str, catalogue: Catalogue) -> Iterator[str]:
    known = {check.id for check in catalogue.checks}
    for known_entry in catalogue.faq:
        if entry == known_entry.id or entry in known_entry.aliases:
            yield from (check for check in known_entry.confirm if check in known)
    yield from (check.id for check in catalogue.checks if entry in check.faq)


def read_plan(path: Path, catalogue: Catalogue) -> Plan:
    """Return the plan of a file, made at least as careful as the playbooks here. Raises PlanError, UsageError."""
    from envtune.fix.document import LIMIT, load_plan
    from envtune.host.text_file import read_text_file

    return with_playbook_safety(load_plan(read_text_file("--plan", path, LIMIT)), catalogue.playbooks)


def checks_of(plan: Plan, catalogue: Catalogue) -> tuple[Check, ...]:
    """Return the checks that the plan's changes are to fix. Raises PlanError for one that cannot be run again here."""
    fixed = {check for change in plan.changes for check in fixed_checks(change)}
    known = {check.id: check for check in catalogue.checks}
    for check in sorted(fixed):
        if check not in known:
            raise PlanError("changes", Message("there is no check {check} in this version", check=check))
    return tuple(check for id_, check in known.items() if id_ in fixed)
