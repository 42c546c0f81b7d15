"""Log files -> hits. Streams in bounded memory: what repeats is counted, not kept."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Iterable, Iterator, Mapping, Optional, Sequence, Tuple

from envtune.diagnose.logs.blocks import Block, LineEnds, blocks
from envtune.diagnose.logs.files import LogFile
from envtune.diagnose.logs.lines import (
    LINE_LIMIT,
    NO_YEAR,
    TRACEBACK,
    Line,
    in_year,
    is_error,
    parse,
    rank_of,
    split_stream,
    year_of,
)
from envtune.diagnose.logs.window import BACK, Page
from envtune.diagnose.patterns import Chooser, Matcher, Pattern
from envtune.diagnose.prefilter.templates import Candidate

KEPT = 5  # lines kept per entry, file, rank and strength
DISTINCT = 20_000  # such combinations kept; a log with more of them is hostile
CONTEXT = 3  # lines around a hit that are kept for the reader
ROOM = 64 << 20  # characters of all hits together
SHOWN = 2000  # characters of a line beside a hit
AMONG = 1000  # multi-line signatures of a file that are looked for among lines of other processes
AROUND = 6  # lines before the first error that are kept
FRAMES = 400  # lines after the head of a Python traceback in which its exception is looked for

_Counted = Sequence[Tuple[str, str]]  # keys of Scan.counts
_Found = Tuple[int, "re.Match[str]", str]  # number of the pattern, in this line or this part of a long line


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


@dataclass(frozen=True)
class Window:
    """Only lines with a time in [since, until] count; a line without a time belongs to the one before it."""

    since: Optional[float] = None
    until: Optional[float] = None

    @property
    def open(self) -> bool:
        """Whether every line counts."""
        return self.since is None and self.until is None

    def holds(self, time: Optional[float]) -> bool:
        """Whether a line of that time counts."""
        if time is None:
            return self.since is None
        if year_of(time) == NO_YEAR:
            time = in_year(time, year_of(self.since or self.until or time))
        return (self.since is None or time >= self.since) and (self.until is None or time <= self.until)


@dataclass(frozen=True)
class FirstError:
    """The first line of a file that tells of an error, known or not, and its neighbours."""

    file: LogFile
    line: Line
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass
class Scan:
    """What was found in all inputs. `counts` counts every hit of a pattern, `hits` keeps the first ones."""

    hits: list[Hit] = field(default_factory=list)
    counts: dict[tuple[str, str], int] = field(default_factory=dict)  # (owner, file) -> lines
    present: set[tuple[str, str]] = field(default_factory=set)  # (regex, file) of requires and unless
    errors: list[FirstError] = field(default_factory=list)  # one per file
    lines: Optional[int] = 0  # None when not all inputs were counted: of a big plain file lines are not
    size: int = 0  # bytes that were read
    unreadable: list[tuple[str, str]] = field(default_factory=list)  # (path, why)
    _room: int = field(default_factory=lambda: ROOM)  # characters of hits that may still be kept
    _seen: dict[tuple[str, str, Optional[int], str], int] = field(default_factory=dict)

    @property
    def first_error(self) -> Optional[FirstError]:
        """The earliest error of all files, known or not; one without a time comes after those with one."""
        return min(self.errors, key=self._moment, default=None)

    def _moment(self, error: FirstError) -> float:
        times = [e.line.time for e in self.errors if e.line.time is not None]
        years = {year_of(time) for time in times} - {NO_YEAR}
        time = error.line.time
        if time is not None and years and year_of(time) == NO_YEAR:
            time = in_year(time, min(years))
        return float("inf") if time is None else time

    def keep(self, hit: Hit) -> None:
        """Keep a hit while there is room for it."""
        self._room -= sum(map(len, hit.context)) + len(hit.line.text)
        if self._room > 0:
            self.hits.append(hit)

    def count(self, owner: str, file: LogFile, rank: Optional[int], strength: str) -> bool:
        """Note that a signature of this strength was found; whether there are few like it, so that it is kept."""
        kind = (owner, file.path, rank, strength)
        number = self._seen.get(kind, 0)
        if number >= KEPT or (not number and len(self._seen) >= DISTINCT):
            return False
        self._seen[kind] = number + 1
        return True


def scan(files: Iterable[LogFile], matcher: Matcher, chooser: Chooser, window: Optional[Window] = None) -> Scan:
    """Every hit in every file; a file that cannot be read (to its end) is noted, not fatal."""
    result = Scan()
    for file in files:
        try:
            _FileScan(file, matcher, chooser, window or Window(), result).run()
        except OSError as error:
            result.unreadable.append((file.path, error.strerror or str(error)))
    return result


class _FileScan:
    def __init__(self, file: LogFile, matcher: Matcher, chooser: Chooser, window: Window, result: Scan) -> None:
        self._file = file
        self._matcher = matcher
        self._chooser = chooser
        self._window = window
        self._result = result
        self._error = (len(matcher.patterns),)  # the chooser's number for any error
        self._known: set[int] = set()  # what has to be found only once in a file, and was
        self._enough: dict[tuple[Optional[int], ...], _Counted] = {}  # rank, patterns -> what is counted
        self._last = b"\n"  # the last line of which there are enough, and what is counted for it
        self._last_owners: _Counted = ()
        self._spanning = {number for number, pattern in enumerate(matcher.patterns) if pattern.multiline}
        self._clock: Optional[float] = None  # the time of the last line that was asked for, and where it stands
        self._looked: tuple[Optional[Page], int] = (None, 0)
        self._among = AMONG  # how often lines of other processes may still be left out

    def run(self) -> None:
        ends = LineEnds(self._file)
        rest = 0  # a last line without an end
        for before, block, after in _neighbours(blocks(self._file)):
            page = Page(before, block.text, after, ends.before)
            for candidate in self._chooser.candidates(block.text, self._known):
                self._look(page, candidate)
            ends.skip(block)
            self._result.size += block.size
            rest = not block.text.endswith(b"\n")
        lines, total = ends.lines, self._result.lines
        self._result.lines = None if lines is None or total is None else total + lines + rest

    def _look(self, page: Page, candidate: Candidate) -> None:
        start, end, numbers = candidate
        if not self._window.open and not self._in_window(page, start, end):
            return
        if not self._known.isdisjoint(numbers):
            numbers = tuple([number for number in numbers if number not in self._known])
        any_error = numbers[-1:] == self._error
        if any_error:
            numbers = numbers[:-1]
        raw = page.block[start:end]
        if raw == self._last and not any_error:
            self._count(self._last_owners)
            return
        found = self._search(page, start, end, numbers)
        owners = self._note(page, start, end, found) if found else None
        if owners is not None and self._spanning.isdisjoint(numbers):
            self._last, self._last_owners = raw, owners
        if any_error and not any(self._matcher.patterns[number].harmless for number, _, _ in found):
            self._look_for_error(page, start, end)

    def _search(self, page: Page, start: int, end: int, numbers: Sequence[int]) -> list[_Found]:
        parts = page.parts(start, end)
        found = self._found(page, parts[0], end, numbers)
        for part in parts[1:]:
            told = {number for number, _, _ in found}
            found += self._found(page, part, end, [number for number in numbers if number not in told])
        return found

    def _in_window(self, page: Page, start: int, end: int) -> bool:
        looked, self._looked = self._looked, (page, start)
        time = page.time_at(page.text(start, end), start, looked[1] if looked[0] is page else 0)
        self._clock = self._clock if time is None else time
        return self._window.holds(self._clock)

    def _found(self, page: Page, text: str, end: int, numbers: Sequence[int]) -> list[_Found]:
        """The signatures in the line (or part of a line); what others require or exclude is noted on the way."""
        own = split_stream(text)[1]
        found: list[_Found] = []
        for number, match in self._matcher.match(numbers, own, lambda: self._windows(page, text, end)):
            pattern = self._matcher.patterns[number]
            if pattern.role == "signature":
                found.append((number, match, text))
            else:
                self._known.add(number)
                self._result.present.add((pattern.regex, self._file.path))
        return found

    def _windows(self, page: Page, text: str, end: int) -> Iterator[str]:
        self._among -= 1
        return page.windows(text, end, self._among > 0)

    def _note(self, page: Page, start: int, end: int, found: Sequence[_Found]) -> Optional[_Counted]:
        """Count the line once for each entry; keep it while there are few like it: then None, else what is counted.

        Where one hit of a line is kept all are, because entries are told apart by what else matches the same line.
        """
        rank = rank_of(found[0][2] if end - start <= LINE_LIMIT else page.text(start, end))
        rank = self._file.rank if rank is None else rank
        like = (rank, *[number for number, _, _ in found])
        owners = self._enough.get(like)
        if owners is not None:
            self._count(owners)
            return owners
        owners = self._owners(found)
        self._count(owners)
        patterns = [self._matcher.patterns[number] for number, _, _ in found]
        kinds = sorted({(pattern.owner, pattern.strength) for pattern in patterns})
        few = [self._result.count(owner, self._file, rank, strength) for owner, strength in kinds]
        if any(few):
            self._keep(page, start, end, found)
            return None
        if len(self._enough) < DISTINCT:
            self._enough[like] = owners
        return owners

    def _owners(self, found: Sequence[_Found]) -> _Counted:
        """What is counted for such a line."""
        return [(owner, self._file.path) for owner in {self._matcher.patterns[number].owner for number, _, _ in found}]

    def _count(self, owners: _Counted) -> None:
        counts = self._result.counts
        for key in owners:
            counts[key] = counts.get(key, 0) + 1

    def _keep(self, page: Page, start: int, end: int, found: Sequence[_Found]) -> None:
        head = page.text(start, end)
        line = replace(parse(page.number(start), head), time=page.time_at(head, start))
        before = [one[:SHOWN] for one in _before(page, start)]
        after = [one[:SHOWN] for one in islice(page.following(end), CONTEXT)]
        for number, match, text in found:
            groups = {key: value for key, value in match.groupdict().items() if value is not None}
            context = (*before, text, *after)
            hit = Hit(self._matcher.patterns[number], self._file, replace(line, text=text), groups, context)
            self._result.keep(hit)

    def _look_for_error(self, page: Page, start: int, end: int) -> None:
        text = page.text(start, end)
        if not is_error(text):
            return
        self._known.update(self._error)
        line = replace(parse(page.number(start), text), time=page.time_at(text, start))
        before = [*_before(page, start, AROUND), text]
        frames = _traceback(page, text, end) if TRACEBACK in text else []
        if frames:
            line = replace(line, number=line.number + len(frames), text=frames[-1])
        after = islice(page.following(end), len(frames), len(frames) + CONTEXT)
        self._result.errors.append(
            FirstError(self._file, line, tuple([*before, *frames][-AROUND - 1 : -1]), tuple(_trimmed(after)))
        )


def _neighbours(parts: Iterator[Block]) -> Iterator[tuple[bytes, Block, bytes]]:
    """Each block with the end of the one before and the next one. What is there is handed out before an error is."""
    before = b""
    block: Optional[Block] = None
    damage: Optional[OSError] = None
    while damage is None:
        try:
            after = next(parts, None)
        except OSError as error:
            after, damage = None, error
        if block is not None:
            yield before, block, b"" if after is None else after.text
            before = (before + block.text)[-BACK:] if len(block.text) < BACK else block.text[-BACK:]
        if after is None:
            break
        block = after
    if damage is not None:
        raise damage


def _before(page: Page, start: int, number: int = CONTEXT) -> tuple[str, ...]:
    return tuple(islice(page.preceding(start), number))[::-1]


def _traceback(page: Page, text: str, end: int) -> list[str]:
    """The lines of a Python traceback after its head, to the one that names the exception; none without that one."""
    stream = split_stream(text)[0]
    frames: list[str] = []
    for line in islice(page.following(end), FRAMES):
        theirs, own = split_stream(line)
        frames.append(line)
        if theirs == stream and own.strip() and not own.startswith((" ", "\t")):
            return frames
    return []


def _trimmed(lines: Iterable[str]) -> list[str]:
    """The lines without empty ones at the end."""
    found = list(lines)
    while found and not found[-1].strip():
        found.pop()
    return found
