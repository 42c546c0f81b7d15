"""A user who exchanges a directory of his with a link to one that is not his, over and over."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import warnings
from pathlib import Path
from typing import Iterator

USER = 12345
_EXCHANGE = 2  # RENAME_EXCHANGE of renameat2
_EVENTS = 0x100 | 0x20 | 0x80 | 0x2  # created, opened, moved to, modified
_libc = ctypes.CDLL(None, use_errno=True)


def exchange(folder: int, one: str, other: str) -> None:
    """Exchange two names of an open directory in one step."""
    if _libc.renameat2(folder, one.encode(), folder, other.encode(), _EXCHANGE):
        raise OSError(ctypes.get_errno(), one)


@contextlib.contextmanager
def attacker(folder: Path, name: str, link: str, waits: bool) -> Iterator[None]:
    """A process of USER that exchanges `name` and `link`: all the time, or when something happens to `name`."""
    directory = os.open(folder, os.O_RDONLY)
    watch = _libc.inotify_init()
    inside = _libc.inotify_add_watch(watch, str(folder / name).encode(), _EVENTS)
    assert inside >= 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setgid(USER)
            os.setuid(USER)
            while True:
                if waits:
                    os.read(watch, 4096)
                exchange(directory, name, link)
        finally:
            os._exit(1)
    os.close(watch)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        if (folder / name).is_symlink():
            exchange(directory, name, link)
        os.close(directory)


def everything(folder: Path) -> dict[str, tuple[object, ...]]:
    """What lies below a folder, with all that a write, rename or removal would change."""
    found: dict[str, tuple[object, ...]] = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        status = path.lstat()
        data = path.read_bytes() if path.is_file() else b""
        found[str(path)] = (status.st_ino, status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns, data)
    return found
