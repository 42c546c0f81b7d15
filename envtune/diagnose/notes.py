"""Collect what a log says about processes, for envtune/ranks: a bounded number of lines of each kind.

Lines of the table in ranks/lines.py are kept once for each process that prints them, errors once for each template.
From the beginning and the end of a file, the last line of each process is kept, and those that report a training step.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Iterable, Iterator, Mapping, Optional

from envtune.diagnose.logs.files import LogFile
from envtune.diagnose.logs.lines import Line, time_of
from envtune.ranks.identity import Identity, identity_of
from envtune.ranks.lines import ROWS
from envtune.ranks.records import Note, Source

MAX_ROW = 3000  # lines of one row that are examined per file
MAX_ERRORS, MAX_ERRORS_OF_RANK = 200, 40  # error lines of a file that are examined, and more for each rank
MAX_OLD = 100  # consecutive lines without new content after which no more of them are examined
MAX_LIKE_IT = {"self": 1, "world": 1, "start": 64, "notify.group": 16}  # per process and content; 4 of other kinds
MAX_CHARACTERS = 24 << 20  # of all notes
END = 32 << 10  # bytes of the head and the tail of a file
PLOG_END = 4 << 10  # of a file of one process, whose ends matter only for their times
NOTE = 400  # bytes of a note next to its text
MAX_TEXT = 2000  # characters kept of a line
_STEP = re.compile(rb"(?i)step|iter|\d/\d")
_TOO_LONG = re.compile(r"-?\d{19,}")  # not an identifier; Python refuses to convert thousands of digits
_DIGITS = str.maketrans("0123456789", "0000000000")
_NUMBER = re.compile(r"[a-f]{0,16}[0-9][0-9a-f]*")  # decimal or hexadecimal


@dataclass
class Notes:
    """The notes of all files."""

    notes: list[Note] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    _room: int = field(default_factory=lambda: MAX_CHARACTERS)

    def add(self, note: Note) -> None:
        """Keep a note if there is room."""
        self._room -= len(note.text) + NOTE
        if self._room > 0:
            self.notes.append(note)


class FileNotes:
    """The notes of one file."""

    def __init__(self, file: LogFile, result: Notes) -> None:
        self._file = file
        self._result = result
        self._looked: dict[int, tuple[int, int]] = {}  # row -> lines seen, and lines since the last one kept
        self._like: dict[tuple[int, Identity, tuple[object, ...]], int] = {}
        self._errors: set[tuple[Identity, str]] = set()
        self._error_templates: set[tuple[Identity, str]] = set()  # regardless of the length of numbers
        self._old_errors = self._error_lines = self._seen = 0
        self._ranks: set[int] = set()
        self._latest = Identity()  # that of the last error line that identifies its process
        self._head = b""
        self._tail = b""
        self._ends = PLOG_END if file.pid is not None else END

    def wants(self, row: int, text: str, fields: Mapping[str, Optional[str]]) -> tuple[bool, bool]:
        """Return whether a line of a row is to be kept, and whether more of them are worth examining."""
        if any(value is not None and _TOO_LONG.fullmatch(value) for value in fields.values()):
            return False, True
        key = row, identity_of(text), tuple(fields.values()) if fields else ()
        number = self._like[key] = self._like.get(key, 0) + 1
        kept = number <= MAX_LIKE_IT.get(ROWS[row].kind, 4)
        lines, old = self._looked.get(row, (0, 0))
        old = 0 if kept else old + 1
        self._looked[row] = lines + 1, old
        return kept, lines < MAX_ROW and old < MAX_OLD

    def add(self, row: int, line: Line, text: str, fields: Mapping[str, Optional[str]]) -> None:
        """Keep a line of a row."""
        given = {name: value for name, value in fields.items() if value is not None}
        self._result.add(Note(ROWS[row].kind, self._file.path, line.number, line.time, text[:MAX_TEXT], given))

    def wants_error(self, text: str) -> tuple[bool, bool]:
        """Return whether an error line is to be kept, and whether more of them are worth examining."""
        own = identity_of(text)
        rank = own.label if own.rank is None else own.rank
        if rank is not None:
            self._ranks.add(rank)
        self._error_lines += 1
        if not own.empty:
            self._latest = own
        key = self._latest if own.empty else own, own.host + text[:200].translate(_DIGITS)
        new = key not in self._errors
        self._errors.add(key)
        self._error_templates.add((own, _NUMBER.sub("0", text[:400])[:120]))
        self._old_errors = 0 if new else self._old_errors + 1
        most = MAX_ERRORS + MAX_ERRORS_OF_RANK * len(self._ranks)
        return new, self._error_lines < most and self._old_errors < MAX_OLD

    def knows_error(self, text: str) -> bool:
        """Return whether an error line differs from an earlier one only in numbers and addresses."""
        return (identity_of(text), _NUMBER.sub("0", text[:400])[:120]) in self._error_templates

    def add_error(self, line: Line) -> None:
        """Keep an error line."""
        self._result.add(Note("error", self._file.path, line.number, line.time, line.text[:MAX_TEXT]))

    # ---------------------------------------------------------------- the two ends

    def block(self, text: bytes) -> None:
        """Process the next block."""
        if len(self._head) < self._ends:
            self._head += text[: self._ends - len(self._head)]
        self._tail = text[-self._ends :] if len(text) >= self._ends else (self._tail + text)[-self._ends :]

    def end(self) -> None:
        """Note the two ends, after the last block."""
        head, tail = self._head.splitlines(), self._tail.splitlines()
        first = next(_times(head), None)
        last = next(_times(reversed(tail)), None)
        self._result.sources.append(Source(self._file.path, self._file.host, first, last))
        if self._file.pid is None:
            for lines in (head, tail):
                self._note_steps(lines)

    def _note_steps(self, lines: Iterable[bytes]) -> None:
        """Note the last line of each process, and the lines about steps."""
        last: dict[Identity, Note] = {}
        for raw in lines:
            text = raw[:MAX_TEXT].decode("utf-8", "replace")
            time, own = time_of(text), identity_of(text)
            self._seen += 1
            note = Note("seen", self._file.path, -self._seen, time, text)
            if time is not None and _STEP.search(raw):
                self._result.add(note)
            elif time is not None or not (own.empty or own in last):
                last[own] = note
        for note in last.values():
            self._result.add(note)


def _times(lines: Iterable[bytes]) -> Iterator[float]:
    for raw in lines:
        time = time_of(raw[:MAX_TEXT].decode("utf-8", "replace"))
        if time is not None:
            yield time
