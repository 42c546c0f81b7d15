"""Which checks of the catalog a run takes: by id, id prefix, name or tag, and from which severity on."""

from __future__ import annotations

import re
from typing import Iterable, Optional, Sequence, Union

from envtune.commandline import for_this_host
from envtune.errors import UsageError
from envtune.messages import Message, Text, alternatives, clauses, enumerated, nearest
from envtune.model import Check, Severity


def select(
    checks: Iterable[Check],
    select: Optional[Sequence[str]] = None,
    ignore: Optional[Sequence[str]] = None,
    tags: Optional[Sequence[str]] = None,
    floor: Severity = Severity.INFO,
) -> tuple[Check, ...]:
    """Return the checks to run, in the order of the catalog.

    A selector is an id, a prefix of ids (`CPU`, `NET00`), a name or a tag; several may be joined with commas. `ignore`
    wins over `select`. Checks that are not stable run only when a selector names them. Raises UsageError for a
    selector that names nothing, and when nothing is left: a run over no checks would look like a clean host.
    """
    every = tuple(checks)
    wanted, unwanted, tagged = _words(select), _words(ignore), _words(tags)
    if (select and not wanted) or (tags and not tagged):  # from a script whose variable is empty
        raise UsageError(Message("the selection is empty; to select every check, omit the option"))
    for word in (*wanted, *unwanted):
        if not any(names(word, check) for check in every):
            raise unknown_name(word, selectors(every), ("checks",))
    for word in tagged:
        if not any(word in check.tags for check in every):
            raise _unknown_tag(word, sorted({tag for check in every for tag in check.tags}))
    chosen = tuple(
        check
        for check in every
        if (any(names(word, check) for word in wanted) if wanted else check.status == "stable")
        and not any(names(word, check) for word in unwanted)
        and (not tagged or any(word in check.tags for word in tagged))
        and _highest(check) >= floor.rank
    )
    if not chosen:
        raise UsageError(Message("the selection includes no check that can run"))
    return chosen


def _highest(check: Check) -> int:
    """Return the highest severity rank that a failure of the check can have on any host."""
    return max(severity.rank for severity in (check.severity, *(row.severity for row in check.severity_by)))


def unknown_name(word: str, known: Iterable[str], kinds: Sequence[str] = ()) -> UsageError:
    """Return the error for a word that names nothing, with the closest names.

    `kinds` are the words for `envtune list` that show the known ones.
    """
    known = list(known)
    near = nearest(word, known)
    problem: Text = Message("unknown id or name '{word}'", word=word)
    if near:
        guess = alternatives(near)
        problem = Message("unknown id or name '{word}'; did you mean {guess}?", word=word, guess=guess)
    hints: list[Text] = []
    if kinds:
        command: Union[str, Text] = for_this_host(f"envtune list {kinds[0]}")
        if len(kinds) > 1:
            command = Message("{command}, also {kinds}", command=command, kinds=enumerated(kinds[1:]))
        hints.append(Message("to list them: {command}", command=command))
    if _of_new_family(word, known):
        hints.append(Message("an entry of a site needs --catalog DIR"))
    return UsageError(Message("{problem} ({hints})", problem=problem, hints=clauses(hints)) if hints else problem)


def _unknown_tag(word: str, known: Sequence[str]) -> UsageError:
    """Return the error for a tag that no check has; there are few, so that all can be named."""
    if nearest(word, known):
        return unknown_name(word, known)
    return UsageError(Message("unknown tag '{word}'; known: {known}", word=word, known=enumerated(known)))


def _of_new_family(word: str, known: Iterable[str]) -> bool:
    """Return whether a word looks like an id, with letters that no known id has."""
    letters = re.fullmatch("([A-Z]+)[0-9]*", word)
    return letters is not None and not any(re.match(f"{letters[1]}[0-9]", one) for one in known)


def _words(given: Optional[Sequence[str]]) -> list[str]:
    return [word.strip() for part in given or () for word in part.split(",") if word.strip()]


def names(word: str, check: Check) -> bool:
    """Return whether a selector names the check."""
    return check.id.startswith(word.upper()) or word == check.name or word in check.tags


def selectors(checks: Sequence[Check]) -> list[str]:
    """Return every selector that names one of the checks, except id prefixes."""
    tags = {tag for check in checks for tag in check.tags}
    families = {check.family for check in checks}
    return [*(c.id for c in checks), *(c.name for c in checks), *sorted(tags), *sorted(families)]
