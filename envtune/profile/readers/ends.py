"""Tables that end in the middle of a row: of a truncated file, only the complete rows count."""

from __future__ import annotations

import io
import os
from typing import IO, Any, Optional, cast

from envtune.profile.readers.tables import rows_of
from envtune.records import NamedTuple

_BLOCK = 1 << 20
_TAIL = 1 << 18  # bytes that contain the ends of the last two rows


class Cut(NamedTuple):
    """The end of the last complete row of a table."""

    size: int  # bytes up to there
    lines: int


def cut_row(stream: IO[bytes], columns: int) -> Optional[Cut]:
    """Return where the complete rows end if the last row was truncated, None if it is complete.

    Profilers end every row with a newline, so a last row without one that has fewer cells than the row before it and
    than the header was truncated. The position in the stream is restored.
    """
    place = stream.tell()
    try:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(size - _TAIL, 0))
        tail = stream.read(_TAIL)
        before, mark, last = tail.rpartition(b"\n")
        if not mark or not last.strip() or _cells(last) >= _whole(before, columns):
            return None
        end = size - len(last)
        return Cut(end, _lines(stream, end))
    finally:
        stream.seek(place)


def _whole(before: bytes, columns: int) -> int:
    """Return how many cells a complete row has."""
    row = before.rstrip().rpartition(b"\n")[2]
    return min(columns, _cells(row)) if row else columns


def _cells(line: bytes) -> int:
    return len(next(rows_of([line]), []))


def _lines(stream: IO[bytes], end: int) -> int:
    stream.seek(0)
    count = 0
    while end > 0:
        block = stream.read(min(_BLOCK, end))
        if not block:
            break
        end -= len(block)
        count += block.count(b"\n")
    return count


class _Until(io.RawIOBase):
    """A stream that ends at a given position."""

    def __init__(self, stream: IO[bytes], end: int) -> None:
        super().__init__()
        self._stream, self._left = stream, max(end - stream.tell(), 0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(min(len(buffer), self._left))
        buffer[: len(data)] = data
        self._left -= len(data)
        return len(data)


def until(stream: IO[bytes], end: int) -> IO[bytes]:
    """Return the stream from its position up to `end`, counted in bytes from its beginning."""
    return cast("IO[bytes]", io.BufferedReader(_Until(stream, end), _BLOCK))
