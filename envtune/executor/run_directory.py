"""The directory of one run: the originals it keeps, and the output of its commands."""

import os
from typing import IO, Any, Callable, Optional

from .common import failpoint, fsync_directory, private_opener
from .operations.trees import remove_tree
from .problems import FailedError, errno_problem


class RunDirectory:
    """runs/<run> of a run that is begun or continued; `on_output` is called with every line that a command prints.

    `redact` removes secrets from a line before it is kept or passed on; importers of the executor may replace it.
    """

    redact: Callable[[str], str] = staticmethod(str)

    def __init__(self, path: str, on_output: Optional[Callable[[str], None]] = None) -> None:
        self.path = path
        remove_tree(os.path.join(path, "work"))  # of a run that was killed during preparation
        self.on_output = on_output

    def save(self, data: bytes) -> str:
        """Keep bytes, flushed to disk before this returns; return the name to `open` them by."""
        return self.save_from(lambda file: file.write(data))

    def save_from(self, write: Callable[[IO[bytes]], Any]) -> str:
        """Keep what `write` writes to a file; nothing is left of it on failure."""
        numbers = [int(n[:-5]) for n in os.listdir(self.path) if n.endswith(".orig") and n[:-5].isdecimal()]
        name = "%04d.orig" % (max(numbers + [0]) + 1)
        path = os.path.join(self.path, name)
        try:
            self.write_private(path, write)
            fsync_directory(self.path)
        except BaseException as error:
            if os.path.lexists(path):
                os.unlink(path)
            if not isinstance(error, OSError):
                raise
            raise FailedError("backup-failed", path=path, reason=errno_problem(error)) from error
        failpoint("original-kept")
        return name

    @staticmethod
    def write_private(path: str, write: Callable[[IO[bytes]], Any]) -> None:
        """Write a new file readable only by this user, flushed to disk before this returns."""
        with open(path, "xb", opener=private_opener) as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())

    def open(self, name: str) -> IO[bytes]:
        """Open what is kept under that name."""
        return open(os.path.join(self.path, os.path.basename(name)), "rb")

    def output_size(self) -> int:
        """Return how many bytes the commands of this run have printed."""
        path = os.path.join(self.path, "output.log")
        return os.path.getsize(path) if os.path.exists(path) else 0

    def output_since(self, start: int) -> str:
        """Return the output of commands from byte `start` on."""
        if self.output_size() <= start:
            return ""
        with self.open("output.log") as file:
            file.seek(start)
            return file.read().decode("utf-8", "replace")
