"""Every signature of the catalogue as one set of expressions, and two ways to find the lines worth a full look.

`Anchors` is pure Python: a line is a candidate when it contains one of a few literal pieces (literals.py).
`Hyperscan` compiles all expressions into one automaton (the `fast` extra); the database is cached by content. Both only
choose lines; what a line says is decided by the full expression either way, so both give the same diagnosis.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import FrozenSet, Iterable, Iterator, Optional, Protocol, Sequence

from envtune.diagnose.literals import choose_anchors, required_literals
from envtune.diagnose.sources import LogFile
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


class Chooser(Protocol):
    """Finds candidate lines in a block of whole lines."""

    def candidates(self, block: bytes) -> Iterator[tuple[int, int]]:
        """(start, end) of each line worth a full look, in order, each once."""


class Anchors:
    """The pure-Python chooser."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        needs = [required_literals(p.regex) for p in patterns]
        self.certain = all(need is not None for need in needs)
        known = [need for need in needs if need is not None]
        self._anchors = [a.encode("utf-8") for a in choose_anchors(known, COMMON)]

    def candidates(self, block: bytes) -> Iterator[tuple[int, int]]:
        folded = block.lower()
        starts: set[int] = set()
        for anchor in self._anchors:
            at = folded.find(anchor)
            while at >= 0:
                start = folded.rfind(b"\n", 0, at) + 1
                starts.add(start)
                end = folded.find(b"\n", at)
                at = folded.find(anchor, end) if end >= 0 else -1
        for start in sorted(starts):
            end = block.find(b"\n", start)
            yield start, end if end >= 0 else len(block)


# How often (per line) a piece stands in ordinary INFO and EVENT lines of plog and in step lines of training scripts.
COMMON = {
    "time": 0.3,
    "rank": 0.3,
    "step": 0.3,
    "with": 0.1,
    "torc": 0.1,
    "site": 0.1,
    ".cpp": 0.6,
    "cpp:": 0.6,
    ".cc:": 0.6,
    "0000": 0.2,
    "loss": 0.3,
    "devi": 0.5,
    "kern": 0.3,
    "exec": 0.3,
    "stre": 0.4,
    "hccl": 0.5,
}


class Matcher:
    """The full expressions, with a quick test per expression before it is tried."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self.patterns = tuple(patterns)
        self._needs: list[Optional[FrozenSet[str]]] = [required_literals(p.regex) for p in patterns]
        self._compiled: list[Optional[re.Pattern[str]]] = [None] * len(patterns)

    def match(self, text: str, following: Iterable[str]) -> Iterator[tuple[Pattern, re.Match[str]]]:
        """Every pattern found in the line (for multi-line ones: beginning in it and running into the next ones)."""
        folded = text.lower()
        window: Optional[str] = None
        for number, pattern in enumerate(self.patterns):
            need = self._needs[number]
            where, text_here = folded, text
            if pattern.multiline:
                if window is None:
                    window = "\n".join([text, *following])
                where, text_here = window.lower(), window
            if need is not None and not any(literal in where for literal in need):
                continue
            found = self._expression(number).search(text_here)
            if found is not None and found.start() <= len(text):
                yield pattern, found

    def _expression(self, number: int) -> re.Pattern[str]:
        compiled = self._compiled[number]
        if compiled is None:
            compiled = self._compiled[number] = re.compile(self.patterns[number].regex)
        return compiled


def patterns_of(entries: Iterable[FaqEntry]) -> tuple[Pattern, ...]:
    """Every expression of the entries, what signatures require or exclude included."""
    found: dict[Pattern, None] = {}
    for entry in entries:
        for index, signature in enumerate(entry.signatures):
            own = Pattern(entry.id, signature.regex, signature.strength, "signature", signature.multiline, index)
            found[own] = None
            for role, others in (("requires", signature.requires), ("unless", signature.unless)):
                found.update(dict.fromkeys(Pattern("", regex, "weak", role) for regex in others))
    return tuple(found)


def choose(patterns: Sequence[Pattern], files: Sequence[LogFile]) -> Chooser:
    """The chooser for these inputs."""
    return Anchors(patterns)
