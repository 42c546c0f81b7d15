"""Read files without ever blocking, and say what kind of thing is at a path."""

import collections
import errno
import os
import stat as stat_module
from typing import List

FILE_LIMIT = 4 * 1024 * 1024  # bytes of one file; version files, rule sets and /proc texts are far below
HEAD_SIZE = 64  # bytes; an ELF header
Stat = collections.namedtuple("Stat", "kind mode uid gid size mtime links")


def read_bytes(path: str, limit: int = FILE_LIMIT) -> bytes:
    """Return the content of a regular file of at most `limit` bytes. Never blocks on a FIFO; raises OSError."""
    descriptor = _open_regular(path)
    try:
        chunks: List[bytes] = []
        wanted = limit + 1
        while wanted > 0:
            chunk = os.read(descriptor, min(wanted, 1 << 16))
            if not chunk:
                return b"".join(chunks)
            chunks.append(chunk)
            wanted -= len(chunk)
        raise OSError(errno.EFBIG, "larger than %d bytes" % limit, path)
    finally:
        os.close(descriptor)


def read_head(path: str) -> bytes:
    """Return the first HEAD_SIZE bytes of a regular file of any size. Never blocks on a FIFO; raises OSError."""
    descriptor = _open_regular(path)
    try:
        return os.read(descriptor, HEAD_SIZE)
    finally:
        os.close(descriptor)


def _open_regular(path: str) -> int:
    """Open a regular file for reading; raises OSError for anything else."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        if not stat_module.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def kind_of(mode: int) -> str:
    """Return the word for the file type bits of `mode`."""
    for test, word in (
        (stat_module.S_ISREG, "file"),
        (stat_module.S_ISDIR, "dir"),
        (stat_module.S_ISLNK, "link"),
        (stat_module.S_ISCHR, "char"),
        (stat_module.S_ISBLK, "block"),
        (stat_module.S_ISFIFO, "fifo"),
    ):
        if test(mode):
            return word
    return "socket"


def file_status(result: os.stat_result) -> Stat:
    """Return the parts of a stat result that are kept."""
    mode = stat_module.S_IMODE(result.st_mode)
    kind, size = kind_of(result.st_mode), result.st_size
    return Stat(kind, mode, result.st_uid, result.st_gid, size, result.st_mtime, result.st_nlink)


def error_name(error: OSError) -> str:
    """Return EACCES, EIO, ... as it is written in a recorded `{"error": ...}`."""
    return errno.errorcode.get(error.errno or 0, "EIO")


def clean_name(name: str) -> str:
    """Return a file name as text; bytes that are not UTF-8 become U+FFFD."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
