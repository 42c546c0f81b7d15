"""Read a log as blocks of whole, clean lines, in bounded memory: gzip unpacked, UTF-16 recoded."""

from __future__ import annotations

import codecs
import io
import sys
import zlib
from typing import BinaryIO, Iterator, NamedTuple, Optional

from envtune.diagnose.logs.files import BIG, LogFile
from envtune.diagnose.logs.lines import without_noise
from envtune.host.input import open_input

BLOCK = 1 << 17  # bytes read at once: what fits in a processor's cache is looked through faster
PIECE = 1 << 12  # bytes read for the rest of a line
SAMPLE = 1024  # bytes by which UTF-16 is recognised
LONGEST_LINE = 4 << 20  # a "line" longer than this is cut: a binary file has no lines
UNPACKED, RATIO = 64 << 20, 100  # a gzip file may give so many bytes, and so many for each of its own
_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = 31  # zlib: a gzip head and its check sum


class DamagedError(OSError):
    """The input ends or breaks in the middle; what comes before was yielded."""


class Block(NamedTuple):
    """Whole, clean lines, and how many bytes of the input they are."""

    text: bytes
    size: int


def blocks(file: LogFile) -> Iterator[Block]:
    """Yield the content in blocks that end with a line end (the last one may not).

    Raises OSError when it cannot be read, and DamagedError after the last block when what follows is broken. A line
    that is too long is split by a carriage return, which does not count as a line end.
    """
    if file.content is not None:
        yield from _clean(io.BytesIO(file.content))
    elif file.path == "-":
        yield from _clean(sys.stdin.buffer)
    else:
        with open_input(file.path) as raw:
            if isinstance(raw, io.FileIO) and _is_plain(raw):
                yield from map(_block, _lines_of_plain(raw))
            else:
                yield from _clean(raw)


class LineEnds:
    """The number of line ends before a block: counted while reading, or in a big plain file only when needed.

    Counting them costs as much as looking for all signatures.
    """

    def __init__(self, file: LogFile) -> None:
        self._path = ""
        self._place = self._counted = self._count = 0
        if file.content is None and file.path != "-" and file.size >= BIG:
            with open_input(file.path) as raw:
                self._path = file.path if isinstance(raw, io.FileIO) and _is_plain(raw) else ""

    def skip(self, block: Block) -> None:
        """Go on to the next block."""
        self._place += block.size
        if not self._path:
            self._count += block.text.count(b"\n")

    @property
    def lines(self) -> Optional[int]:
        """The line ends up to here, None where they are not counted."""
        return None if self._path else self._count

    def before(self) -> int:
        """Return the line ends before this block; raises OSError."""
        if self._path and self._counted < self._place:
            with open_input(self._path) as raw:
                raw.seek(self._counted)
                while self._counted < self._place:
                    piece = raw.read(min(BLOCK, self._place - self._counted)) or b""
                    if not piece:
                        break  # it was truncated meanwhile
                    self._counted += len(piece)
                    self._count += piece.count(b"\n")
        return self._count


def _block(raw: bytes) -> Block:
    return Block(without_noise(raw), len(raw))


def _clean(raw: BinaryIO | io.RawIOBase) -> Iterator[Block]:
    return map(_block, _whole_lines(_decoded(_unpacked(raw))))


def _is_plain(raw: io.FileIO) -> bool:
    """Return whether it is a seekable file that is neither packed nor UTF-16."""
    if not raw.seekable():
        return False
    head = raw.read(SAMPLE)
    raw.seek(0)
    return not head.startswith(_GZIP) and _utf16(head) is None


def _read(raw: BinaryIO | io.RawIOBase) -> bytes:
    """Read what comes next; of a pipe as much as was written, empty only at the end."""
    return raw.read(BLOCK) or b""


class _Packed:
    """A gzip stream of which `size` bytes were read, and how much it may still unpack to."""

    def __init__(self, raw: BinaryIO | io.RawIOBase, size: int) -> None:
        self._raw = raw
        self._room = UNPACKED + RATIO * size

    def read(self) -> bytes:
        chunk = _read(self._raw)
        self._room += RATIO * len(chunk)
        return chunk

    def allowed(self, unpacked: bytes) -> bytes:
        """Return what was unpacked; raises DamagedError where it is too much for what was read."""
        self._room -= len(unpacked)
        if self._room < 0:
            raise DamagedError(f"the gzip file unpacks to more than {RATIO} times its size, read up to there")
        return unpacked


def _unpacked(raw: BinaryIO | io.RawIOBase) -> Iterator[bytes]:
    """Yield the bytes of a stream, unpacked if it is gzip (one member after the other).

    Raises DamagedError after UNPACKED bytes and RATIO times what was read: gzip can give a thousand times its size.
    """
    chunk = _read(raw)
    if not chunk.startswith(_GZIP):
        while chunk:
            yield chunk
            chunk = _read(raw)
        return
    member = zlib.decompressobj(_GZIP_WINDOW)
    packed = _Packed(raw, len(chunk))
    while chunk:
        try:
            yield packed.allowed(member.decompress(chunk, BLOCK))
        except zlib.error as error:
            raise DamagedError(f"damaged gzip, read up to there ({error})") from error
        if member.eof:  # another member may follow, padded with zeros
            chunk = member.unused_data.lstrip(b"\0") or packed.read().lstrip(b"\0")
            member = zlib.decompressobj(_GZIP_WINDOW) if chunk else member
        else:
            chunk = member.unconsumed_tail or packed.read()
    while not member.eof:
        rest = member.decompress(b"", BLOCK)
        if not rest:
            raise DamagedError("the gzip file is cut short, read up to there")
        yield rest


def _decoded(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the stream in an ASCII-compatible encoding: UTF-16 (Windows terminals) is recoded."""
    first = next(chunks, b"")
    encoding = _utf16(first)
    if encoding is None:
        yield first
        yield from chunks
        return
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    yield decoder.decode(first).encode("utf-8", "replace")
    for chunk in chunks:
        yield decoder.decode(chunk).encode("utf-8", "replace")


def _utf16(head: bytes) -> Optional[str]:
    """Return the encoding by the byte order mark, or by zeros in every other byte, which no other text has."""
    if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "utf-16"
    sample = head[:SAMPLE]
    half = len(sample) // 2
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    if half >= 8 and max(even, odd) > 0.4 * half and min(even, odd) <= 0.01 * half:
        return "utf-16-le" if odd > even else "utf-16-be"
    return None


def _lines_of_plain(raw: io.FileIO) -> Iterator[bytes]:
    """Yield the same as `_whole_lines` at three times the speed: excess bytes are not copied but read again."""
    while True:
        block = raw.read(BLOCK)
        if not block:
            return
        if not block.endswith(b"\n"):
            block += _rest_of_line(raw, LONGEST_LINE - len(block))
        yield block


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
    rest = b""
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
            yield rest + chunk[:end] if rest else chunk[:end]
            rest = chunk[end:]
        elif len(rest) + len(chunk) > LONGEST_LINE:
            yield rest + chunk + b"\r"
            rest = b""
        else:
            rest += chunk
    if rest:
        yield rest
    if damage is not None:
        raise damage
