"""Nothing known was found: which line of the log looks like the first error, and what stood around it.

The scan sees only lines that a signature could match. Here every line counts, of the beginning and the end of each
file: a job that fails says so in its first steps or in its last lines, and reading a log of gigabytes twice for a line
that nobody knows is not worth it. Standard input cannot be read again; where it is short it was kept (`kept_input`).
"""

from __future__ import annotations

import io
import os
import re
from dataclasses import replace
from typing import Any, BinaryIO, Iterable, Iterator, NamedTuple, Optional

from envtune.diagnose.lines import Line, clean, parse
from envtune.diagnose.sources import LogFile, blocks

REACH = 8 << 20  # bytes of the beginning and of the end of a file that are looked at
TOTAL = 64 << 20  # bytes of all files together
BEFORE, AFTER, TRACE = 6, 3, 80  # lines kept around the error; lines a traceback may take
_WORDS = tuple(
    word.encode("ascii")
    for word in (
        *("rror", "ERROR", "Traceback (most", "xception", "FATAL", "CRITICAL", "fatal:", "Segmentation fault"),
        *("core dumped", "Killed", "terminate called", "KeyboardInterrupt"),
    )
)
_NAMED = re.compile(r"(?:^|\s)(?:[\w.]+\.)?[A-Za-z]\w*(?:Error|Exception|Interrupt|Exit)\b\s*(?::\s|$)")
_ERROR = re.compile(
    _NAMED.pattern
    + r"|\[ERROR\]|(?:^|[\s|(])(?:ERROR|FATAL|CRITICAL)\b|\bERR\d{5}\b|(?:^|\s)(?:fatal )?error:\s|^fatal:\s"
    r"|Traceback \(most recent|Segmentation fault|core dumped|(?:^|\s)Killed\s*$|terminate called"
)


class FirstError(NamedTuple):
    """The line and its neighbours."""

    file: LogFile
    line: Line
    before: tuple[str, ...]
    after: tuple[str, ...]


def first_error(files: Iterable[LogFile]) -> Optional[FirstError]:
    """The first line that looks like an error, of the first file that has one; None where none does."""
    left = TOTAL
    for file in files:
        if left <= 0 or (file.path == "-" and file.content is None):
            continue
        left -= REACH
        try:
            found = _of_file(file)
        except (OSError, EOFError, ValueError):  # said already when it was scanned
            found = None
        if found is not None:
            return found
    return None


def kept_input(stream: BinaryIO) -> tuple[LogFile, Optional[BinaryIO]]:
    """Standard input as a log that can be read again, where it is short; else a stream that begins where it began."""
    head = stream.read(REACH)
    if len(head) < REACH:
        return LogFile("-", content=head), None
    return LogFile("-"), io.BufferedReader(_Joined(head, stream), 1 << 20)


class _Joined(io.RawIOBase):
    """What was read already, then the rest."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head, self._rest = memoryview(head), rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._head[: len(buffer)] if self._head else self._rest.read(len(buffer))
        self._head = self._head[len(piece) :]
        buffer[: len(piece)] = piece
        return len(piece)


def _of_file(file: LogFile) -> Optional[FirstError]:
    number = seen = 0
    last: list[str] = []
    for block in blocks(file):
        found = _in_block(file, block, number, last)
        if found is not None:
            return found
        last = [clean(raw) for raw in block[-8192:].split(b"\n")[-BEFORE - 1 : -1]]
        number += block.count(b"\n")
        seen += len(block)
        if seen >= REACH:
            return _in_tail(file, seen)
    return None


def _in_tail(file: LogFile, seen: int) -> Optional[FirstError]:
    """The same for the last piece of a plain file."""
    if file.content is not None or not os.path.isfile(file.path):
        return None
    with open(file.path, "rb") as raw:
        if raw.read(2) == b"\x1f\x8b":
            return None
        start = raw.seek(max(seen, os.fstat(raw.fileno()).st_size - REACH))
        raw.readline()
        rest = raw.read(2 * REACH)  # it may have grown
        found = _in_block(file, rest, 0, [])
        if found is None:
            return None
        raw.seek(0)
        above = _newlines(raw, start) + 1
        return found._replace(line=replace(found.line, number=found.line.number + above))


def _newlines(raw: BinaryIO, end: int) -> int:
    count = 0
    while end > 0:
        piece = raw.read(min(1 << 20, end))
        if not piece:
            break
        count, end = count + piece.count(b"\n"), end - len(piece)
    return count


def _in_block(file: LogFile, block: bytes, number: int, last: list[str]) -> Optional[FirstError]:
    if not any(word in block for word in _WORDS):
        return None
    rows = block.split(b"\n")
    for at, row in enumerate(rows):
        if any(word in row for word in _WORDS) and _ERROR.search(clean(row)):
            return _around(file, rows, _end_of_trace(rows, at), number, last)
    return None


def _end_of_trace(rows: list[bytes], at: int) -> int:
    """A traceback says what went wrong in its last line."""
    if b"Traceback (most" not in rows[at]:
        return at
    following = range(at + 1, min(at + TRACE, len(rows)))
    return next((n for n in following if _NAMED.search(clean(rows[n]))), at)


def _around(file: LogFile, rows: list[bytes], at: int, number: int, last: list[str]) -> FirstError:
    before = [*last, *map(clean, rows[max(0, at - BEFORE) : at])][-BEFORE:]
    after = tuple(_trimmed(map(clean, rows[at + 1 : at + 1 + AFTER])))
    return FirstError(file, parse(number + at + 1, clean(rows[at])), tuple(before), after)


def _trimmed(lines: Iterable[str]) -> Iterator[str]:
    """The lines without empty ones at the end."""
    found = list(lines)
    while found and not found[-1].strip():
        found.pop()
    yield from found
