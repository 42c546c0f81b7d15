"""Tell by how it is laid out that a page is a document, or source code, whose logs are examples. Pure.

The lines of an example are those of a log: the same times, processes and places in code. What differs is where they
stand. A document puts an example between its sentences, in a block that is marked (shown.py) or after words that
announce it, and goes on below; all of what is outside is written, below headings, and explains. In a log, such a page
stands at most in between: it goes on, or ends, with lines that a program printed.
Where somebody says that an error is his own, the page is a question, whatever its layout.
"""

from __future__ import annotations

from functools import cached_property
from typing import Callable, Sequence

from envtune.diagnose.events.kinds import EXPLAINS, HAS, PRINTED, SOURCE, WRITTEN, is_marked, is_sentence, statement_of
from envtune.diagnose.events.shown import shown_lines
from envtune.records import expression

HEADINGS = 2
REASONS = 2  # lines that explain, or say what to do
SENTENCES = 2
MANY = 5  # sentences that are as good as a reason; reasons of a text without headings
PROSE = 10  # sentences of a text without headings
CODE_LINES = 5
LAST = 2  # lines that a program printed, at the end of the log of a run

_UNDERLINE = expression(r"([=\-~^\"'`#*+.:_])\1{2,}$")
_MARKED_HEADING = expression(
    r"#{1,6}\s+\S|={1,6} ?\S.*|<h\d\b|\\(?:chapter|(?:sub)*section|paragraph)\*?\{|\.SH\s|h[1-6]\. \S"
    r"|\*\*[^*]{2,40}\*\*\s*[:\uff1a]?$|'''[^']{2,40}'''"
)
_TITLE = expression(
    r"\u7b2c[\d\u4e00-\u9fff]{1,3}[\u7ae0\u8282](?:[\s\u3000]|$)|\d{1,2}(?:\.\d{1,2}){1,3}[\s\u3000]+[^\d\s].{0,60}$"
    r"|\u3010[^\u3011]{2,12}\u3011$"
)
# The title of a section that says what an error looks like, where it comes from or what helps.
_SECTION = expression(
    r"(?i)(?:[#=*'\s\d.]|<[^>]{1,60}>|\\\w*section\{|\u3010|\[)*(?:solutions?|(?:possible |likely |probable )?causes?"
    r"|root cause|symptoms?"
    r"|resolution|remed(?:y|ies)|workarounds?|what to do|recommended actions?|applies to|see also|diagnostics"
    r"|related (?:articles|topics|documents)|handling (?:procedure|suggestions?)|troubleshooting"
    r"|(?:\u95ee\u9898|\u6545\u969c|\u9519\u8bef|\u5f02\u5e38|\u53ef\u80fd)?(?:\u73b0\u8c61|\u539f\u56e0)(?:\u5206\u6790)?"
    r"|(?:\u89e3\u51b3|\u5904\u7406|\u6392\u67e5|\u89c4\u907f|\u4fee\u590d)(?:\u65b9\u6cd5|\u65b9\u6848|\u529e\u6cd5"
    r"|\u63aa\u65bd|\u6b65\u9aa4|\u5efa\u8bae|\u601d\u8def)?|\u5b9a\u4f4d\u601d\u8def|\u539f\u56e0\u5206\u6790"
    r"|\u7236\u4e3b\u9898.*|\u76f8\u5173\u6587\u6863|\u53c2\u89c1|\u53c2\u8003\u4fe1\u606f)"
    r"(?:[:\uff1a*'=\s\u3011\]}]|<[^>]{1,60}>)*$"
)
_ANNOUNCES = expression(
    r"(?i).*[:\uff1a]$|.*(?:\u5982\u4e0b|\u793a\u4f8b|\u4f8b\u5982|\bfollow(?:s|ing)\b|\bexamples?\b|\blooks? like\b)"
)
# Somebody has the error now, or asks about his own.
_CLAIMS = expression(
    r"(?i)\b(?-i:I|I'm|I've)\b.{0,40}\b(?:get|got|getting|ran|run|running|tried|try|see|hit|using|installed|start"
    r"|missing|wrong|stuck)\b|\bmy (?:jobs?|script|training|code|run|logs?|output|environment|setup|command|machine)\b"
    r"|\b(?:we|our)\b.{0,30}\b(?:get|got|getting|hit|ran|tried|are (?:seeing|running|using)|keeps?|crash\w*)\b"
    r"|\b(?:any ideas?|any(?:one|body) (?:else|know|seen|had|has)|please (?:help|advise)|help me|same here)\b"
    r"|^\W*(?:(?:steps )?to reproduce|describe the bug|your (?:current )?environment\W*$|what happened\b"
    r"|(?:expected|actual|current) behaviou?r)"
    r"|\u6c42\u52a9|\u6c42\u6307|\u8bf7\u95ee|\u8bf7\u6559|\u600e\u4e48\u529e(?![\uff1f?]?$)|\u5927\u4f6c"
    r"|\u6709\u4eba(?:\u9047|\u77e5|\u89c1)|\u6709\u6ca1\u6709\u4eba|\u5e2e\u5fd9|\u6211(?![\u4eec\u53f8\u56fd])"
    r"|\u6211\u4eec(?:\u8fd9|\u9047|\u8dd1|\u7528|\u7684(?:\u4efb\u52a1|\u4f5c\u4e1a|\u8bad\u7ec3|\u73af\u5883|\u673a\u5668))"
    r"|\u95ee\u9898\u73b0\u8c61\uff08|[\u4e00-\u9fff]\u3001(?:\u8f6f\u4ef6\u7248\u672c|\u6d4b\u8bd5\u6b65\u9aa4|\u65e5\u5fd7\u4fe1\u606f)"
    r"|\u590d\u73b0\u6b65\u9aa4|\u91cd\u73b0\u6b65\u9aa4"
)
_ASKED = expression(r"\s{0,8}(?:#{1,6} |Q\d*[:\uff1a.]|\u95ee\d*[:\uff1a]|\*\*Q|> ?Q|<h\d|={2,}|\|)")  # in general


