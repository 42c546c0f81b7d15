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
    OVER,
    PRINTED,
    SOURCE,
    WRITTEN,
    command_of,
    goes_on,
    is_found,
    kind_of,
    runs_a_program,
    told_by,
)

NEAR = 4  # written lines before and after a block
AROUND = 12  # lines before and after one in a long page that are enough where programs printed nearly all
LONG = 100  # lines
SHORT = 5  # lines: so few are an error that somebody pasted

# The signs, each a number from 0 to 1, and their weights: rounded from a logistic regression over pages and logs with
# known answers (tests/cases/events holds a part). A sign is here because it has a reason:
WEIGHTS: Mapping[str, float] = {
    "few": 2.6,  # hardly anything is written, or the page is short: a log
    "printed": 2.4,  # lines that a program printed, around the error
    "has near": 2.0,  # somebody says beside it that he has it, or asks for help
    "has": 2.3,  # the same anywhere in the page
    "runs": 0.8,  # the last command above runs a program, or shows its log
    "source": -3.7,  # the share of source code, data and places of a search
    "written": -0.5,  # the share of sentences, headings and messages
    "unclaimed": -1.8,  # the same, where nobody has an error
    "explains near": -3.3,  # beside it stand words of an explanation
    "explains": -3.6,  # the same anywhere in the page
    "over": -1.9,  # the page says that it is solved
    "shows": -2.8,  # the last command above runs no program: a search, a list
    "islands": -1.1,  # errors stand in several places with text between them
    "found": -0.6,  # the line begins with the place where a search found it
    "embedded": -0.4,  # other words stand before the error
}


class Weight:
    """The lines of a page."""

    def __init__(self, lines: Sequence[str]) -> None:
        """Take the lines without their ends."""
        self._lines = lines

    def is_event(self, number: int, embedded: bool) -> bool:
        """Return whether more speaks for a run of the reader's own; `embedded` as for `Page.form`."""
        if len(self._lines) > LONG and self._is_amid_printed(number):
            return True
        return sum(WEIGHTS[name] * sign for name, sign in self.signs(number, embedded).items()) > 0

    def signs(self, number: int, embedded: bool) -> Mapping[str, float]:
        """Return each sign as a number from 0 to 1."""
        first, last = self._block(number)
        near = [self._told[n] for n in (*self._written_before(first), *self._written_after(last))]
        page = list(self._told.values())
        printed = self._kinds[first : last + 1].count(PRINTED)
        line, commands = self._lines[number], self._commands(number)
        ran = runs_a_program(commands[-1]) if commands else None
        return {
            **self._shares,
            "printed": min(printed, 6) / 6,
            "has near": _some(near, HAS, 2),
            "has": _some(page, HAS, 2),
            "explains near": _some(near, EXPLAINS, 3),
            "explains": _some(page, EXPLAINS, 4),
            "over": _some(page, OVER, 2),
            "runs": float(ran is True),
            "shows": float(ran is False),
            "found": float(is_found(line)),
            "embedded": self._text * (embedded or self._kinds[number] == WRITTEN),
        }

    def _is_amid_printed(self, number: int) -> bool:
        """Return whether programs printed nearly all lines around one."""
        near = self._lines[max(0, number - AROUND) : number + AROUND + 1]
        return 10 * sum(kind_of(line) == PRINTED for line in near) > 9 * len(near)

    def _block(self, number: int) -> tuple[int, int]:
        """Return the first and the last line of what stands without written lines around a line."""
        first = last = number
        while first > 0 and self._kinds[first - 1] not in (WRITTEN, SOURCE):
            first -= 1
        while last + 1 < len(self._kinds) and self._kinds[last + 1] not in (WRITTEN, SOURCE):
            last += 1
        return first, last

    def _written_before(self, first: int) -> Sequence[int]:
        return [number for number in self._told if number < first][-NEAR:]

    def _written_after(self, last: int) -> Sequence[int]:
        return [number for number in self._told if number > last][:NEAR]

    def _commands(self, number: int) -> Sequence[str]:
        return [command for command in map(command_of, self._lines[:number]) if command]

    @cached_property
    def _kinds(self) -> Sequence[str]:
        kinds = [kind_of(line) for line in self._lines]
        for number in range(1, len(kinds)):
            after = kinds[number + 1 : number + 3]
            if kinds[number] and goes_on(self._lines[number - 1], self._lines[number], kinds[number - 1], after):
                kinds[number] = PRINTED
        return kinds

    @cached_property
    def _told(self) -> Mapping[int, str]:
        """What each written line tells, by its number."""
        return {n: told_by(self._lines[n]) for n, kind in enumerate(self._kinds) if kind == WRITTEN}

    @cached_property
    def _total(self) -> int:
        """The number of lines that are not empty."""
        return sum(map(bool, self._kinds)) or 1

    @cached_property
    def _text(self) -> float:
        """The share of lines that no program printed."""
        return (len(self._told) + self._kinds.count(SOURCE)) / self._total

    @cached_property
    def _shares(self) -> Mapping[str, float]:
        written, source = len(self._told), self._kinds.count(SOURCE)
        few = self._total < SHORT or written + source < 3 or 10 * (written + source) < self._total
        share = written / self._total
        return {
            "few": float(few),
            "written": share,
            "unclaimed": 0.0 if HAS in self._told.values() else share,
            "source": source / self._total,
            "islands": min(max(self._printed_places - 1, 0), 3) / 3 if written + source else 0.0,
        }

    @cached_property
    def _printed_places(self) -> int:
        """The number of places with printed lines, with text between them."""
        places, inside = 0, False
        for kind in self._kinds:
            if kind == PRINTED and not inside:
                places, inside = places + 1, True
            elif kind in (WRITTEN, SOURCE):
                inside = False
        return places


def _some(told: Sequence[str], what: str, enough: int) -> float:
    return min(told.count(what), enough) / enough
