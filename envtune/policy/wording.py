"""The wording of a check if a policy expects a different value than the catalog: title, remedy and lines to paste."""

from __future__ import annotations

import re
from typing import Any, Iterator, Optional

from envtune import expect
from envtune.commandline import quoted
from envtune.messages import Bilingual, Message, Text
from envtune.model import Check, Command, Expectation
from envtune.resources.environment.training_values import UNSET, values_in

_SETS = re.compile(r"(?:export (?P<name>[A-Z_][A-Z0-9_]*)=[^{}]*|unset (?P<unset>[A-Z_][A-Z0-9_]*))")


def reworded(check: Check, shipped: Expectation) -> Check:
    """Return the check without wording that only applies to the shipped expectation."""
    if check.expect == shipped:
        return check
    title = _title(check.title, expect.only(shipped, "eq"), check.expect)
    remedy: Text = Message("Make it what the site's policy expects.")
    if not _is_bound(check.expect):  # of a number the finding says the unit, too
        remedy = Message("Make it what the site's policy expects: {expected}.", expected=expect.describe(check.expect))
    commands = tuple(_commands(check))
    by_facts = tuple((when, tuple(_commands(check._replace(commands=rows)))) for when, rows in check.commands_by)
    if title is check.title:  # its value is the catalog's
        title = Message("{title} (by the site's policy)", title=title)
    return check._replace(title=title, remedy=remedy, commands=commands, commands_by=by_facts, by_policy=True)


def _is_bound(wanted: Expectation) -> bool:
    return any(isinstance(operand, (int, float)) for operand in expect.matchers(wanted).values())


def _title(title: Text, old: Any, wanted: Expectation) -> Text:
    """Return the title with the value that is expected now; one that names no value is unchanged."""
    if not isinstance(old, str):
        return title
    word = re.compile(rf"(?<![\w.-]){re.escape(old)}(?![\w.-])", re.ASCII | re.IGNORECASE)
    if not word.search(title.en) or not word.search(title.zh):  # `match` is an English word, not a value
        return title
    said = expect.describe(wanted)
    return Bilingual(word.sub(lambda _: said.en, title.en), word.sub(lambda _: said.zh, title.zh))


def _commands(check: Check) -> Iterator[Command]:
    """Yield the lines to paste; one that sets a variable gets the value expected now, or is left out."""
    for command in check.commands:
        found = _SETS.fullmatch(command.line) if isinstance(command.line, str) else None
        if found is None:
            yield command
            continue
        line = _setting(found["name"] or found["unset"], check.expect)
        if line is not None:
            yield command._replace(line=line)


def _setting(name: str, wanted: Expectation) -> Optional[str]:
    values = values_in(expect.matchers(wanted))
    value = next((value for value in values if value != UNSET), None)
    if value is None:
        return f"unset {name}" if values else None
    return f"export {name}={quoted(value)}"
