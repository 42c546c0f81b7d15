"""Scan log files for signatures, in a stream and in bounded memory: what repeats is counted, not kept."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Iterable, Iterator, Mapping, NamedTuple, Optional, Sequence, Tuple

from envtune.catalog.signatures.tokens import is_conjunction
from envtune.diagnose.code_forms import code_of, codes_in
from envtune.diagnose.events.ending import other_death
from envtune.diagnose.events.forms import QUOTED, form_of, is_mention
from envtune.diagnose.events.pages import Pages
from envtune.diagnose.events.position import is_embedded
from envtune.diagnose.events.progress import Progress, progress_of, steps_follow
from envtune.diagnose.logs.blocks import Block, LineEnds, blocks
from envtune.diagnose.logs.files import LogFile
from envtune.diagnose.logs.lines import (
    NO_YEAR,
    TRACEBACK,
    Line,
    TimeWindow,
    in_year,
    is_error,
    parse,
    rank_of,
    split_stream,
    trimmed,
    year_of,
)
from envtune.diagnose.logs.window import BACK, PART, LineWindow
from envtune.diagnose.notes import FileNotes, Notes
from envtune.diagnose.patterns import ONCE, Matcher, Pattern, Prefilter, is_symptom
from envtune.diagnose.prefilter.templates import CandidateLine
from envtune.errors import system_error_text
from envtune.messages import Text

MAX_KEPT = 5  # lines kept per entry, file, rank and strength
MAX_COMBINATIONS = 20_000  # of these combinations that are kept; a log with more is hostile
CONTEXT = 3  # lines around a hit that are kept for the reader
MAX_CHARACTERS = 64 << 20  # of all hits together
MAX_NEIGHBOUR = 2000  # characters of a line next to a hit
MAX_INTERLEAVED = 1000  # multi-line signatures of a file that are searched among lines of other processes
TAIL = 64 << 10  # bytes at the end of a file that are always searched for errors
BEFORE_ERROR = 6  # lines before the first error that are kept
AROUND = 1 << 15  # bytes around a line that show what kind of page it is on
LOOK_AHEAD, MAX_LOOKS = 1 << 16, 16  # bytes after a hit that are searched for steps; at most so many hits of a big file
MAX_TABLES, MAX_TABLE = 8, 600  # tables of all inputs; rows of one
_TABLE_ROW = re.compile(r"\s*[+|]|\S+\s+\d{1,9}\s+\d{1,9}\s")
_FRAME = re.compile(r"File(?:\s?[\"\u201c]|\s*$)")  # without its indentation
_EXCEPTION = re.compile(r"(?:^|[\s.])[A-Z]\w*(?:Error|Exception|Interrupt)(?::|\s*$)")
MAX_TRACEBACK = 400  # lines after the header of a Python traceback that are searched for its exception

_Counted = Sequence[Tuple[str, str]]  # keys of Scan.counts
_Match = Tuple[int, "re.Match[str]", str]  # number of the pattern, in this line or this part of a long line


@dataclass(frozen=True)
class Hit:
    """One signature found in one line. `groups` are the named groups that took part."""

    pattern: Pattern
    file: LogFile
    line: Line
    groups: Mapping[str, str]
    context: tuple[str, ...] = ()
    form: str = ""  # events/forms.py: why it is a mention, or QUOTED
    outlived: str = ""  # why the error did not end the run, if later lines show that

    @property
    def rank(self) -> Optional[int]:
        """The rank that printed it, from the line or else from the file name."""
        return self.line.rank if self.line.rank is not None else self.file.rank


class _Kind(NamedTuple):
    """What distinguishes lines with hits: form, rank, and the numbers and owners of the patterns."""

    form: str
    rank: Optional[int]
    patterns: tuple[tuple[int, str], ...]


class Table(NamedTuple):
    """A table of npu-smi or ps in a log: the number of its first line, and its rows including the header."""

    file: LogFile
    line: int
    rows: tuple[str, ...]


@dataclass(frozen=True)
class FirstError:
    """A line that reports an error, known or not, and its neighbors."""

    file: LogFile
    line: Line
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass
class Scan:
    """What was found in all inputs. `counts` counts every hit of a pattern, `hits` keeps the first ones."""

    hits: list[Hit] = field(default_factory=list)
    codes: list[Hit] = field(default_factory=list)  # lines with an error code, which is the pattern's owner
    tables: list[Table] = field(default_factory=list)  # the first ones
    mentions: list[Hit] = field(default_factory=list)  # matches that are not events
    progress: dict[str, Progress] = field(default_factory=dict)  # path -> how the file ends, for files with matches
    deaths: dict[str, range] = field(default_factory=dict)  # path -> the lines that show what else ended the run
    counts: dict[tuple[str, str], int] = field(default_factory=dict)  # (owner, file) -> lines
    present: set[tuple[str, str]] = field(default_factory=set)  # (regex, file) of requires and unless
    errors: list[FirstError] = field(default_factory=list)  # the first of each kind, in the order of each file
    notes: Notes = field(default_factory=Notes)  # what the lines say about processes
    lines: Optional[int] = 0  # None if not all inputs were counted: a big plain file is not
    size: int = 0  # bytes that were read
    unreadable: list[tuple[str, Text]] = field(default_factory=list)  # (path, why)
    _room: int = field(default_factory=lambda: MAX_CHARACTERS)  # characters of hits that may still be kept
    _error_room: int = MAX_CHARACTERS >> 2
    _seen: dict[tuple[str, str, Optional[int], str], int] = field(default_factory=dict)

    @property
    def first_error(self) -> Optional[FirstError]:
        """The earliest of the files' first errors, known or not; one without a time comes after those with one."""
        first: dict[str, FirstError] = {}
        for error in self.errors:
            first.setdefault(error.file.path, error)
        times = [error.line.time for error in first.values() if error.line.time is not None]
        year = min({year_of(time) for time in times} - {NO_YEAR}, default=NO_YEAR)

        def time_of(error: FirstError) -> float:
            time = error.line.time
            if time is None:
                return float("inf")
            return in_year(time, year) if year_of(time) == NO_YEAR else time

        return min(first.values(), key=time_of, default=None)

    def keep(self, hit: Hit) -> None:
        """Keep a hit if there is room."""
        self._room -= sum(map(len, hit.context)) + len(hit.line.text)
        if self._room > 0:
            mention = hit.form not in ("", QUOTED)
            (self.mentions if mention else self.codes if hit.pattern.role == "code" else self.hits).append(hit)

    def keep_error(self, error: FirstError) -> None:
        """Keep the first error of a file, and further ones if there is room."""
        self._error_room -= sum(map(len, (*error.before, *error.after))) + len(error.line.text)
        if self._error_room > 0 or not self.errors or self.errors[-1].file is not error.file:
            self.errors.append(error)

    def count(self, owner: str, file: LogFile, rank: Optional[int], strength: str) -> bool:
        """Count a signature of this strength; return whether there are still few like it, so that its line is kept."""
        combination = (owner, file.path, rank, strength)
        number = self._seen.get(combination, 0)
        if number >= MAX_KEPT or (not number and len(self._seen) >= MAX_COMBINATIONS):
            return False
        self._seen[combination] = number + 1
        return True


