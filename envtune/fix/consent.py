"""Which changes of a plan may be written now, and what keeps the others back. Pure."""

from __future__ import annotations

from typing import Iterable, NamedTuple, Sequence

from envtune.fix.plan import cured
from envtune.messages import Message, Text
from envtune.model import Change

EACH = ("processes.terminate",)  # consent to one says nothing about the next: each change is named or asked for


class Held(NamedTuple):
    """A change that is not written; `why` is manual, consent, root or unnamed."""

    change: Change
    why: str
    reason: Text


class Consent(NamedTuple):
    """What the user said on the command line: words that name things, changes picked by id, blanket consent."""

    words: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    everything: bool = False


def sort_changes(changes: Iterable[Change], consent: Consent, root: bool) -> tuple[list[Change], list[Held]]:
    """(the changes that may be written, the others with the reason)."""
    ready, held = [], []
    for change in changes:
        found = _held(change, consent, root)
        if found is None:
            ready.append(change)
        else:
            held.append(found)
    return ready, held


def _held(change: Change, consent: Consent, root: bool) -> Held | None:
    if consent.changes and change.id not in consent.changes:
        return Held(change, "unnamed", Message("not among the changes named"))
    if change.safety == "manual":
        return Held(change, "manual", Message("a person does this"))
    if not _consented(change, consent):
        name = change.id if change.action in EACH else change.finding
        option = f"--change {change.id}" if change.action in EACH else change.finding
        words = Message(
            "asks for consent of its own: name {name} (envtune fix {option} --apply), or say --yes-confirm",
            name=name,
            option=option,
        )
        return Held(change, "consent", words)
    if change.root and not root:
        return Held(change, "root", Message("needs root"))
    return None


def _consented(change: Change, consent: Consent) -> bool:
    if change.safety == "safe" or consent.everything or change.id in consent.changes:
        return True
    if change.action in EACH:
        return False
    named = {word.lower() for word in consent.words}
    return bool(named & {*(check.lower() for check in cured(change)), change.playbook.lower()})


def unknown_changes(changes: Sequence[Change], consent: Consent) -> list[str]:
    """The ids named with --change that the plan does not have."""
    known = {change.id for change in changes}
    return [name for name in consent.changes if name not in known]
