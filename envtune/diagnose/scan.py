"""Log files -> hits. Streams in bounded memory: what repeats is counted, not kept."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from typing import Deque, Iterable, Iterator, Mapping, Optional

from envtune.diagnose.lines import Line, clean, parse
from envtune.diagnose.patterns import Chooser, Matcher, Pattern
from envtune.diagnose.sources import LogFile, blocks

FOLLOWING = 12  # lines a multi-line signature may run on
KEPT = 5  # lines kept per entry, file and rank
DISTINCT = 20_000  # (entry, file, rank) combinations kept; a log with more of them is hostile
CONTEXT = 3  # lines around a hit that are kept for the reader
_ERROR = re.compile(
    r"\[ERROR\]|\bERROR\b|\bError\b|\bERR\d{5}\b|Traceback \(most recent|\bFATAL\b|\bCRITICAL\b|\bE[A-Z0-9]\d{4}\b"
    r"|Segmentation fault|core dumped|\bKilled\b|terminate called"
)


@dataclass(frozen=True)
class Hit:
    """One signature found in one line. `groups` are the named groups that took part."""

    pattern: Pattern
    file: LogFile
    line: Line
    groups: Mapping[str, str]
    context: tuple[str, ...] = ()

    @property
    def rank(self) -> Optional[int]:
        """The rank that printed it, by the line or else by the file's name."""
        return self.line.rank if self.line.rank is not None else self.file.rank


@dataclass
class Scan:
    """What was found in all inputs. `counts` counts every hit of a pattern, `hits` keeps the first ones."""

    hits: list[Hit] = field(default_factory=list)
    counts: dict[tuple[str, str], int] = field(default_factory=dict)  # (owner, file) -> lines
    present: set[tuple[str, str]] = field(default_factory=set)  # (regex, file) of requires and unless
    first_error: Optional[tuple[LogFile, Line]] = None
    before: tuple[str, ...] = ()  # the lines before the first error
    lines: int = 0
    unreadable: list[tuple[str, str]] = field(default_factory=list)  # (path, why)
    _last: dict[tuple[str, str], int] = field(default_factory=dict)  # the line that was counted last
    _seen: dict[tuple[str, str, Optional[int], str], int] = field(default_factory=dict)

    def add(self, hit: Hit) -> None:
        """Count a hit (a line once for each entry), and keep it while there are few like it."""
        key = (hit.pattern.owner, hit.file.path)
        if self._last.get(key) != hit.line.number:
            self.counts[key] = self.counts.get(key, 0) + 1
            self._last[key] = hit.line.number
        kind = (*key, hit.rank, hit.pattern.strength)
        number = self._seen.get(kind, 0)
        if number < KEPT and (number or len(self._seen) < DISTINCT):
            self._seen[kind] = number + 1
            self.hits.append(hit)


def scan(files: Iterable[LogFile], matcher: Matcher, chooser: Chooser, window: Optional[Window] = None) -> Scan:
    """Every hit in every file; a file that cannot be read is noted, not fatal."""
    result = Scan()
    for file in files:
        try:
            _scan_file(file, matcher, chooser, window or Window(), result)
        except (OSError, EOFError) as error:
            result.unreadable.append((file.path, str(error)))
    return result


@dataclass(frozen=True)
class Window:
    """Only lines with a time in [since, until] count; a line without a time belongs to the one before it."""

    since: Optional[float] = None
    until: Optional[float] = None

    def holds(self, time: Optional[float]) -> bool:
        """Whether a line of that time counts."""
        if time is None:
            return self.since is None
        return (self.since is None or time >= self.since) and (self.until is None or time <= self.until)


def _scan_file(file: LogFile, matcher: Matcher, chooser: Chooser, window: Window, result: Scan) -> None:
    number = 0
    clock: Optional[float] = None
    last: Deque[str] = deque(maxlen=CONTEXT)
    for block in blocks(file):
        at = 0
        counted = number
        for start, end in chooser.candidates(block):
            counted += block.count(b"\n", at, start)
            at = start
            line = parse(counted + 1, clean(block[start:end]))
            clock = line.time if line.time is not None else clock
            if window.holds(clock):
                _look(file, line, block, start, end, last, matcher, result)
        number += block.count(b"\n")
        last.extend(clean(raw) for raw in block[-4096:].splitlines()[-CONTEXT:])
    result.lines += number


def _look(
    file: LogFile, line: Line, block: bytes, start: int, end: int, last: Deque[str], matcher: Matcher, result: Scan
) -> None:
    if result.first_error is None and _ERROR.search(line.text):
        result.first_error = (file, line)
        result.before = _before(block, start, last)
    following = list(_following(block, end))
    for pattern, found in matcher.match(line.text, following):
        if pattern.role != "signature":
            result.present.add((pattern.regex, file.path))
            continue
        groups = {key: value for key, value in found.groupdict().items() if value is not None}
        result.add(Hit(pattern, file, line, groups, (*_before(block, start, last), line.text, *following[:CONTEXT])))


def _following(block: bytes, end: int) -> Iterator[str]:
    for _ in range(FOLLOWING):
        start = end + 1
        if start >= len(block):
            return
        end = block.find(b"\n", start)
        end = len(block) if end < 0 else end
        yield clean(block[start:end])


def _before(block: bytes, start: int, last: Deque[str]) -> tuple[str, ...]:
    inside = [clean(raw) for raw in block[max(0, start - 8192) : start].splitlines()[-CONTEXT:]]
    return tuple([*last, *inside][-CONTEXT:])