def scan(files: Iterable[LogFile], matcher: Matcher, prefilter: Prefilter, window: Optional[TimeWindow] = None) -> Scan:
    """Return every hit in every file; a file that cannot be read completely is recorded, not fatal."""
    result = Scan()
    for file in files:
        try:
            _FileScan(file, matcher, prefilter, window or TimeWindow(), result).run()
        except OSError as error:
            result.unreadable.append((file.path, system_error_text(error)))
    return result


class _FileScan:
    def __init__(self, file: LogFile, matcher: Matcher, prefilter: Prefilter, window: TimeWindow, result: Scan) -> None:
        self._file = file
        self._matcher = matcher
        self._prefilter = prefilter
        self._window = window
        self._result = result
        self._any_error = (len(matcher.patterns),)  # the prefilter's number for any error
        self._notes = FileNotes(file, result.notes)
        self._traceback_ends: dict[str, int] = {}  # prefix -> number of the last line of its last traceback
        self._known: set[int] = set()  # what has to be found only once per file, and was found
        self._enough: dict[_Kind, _Counted] = {}  # what to count for lines of which enough are kept
        self._last = b"\n"  # the last line of which there are enough, and what to count for it
        self._last_owners: _Counted = ()
        self._of_code: dict[tuple[int, str], Pattern] = {}  # patterns owned by codes
        self._multiline = {number for number, pattern in enumerate(matcher.patterns) if pattern.multiline}
        self._clock: Optional[float] = None  # the time of the last line whose time was needed, and its position
        self._clock_place: tuple[Optional[LineWindow], int] = (None, 0)
        self._looks = MAX_LOOKS  # hits after which steps may still be searched
        self._pages = Pages()
        self._found = False  # whether a hit or an error was kept
        self._interleaved = MAX_INTERLEAVED  # how often lines of other processes may still be skipped

    def run(self) -> None:
        ends = LineEnds(self._file)
        unended = 0  # 1 for a last line without a newline
        last = b"", b""
        for before, block, after in _neighbours(blocks(self._file)):
            lines = LineWindow(before, block.text, after, ends.before)
            for candidate in self._prefilter.candidates(block.text, self._known):
                self._examine(lines, candidate)
            self._notes.block(block.text)
            last = before, block.text
            ends.skip(block)
            self._result.size += block.size
            unended = not block.text.endswith(b"\n")
        self._notes.end()
        tail = (last[0] + last[1])[-TAIL:]
        if self._any_error[0] in self._known:
            self._look_at_tail(tail, ends)
        if self._found and self._file.pid is None and ends.lines is not None:
            first = ends.lines - tail.count(b"\n") + 1
            self._result.progress[self._file.path] = progress_of(tail, first)
            self._result.deaths[self._file.path] = other_death(tail, first)
        count, total = ends.lines, self._result.lines
        self._result.lines = None if count is None or total is None else total + count + unended

    def _look_at_tail(self, tail: bytes, ends: LineEnds) -> None:
        """Search the end of a file with so many errors that the rest was not examined.

        The number of a line requires counting the lines of the whole file: done only for new errors.
        """
        tail = tail[tail.find(b"\n") + 1 :]
        lines = LineWindow(b"", tail, b"", lambda: ends.before() - tail.count(b"\n"))
        start = 0
        harmless = [number for number, pattern in enumerate(self._matcher.patterns) if pattern.harmless]
        while start < len(tail):
            end = tail.find(b"\n", start)
            end = len(tail) if end < 0 else end
            text = lines.text(start, end)
            in_window = self._window.open or self._in_window(lines, start, end)
            new = in_window and is_error(text) and not self._notes.knows_error(text)
            if new and not self._matcher.match(harmless, text, lambda: ()):
                self._look_for_error(lines, start, end)
            start = end + 1

    def _examine(self, lines: LineWindow, candidate: CandidateLine) -> None:
        start, end, numbers = candidate
        if not self._window.open and not self._in_window(lines, start, end):
            return
        if not self._known.isdisjoint(numbers):
            numbers = tuple([number for number in numbers if number not in self._known])
        any_error = numbers[-1:] == self._any_error
        if any_error:
            numbers = numbers[:-1]
        raw = lines.block[start:end]
        if raw == self._last and not any_error:
            self._count(self._last_owners)
            return
        matches = self._search(lines, start, end, numbers)
        if not (matches or any_error):
            return
        kind = self._kind(lines, start, end, matches)  # if enough are kept, its form would only change the count
        form = self._form(lines, start, end, matches) if matches and kind not in self._enough else ""
        owners = self._record(lines, start, end, matches, kind._replace(form=form)) if matches else None
        if owners is not None and self._multiline.isdisjoint(numbers):
            self._last, self._last_owners = raw, owners
        mention = form not in ("", QUOTED)
        if any_error and not mention and not any(self._matcher.patterns[n].harmless for n, _, _ in matches):
            self._look_for_error(lines, start, end)

    def _form(self, lines: LineWindow, start: int, end: int, matches: Sequence[_Match]) -> str:
        """Return why the line is a mention, or QUOTED; empty for an event and for what is known to be harmless."""
        if any(self._matcher.patterns[number].harmless for number, _, _ in matches):
            return ""
        match = min((match for _, match, _ in matches), key=lambda match: match.start())
        text = match.string.partition("\n")[0]
        # A match of tokens begins at the start of the line and ends with the first token.
        at = match.start() or min(match.end(), len(text)) - 1
        printed = not any(is_symptom(self._matcher.patterns[number].owner) for number, _, _ in matches)
        form = form_of(text, at, lambda: lines.block[max(0, start - AROUND) : end + AROUND], printed)
        if form not in ("", QUOTED):
            return form
        if not printed:
            return self._pages.laid_out(lines.block, start) or form
        embedded = is_embedded(text, at if is_conjunction(match.re.pattern) else match.start())
        return self._pages.form(lines.block, start, form, embedded)

    def _search(self, lines: LineWindow, start: int, end: int, numbers: Sequence[int]) -> list[_Match]:
        parts = lines.parts(start, end)
        possible = len(parts) > 1 or self._matcher.may_match(numbers, parts[0])
        matches = self._match(lines, parts[0], (start, end), numbers) if possible else []
        for part in parts[1:]:
            matched = {number for number, _, _ in matches}
            left = [number for number in numbers if number not in matched]
            matches += self._match(lines, part, (start, end), left)
        return matches

    def _in_window(self, lines: LineWindow, start: int, end: int) -> bool:
        (before, place), self._clock_place = self._clock_place, (lines, start)
        time = lines.time_at(lines.text(start, end), start, place if before is lines else 0)
        self._clock = self._clock if time is None else time
        return self._window.holds(self._clock)

    def _match(self, lines: LineWindow, text: str, place: tuple[int, int], numbers: Sequence[int]) -> list[_Match]:
        """Return the signatures in a line (or part of one); record what else it contains."""
        message = split_stream(text)[1]
        matches: list[_Match] = []
        for number, match in self._matcher.match(numbers, message, lambda: self._windows(lines, text, place[1])):
            pattern = self._matcher.patterns[number]
            if pattern.role == "signature":
                if not pattern.frame or _has_frame(lines, place[0], pattern.frame):
                    matches.append((number, match, text))
            elif pattern.role == "code":
                matches += [(number, code, text) for code in codes_in(match)]
            elif pattern.role == "table":
                self._keep_table(lines, place, message)
            elif pattern.role in ONCE:
                self._known.add(number)
                self._result.present.add((pattern.regex, self._file.path))
            else:
                self._note(lines, place[0], number, match, text)
        return matches

    def _keep_table(self, lines: LineWindow, place: tuple[int, int], head: str) -> None:
        if len(self._result.tables) >= MAX_TABLES:
            return
        rows = [head]
        for text in islice(lines.following(place[1]), MAX_TABLE):
            row = split_stream(text)[1]
            if not _TABLE_ROW.match(row):
                break
            rows.append(row)
        self._found = True
        self._result.tables.append(Table(self._file, lines.number(place[0]), tuple(rows)))

    def _note(self, lines: LineWindow, start: int, number: int, match: re.Match[str], text: str) -> None:
        """Keep a line that tells something about processes."""
        row, fields = self._matcher.patterns[number].index, match.groupdict()
        kept, more = self._notes.wants(row, text, fields)
        message = match.string.partition("\n")[0]
        if kept and form_of(message, match.start(), lambda: b"", printed=False) in ("", QUOTED):
            said = text if match.string in text else f"{text[: len(text) - len(split_stream(text)[1])]}{match.string}"
            line = Line(lines.number(start), text, time=lines.time_at(text, start))
            self._notes.add(row, line, said, fields)
        if not more:
            self._known.add(number)

    def _windows(self, lines: LineWindow, text: str, end: int) -> Iterator[str]:
        self._interleaved -= 1
        return lines.windows(text, end, self._interleaved > 0)

    def _kind(self, lines: LineWindow, start: int, end: int, matches: Sequence[_Match]) -> _Kind:
        """Return the key by which only the first lines of a kind are kept, as an event."""
        rank = rank_of(matches[0][2] if end - start <= PART else lines.text(start, end)) if matches else None
        rank = self._file.rank if rank is None else rank
        return _Kind("", rank, tuple([(number, self._owned(number, match).owner) for number, match, _ in matches]))

    def _record(
        self, lines: LineWindow, start: int, end: int, matches: Sequence[_Match], kind: _Kind
    ) -> Optional[_Counted]:
        """Count the line once for each entry and keep it if there are few like it; a mention is not counted.

        Return None for a line that is kept, else what is counted. If one hit of a line is kept, all are, because other
        matches in the same line distinguish entries.
        """
        owners = self._enough.get(kind)
        if owners is not None:
            self._count(owners)
            return owners
        form, found = kind.form, [self._owned(number, match) for number, match, _ in matches]
        mention = form not in ("", QUOTED)
        owners = [] if mention else [(owner, self._file.path) for owner in {pattern.owner for pattern in found}]
        self._count(owners)
        strengths = sorted({(pattern.owner, form if mention else pattern.strength) for pattern in found})
        few = [self._result.count(owner, self._file, kind.rank, strength) for owner, strength in strengths]
        if any(few):
            self._keep(lines, start, end, matches, form)
            return None
        if len(self._enough) < MAX_COMBINATIONS:
            self._enough[kind] = owners
        return owners

    def _owned(self, number: int, match: re.Match[str]) -> Pattern:
        """Return the pattern that was found; for an error code, one owned by the code."""
        pattern = self._matcher.patterns[number]
        if pattern.role != "code":
            return pattern
        code = code_of(match)
        owned = self._of_code.get((number, code))
        if owned is None:
            owned = self._of_code[number, code] = replace(pattern, owner=code)
        return owned

    def _count(self, owners: _Counted) -> None:
        counts = self._result.counts
        for key in owners:
            counts[key] = counts.get(key, 0) + 1

    def _keep(self, lines: LineWindow, start: int, end: int, matches: Sequence[_Match], form: str) -> None:
        self._found = True
        head = lines.text(start, end)
        line = replace(parse(lines.number(start), head), time=lines.time_at(head, start))
        before = [neighbour[:MAX_NEIGHBOUR] for neighbour in _before(lines, start)]
        after = [neighbour[:MAX_NEIGHBOUR] for neighbour in islice(lines.following(end), CONTEXT)]
        outlived = self._outlived(lines, end)
        for number, match, text in matches:
            groups = {key: value for key, value in match.groupdict().items() if value is not None}
            context = (*before, text, *after)
            pattern, own = self._owned(number, match), replace(line, text=text)
            self._result.keep(Hit(pattern, self._file, own, groups, context, form, outlived))

    def _outlived(self, lines: LineWindow, end: int) -> str:
        """Return `steps` if the run continues after a line of a file of which only the end is examined."""
        if self._file.size <= TAIL or self._file.pid is not None or self._looks <= 0:
            return ""
        self._looks -= 1
        return "steps" if steps_follow(lines.ahead(end, LOOK_AHEAD)) else ""

    def _look_for_error(self, lines: LineWindow, start: int, end: int) -> None:
        text = lines.text(start, end)
        if not is_error(text) or is_mention(text):
            return
        self._found = True
        new, more = self._notes.wants_error(text)
        if not more:
            self._known.update(self._any_error)
        if not new:
            return
        number, stream = lines.number(start), split_stream(text)[0]
        if number <= self._traceback_ends.get(stream, 0):
            return
        line = replace(parse(number, text), time=lines.time_at(text, start))
        before = [*_before(lines, start, BEFORE_ERROR), text]
        frames = _traceback(lines, text, end) if TRACEBACK in text else []
        if frames:
            line = replace(line, number=line.number + len(frames), text=frames[-1])
            self._traceback_ends[stream] = line.number
        self._notes.add_error(line)
        after = islice(lines.following(end), len(frames), len(frames) + CONTEXT)
        error = FirstError(self._file, line, tuple([*before, *frames][-BEFORE_ERROR - 1 : -1]), tuple(trimmed(after)))
        self._result.keep_error(error)


