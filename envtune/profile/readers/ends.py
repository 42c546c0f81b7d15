"""Tables that end in the middle of a row: of a file that was cut off, only the whole rows count."""

from __future__ import annotations

import io
import os
from typing import IO, Any, Optional, cast

from envtune.profile.readers.tables import rows_of
from envtune.records import NamedTuple

_BLOCK = 1 << 20
_TAIL = 1 << 18  # bytes in which the last two rows end


class Cut(NamedTuple):
    """Where the last whole row of a table ends."""

    size: int  # bytes up to there
    lines: int


def cut_row(stream: IO[bytes], columns: int) -> Optional[Cut]:
    """Return where the whole rows end if the last row was cut off, None if it is whole.

    Profilers end every row with a line end, so a last row without one that has fewer cells than the row before it and
    than the header was cut off. The place in the stream is kept.
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
    """Return how many cells a whole row has."""
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
    """A stream up to a place in it."""

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
    """Return the stream from its place up to `end`, at most `end` bytes from its beginning."""
    return cast("IO[bytes]", io.BufferedReader(_Until(stream, end), _BLOCK))
