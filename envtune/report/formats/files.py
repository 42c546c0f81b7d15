"""Write a document to a file that the user named: whole or not at all, over the one that was there.

Directories are judged as everywhere where root writes (executor/directories.py): in another user's directory it happens
as that user, and where nobody can be named in whose place it could happen, it is refused.
"""

from __future__ import annotations

import os
import stat

from envtune.errors import EnvtuneError, missing_parent_text
from envtune.executor.directories import Directory, parent_of
from envtune.executor.operations.base import temporary_name
from envtune.executor.problems import RefusedError
from envtune.messages import Message, Text


class NotWrittenError(EnvtuneError):
    """A document could not be written."""

    def __init__(self, path: str, reason: Text) -> None:
        super().__init__(Message("{place}: not written: {reason}", place=path, reason=reason))
        self.reason = reason


def require_writable(path: str) -> None:
    """Raise NotWrittenError where a file could not be written, before time is spent on what stands in it."""
    _in_directory(path, None)


def write_file(path: str, data: bytes) -> None:
    """Write data to a file, with the mode of the one it replaces. Raises NotWrittenError."""
    _in_directory(path, data)


def _in_directory(path: str, data: bytes | None) -> None:
    try:
        with parent_of(os.path.abspath(path)) as folder:
            mode = _mode(folder, path)
            if data is not None:
                _replace(folder, os.path.basename(path), data, mode)
    except (OSError, RefusedError) as error:
        from envtune.fix.executor_messages import error_message

        raise NotWrittenError(path, missing_parent_text(path) or error_message(error)) from error


def _mode(folder: Directory, path: str) -> int | None:
    """Return the mode of the file that is there, None where there is none. Raises NotWrittenError, OSError."""
    status = folder.status(os.path.basename(path))
    if status is None:
        if not os.access(".", os.W_OK | os.X_OK, dir_fd=folder.descriptor, effective_ids=True):
            raise PermissionError(13, os.strerror(13))
        return None
    if not stat.S_ISREG(status.st_mode):  # a link, a device, a directory: replacing it would destroy it
        raise NotWrittenError(path, Message("it exists and is not a regular file"))
    return stat.S_IMODE(status.st_mode)


def _replace(folder: Directory, name: str, data: bytes, mode: int | None) -> None:
    temporary = temporary_name()
    descriptor = folder.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)  # less the umask, as the shell's >
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        folder.rename(temporary, name)
    except BaseException:
        folder.unlink(temporary)
        raise
    folder.sync()
