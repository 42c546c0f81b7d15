"""Which changes of a plan may be written now, and why the others may not. Pure."""

from __future__ import annotations

import re
from typing import Callable, Iterable, Iterator, NamedTuple, Sequence, Union

from envtune.errors import UsageError
from envtune.fix.plan import fixed_checks
from envtune.messages import Message, Text, clauses
from envtune.model import Change, VersionChange
from envtune.resources.processes.running import NOTHING_RUNNING, Running

# Consent to one of these, or to one downgrade, does not cover the next: each must be named or asked about.
CONFIRM_EACH = ("processes.terminate",)


class Withheld(NamedTuple):
    """A change that is not written; `why` is manual, consent, root, running or unnamed."""

    change: Change
    why: str
    reason: Text


class Consent(NamedTuple):
    """What the user consents to beforehand: named kinds of changes, changes picked by id, blanket consent."""

    words: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    everything: bool = False
    refuse_running: bool = False  # write nothing that a running process uses
    attended: bool = True  # somebody is present who sees which processes those are


class Question(NamedTuple):
    """A question to the user: may these changes be made? `separate` for one that is asked on its own.

    `running` are the processes that use what they change, `confirm` the ids of those that --yes does not cover.
    """

    changes: Sequence[Change]
    separate: bool
    running: Running = NOTHING_RUNNING
    confirm: tuple[str, ...] = ()


Ask = Callable[[Question], Union[bool, Sequence[str]]]  # all of them, none, or these ids


def sort_changes(changes: Sequence[Change], consent: Consent, root: bool) -> tuple[list[Change], list[Withheld]]:
    """Return the changes that may be written, and the others with the reason.

    Raises UsageError for a change of `consent` that the plan does not have.
    """
    known = {change.id for change in changes}
    for name in consent.changes:
        if name not in known:
            raise UsageError(Message("--change {name}: the plan has no such change", name=name))
    ready, withheld = [], []
    for change in changes:
        reason = _withheld(change, consent, root)
        if reason is None:
            ready.append(change)
        else:
            withheld.append(reason)
    return ready, withheld


def _withheld(change: Change, consent: Consent, root: bool) -> Withheld | None:
    if consent.changes and change.id not in consent.changes:
        return Withheld(change, "unnamed", Message("not among the given changes"))
    if change.safety == "manual":
        return Withheld(change, "manual", Message("by hand"))
    if not _is_consented(change, consent):
        each = _confirmed_each(change)
        name = change.id if each else change.finding
        option = f"--change {change.id}" if each else change.finding
        reason = Message(
            "needs confirmation: name {name} (the same command with {option}), or use --yes-confirm",
            name=name,
            option=option,
        )
        return Withheld(change, "consent", reason)
    if change.root and not root:
        return Withheld(change, "root", Message("needs root"))
    return None


def _is_consented(change: Change, consent: Consent) -> bool:
    if consent.everything or change.id in consent.changes:
        return True
    if _confirmed_each(change):
        return False
    if change.safety == "safe":
        return True
    named = {word.lower() for word in consent.words}
    return bool(named & {*(check.lower() for check in fixed_checks(change)), change.playbook.lower()})


def _confirmed_each(change: Change) -> bool:
    return change.action in CONFIRM_EACH or bool(downgrades(change))


def withhold_running(
    ready: Sequence[Change], running: Running, consent: Consent
) -> tuple[list[Change], list[Withheld]]:
    """Withhold what running processes use: all of it if the user said so, else what would interrupt them unattended.

    The author of a script with --yes cannot know which job will be running when it is started; --yes-confirm is for
    that.
    """
    kept: list[Change] = []
    withheld: list[Withheld] = []
    for change in ready:
        uses = running.uses.get(change.id, ())
        unattended = not consent.attended and change.disruption != "none" and not consent.everything
        if not uses or not (consent.refuse_running or unattended):
            kept.append(change)
            continue
        way = Message("end them first") if consent.refuse_running else Message("end them first, or use --yes-confirm")
        reason = Message("used by {processes}; {way}", processes=clauses(use.text for use in uses), way=way)
        withheld.append(Withheld(change, "running", reason))
    return kept, withheld


