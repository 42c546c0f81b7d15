"""Read a log as blocks of whole, clean lines, in bounded memory: unpacked, UTF-16 recoded, holes left out."""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
from typing import BinaryIO, Iterator, NamedTuple, Optional

from envtune.diagnose.logs.files import BIG, LogFile
from envtune.diagnose.logs.lines import without_noise
from envtune.diagnose.logs.packed import BLOCK, DamagedError, is_packed, unpacked
from envtune.host.input import open_input
from envtune.messages import Message

PIECE = 1 << 12  # bytes read for the rest of a line
SAMPLE = 1024  # bytes by which UTF-16, and what is no text, is recognized
MOST_CONTROLS = 0.05  # of the bytes of a text
_CONTROLS = bytes({*range(1, 32), 127} - set(b"\a\b\t\n\v\f\r\x1b"))
LONGEST_LINE = 4 << 20  # a "line" longer than this is cut: a binary file has no lines


class Block(NamedTuple):
    """Whole, clean lines, and how many bytes of the input they cover."""

    text: bytes
    size: int


def blocks(file: LogFile) -> Iterator[Block]:
    """Yield the content in blocks that end with a newline (the last one may not).

    Raises OSError if it cannot be read, and DamagedError after the last block if the rest is damaged. A line that is
    too long is split by a carriage return, which does not count as a line ending.
    """
    if file.content is not None:
        yield from _clean(io.BytesIO(file.content))
    elif file.path == "-":
        yield from _clean(_EndsOnce(sys.stdin.buffer))
    else:
        with open_input(file.path) as raw:
            if isinstance(raw, io.FileIO) and _is_plain(raw):
                _require_text(raw.read(SAMPLE))
                raw.seek(0)
                yield from _lines_of_plain(raw)
            else:
                yield from _clean(raw)


class _EndsOnce(io.RawIOBase):
    """A stream that is not read again after end of file: a terminal would require a second Ctrl-D."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._ended = stream, False

    def read(self, size: int = -1) -> bytes:
        """Return `size` bytes, fewer only at the end, like a buffered stream."""
        data = b"" if self._ended else self._stream.read(size) or b""
        self._ended = len(data) < size
        return data


class LineEnds:
    """The number of newlines before a block: counted while reading, or in a big plain file only when needed.

    Counting them costs as much as looking for all signatures.
    """

    def __init__(self, file: LogFile) -> None:
        self._path = ""
        self._place = self._counted = self._count = 0
        if file.content is None and file.path != "-" and file.size >= BIG:
            with open_input(file.path) as raw:
                self._path = file.path if isinstance(raw, io.FileIO) and _is_plain(raw) else ""

    def skip(self, block: Block) -> None:
        """Advance to the next block."""
        self._place += block.size
        if not self._path:
            self._count += block.text.count(b"\n")

    @property
    def lines(self) -> Optional[int]:
        """The newlines up to here, None if they are not counted."""
        return None if self._path else self._count

    def before(self) -> int:
        """Return the number of newlines before this block; raises OSError."""
        if self._path and self._counted < self._place:
            with open_input(self._path) as raw:
                raw.seek(self._counted)
                while self._counted < self._place:
                    piece = raw.read(min(BLOCK, self._place - self._counted)) or b""
                    if not piece:
                        break  # truncated meanwhile
                    self._counted += len(piece) + _skip_hole(raw, piece)
                    self._count += piece.count(b"\n")
        return self._count


def _block(raw: bytes) -> Block:
    return Block(without_noise(raw), len(raw))


def _clean(raw: BinaryIO | io.RawIOBase) -> Iterator[Block]:
    return map(_block, _whole_lines(_decoded(unpacked(raw))))


def _is_plain(raw: io.FileIO) -> bool:
    """Return whether it is a seekable file that is neither packed nor UTF-16."""
    if not raw.seekable():
        return False
    head = raw.read(SAMPLE)
    raw.seek(0)
    return not is_packed(head) and _utf16(head) is None


def _decoded(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the stream in an ASCII-compatible encoding: UTF-16 (Windows terminals) is converted."""
    first = next(chunks, b"")
    encoding = _utf16(first)
    if encoding is None:
        _require_text(first)
        yield first
        yield from chunks
        return
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    yield decoder.decode(first).encode("utf-8", "replace")
    for chunk in chunks:
        yield decoder.decode(chunk).encode("utf-8", "replace")


def _require_text(head: bytes) -> None:
    """Raise DamagedError where a file begins like no text.

    In executables, pictures and models every tenth byte, or more, is a control character that no terminal gets. Zeros
    are holes of a log that was emptied while a job wrote.
    """
    sample = head[:SAMPLE].replace(b"\0", b"")
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    if controls > MOST_CONTROLS * len(sample):
        raise DamagedError(Message("not a text file"))


def _utf16(head: bytes) -> Optional[str]:
    """Detect the encoding by the byte order mark, or by zeros in every other byte, which no other text has."""
    if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "utf-16"
    sample = head[:SAMPLE]
    half = len(sample) // 2
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    if half >= 8 and max(even, odd) > 0.4 * half and min(even, odd) <= 0.01 * half:
        return "utf-16-le" if odd > even else "utf-16-be"
    return None


def _skip_hole(raw: io.RawIOBase, piece: bytes) -> int:
    """Seek to the next data after a piece that ends in zeros; return how many bytes were skipped.

    A log that was truncated while a job kept writing to it begins with a hole as large as its former content.
    """
    if not piece.endswith(b"\0"):
        return 0
    place = raw.tell()
    try:
        return raw.seek(place, os.SEEK_DATA) - place
    except OSError as error:  # ENXIO: a hole up to the end; otherwise the file system does not support it
        return raw.seek(0, io.SEEK_END if error.errno == errno.ENXIO else io.SEEK_CUR) - place


def _lines_of_plain(raw: io.FileIO) -> Iterator[Block]:
    """Yield the same as `_whole_lines` three times as fast: excess bytes are not copied but read again."""
    place = raw.tell()
    while True:
        block = raw.read(BLOCK)
        if not block:
            return
        if _skip_hole(raw, block):
            block += b"\r"
        elif not block.endswith(b"\n"):
            block += _rest_of_line(raw, LONGEST_LINE - len(block))
        size, place = raw.tell() - place, raw.tell()
        yield Block(without_noise(block), size)


def _rest_of_line(raw: io.FileIO, most: int) -> bytes:
    pieces = []
    size = PIECE
    while most > 0:
        piece = raw.read(size)
        end = piece.find(b"\n") + 1
        if end:
            raw.seek(end - len(piece), io.SEEK_CUR)
        pieces.append(piece[:end] if end else piece)
        if end or not piece:
            return b"".join(pieces)
        most -= size
        size = min(2 * size, BLOCK)
    return b"".join(pieces) + b"\r"


def _whole_lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    rest: list[bytes] = []  # of the unfinished line
    length = 0
    damage: Optional[DamagedError] = None
    while True:
        try:
            chunk = next(chunks, None)
        except DamagedError as error:
            chunk, damage = None, error
        if chunk is None:
            break
        end = chunk.rfind(b"\n") + 1
        if end:
            yield b"".join((*rest, chunk[:end]))
            rest, length = [chunk[end:]], len(chunk) - end
        elif length + len(chunk) > LONGEST_LINE:
            yield b"".join((*rest, chunk, b"\r"))
            rest, length = [], 0
        else:
            rest.append(chunk)
            length += len(chunk)
    if length:
        yield b"".join(rest)
    if damage is not None:
        raise damage