class Layout:
    """The lines of a page."""

    def __init__(
        self, lines: Sequence[str], kinds: Callable[[], Sequence[str]], begun: bool = True, ended: bool = True
    ) -> None:
        """Take the lines without their ends, what gives the kind of each, and the arguments of `shown_lines`."""
        self._lines, self._kinds_of = lines, kinds
        self._begun, self._ended = begun, ended

    @cached_property
    def is_document(self) -> bool:
        """Whether all that a program printed in it is shown by somebody who explains."""
        if not self._outside or any(map(self._is_claim, self._outside)) or self._ends_printed:
            return False
        if len(self._headings) < HEADINGS:
            return self._is_prose and self._outside[0] not in self._printed
        if self._sentences < SENTENCES or self._reasons + self._sentences // MANY < REASONS:
            return False
        return self._is_prose or all(map(self._is_announced, self._printed))

    @cached_property
    def _is_prose(self) -> bool:
        """Whether much more is explained than printed, and nobody says that he has an error."""
        having = self._said.count(HAS)
        return (
            self._sentences >= max(PROSE, len(self._printed))
            and self._reasons >= MANY
            and 2 * having <= self._said.count(EXPLAINS)
        )

    @cached_property
    def _said(self) -> Sequence[str]:
        """What each line outside of marked blocks tells."""
        return [statement_of(self._lines[n]) for n in self._outside]

    @cached_property
    def _sentences(self) -> int:
        return sum(is_sentence(self._lines[n].strip()) for n in self._outside)

    @cached_property
    def _reasons(self) -> int:
        sections = (_SECTION.match(self._lines[n].strip()) for n in self._outside)
        return self._said.count(EXPLAINS) + sum(section is not None for section in sections)

    def is_text(self, number: int) -> bool:
        """Return whether a line is of a text of several lines in source code."""
        if number not in self._shown:
            return False
        outside = [self._kinds[n] for n in self._outside]
        return len(outside) >= CODE_LINES and not self._printed and 10 * outside.count(SOURCE) > 6 * len(outside)

    def ends_run(self, number: int) -> bool:
        """Return whether a line stands at the end of a log that prints documents above or in between."""
        below = self._outside[-1:]
        if not below or number > below[0] or any(self._kinds[n] == WRITTEN for n in range(number, below[0] + 1)):
            return False
        first = next((n for n in reversed(range(number)) if self._is_written(n)), -1) + 1
        printed = [n for n in self._printed if n >= first]
        if len(printed) < LAST:
            return False
        return self._outside[0] in self._printed or not self._is_announced_by(first - 1)

    @cached_property
    def _ends_printed(self) -> bool:
        """Whether the last line is one that a program printed, and not shown."""
        last = self._outside[-1]
        rest = range(last + 1, len(self._lines))
        return self._kinds[last] == PRINTED and last not in self._headings and not self._shown.intersection(rest)

    @cached_property
    def _kinds(self) -> Sequence[str]:
        return self._kinds_of()

    @cached_property
    def _shown(self) -> frozenset[int]:
        """The numbers of the lines within marked blocks."""
        return shown_lines(self._lines, self._begun, self._ended)

    @cached_property
    def _outside(self) -> Sequence[int]:
        return [n for n, line in enumerate(self._lines) if line.strip() and n not in self._shown]

    @cached_property
    def _headings(self) -> Sequence[int]:
        return [n for n in self._outside if self._is_heading(n)]

    @cached_property
    def _printed(self) -> Sequence[int]:
        """The lines outside of marked blocks that only a program prints while it runs."""
        return [n for n in self._outside if self._kinds[n] == PRINTED and is_marked(self._lines[n])]

    def _is_heading(self, number: int) -> bool:
        line = self._lines[number].strip()
        if _MARKED_HEADING.match(line) or _TITLE.match(line) or _SECTION.match(line):
            return True
        below = self._lines[number + 1].strip() if number + 1 < len(self._lines) else ""
        alone = not (number and self._lines[number - 1].strip()) or _UNDERLINE.match(self._lines[number - 1].strip())
        return bool(alone) and _UNDERLINE.match(below) is not None and 2 * len(below) >= len(line)

    def _is_claim(self, number: int) -> bool:
        line = self._lines[number]
        return _CLAIMS.search(line) is not None and _ASKED.match(line) is None

    def _is_announced(self, number: int) -> bool:
        """Return whether written words announce the lines in which one stands, and others follow."""
        above = next((n for n in reversed(range(number)) if self._is_written(n)), None)
        below = any(map(self._is_written, range(number + 1, len(self._lines))))
        return above is not None and below and self._is_announced_by(above)

    def _is_announced_by(self, number: int) -> bool:
        return number in self._headings or _ANNOUNCES.match(self._lines[number].strip()) is not None

    def _is_written(self, number: int) -> bool:
        return self._kinds[number] == WRITTEN or number in self._headings
