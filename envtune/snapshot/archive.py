"""The members of a tar archive, read as a stream: nothing is unpacked to disk or read beyond the limits.

tarfile is used in its streaming mode only, on a stream that refuses to grow beyond a bound; its own ways of writing to
disk are not used at all.
"""

from __future__ import annotations

import gzip
import tarfile
import zlib
from typing import IO, Any, Callable, Iterator, Union

from envtune.errors import SnapshotError
from envtune.messages import Message

GZIP = b"\x1f\x8b"
MAX_HEADER = 1 << 20  # bytes of a long name or of a member's PAX headers
_HEADERS = (
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
)


class _Bounded:
    """A stream of at most `limit` bytes."""

    def __init__(self, stream: Any, limit: int) -> None:
        self._stream = stream
        self._left = limit
        self.member = "the archive"  # the one that is being read

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._stream.read(min(size, self._left + 1) if size >= 0 else self._left + 1)
        self._left -= len(data)
        if self._left < 0:
            raise SnapshotError(self.member, Message("the archive contains more than a snapshot can"))
        return data


def special(name: str) -> SnapshotError:
    """Return the error for a device, pipe or socket among the members."""
    way = '{"char": true}'
    return SnapshotError(
        name,
        Message("neither a file nor a directory; a recorded device is written in files.json as {way}", way=way),
    )


class _Member(tarfile.TarInfo):
    """A member with bounded headers: tarfile reads long names and PAX headers completely into memory."""

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        if self.type in _HEADERS and self.size > MAX_HEADER:
            raise tarfile.ReadError(f"a header of {self.size} bytes")
        return super()._proc_member(archive)  # type: ignore[misc,no-any-return]


def read_archive(
    file: IO[bytes], account: Callable[[str, int], None], limit: int
) -> Iterator[tuple[str, Union[bytes, str, None]]]:
    """Yield (name, content) of every member: bytes of a file, text of a link, None for a directory.

    `account(name, size)` is called before a member is read and may refuse it; `limit` bounds the bytes after unpacking.
    """
    start = file.read(2)
    file.seek(0)
    stream = _Bounded(gzip.GzipFile(fileobj=file) if start == GZIP else file, limit)
    seen: dict[str, Union[bytes, str, None]] = {}
    try:
        with tarfile.open(fileobj=stream, mode="r|", errorlevel=2, tarinfo=_Member) as archive:  # type: ignore[call-overload]
            for member in archive:
                name = _name(member)
                stream.member = name or member.name
                if not name:
                    continue
                if name in seen and not (member.isdir() and seen[name] is None):
                    raise SnapshotError(name, Message("duplicate member"))
                content = _content(archive, member, name, account, seen)
                seen[name] = content
                yield name, content
        stream.member = "the end of the archive"
        while stream.read(1 << 16):
            pass  # so that gzip compares its checksum
    except SnapshotError:
        raise
    except (tarfile.TarError, OSError, EOFError, zlib.error, ValueError, OverflowError, RecursionError) as error:
        raise _unreadable(stream.member, error, is_tar=bool(seen) or start == GZIP) from None


def _unreadable(member: str, error: Exception, is_tar: bool) -> SnapshotError:
    if isinstance(error, tarfile.ReadError) and not is_tar:
        return SnapshotError("", Message("not a snapshot (a directory, tar.gz or JSON file)"))
    return SnapshotError(member, Message("not a readable tar archive ({error})", error=error))


def _name(member: tarfile.TarInfo) -> str:
    """Return the member's name without `./`; "" for the top directory itself; refused if it points elsewhere."""
    try:
        member.name.encode("utf-8")
    except UnicodeEncodeError:
        raise SnapshotError(f"{member.name!a}", Message("a name that is not UTF-8")) from None
    parts = [part for part in member.name.split("/") if part not in ("", ".")]
    if member.name.startswith("/") or ".." in parts or "\0" in member.name:
        raise SnapshotError(repr(member.name), Message("the name points outside the snapshot"))
    return "/".join(parts)


def _content(
    archive: tarfile.TarFile,
    member: tarfile.TarInfo,
    name: str,
    account: Callable[[str, int], None],
    seen: dict[str, Union[bytes, str, None]],
) -> Union[bytes, str, None]:
    if member.isdir():
        account(name, 0)
        return None
    if member.issym():
        account(name, 0)
        return member.linkname
    if member.islnk():
        return _linked(member, name, account, seen)
    if not member.isreg() or member.sparse is not None:
        raise special(name)
    account(name, member.size)
    file = archive.extractfile(member)
    data = file.read() if file is not None else b""
    if len(data) != member.size:
        raise SnapshotError(name, Message("cut off"))
    return data


def _linked(
    member: tarfile.TarInfo, name: str, account: Callable[[str, int], None], seen: dict[str, Union[bytes, str, None]]
) -> bytes:
    """Return the content of a hard link, which is another name of an earlier file."""
    target = "/".join(part for part in member.linkname.split("/") if part not in ("", "."))
    content = seen.get(target)
    if not isinstance(content, bytes):
        raise SnapshotError(
            name,
            Message(
                "a hard link to {linkname!r}, which is not an earlier file in the archive", linkname=member.linkname
            ),
        )
    account(name, len(content))
    return content
