"""One lock for all of root's runs on a host, whatever their state directory."""

import contextlib
import os
import stat
import time
from typing import Iterator, List, Optional

from ..problems import LockedError, Problem
from ..state import Lock

# Not below /run/lock, where any user could create it first; $ENVTUNE_HOST_LOCK names another file, for tests.
HOST_LOCK = "/run/envtune.lock"
PATIENCE_WITH_OTHERS = 5.0  # seconds to wait for a run with another state directory: it may be about to end


@contextlib.contextmanager
def exclusive_run(state: str, wait: float) -> Iterator[Lock]:
    """Hold the lock of the state directory and, as root, that of the host. Raises LockedError, RefusedError, OSError.

    If /run is not writable, or not root's alone (a container, a user namespace), there is no host lock.
    """
    with Lock(state, wait) as lock:
        descriptor = _open_host_lock() if os.geteuid() == 0 else None
        try:
            if descriptor is not None:
                _acquire(descriptor, max(wait, PATIENCE_WITH_OTHERS))
                _describe_holder(descriptor, state)
            yield lock
        finally:
            if descriptor is not None:
                os.close(descriptor)


def _open_host_lock() -> Optional[int]:
    """Open root's own regular file, not through a link; None if the directory or the file is not root's alone."""
    folder, name = os.path.split(os.environ.get("ENVTUNE_HOST_LOCK") or HOST_LOCK)
    opened: List[int] = []
    try:
        opened.append(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC))
        parent = os.fstat(opened[0])
        if parent.st_uid != 0 or parent.st_mode & 0o022:
            return None
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(name, flags, 0o600, dir_fd=opened[0])
    except OSError:
        return None
    finally:
        for number in opened:
            os.close(number)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != 0:
        os.close(descriptor)
        return None
    os.fchmod(descriptor, 0o600)  # whoever cannot open it cannot lock it
    return descriptor


def _acquire(descriptor: int, wait: float) -> None:
    import fcntl

    deadline = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                text = os.pread(descriptor, 4096, 0).decode("utf-8", "replace").strip()
                holder = Problem("host-lock-holder", holder=text) if text else Problem("lock-holder-just-begun")
                raise LockedError("locked", holder=holder) from None
            time.sleep(0.1)


def _describe_holder(descriptor: int, state: str) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, ("pid %d, state directory %s\n" % (os.getpid(), state)).encode("utf-8", "replace"), 0)