def ask_for_each(withheld: Sequence[Withheld], ask: Ask, root: bool, running: Running) -> list[Change]:
    """Ask separately about each process to be ended and each downgrade; return those that were agreed to."""
    able = [change for change in _unconfirmed(withheld, root) if _confirmed_each(change)]
    return [change for change in able if ask(Question([change], separate=True, running=running))]


def confirmable(withheld: Sequence[Withheld], root: bool) -> list[Change]:
    """Return the changes that need confirmation, and may be part of the one question about all."""
    return [change for change in _unconfirmed(withheld, root) if not _confirmed_each(change)]


def _unconfirmed(withheld: Sequence[Withheld], root: bool) -> list[Change]:
    return [one.change for one in withheld if one.why == "consent" and (root or not one.change.root)]


def agreed(question: Question, answer: Union[bool, Sequence[str]]) -> tuple[list[Change], list[Withheld]]:
    """Return the changes of a question that the answer agrees to, and the others."""
    chosen = [change for change in question.changes if (answer if isinstance(answer, bool) else change.id in answer)]
    reason = Message("not among the given changes")
    return chosen, [Withheld(change, "unnamed", reason) for change in question.changes if change not in chosen]


def like_changes(changes: Iterable[Change]) -> list[list[Change]]:
    """Group changes that differ only in their target."""
    groups: dict[object, list[Change]] = {}
    for change in changes:
        kinds = tuple(operation["op"] for operation in change.operations)
        alike = change._replace(id="", target="", subject="", operations=(), fixes=(), verify={})
        groups.setdefault((repr(alike), kinds), []).append(change)
    return list(groups.values())


# ---------------------------------------------------------------------- downgrades


def downgrades(change: Change) -> tuple[VersionChange, ...]:
    """Return the packages that the change replaces by an older version."""
    return tuple(one for one in change.versions if _order(one.after) < _order(one.before))


def downgrade_texts(change: Change) -> Iterator[Text]:
    """Yield a sentence for each downgrade: from and to, and what is lost."""
    for one in downgrades(change):
        yield Message(
            "downgrades {name} from {before} to {after}: later additions, changes and fixes, including "
            "security fixes, are lost",
            name=one.name,
            before=one.before,
            after=one.after,
        )
        if _order(one.before)[:1] > _order(one.after)[:1]:
            yield Message(
                "that is another major version: code that was written for {name} {before} may fail",
                name=one.name,
                before=one.before,
            )


_EARLY = {"dev": -5, "t": -4, "alpha": -3, "a": -3, "beta": -2, "b": -2, "c": -1, "rc": -1}
_EARLY_PART = re.compile(rf"(\d*)({'|'.join(sorted(_EARLY, key=len, reverse=True))})(\d*)")
_NUMBERS = 8  # of a release, padded with 0: 9.5 is 9.5.0


def _order(version: str) -> tuple[int, ...]:
    """Return a version as numbers that can be compared; one before a release (8.0.RC2, 2.1a1) is below it.

    packaging.version refuses CANN's names (6.3.RC2.alpha003).
    """
    release: list[int] = []
    for part in re.split(r"[.+_-]", version.strip().lower().lstrip("v")):
        early = _EARLY_PART.fullmatch(part)
        if early is not None:
            release += [int(early[1][:9])] if early[1] else []
            return (*_padded(release), _EARLY[early[2]], int(early[3][:9] or 0))
        if not part.isdecimal():
            break
        release.append(int(part[:9]))
    return (*_padded(release), 0, 0)


def _padded(release: list[int]) -> list[int]:
    return (release + [0] * _NUMBERS)[:_NUMBERS]
