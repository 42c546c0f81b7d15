"""Match lines against every signature of the catalog.

A prefilter (`Prefilter`) finds the lines worth matching: in pure Python (prefilter/templates.py) or with hyperscan
(prefilter/hyperscan.py, the `fast` extra). Either way the full expression decides here, so both give the same
diagnosis.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Callable, Iterable, Iterator, Optional, Protocol, Sequence, Tuple

from envtune.catalog.signatures.literals import Needs, required_literals
from envtune.diagnose.logs.files import BIG, LogFile
from envtune.diagnose.prefilter.templates import CandidateLine, Expression, Numbers, TemplateFilter
from envtune.model import FaqEntry
from envtune.ranks import lines

ONCE = ("requires", "unless")  # roles of which one match in a file is enough


@dataclass(frozen=True)
class Pattern:
    """One expression to look for. `owner` is a FAQ entry's id; `role` says what a match means to it."""

    owner: str
    regex: str
    strength: str = "strong"  # strong | weak
    role: str = "signature"  # signature | requires | unless | code | table | process (a row of ranks/lines.py)
    multiline: bool = False
    index: int = 0  # of the signature in its entry, or of the row in its table
    harmless: bool = False  # a line that matches reports no error
    frame: str = ""  # must match a line of the traceback above


def is_symptom(owner: str) -> bool:
    """Return whether an entry is about a run that continues: the guide's symptoms have the letter X."""
    return owner.startswith("X")


class Prefilter(Protocol):
    """Finds candidate lines in a block of whole lines."""

    def candidates(self, block: bytes, known: Numbers = frozenset()) -> Iterator[CandidateLine]:
        """Yield each line worth matching, in order, once; none for expressions whose one match is already known."""


Match = Tuple[int, "re.Match[str]"]  # the number of a pattern, and where it was found


class Matcher:
    """The full expressions, each compiled when it is first tried."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self.patterns = tuple(patterns)
        self._compiled: list[Optional[re.Pattern[str]]] = [None] * len(patterns)
        self._needs: list[Needs] = [()] * len(patterns)  # of the compiled expressions

    def may_match(self, numbers: Iterable[int], text: str) -> bool:
        """Return whether the line contains all the literals of one of the patterns, or none are known yet."""
        folded = text.lower()
        return any(self._compiled[n] is None or _may_match(self._needs[n], text, folded) for n in numbers)

    def match(self, numbers: Iterable[int], text: str, windows: Callable[[], Iterable[str]]) -> list[Match]:
        """Return the patterns that match the line; multi-line matches begin in it and continue in a window."""
        folded = text.lower()
        matches: list[Match] = []
        for number in numbers:
            expression = self._compiled[number] or self._compile(number)
            if not _may_match(self._needs[number], text, folded):
                continue
            if self.patterns[number].multiline:
                match = _in_window(expression, text, windows())
            else:
                match = expression.search(text)
            if match is not None:
                matches.append((number, match))
        return matches

    def _compile(self, number: int) -> re.Pattern[str]:
        pattern = self.patterns[number]
        needs = required_literals(pattern.regex, pattern.multiline)
        # The prefilter found the first of a conjunction; checking the others first rejects a line sooner.
        self._needs[number] = tuple(conjunction[::-1] for conjunction in needs)
        compiled = self._compiled[number] = re.compile(pattern.regex)
        return compiled


def _in_window(expression: re.Pattern[str], text: str, windows: Iterable[str]) -> Optional[re.Match[str]]:
    for window in windows:
        match = expression.search(window)
        if match is not None and match.start() <= len(text):
            return match
    return None


def _may_match(needs: Needs, text: str, folded: str) -> bool:
    """Return whether the line contains what a match must contain; a tenth of the cost of a case-insensitive search."""
    for conjunction in needs:
        for option in conjunction:
            for literal, exact in option:
                if literal in (text if exact else folded):
                    break
            else:
                break
        else:
            return True
    return not needs


def patterns_of(entries: Iterable[FaqEntry]) -> tuple[Pattern, ...]:
    """Return every expression of the entries, including what signatures require or exclude."""
    patterns: dict[Pattern, None] = {}
    for entry in entries:
        for index, signature in enumerate(entry.signatures):
            pattern = Pattern(
                entry.id,
                signature.regex,
                signature.strength,
                multiline=signature.multiline,
                index=index,
                harmless=entry.side == "ignore",
                frame=signature.frame,
            )
            patterns[pattern] = None
            for role, others in (("requires", signature.requires), ("unless", signature.unless)):
                patterns.update(dict.fromkeys(Pattern("", regex, "weak", role) for regex in others))
    return tuple(patterns)


# The headers of the tables that npu-smi and `ps -ef` print.
_TABLES = (r"\|\s?npu-smi\s+[\w.-]+\s+Version:", r"^\s*(?:UID|USER)\s+PID\s+PPID\b")


def table_patterns() -> tuple[Pattern, ...]:
    """Return the expressions for the headers of tables that are judged as a host (tables.py)."""
    return tuple(Pattern("", regex, "weak", "table", index=number) for number, regex in enumerate(_TABLES))


def process_patterns() -> tuple[Pattern, ...]:
    """Return the expressions for lines that tell something about several processes."""
    return tuple(
        Pattern("", row.regex, "weak", "process", row.multiline, number) for number, row in enumerate(lines.ROWS)
    )


def select_prefilter(patterns: Sequence[Pattern], files: Sequence[LogFile]) -> Prefilter:
    """Return the prefilter for these inputs; it is fed block by block, in order."""
    size = sum(file.size for file in files)
    return AdaptivePrefilter([Expression(p.regex, p.multiline, p.role in ONCE) for p in patterns], size)


class AdaptivePrefilter:
    """Pure Python for short inputs, hyperscan if it is installed and BIG bytes are expected or have been read."""

    def __init__(self, expressions: Sequence[Expression], size: int = 0) -> None:
        """Prepare to search; `size` is the number of bytes known to follow."""
        self._expressions = expressions
        self._prefilter: Optional[Prefilter] = None
        self._until_big = BIG - size
        self._tried_hyperscan = False

    def candidates(self, block: bytes, known: Numbers = frozenset()) -> Iterator[CandidateLine]:
        """Yield the candidate lines of a block of whole lines, in order."""
        self._until_big -= len(block)
        if self._until_big <= 0 and not self._tried_hyperscan:
            self._tried_hyperscan = True
            self._prefilter = _hyperscan_filter(self._expressions) or self._prefilter
        if self._prefilter is None:
            self._prefilter = TemplateFilter(self._expressions)
        return self._prefilter.candidates(block, known)


def _hyperscan_filter(expressions: Sequence[Expression]) -> Optional[Prefilter]:
    from envtune.diagnose.prefilter.hyperscan import HyperscanFilter, UnusableError

    try:
        return HyperscanFilter(expressions)
    except UnusableError:
        return None
