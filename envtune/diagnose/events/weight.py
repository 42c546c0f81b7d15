"""Weigh what speaks for a run of the reader's own against what speaks for a text that only shows an error. Pure.

What a line says by itself is the same in a log and in a page about logs. What is around it differs: a log consists of
lines that programs print; a page has sentences, headings, messages and source code, and says why it shows an error:
somebody has it, or somebody explains it. Each sign has a weight, and a line is an event where their sum is above zero.
"""

from __future__ import annotations

from functools import cached_property
from typing import Mapping, Sequence

from envtune.diagnose.events.kinds import (
    EXPLAINS,
    HAS,
    OTHER,
    OVER,
    PRINTED,
    SOURCE,
    WRITTEN,
    before_error,
    command_of,
    goes_on,
    is_closed,
    is_marked,
    kind_of,
    names_error,
    runs_a_program,
    statement_of,
)
from envtune.records import expression

NEAR = 4  # written lines before and after a block
AROUND = 10  # lines before and after one in a long page that are enough where programs printed most
LONG = 100  # lines
LEAST = 8  # lines: what is written in fewer is as little as in so many
_CODED = expression(r"[(){}=;<>]")
_SAID_OF = expression(
    r"\W*(?:E[A-Z\d]\d{4}|[125]07\d{3}|\w+Error)(?: \([^)]*\))? (?:is|are|was|means|indicates|occurs|says|comes"
    r"|stands)\b"
)
SHORT = 5  # lines: so few are an error that somebody pasted

# The signs, each a number from 0 to 1, and their weights: rounded from a logistic regression over pages and logs with
# known answers (tests/cases/events holds a part). A sign is here because it has a reason:
WEIGHTS: Mapping[str, float] = {
    "has": 3.4,  # the same anywhere in the page
    "runs": 3.1,  # the last command above runs a program, or shows its log
    "printed": 2.8,  # lines that a program printed, around the error
    "has near": 1.8,  # somebody says beside it that he has it, or asks for help
    "marked": 1.0,  # with what only a program that runs can know: when, in which process, where in its code
    "few": 0.6,  # hardly anything is written, or the page is short: a log
    "ruled": -0.5,  # a page of a form in which errors are explained or spoken of (pages.py, talk.py)
    "shows": -1.5,  # the last command above runs no program: a search, a list
    "listed": -1.6,  # several errors are named without a mark of a program that runs
    "unclaimed": -1.8,  # the share of sentences, headings and messages where nobody has an error
    "explains near": -2.1,  # beside it stand words of an explanation
    "closed": -2.2,  # the page says that it is solved
    "source": -2.5,  # the share of source code, data and places of a search
    "over": -3.2,  # words of what is past
    "explains": -3.7,  # the same anywhere in the page
}
# Where hardly anything is written and none of these is seen, nothing has to be outweighed.
AGAINST = ("source", "shows", "listed", "explains", "explains near", "over", "closed", "ruled")
# In a block that a program that runs printed, advice is what the program says.
LOG = 2.0
AGAINST_LOG = ("source", "shows", "closed", "ruled")
BIAS = -0.5  # what has to be outweighed


