"""Which checks a fix is about: words, FAQ entries, playbooks, or those a saved plan names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Iterator, Sequence

from envtune.errors import PlanError, UsageError
from envtune.messages import Message

if TYPE_CHECKING:
    from envtune.catalog import Catalogue
    from envtune.fix.plan import Plan
    from envtune.model import Check


def widen(words: Sequence[str], faq: Sequence[str], catalogue: Catalogue) -> list[str]:
    """The selectors that the words stand for: a playbook stands for its checks, an FAQ entry for those about it."""
    playbooks = {playbook.id: playbook for playbook in catalogue.playbooks}
    known = {check.id for check in catalogue.checks}
    found: list[str] = []
    for word in (piece.strip() for part in words for piece in part.split(",")):
        fixes = playbooks[word].fixes if word in playbooks else (word,)
        found += [check for check in fixes if check in known or word not in playbooks]
    for entry in (piece.strip().upper() for part in faq for piece in part.split(",")):
        own = list(_about(entry, catalogue))
        if not own:
            raise UsageError(Message("--faq {entry}: no check is about it", entry=entry))
        found += own
    if (words or faq) and not any(found):
        named = " ".join([*words, *faq]).strip()
        raise UsageError(Message("'{named}' names no check", named=named))
    return list(dict.fromkeys(word for word in found if word))


def _about(entry: str, catalogue: Catalogue) -> Iterator[str]:
    known = {check.id for check in catalogue.checks}
    for one in catalogue.faq:
        if entry == one.id or entry in one.aliases:
            yield from (check for check in one.confirm if check in known)
    yield from (check.id for check in catalogue.checks if entry in check.faq)


def read_plan(path: Path, catalogue: Catalogue) -> Plan:
    """The plan of a file, made at least as careful as the playbooks here. Raises PlanError, UsageError."""
    from envtune.cli.reading import read_text
    from envtune.fix.document import LIMIT, load_plan
    from envtune.fix.plan import raised

    return raised(load_plan(read_text("--plan", path, LIMIT)), catalogue.playbooks)


def checks_of(plan: Plan, catalogue: Catalogue) -> tuple[Check, ...]:
    """The checks that the plan's changes are to cure; one that is not known here could not be run again."""
    from envtune.fix.plan import cured

    wanted = {check for change in plan.changes for check in cured(change)}
    known = {check.id: check for check in catalogue.checks}
    for check in sorted(wanted):
        if check not in known:
            raise PlanError("changes", Message("there is no check {check} in this version", check=check))
    return tuple(check for id_, check in known.items() if id_ in wanted)
