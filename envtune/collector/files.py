"""Read files without ever blocking, and determine the type of a path."""

import collections
import errno
import os
import stat as stat_module
from typing import Iterable, Iterator, List, Optional, Tuple

from .owners import names_as, open_as, readers_of

FILE_LIMIT = 4 * 1024 * 1024  # bytes of one file; version files, rule sets and /proc texts are far smaller
NAMES_LIMIT = 250000  # names in one directory; a site-packages has some thousand
BLOCK = 512  # bytes; the unit of st_blocks, whatever the file system uses (inode(7))
PAGE = 4096  # bytes; the smallest page of any architecture
HEAD_SIZE = 64  # bytes; an ELF header
TREE_LIMIT, TREE_DEPTH = 4096, 4  # names and depth of a directory tree that is measured; CANN logs use three levels
Stat = collections.namedtuple("Stat", "kind mode uid gid size mtime links")


def read_bytes(path: str, limit: int = FILE_LIMIT, users: Iterable[int] = ()) -> bytes:
    """Return the content of a regular file of at most `limit` bytes. Never blocks on a FIFO; raises OSError.

    As root it reads only what `users`, who named the file, and the owners of the path to it may read, too.
    """
    data = read_start(path, limit + 1, users)
    if len(data) > limit:
        raise OSError(errno.EFBIG, "larger than %d bytes" % limit, path)
    return data


def read_start(path: str, size: int, users: Iterable[int] = ()) -> bytes:
    """Return at most the first `size` bytes of a regular file. Never blocks on a FIFO; raises OSError."""
    descriptor = open_regular(path, users)
    try:
        chunk = os.read(descriptor, min(size, 1 << 16))
        if len(chunk) < PAGE and _is_attribute(path):
            return chunk
        chunks: List[bytes] = []
        while chunk:
            chunks.append(chunk)
            size -= len(chunk)
            chunk = os.read(descriptor, min(size, 1 << 16)) if size > 0 else b""
        return b"".join(chunks)
    finally:
        os.close(descriptor)


def _is_attribute(path: str) -> bool:
    """Return whether a file is an attribute of the kernel's devices: a server has thousands of them to be read.

    The kernel alone puts files there, no devices or FIFOs, and returns less than a page in one read. Source: sysfs.rst.
    """
    return path.startswith("/sys/devices/") and "/.." not in path


def read_head(path: str, users: Iterable[int] = ()) -> bytes:
    """Return the first HEAD_SIZE bytes of a regular file of any size. Never blocks on a FIFO; raises OSError."""
    return read_start(path, HEAD_SIZE, users)


def open_regular(path: str, users: Iterable[int] = ()) -> int:
    """Open a regular file for reading; raises OSError for anything else, which is not even opened.

    Opening a device may act on it (a tape rewinds, a watchdog starts). A file replaced between the check and the open
    is opened without blocking, and closed again.
    """
    if not _is_attribute(path) and not stat_module.S_ISREG(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, "not a regular file", path)
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    descriptor = open_as(path, flags, readers_of(path, users))
    try:
        if not stat_module.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def list_names(path: str, users: Iterable[int] = ()) -> List[str]:
    """Return the unsorted names in a directory; raises OSError, EFBIG for more than NAMES_LIMIT.

    As root it lists only what `users`, who named it, and the owners of the path to it may list, too.
    """
    names_as(path, users)
    names: List[str] = []
    with os.scandir(path) as entries:
        for entry in entries:
            names.append(entry.name)
            if len(names) > NAMES_LIMIT:
                raise OSError(errno.EFBIG, "more than %d names" % NAMES_LIMIT, path)
    return names


def tree_size(path: str, users: Iterable[int] = ()) -> str:
    """Return `bytes:N files:N complete` (or `partial`) of the regular files below a directory; raises OSError.

    No link is followed, no file opened, no other file system entered. The answer is partial, and the size a lower
    bound, if a directory is too deep or cannot be listed, or there are more than TREE_LIMIT names.
    """
    device = os.lstat(path).st_dev
    left = [(path, 0, list_names(path, users))]
    looked, size, files, complete = 0, 0, 0, True
    while left:
        folder, depth, names = left.pop()
        complete = complete and looked + len(names) <= TREE_LIMIT
        for status, name in _entries(folder, sorted(names)[: TREE_LIMIT - looked]):
            looked += 1
            if stat_module.S_ISREG(status.st_mode):
                size, files = size + status.st_blocks * BLOCK, files + 1
            elif stat_module.S_ISDIR(status.st_mode) and status.st_dev == device:
                below = None if depth >= TREE_DEPTH else _names_or_none(folder + "/" + name, users)
                complete = complete and below is not None
                left.append((folder + "/" + name, depth + 1, below or []))
    return "bytes:%d files:%d %s" % (size, files, "complete" if complete else "partial")


def _entries(folder: str, names: List[str]) -> Iterator[Tuple[os.stat_result, str]]:
    for name in names:
        try:
            yield os.lstat(folder + "/" + name), name
        except OSError:
            continue  # removed meanwhile


def _names_or_none(path: str, users: Iterable[int]) -> Optional[List[str]]:
    try:
        return list_names(path, users)
    except OSError:
        return None


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
    """Return the fields of a stat result that are kept."""
    mode = stat_module.S_IMODE(result.st_mode)
    kind, size = kind_of(result.st_mode), result.st_size
    return Stat(kind, mode, result.st_uid, result.st_gid, size, result.st_mtime, result.st_nlink)


def error_name(error: OSError) -> str:
    """Return EACCES, EIO, ... for a recorded `{"error": ...}`."""
    return errno.errorcode.get(error.errno or 0, "EIO")


def clean_name(name: str) -> str:
    """Return a file name as text; bytes that are not UTF-8 become U+FFFD."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
