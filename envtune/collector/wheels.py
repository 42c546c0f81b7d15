"""Read the content of a wheel, and reduce a RECORD to one digest.

A wheel is untrusted input: what is read of it, and what that unpacks to, is limited by FILE_LIMIT.
"""

import errno
import os
from typing import Any, List

from .files import FILE_LIMIT, open_regular


class BoundedFile:
    """A file of which at most `limit` bytes are read in all; raises OSError EFBIG beyond."""

    def __init__(self, file: Any, limit: int = 2 * FILE_LIMIT) -> None:
        self._file = file
        self._left = limit
        self.seek = file.seek
        self.tell = file.tell

    def read(self, size: int = -1) -> bytes:
        """Return what `file` reads; `size` bytes are requested only if that many are left."""
        if size is not None and size > self._left:
            raise OSError(errno.EFBIG, "more than a wheel's list of files")
        data: bytes = self._file.read(self._left + 1 if size is None or size < 0 else size)
        self._left -= len(data)
        if self._left < 0:
            raise OSError(errno.EFBIG, "more than a wheel's list of files")
        return data

    def seekable(self) -> bool:
        """Return True: zipfile seeks to the end first."""
        return True


def record_digest(record: str) -> str:
    """Return one digest over what a RECORD lists: the sorted (path, hash) pairs without metadata and bytecode.

    Two wheels of the same version with different content differ here; the same content installed by another pip does
    not.
    """
    import csv
    import hashlib

    pairs = []
    try:
        rows = list(csv.reader(record.splitlines()))
    except csv.Error as error:  # a field of more than 128 KiB, a NUL
        raise OSError(errno.EINVAL, "not a RECORD: %s" % error) from None
    for row in rows:
        if len(row) < 2 or not row[1] or ".dist-info/" in row[0] or row[0].endswith(".pyc") or row[0].startswith(".."):
            continue
        pairs.append("%s,%s" % (row[0], row[1]))
    if not pairs:
        raise OSError(errno.EINVAL, "the RECORD lists no hashed file")
    return "sha256:" + hashlib.sha256("\n".join(sorted(pairs)).encode("utf-8")).hexdigest()


def wheel_record(data: Any) -> str:
    """Return the RECORD text inside a wheel (a path or a file object); raises OSError when it is not a wheel."""
    if isinstance(data, str):
        with os.fdopen(open_regular(data), "rb") as file:
            return wheel_record(file)
    with _opened(data) as archive:
        names = [n for n in archive.namelist() if n.endswith(".dist-info/RECORD") and n.count("/") == 1]
        if len(names) != 1:
            raise OSError(errno.EINVAL, "no single RECORD in the wheel")
        return _member(archive, names[0]).decode("utf-8", "replace")


def _opened(file: Any) -> Any:
    """Return the archive in a file object; raises OSError if it is not one."""
    import struct
    import zipfile

    try:
        return zipfile.ZipFile(BoundedFile(file))
    except (zipfile.BadZipFile, ValueError, EOFError, NotImplementedError, struct.error, OverflowError) as error:
        raise OSError(errno.EINVAL, "not a readable wheel: %s" % error) from error


def _member(archive: Any, name: str) -> bytes:
    """Return the content of a member; raises OSError, EFBIG for more than FILE_LIMIT bytes.

    The size in the archive's directory may be false, so no more than FILE_LIMIT is unpacked. Only deflate can be
    unpacked in steps, and wheels use no other compression.
    """
    import zipfile
    import zlib

    try:
        if archive.getinfo(name).compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise OSError(errno.EINVAL, "neither stored nor deflated: %s" % name)
        with archive.open(name) as member:
            data: bytes = member.read(FILE_LIMIT + 1)
    except (zipfile.BadZipFile, ValueError, EOFError, NotImplementedError, RuntimeError, zlib.error) as error:
        raise OSError(errno.EINVAL, "not a readable wheel: %s" % error) from error
    if len(data) > FILE_LIMIT:
        raise OSError(errno.EFBIG, "%s is larger than %d bytes" % (name, FILE_LIMIT))
    return data


def wheel_top_level(data: bytes) -> List[str]:
    """Return the packages and modules at the top of a wheel; raises OSError when it is not one."""
    import io

    with _opened(io.BytesIO(data)) as archive:
        names = [name.split("/", 1)[0] for name in archive.namelist()]
    return sorted({name for name in names if not name.endswith((".dist-info", ".data"))})