def _neighbours(parts: Iterator[Block]) -> Iterator[tuple[bytes, Block, bytes]]:
    """Yield each block with the end of the previous one and the next one; what was read precedes an error."""
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


def _before(lines: LineWindow, start: int, number: int = CONTEXT) -> tuple[str, ...]:
    return tuple(islice(lines.preceding(start), number))[::-1]


def _has_frame(lines: LineWindow, start: int, frame: str) -> bool:
    """Return whether a line of the Python traceback that ends with a line matches an expression."""
    for line in islice(lines.preceding(start), MAX_TRACEBACK):
        message = split_stream(line)[1]
        if TRACEBACK in message or not message.startswith((" ", "\t")):
            return False
        if re.search(frame, message):
            return True
    return False


def _traceback(lines: LineWindow, text: str, end: int) -> list[str]:
    """Return the lines of a Python traceback after its header, up to the one that names the exception, or none."""
    stream = split_stream(text)[0]
    frames: list[str] = []
    for line in islice(lines.following(end), MAX_TRACEBACK):
        other_stream, message = split_stream(line)
        frames.append(line)
        if _FRAME.match(message):
            return _up_to_exception(lines, end)
        if other_stream == stream and message.strip() and not message.startswith((" ", "\t")):
            return frames
    return []


def _up_to_exception(lines: LineWindow, end: int) -> list[str]:
    """Return the lines of a traceback whose indentation was lost, up to the one that names the exception, or none."""
    frames: list[str] = []
    for line in islice(lines.following(end), MAX_TRACEBACK):
        frames.append(line)
        if TRACEBACK in line:
            break
        if _EXCEPTION.search(line):
            return frames
    return []
