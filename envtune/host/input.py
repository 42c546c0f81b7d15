"""Open an input that the user names: a regular file, or a pipe such as `<(...)`; never block forever."""

from __future__ import annotations

import errno
import io
import os
import select
import stat
from typing import Any, Union

from envtune.collector.owners import open_as, readers_of
from envtune.errors import InputError
from envtune.messages import Message

SILENCE = 30.0  # seconds without data after which a pipe is abandoned


def open_input(path: Union[str, os.PathLike[str]]) -> io.RawIOBase:
    """Open a file or pipe for reading; raises OSError; a device or socket is refused without opening it.

    Reading from a pipe raises OSError ETIMEDOUT if nothing arrives for SILENCE seconds, even if there is no writer.
    As root it raises EACCES for what the owners of the links and directories on the path may not read.
    """
    _require_readable(os.stat(path).st_mode, path)
    place = os.path.abspath(path)
    descriptor = open_as(place, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, readers_of(place))
    try:
        mode = os.fstat(descriptor).st_mode
        _require_readable(mode, path)
    except OSError:
        os.close(descriptor)
        raise
    return _Pipe(descriptor) if stat.S_ISFIFO(mode) else io.FileIO(descriptor, "rb")


def _require_readable(mode: int, path: Union[str, os.PathLike[str]]) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(mode) and not stat.S_ISFIFO(mode):
        raise InputError(Message("neither a file nor a pipe"), errno.EINVAL)


class _Pipe(io.RawIOBase):
    """The reading end of a pipe."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what was written, at least one byte; 0 at the end. Raises OSError ETIMEDOUT after SILENCE seconds."""
        while self._poll.poll(SILENCE * 1000):
            try:
                return os.readv(self._descriptor, [buffer])
            except BlockingIOError:
                continue  # another reader was faster
        reason = Message("nothing was written to this pipe for {seconds:.0f} s", seconds=SILENCE)
        raise InputError(reason, errno.ETIMEDOUT)

    def close(self) -> None:
        if not self.closed:
            os.close(self._descriptor)
        super().close()
