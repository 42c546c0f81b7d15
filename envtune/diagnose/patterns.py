"""Every signature of the catalogue as one set of expressions, and the full look at a line that a chooser found.

A chooser (`Chooser`) finds the lines worth a full look: in pure Python (shapes.py) or with hyperscan (automaton.py, the
`fast` extra). What a line says is decided here by the full expression either way, so both give the same diagnosis.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Callable, Iterable, Iterator, Optional, Protocol, Sequence, Tuple

from envtune.diagnose.logs.files import BIG, LogFile
from envtune.diagnose.prefilter.literals import Needs, required_literals
from envtune.diagnose.prefilter.templates import Candidate, Expression, Numbers, Shapes
from envtune.model import FaqEntry


@dataclass(frozen=True)
class Pattern:
    """One expression to look for. `owner` is a FAQ entry's id; `role` says what a match means to it."""

    owner: str
    regex: str
    strength: str = "strong"  # strong | weak
    role: str = "signature"  # signature | requires | unless
    multiline: bool = False
    index: int = 0  # of the signature within its entry
    harmless: bool = False  # a line that matches tells of no error


class Chooser(Protocol):
    """Finds candidate lines in a block of whole lines."""

    def candidates(self, block: bytes, known: Numbers = frozenset()) -> Iterator[Candidate]:
        """Each line worth a full look, in order, each once; none for expressions whose one match is known already."""


Match = Tuple[int, "re.Match[str]"]  # the number of a pattern, and where it was found


class Matcher:
    """The full expressions, each compiled when it is tried first."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self.patterns = tuple(patterns)
        self._compiled: list[Optional[re.Pattern[str]]] = [None] * len(patterns)
        self._needs: list[Needs] = [()] * len(patterns)  # of the compiled ones

    def match(self, numbers: Iterable[int], text: str, windows: Callable[[], Iterable[str]]) -> list[Match]:
        """Those found in the line; a match of multi-line ones begins in it and runs on in a window."""
        folded = text.lower()
        found: list[Match] = []
        for number in numbers:
            expression = self._compiled[number] or self._compile(number)
            if not _may_match(self._needs[number], text, folded):
                continue
            if self.patterns[number].multiline:
                match = _in_window(expression, text, windows())
            else:
                match = expression.search(text)
            if match is not None:
                found.append((number, match))
        return found

    def _compile(self, number: int) -> re.Pattern[str]:
        pattern = self.patterns[number]
        needs = required_literals(pattern.regex, pattern.multiline)
        # The chooser saw the first of a conjunction; what else is needed tells sooner that a line does not match.
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
    """Whether the line holds what a match contains; this costs a tenth of a search that ignores case."""
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
    """Every expression of the entries, what signatures require or exclude included."""
    found: dict[Pattern, None] = {}
    for entry in entries:
        for index, signature in enumerate(entry.signatures):
            own = Pattern(
                entry.id,
                signature.regex,
                signature.strength,
                multiline=signature.multiline,
                index=index,
                harmless=entry.side == "ignore",
            )
            found[own] = None
            for role, others in (("requires", signature.requires), ("unless", signature.unless)):
                found.update(dict.fromkeys(Pattern("", regex, "weak", role) for regex in others))
    return tuple(found)


def choose(patterns: Sequence[Pattern], files: Sequence[LogFile]) -> Chooser:
    """The chooser for these inputs; it is fed block by block, in order."""
    size = sum(file.size for file in files)
    return Growing([Expression(p.regex, p.multiline, p.role != "signature") for p in patterns], size)


class Growing:
    """Pure Python for what is short, hyperscan where it is installed and BIG bytes are to be read or were read."""

    def __init__(self, expressions: Sequence[Expression], size: int = 0) -> None:
        """`size`: the bytes that are known to come."""
        self._expressions = expressions
        self._chooser: Optional[Chooser] = None
        self._left = BIG - size
        self._fixed = False

    def candidates(self, block: bytes, known: Numbers = frozenset()) -> Iterator[Candidate]:
        """The candidate lines of a block of whole lines, in order."""
        self._left -= len(block)
        if self._left <= 0 and not self._fixed:
            self._fixed = True
            self._chooser = _automaton(self._expressions) or self._chooser
        if self._chooser is None:
            self._chooser = Shapes(self._expressions)
        return self._chooser.candidates(block, known)


def _automaton(expressions: Sequence[Expression]) -> Optional[Chooser]:
    from envtune.diagnose.prefilter.hyperscan import Automaton, Unusable

    try:
        return Automaton(expressions)
    except Unusable:
        return None
