"""The state directory, and the lock that lets one run at a time write."""

import errno
import fcntl
import os
import re
import stat
import time
from typing import Any, Dict, Optional

from .common import utc_now
from .directories import open_directory
from .files import make_directory, missing_parents
from .problems import ExecutorError, LockedError, Problem, RefusedError


def state_directory() -> str:
    """Return $ENVTUNE_STATE, else /var/lib/envtune for root, else $XDG_STATE_HOME/envtune (~/.local/state/envtune)."""
    named = os.environ.get("ENVTUNE_STATE")
    if named:
        return os.path.abspath(named)
    if os.geteuid() == 0:
        return "/var/lib/envtune"
    home = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(home):  # the XDG specification: a relative path is to be ignored
        home = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(home, "envtune")


def ensure_state_directory(state: str) -> None:
    """Create the state directory if it is missing. Raises RefusedError as `require_private_state` does, OSError."""
    as_root = os.geteuid() == 0
    if as_root:
        _require_directory_of_root(os.path.dirname(state))
    for parent in missing_parents(state):
        make_directory(parent, 0o755 if as_root else 0o700)
    for path in (state, os.path.join(state, "runs")):
        make_directory(path, 0o700)
    require_private_state(state)


def require_private_state(state: str) -> None:
    """Refuse a state directory that others can write: undo executes what its journals contain.

    Raises RefusedError; OSError if there is none.
    """
    if os.geteuid() == 0:
        _require_directory_of_root(os.path.dirname(state))
    for path in (state, os.path.join(state, "runs")):
        status = os.lstat(path)
        if status.st_uid != os.geteuid():
            raise RefusedError("owned-by-another-user", path=path, owner=status.st_uid, user=os.geteuid())
        if status.st_mode & 0o022:
            raise RefusedError("writable-by-others", path=path, mode="%o" % stat.S_IMODE(status.st_mode))


def _require_directory_of_root(path: str) -> None:
    """Refuse a parent that others can write: they could rename root's state and substitute another one."""
    try:
        with open_directory(path) as directory:
            others = directory.owner is not None
    except FileNotFoundError:
        _require_directory_of_root(os.path.dirname(path))
        return
    except ExecutorError:
        others = True
    if others:
        raise RefusedError("parent-writable-by-others", path=path)


class Lock:
    """The right to write, held by one run at a time; released by the kernel however that run ends."""

    def __init__(self, state: str, wait: float = 0.0) -> None:
        ensure_state_directory(state)
        self._descriptor = os.open(os.path.join(state, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        deadline = time.monotonic() + wait
        while not _try_lock(self._descriptor):
            if time.monotonic() >= deadline:
                holder = _read_holder(self._descriptor)
                os.close(self._descriptor)
                raise LockedError("locked", holder=_holder_problem(holder))
            time.sleep(0.1)
        self.describe("")

    def __enter__(self) -> "Lock":
        return self

    def __exit__(self, *error: Any) -> None:
        self.release()

    def describe(self, run: str) -> None:
        """Record who holds the lock."""
        text = "pid %d, since %s%s\n" % (os.getpid(), utc_now(), ", run " + run if run else "")
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, text.encode("ascii"), 0)

    def release(self) -> None:
        """Release the lock."""
        os.close(self._descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        return False


def _read_holder(descriptor: int) -> Dict[str, str]:
    """Return `pid`, `since` and, once known, `run` of the holder; empty if it has only just begun."""
    text = os.pread(descriptor, 200, 0).decode("utf-8", "replace").strip()
    found = re.match("pid (?P<pid>[0-9]+), since (?P<since>[^,]+)(, run (?P<run>.+))?$", text)
    return {name: value for name, value in found.groupdict().items() if value} if found else {}


def _holder_problem(holder: Dict[str, str]) -> Problem:
    if "run" in holder:
        return Problem("lock-holder", pid=holder["pid"], since=holder["since"], run=holder["run"])
    if "since" in holder:
        return Problem("lock-holder-without-run", pid=holder["pid"], since=holder["since"])
    return Problem("lock-holder-just-begun")


def lock_holder(state: str) -> Optional[Dict[str, str]]:
    """Return who holds the lock now, as `pid`, `since` and `run` (empty while it has just begun); None if free."""
    try:
        descriptor = os.open(os.path.join(state, "lock"), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return None if _try_lock(descriptor) else _read_holder(descriptor)
    finally:
        os.close(descriptor)
