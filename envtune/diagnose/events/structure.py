"""Tell structured text that reports no event: a table, rows of codes, a data file of patterns, verdicts, a passed test.

What a line is follows from those of the same shape near it: three rows with as many cells are a table without its
header, two rows that end in `ok` a report of checks, `- pattern: ...` twice a data file of known errors. Pure.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Sequence

from envtune.diagnose.events.forms import CATALOGUE, HELP, REPORT, TABLE, TEST
from envtune.records import expression

NEAR = 12  # lines on either side
FAR = 40  # lines below a head, or before the summary of tests whose beginning is not seen
ROWS, CELLS, RECORDS = 3, 3, 2

_CODE = r"(?:E[A-Z\d]\d{4}|[125]07\d{3})"
_LISTED = expression(
    rf"(?:\b{_CODE}\b[^,;.:\u3001\uff0c]{{0,40}}(?:[,;/\u3001\uff0c]|\s(?:and|or)\b)\s?(?:and\s|or\s)?){{2,}}"
    rf"[^,;.:]{{0,12}}\b{_CODE}\b"
)
_CODE_ROW = expression(rf"\s*[\"']?(?P<code>{_CODE}|0x[\dA-Fa-f]{{4,}}|[\dA-F]{{8}})[\"']?\s*(?:[,;\t]|\s{{2,}})\s*\S")
_PASSED_ROW = expression(
    r"\s*(?:\[\s?(?:OK|ok|PASS(?:ED)?)\s?\]|(?:OK|PASS(?:ED)?)[:\s]\s*\S|ok \d|[\u2713\u2714\u2705])"
    r"|.*(?:\.{2,}\s?|\s{2,}|:\s|\[\s?|\|\s?|\uff1a)"
    r"(?i:ok|pass(?:ed)?|healthy|normal|\u6b63\u5e38|\u901a\u8fc7|\u2713|\u2714|\u2705)\s?[\]|]?\s*$"
)
# A variable or an option, and what it is for in words.
_OPTION = expression(r"\s{1,12}(?:[A-Z][A-Z\d_]{3,50}|(?:-\w,? )?--[A-Za-z][\w-]*)(?:[= ]\S+)?\s{2,}(?:\S+\s+){3,}\S")
_CHECK = expression(r"\s{2}[A-Z]{3,4}\d{3} {2,}\S+ {2,}\S")  # a row of `envtune check`, above its details
_RULER = expression(r"\s*[-=]{3,}(?:\s+[-=]{3,})+\s*$")
_COLUMNS = expression(r"\s*\S+(?: \S+)*\s{2,}\S|\s*\S.{20,}\s\S+\s{2,}\S")
_DETAIL = expression(r"\s{8}")
_STAMP = r"(?:\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*\s+)?"  # the time that CI services put before each line
_TESTS_BEGIN = expression(
    _STAMP + r"(?:.*\bpytest\b|=+ test session starts|\[=+\] Running \d+ tests?|.*-m unittest\b|.*\bctest\b)"
)
_TESTS_END = expression(
    _STAMP + r"(?:=*\s*(?:\d+ \w+, )*\d+ (?:passed|failed|errors?)\b.* in [\d.]+s|Ran \d+ tests? in [\d.]+s"
    r"|\[  (?:PASSED|FAILED)  \] \d+ tests?|\d+% tests passed)"
)
_FAILED = expression(r"\b[1-9]\d* (?:failed|errors?)\b|FAILED|(?<!\d)\d{1,2}% tests passed")
_KEY = r"(?:\"[^\"]{1,60}\"|'[^']{1,60}'|(?!\w*(?:Error|Exception)\b|E[A-Z\d]\d{4}\b)[A-Za-z_][\w.-]{0,40})"
_DATA = expression(
    rf"\s*(?:- |[\[{{,]\s*)*{_KEY}\s?:(?:\s|$)|\s*- ?[\"'\w\[{{]|\s*[\[\]{{}}(),]+\s*$|\s*\".*\",?\s*$|---|#"
)
_RECORD = expression(rf"\s*\[?\s*(?:- |,?\{{\s*){_KEY}\s?:\s|\s*{_KEY}\s?:\s?\{{")
# Keys that describe an error that may happen, not one that did.
_KNOWN = expression(
    r"(?i)(?:^|[{,\s-])[\"']?(?:[\w ]{0,20}(?:pattern|regex|keyword|signature|solution|suggest|remedy|advice|fault"
    r"|handling|category|key log)[\w +]*|alert|expr|annotations|runbook\w*"
    r"|(?:severity|level)(?![\"']?\s?:\s?[\"']?(?:error|info|warn|debug|crit|fatal"
    r"|notice))|cause|fix|\u539f\u56e0|\u5efa\u8bae|\u65b9\u6848)[\"']?\s?:(?:\s|$)"
)
_TIME = expression(
    r"\d\d:\d\d:\d\d|(?i:[\"'\s](?:@?time(?:stamp)?|ts|date|created_?at|\w+Time|pid|exit_?code)[\"']?\s?:)"
)


class Structure:
    """The lines of a page by their shape; `form` says why one within a structure is no event."""

    def __init__(self, lines: Sequence[str]) -> None:
        """Take the lines without their ends."""
        self._lines = lines

    def form(self, number: int) -> str:
        """Return the form of the line with that number, from 0 on, that no log printed; or nothing."""
        line = self._lines[number]
        if self._in_code_rows(number) or self._known:
            return CATALOGUE
        if self._in_rows(number):
            return TABLE
        if self._below(number, _OPTION, RECORDS):
            return HELP
        if self._in_columns(number):
            return TABLE
        passed = _PASSED_ROW.match(line) and self._count(_PASSED_ROW, number) >= RECORDS
        return REPORT if passed or self._below(number, _CHECK, 1) else ""

    def in_passed_tests(self, number: int) -> str:
        """Return TEST for what tests print that all passed."""
        return TEST if any(number in lines for lines in self._passed) else ""

    def _near(self, number: int) -> Sequence[str]:
        return self._lines[max(0, number - NEAR) : number + NEAR]

    def _count(self, row: re.Pattern[str], number: int) -> int:
        return sum(row.match(line) is not None for line in self._near(number))

    def _in_rows(self, number: int) -> bool:
        """Return whether rows of as many cells between bars are around."""
        bars = _bars(self._lines[number])
        if not bars and _tabs(self._lines[number]) >= ROWS - 1:
            tabs = _tabs(self._lines[number])
            return sum(_tabs(line) == tabs for line in self._near(number)) >= ROWS
        return bars > CELLS and sum(_bars(line) == bars for line in self._near(number)) >= ROWS

    def _in_columns(self, number: int) -> bool:
        """Return whether it is a row below the dashes under the heads of columns."""
        if not _COLUMNS.match(self._lines[number]):
            return False
        for line in reversed(self._lines[max(0, number - FAR) : number]):
            if _RULER.match(line):
                return True
            if not line.strip():
                return False
        return False

    def _in_code_rows(self, number: int) -> bool:
        if not _CODE_ROW.match(self._lines[number]):
            return False
        return len({row["code"] for row in map(_CODE_ROW.match, self._near(number)) if row is not None}) >= ROWS

    def _below(self, number: int, head: re.Pattern[str], least: int) -> bool:
        """Return whether the line is such a head, or one of the indented lines below it, and enough heads are near."""
        first = max(0, number - FAR)
        while number > first and _DETAIL.match(self._lines[number]) and not head.match(self._lines[number]):
            number -= 1
        return head.match(self._lines[number]) is not None and self._count(head, number) >= least

    @cached_property
    def _known(self) -> bool:
        """Whether all is data, and describes errors that may happen."""
        lines = [line for line in self._lines if line.strip()]
        if sum(_RECORD.match(line) is not None for line in lines) < RECORDS or any(map(_TIME.search, lines)):
            return False
        data = sum(_DATA.match(line) is not None for line in lines)
        return 10 * data > 7 * len(lines) and sum(len(_KNOWN.findall(line)) for line in lines) >= RECORDS

    @cached_property
    def _passed(self) -> Sequence[range]:
        """The numbers of the lines of each session of tests that all passed."""
        sessions, begin, seen = [], 0, False
        for number, line in enumerate(self._lines):
            if _TESTS_END.match(line):
                if not any(map(_FAILED.search, self._lines[number : number + 3])):
                    sessions.append(range(begin if seen else max(begin, number - FAR), number))
                begin, seen = number + 1, False
            elif not seen and _TESTS_BEGIN.match(line):
                begin, seen = number, True
        return sessions


def lists_codes(line: str) -> bool:
    """Return whether a line enumerates codes: `EZ9999, EI9999 and 107002`."""
    return _LISTED.search(line) is not None


def _tabs(line: str) -> int:
    """Return the number of tabs between the cells of a row that was copied from a table."""
    return line.count("\t") if line[:1] != "\t" and not _TIME.search(line) else 0


def _bars(line: str) -> int:
    line = line.strip()
    return line.count("|") if line[:1] == line[-1:] == "|" else 0