class Weight:
    """The lines of a page."""

    def __init__(self, lines: Sequence[str]) -> None:
        """Take the lines without their ends."""
        self._lines = lines

    def is_event(self, number: int, embedded: bool, ruled: bool) -> bool:
        """Return whether more speaks for a run of the reader's own; `embedded` as for `Page.form`."""
        if not ruled and self._is_short(number, embedded):
            return True
        if len(self._lines) > LONG and self._is_amid_printed(number):
            return True
        signs = self.signs(number, embedded, ruled)
        if signs["few"] and not any(signs[name] for name in AGAINST):
            return True
        if signs["few"] and signs["printed"] + signs["marked"] == LOG and not any(signs[name] for name in AGAINST_LOG):
            return True
        return BIAS + sum(WEIGHTS[name] * sign for name, sign in signs.items()) > 0

    def signs(self, number: int, embedded: bool, ruled: bool) -> Mapping[str, float]:
        """Return each sign as a number from 0 to 1."""
        first, last = self._block(number)
        near = [self._statements[n] for n in (*self._written_before(first), *self._written_after(last))]
        near.append(statement_of(before_error(self._lines[number])))
        page = list(self._statements.values())
        printed = self.kinds[first : last + 1].count(PRINTED)
        line, commands = self._lines[number], self._commands(number)
        ran = runs_a_program(commands[-1]) if commands else None
        return {
            **self._shares,
            "printed": min(printed, 6) / 6,
            "marked": min(sum(map(is_marked, self._lines[first : last + 1])), 3) / 3,
            "listed": 0.0 if is_marked(line) else self._listed,
            "has near": _some(near, HAS, 2),
            "has": _some(page, HAS, 2),
            "explains near": _some(near, EXPLAINS, 3),
            "explains": _some(page, EXPLAINS, 4),
            "over": _some(page, OVER, 2),
            "closed": float(self._closed),
            "runs": float(ran is True),
            "shows": float(ran is False),
            "ruled": float(ruled),
        }

    def _is_amid_printed(self, number: int) -> bool:
        """Return whether programs printed most lines around one."""
        near = self._lines[max(0, number - AROUND) : number + AROUND + 1]
        return 10 * sum(kind_of(line) == PRINTED for line in near) > 6 * len(near)

    def _is_short(self, number: int, embedded: bool) -> bool:
        """Return whether nothing but a pasted error is there."""
        if self._total >= SHORT:
            return False
        line = self._lines[number]
        if (is_marked(line) and kind_of(line) == PRINTED) or not (embedded or _is_explained(line)):
            return True
        lines = [line for line in self._lines if line.strip()]
        printed = (PRINTED, OTHER) if any(map(is_marked, lines)) else (PRINTED,)
        return all(names_error(line) or kind_of(line) in printed for line in lines)

    def _block(self, number: int) -> tuple[int, int]:
        """Return the first and the last line of what stands without written lines around a line."""
        first = last = number
        while first > 0 and self.kinds[first - 1] not in (WRITTEN, SOURCE):
            first -= 1
        while last + 1 < len(self.kinds) and self.kinds[last + 1] not in (WRITTEN, SOURCE):
            last += 1
        return first, last

    def _written_before(self, first: int) -> Sequence[int]:
        return [number for number in self._statements if number < first][-NEAR:]

    def _written_after(self, last: int) -> Sequence[int]:
        return [number for number in self._statements if number > last][:NEAR]

    def _commands(self, number: int) -> Sequence[str]:
        return [command for command in map(command_of, self._lines[:number]) if command]

    @cached_property
    def kinds(self) -> Sequence[str]:
        """The kind of each line, by itself and by the one above."""
        kinds = [kind_of(line) for line in self._lines]
        above = 0
        for number in range(1, len(kinds)):
            line, after = self._lines[number], kinds[number + 1 : number + 3]
            above = number - 1 if kinds[number - 1] or not line[:4].isspace() else above
            if kinds[number] and goes_on(self._lines[above], line, kinds[above], after):
                kinds[number] = PRINTED
        return kinds

    @cached_property
    def _statements(self) -> Mapping[int, str]:
        """What each written line tells, by its number."""
        said = {n: before_error(self._lines[n]) for n, kind in enumerate(self.kinds) if kind in (WRITTEN, OTHER)}
        statements = {}
        for number, words in said.items():
            is_written = self.kinds[number] == WRITTEN
            statement = statement_of(self._lines[number] if is_written else words)
            if is_written or (statement and not _CODED.search(words)):
                statements[number] = statement
        return statements

    @cached_property
    def _closed(self) -> bool:
        return any(is_closed(self._lines[n]) for n in self._statements)

    @cached_property
    def _listed(self) -> float:
        """How many errors are named without what only a program that runs can know."""
        bare = {line.strip() for line in self._lines if names_error(line) and not is_marked(line)}
        return min(max(len(bare) - 1, 0), 3) / 3

    @cached_property
    def _total(self) -> int:
        """The number of lines that are not empty."""
        return sum(bool(line) and not line.isspace() for line in self._lines)

    @cached_property
    def _shares(self) -> Mapping[str, float]:
        written, source = self.kinds.count(WRITTEN), self.kinds.count(SOURCE)
        few = written + source < 3 or 10 * (written + source) < self._total
        share = written / max(self._total, LEAST)
        return {
            "few": float(few),
            "unclaimed": 0.0 if HAS in self._statements.values() else share,
            "source": source / max(self._total, LEAST),
        }


def _is_explained(line: str) -> bool:
    """Return whether a line begins with an error and goes on as a sentence about it."""
    return kind_of(line) != PRINTED and not is_marked(line) and _SAID_OF.match(line) is not None


def _some(statements: Sequence[str], what: str, enough: int) -> float:
    return min(statements.count(what), enough) / enough
