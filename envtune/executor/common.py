"""Used by every module of the executor: the type of records, failpoints, and small helpers around the file system."""

import errno
import os
import time
from typing import Any, Callable, Dict, List, Optional

Record = Dict[str, Any]
EventCallback = Callable[[str, Record], None]

failpoint_hooks: List[Callable[[str], None]] = []  # tests add functions that kill the process there


def failpoint(name: str) -> None:
    """Mark a point between two steps where a crash could happen."""
    for hook in failpoint_hooks:
        hook(name)


def utc_now() -> str:
    """Return the time in UTC as text."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def fsync_directory(path: str, directory: Optional[int] = None) -> None:
    """Flush the entries of a directory to disk; `path` is relative to the open `directory`, if one is given."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EROFS):  # kernel file systems have nothing to flush
            raise
    finally:
        os.close(descriptor)


def with_path(error: OSError, path: str) -> OSError:
    """Return the same error with its full path; a name relative to an open directory says too little."""
    known = isinstance(error.filename, str) and error.filename.startswith("/")
    return OSError(error.errno, error.strerror, error.filename if known else path)


def private_opener(path: str, flags: int) -> int:
    """Open for this user only; an `opener` of `open`."""
    return os.open(path, flags | os.O_CLOEXEC, 0o600)
