"""Which checks a fix is about: words, FAQ entries, playbooks, or those a saved plan names."""

from __future__ import annotations

from pathlib import Path
from typing import Iterator, Sequence

from envtune.catalog import Catalogue, select
from envtune.catalog.selection import names, selectors, unknown_name
from envtune.errors import PlanError, UsageError
from envtune.fix.plan import Plan, fixed_checks
from envtune.messages import Joined, Message, Text, enumerated
from envtune.model import Check, Severity


def choose_checks(
    catalogue: Catalogue,
    words: Sequence[str],
    faq: Sequence[str],
    ignore: Sequence[str] = (),
    tags: Sequence[str] = (),
    floor: Severity = Severity.INFO,
) -> tuple[Check, ...]:
    """Return the checks that a fix is about: selected as in `check`, and by playbook and FAQ entry.

    Raises UsageError for a name that matches nothing.
    """
    selectors = _selectors(words, faq, catalogue)
    return select(catalogue.checks, selectors or None, ignore, tags, floor)


def _selectors(words: Sequence[str], faq: Sequence[str], catalogue: Catalogue) -> list[str]:
    """Replace a playbook by its checks and an FAQ entry by those about it; anything else is a selector of `check`."""
    playbooks = {playbook.id: playbook for playbook in catalogue.playbooks}
    known = {check.id for check in catalogue.checks}
    chosen: list[str] = []
    for word in _pieces(words):
        if word and word not in playbooks and not any(names(word, check) for check in catalogue.checks):
            raise unknown_name(word, [*selectors(catalogue.checks), *playbooks], ("checks", "playbooks"))
        fixes = playbooks[word].fixes if word in playbooks else (word,)
        chosen += [check for check in fixes if check in known or word not in playbooks]
    for entry in map(str.upper, _pieces(faq)):
        _refuse_run(entry, catalogue)
        about = list(_about(entry, catalogue))
        if entry and not about and not any(entry == e.id or entry in e.aliases for e in catalogue.faq):
            raise _unknown_entry(entry, catalogue)
        if not about:
            raise UsageError(Message("--faq {entry}: no check refers to it", entry=entry))
        chosen += about
    if (words or faq) and not any(chosen):
        named = " ".join([*words, *faq]).strip()
        raise UsageError(Message("'{named}' matches no check", named=named))
    return list(dict.fromkeys(word for word in chosen if word))


def _pieces(words: Sequence[str]) -> list[str]:
    return [piece.strip() for part in words for piece in part.split(",")]


def _refuse_run(entry: str, catalogue: Catalogue) -> None:
    """Raise UsageError if the entry requires running the job differently instead of repairing the host."""
    for known in catalogue.faq:
        if entry != known.id and entry not in known.aliases:
            continue
        if known.run:
            nothing = Message(
                "--faq {entry}: nothing to fix; to find the cause, run the job once with {command}",
                entry=entry,
                command=f"{known.run} CMD",
            )
            raise UsageError(nothing)
        if known.settings:
            variables = Message(
                "--faq {entry}: the job needs other values of {variables}; the log shows which: envtune diagnose LOG",
                entry=entry,
                variables=enumerated(known.settings),
            )
            raise UsageError(variables)


def _unknown_entry(entry: str, catalogue: Catalogue) -> UsageError:
    error = unknown_name(entry, [known.id for known in catalogue.faq], ("faq",))
    return UsageError(Message("--faq {entry}: {problem}", entry=entry, problem=error.message))


def _about(entry: str, catalogue: Catalogue) -> Iterator[str]:
    """Yield the checks that say something about the entry's cause; if none does, those whose findings name it."""
    known = {check.id for check in catalogue.checks}
    named = [e for e in catalogue.faq if entry == e.id or entry in e.aliases]
    own = [check for one in named for check in one.checks if check in known]
    yield from own or (check.id for check in catalogue.checks if entry in check.faq)


def read_plan(path: Path) -> Plan:
    """Return the content of a plan file, which nobody else may have written. Raises PlanError, UsageError."""
    from envtune.fix.document import LIMIT, load_plan
    from envtune.host.text_file import read_own_file

    return load_plan(read_own_file("--plan", path, LIMIT))


def checks_of(plan: Plan, catalogue: Catalogue) -> tuple[Check, ...]:
    """Return the checks that a saved plan was made with, as far as they are known here.

    A plan without such a list names them in its changes and in what it skipped. Raises PlanError for a change for which
    the catalog has no check or playbook.
    """
    known = {check.id: check for check in catalogue.checks}
    playbooks = {playbook.id: playbook for playbook in catalogue.playbooks}
    for number, change in enumerate(plan.changes):
        for check in fixed_checks(change):
            if check not in known:
                raise _unknown(number, Message("no check {check} here", check=check))
        playbook = playbooks.get(change.playbook)
        if playbook is None:
            raise _unknown(number, Message("no playbook {playbook} here", playbook=change.playbook))
        if change.finding not in playbook.fixes or change.action not in {step.kind for step in playbook.steps}:
            message = Message(
                "the playbook {playbook} here has no step {action} for {check}",
                playbook=change.playbook,
                action=change.action,
                check=change.finding,
            )
            raise _unknown(number, message)
    fixed = {check for change in plan.changes for check in fixed_checks(change)}
    wanted = fixed | {*(plan.checks or (skipped.finding for skipped in plan.skipped))}
    return tuple(check for id_, check in known.items() if id_ in wanted)


def _unknown(number: int, fault: Text) -> PlanError:
    way_out = Message("if the plan was made with --catalog, specify it again; otherwise make a new plan")
    return PlanError(f"changes[{number}]", Joined((fault, way_out), "; "))
