"""Decompress a log while it is read: gzip, xz and bzip2, in bounded memory; other archives are only reported."""

from __future__ import annotations

import io
import zlib
from typing import Any, BinaryIO, Callable, Iterator, NamedTuple, Optional, Protocol

from envtune.errors import InputError
from envtune.messages import Message

BLOCK = 1 << 17  # bytes read, and unpacked, at once: what fits in a processor's cache is looked through faster
UNPACKED, RATIO = 1 << 30, 100  # a packed file may give so many bytes, and so many for each of its own
_GZIP_WINDOW = 31  # zlib: a gzip head and its check sum
_XZ_MEMORY = 96 << 20  # bytes; `xz -9` needs 65 MiB to unpack


class DamagedError(InputError):
    """The input ends or breaks in the middle; what comes before was yielded."""


class _Member(Protocol):
    """The decompressor of one member of a file, with the interface of bz2 and lzma."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Gzip:
    """A member of a gzip file, with the interface of bz2 and lzma."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP_WINDOW)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._member.eof

    @property
    def unused_data(self) -> bytes:
        return self._member.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        data = self._member.unconsumed_tail + data
        before = self._member.copy()
        try:
            text = self._member.decompress(data, max_length)
        except zlib.error as error:
            raise _BrokenError(_up_to_the_error(before, data), error) from None
        self.needs_input = len(text) < max_length and not self._member.unconsumed_tail
        return text


class _BrokenError(Exception):
    """A member is damaged: the data before the damage, and the error."""


def _up_to_the_error(member: Any, data: bytes) -> bytes:
    text = b""
    try:
        for at in range(len(data)):
            text += member.decompress(data[at : at + 1])
    except zlib.error:
        pass
    return text


def _bzip2() -> _Member:
    import bz2

    return bz2.BZ2Decompressor()


class _Xz:
    """A stream of an xz file that raises the same errors as the others."""

    def __init__(self) -> None:
        import lzma

        self._stream = lzma.LZMADecompressor(lzma.FORMAT_XZ, _XZ_MEMORY)
        self._error = lzma.LZMAError

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def decompress(self, data: bytes, max_length: int) -> bytes:
        try:
            return self._stream.decompress(data, max_length)
        except self._error as error:
            raise _BrokenError(b"", error) from None


class _Kind(NamedTuple):
    name: str
    magic: bytes
    member: Optional[Callable[[], _Member]] = None  # None: not supported


_KINDS = (
    _Kind("gzip", b"\x1f\x8b", _Gzip),
    _Kind("xz", b"\xfd7zXZ\0", _Xz),
    _Kind("bzip2", b"BZh", _bzip2),
    _Kind("zip", b"PK\x03\x04"),
    _Kind("zstd", b"\x28\xb5\x2f\xfd"),
    _Kind("lz4", b"\x04\x22\x4d\x18"),
    _Kind("7z", b"7z\xbc\xaf\x27\x1c"),
    _Kind("rar", b"Rar!\x1a\x07"),
)


def is_packed(head: bytes) -> bool:
    """Return whether a file that begins with these bytes is compressed."""
    return _kind(head) is not None


def _kind(head: bytes) -> Optional[_Kind]:
    found = next((kind for kind in _KINDS if head.startswith(kind.magic)), None)
    if found is not None and found.name == "bzip2" and not head[3:10].endswith(b"1AY&SY"):
        return None  # a line of text that begins with BZh
    return found


class _Packed:
    """A packed stream, and how much it may still expand to: a gzip file can expand a thousandfold."""

    def __init__(self, raw: BinaryIO | io.RawIOBase, name: str, size: int) -> None:
        self._raw, self._name = raw, name
        self._room = UNPACKED + RATIO * size

    def read(self) -> bytes:
        chunk = self._raw.read(BLOCK) or b""
        self._room += RATIO * len(chunk)
        return chunk

    def allowed(self, unpacked: bytes) -> bytes:
        """Return what was unpacked; raises DamagedError if it is too much for what was read."""
        self._room -= len(unpacked)
        if self._room < 0:
            raise DamagedError(
                Message(
                    "the {kind} file unpacks to more than {ratio} times its size; read up to there",
                    kind=self._name,
                    ratio=RATIO,
                )
            )
        return unpacked


def unpacked(raw: BinaryIO | io.RawIOBase) -> Iterator[bytes]:
    """Yield the bytes of a stream, unpacked if it is compressed (one member after the other).

    Raises DamagedError if it is damaged, truncated or of an unsupported kind, and after UNPACKED bytes and RATIO times
    what was read.
    """
    chunk = raw.read(BLOCK) or b""
    kind = _kind(chunk)
    if kind is None:
        while chunk:
            yield chunk
            chunk = raw.read(BLOCK) or b""
    elif kind.member is None:
        raise DamagedError(
            Message("compressed with {kind}, which envtune does not read: unpack it first", kind=kind.name)
        )
    else:
        yield from _members(_Packed(raw, kind.name, len(chunk)), kind.name, kind.member, chunk)


def _damaged(name: str, error: Exception) -> DamagedError:
    return DamagedError(Message("damaged {kind} file, read up to there ({error})", kind=name, error=str(error)))


def _members(packed: _Packed, name: str, begin: Callable[[], _Member], chunk: bytes) -> Iterator[bytes]:
    while chunk:  # another member may follow, padded with zeros
        member = begin()
        while not member.eof:
            try:
                text = member.decompress(chunk, BLOCK)
            except _BrokenError as error:
                yield packed.allowed(error.args[0])
                raise _damaged(name, error.args[1]) from None
            except (OSError, ValueError) as error:
                raise _damaged(name, error) from None
            yield packed.allowed(text)
            chunk = packed.read() if member.needs_input and not member.eof else b""
            if not chunk and member.needs_input and not member.eof:
                raise DamagedError(Message("the {kind} file is cut short; read up to there", kind=name))
        chunk = member.unused_data.lstrip(b"\0") or packed.read().lstrip(b"\0")
