"""A block of a log with its neighbors: the line at a position, its number, and the lines around it.

Other lines complete what one line says: the rest of a signature that spans lines, or the time, which a traceback does
not have itself. They may be in the block before or after, and lines of other ranks may be between them.
"""

from __future__ import annotations

from itertools import islice
from typing import Callable, Iterator, Optional

from envtune.diagnose.logs.lines import LINE_LIMIT, pid_of, rank_of, split_stream, time_of

AHEAD = 256 << 10  # bytes searched for the lines of a window
MAX_FOLLOWING = 12  # lines over which a multi-line signature may continue
MAX_INTERLEAVED = 1000  # lines of all processes searched for those of one
BACK = 64 << 10  # bytes searched for the time of a line without one
PART = 4096  # bytes searched for a signature at once
OVERLAP = 2048  # bytes; a signature is shorter


class LineWindow:
    """`block` contains whole lines; `before` is the end of the block before, `after` the next block, or empty."""

    def __init__(self, before: bytes, block: bytes, after: bytes, ends: Callable[[], int]) -> None:
        """Take whole lines; `ends` returns the number of newlines before the block."""
        self.block = block
        self._before = before
        self._after = after
        self._ends = ends
        self._timed: tuple[int, Optional[float]] = (0, None)  # position up to which a time was searched, and the time

    def number(self, at: int) -> int:
        """Return the number, from 1, of the line at a position."""
        return self._ends() + self.block.count(b"\n", 0, at) + 1

    def text(self, start: int, end: int) -> str:
        """Return the text of a line; only the beginning of a very long one."""
        return _text(self.block[start : min(end, start + 4 * LINE_LIMIT)])

    def parts(self, start: int, end: int) -> list[str]:
        """Return a line in overlapping parts of PART bytes, so that everything is found in a line of megabytes, too.

        Matching a signature may be quadratic in the length of the text; matching a line in parts is linear.
        """
        if end - start <= PART:
            return [self.block[start:end].decode("utf-8", "replace")]
        places = range(start, end - OVERLAP, PART - OVERLAP)
        return [self.block[at : min(end, at + PART)].decode("utf-8", "replace") for at in places]

    def ahead(self, end: int, size: int) -> bytes:
        """Return whole lines after the one that ends there, about `size` bytes of them."""
        text = self.block[end + 1 : end + 1 + size]
        text += self._after[: size - len(text)] if len(text) < size else b""
        return text[: text.rfind(b"\n") + 1] if len(text) == size else text

    def following(self, end: int) -> Iterator[str]:
        """Yield the lines after the one that ends there, at most AHEAD bytes."""
        left = AHEAD
        for block, at in ((self.block, end + 1), (self._after, 0)):
            while left > 0 and at < len(block):
                stop = block.find(b"\n", at)
                stop = len(block) if stop < 0 else stop
                left -= stop + 1 - at
                yield from map(_text, block[at : min(stop, at + AHEAD)].splitlines() or [b""])
                at = stop + 1

    def preceding(self, start: int, since: int = 0) -> Iterator[str]:
        """Yield the lines before the one that starts there, the nearest first, at most BACK bytes.

        With `since`: none before that position in the block.
        """
        left = BACK
        for block, end in ((self.block, start - 1), (self._before, len(self._before) - 1)):
            if since and block is not self.block:
                return
            while left > 0 and end > since:
                at = block.rfind(b"\n", 0, end) + 1
                left -= end + 1 - at
                yield from map(_text, reversed(block[max(at, end - BACK) : end].splitlines()))
                end = at - 1

    def windows(self, text: str, end: int, interleaved: bool = True) -> Iterator[str]:
        """Yield the line with the following ones of the same process, for signatures that span lines.

        First all lines, then (`interleaved`) without those of other processes, by prefix, rank or pid.
        """
        stream, message = split_stream(text)
        if not stream:
            yield "\n".join([message, *(line[:OVERLAP] for line in islice(self.following(end), MAX_FOLLOWING))])
        if not interleaved:
            return
        kept = []
        for line in islice(self.following(end), MAX_INTERLEAVED):
            other_stream, other_message = split_stream(line)
            if other_stream == stream and (stream or _same_process(text, line)):
                kept.append(other_message[:OVERLAP])
                if len(kept) == MAX_FOLLOWING:
                    break
        yield "\n".join([message, *kept])

    def time_at(self, text: str, start: int, since: int = 0) -> Optional[float]:
        """Return the time in seconds; a line without one gets that of the nearest line before it, down to `since`."""
        time = time_of(text)
        if time is None:
            near = since <= self._timed[0] <= start <= self._timed[0] + BACK
            known, known_time = self._timed if near else (since, None)
            times = (time_of(line) for line in self.preceding(start, known))
            time = next((found for found in times if found is not None), known_time)
        self._timed = (start, time)
        return time


def _text(raw: bytes) -> str:
    return raw[: 4 * LINE_LIMIT].decode("utf-8", "replace")[:LINE_LIMIT]


def _same_process(first: str, other: str) -> bool:
    """Return whether the other line may belong to the process of the first: nothing in it says otherwise."""
    pid, rank = pid_of(other), rank_of(other)
    return (pid is None or pid == pid_of(first)) and (rank is None or rank == rank_of(first))
