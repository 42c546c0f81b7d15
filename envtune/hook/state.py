"""What hooks store between runs: the last verdict and the drain they have set, in a directory owned by root.

A file counts only if nobody but root (and the user who runs this) could change it or a parent directory; otherwise
others could drain or resume nodes.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
import time
from contextlib import contextmanager
from typing import Any, Callable, Iterator, Mapping, Optional, TypeVar

from envtune.hook.records import Drain, HookError, Verdict, drain_data, drain_from, verdict_data, verdict_from
from envtune.trust.ownership import who_can_change

T = TypeVar("T")
_VERDICT, _DRAIN, _LOCK = "verdict.json", "drain.json", "lock"
_LIMIT = 1 << 20  # bytes of a file
_BOOT = "/proc/sys/kernel/random/boot_id"


class StateError(HookError):
    """The state could not be read or written; the text says why."""


class State:
    """The directory with the hooks' files."""

    def __init__(self, path: str) -> None:
        self.path = path

    def verdict(self) -> Optional[Verdict]:
        """Return the last verdict, None if there is none. Raises StateError."""
        return self._read(_VERDICT, verdict_from)

    def drain(self) -> Optional[Drain]:
        """Return the drain set by a hook, None if there is none. Raises StateError."""
        return self._read(_DRAIN, drain_from)

    def keep_verdict(self, verdict: Verdict) -> None:
        """Store the verdict, with its time and boot id. Raises StateError."""
        self._write(_VERDICT, verdict_data(verdict._replace(written=time.time(), boot=boot_id())))

    def keep_drain(self, drain: Drain) -> None:
        """Store what is needed to undo the drain. Raises StateError."""
        self._write(_DRAIN, drain_data(drain))

    def forget_drain(self) -> None:
        """Delete the stored drain. Raises StateError."""
        from envtune.executor.directories import parent_of

        path = os.path.join(self.path, _DRAIN)
        with _problems(path), parent_of(path) as folder:
            folder.unlink(_DRAIN)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Wait until no other hook changes the node; the process's end releases the lock. Raises StateError."""
        from envtune.executor.directories import parent_of

        self._make()
        path = os.path.join(self.path, _LOCK)
        with _problems(path), parent_of(path) as folder:
            descriptor = folder.open(_LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _make(self) -> None:
        from envtune.executor.files import make_directory, missing_parents

        with _problems(self.path):
            for path in [*missing_parents(self.path), self.path]:
                make_directory(path, 0o755 if path != self.path else 0o700)
            exposure = who_can_change(self.path)
        if exposure is not None:
            raise StateError(f"{self.path} can be changed by others at {exposure.path}")

    def _read(self, name: str, form: Callable[[Any], T]) -> Optional[T]:
        path = os.path.join(self.path, name)
        try:
            exposure = who_can_change(path)
            if exposure is not None:
                raise StateError(f"{path} can be changed by others at {exposure.path}")
            return form(json.loads(_content(path)))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StateError(f"{path}: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
            raise StateError(f"{path} is damaged: {str(error)[:200]}") from error

    def _write(self, name: str, data: Mapping[str, Any]) -> None:
        from envtune.errors import EnvtuneError
        from envtune.report.formats.files import write_file

        self._make()
        try:
            write_file(os.path.join(self.path, name), json.dumps(data).encode("ascii"))
        except EnvtuneError as error:
            raise StateError(error.to("en")) from error


@contextmanager
def _problems(path: str) -> Iterator[None]:
    """Convert errors of the system or the executor to a StateError that names the path."""
    from envtune.executor.problems import ExecutorError

    try:
        yield
    except (OSError, ValueError, ExecutorError) as error:
        raise StateError(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def _content(path: str) -> str:
    """Return the text of a regular file that is not too large. Raises OSError, ValueError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LIMIT:
            raise ValueError("not a regular file of this program")
        return file.read(_LIMIT).decode("utf-8")


def boot_id() -> str:
    """Return the boot id; empty if the kernel provides none."""
    try:
        with open(_BOOT, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""
