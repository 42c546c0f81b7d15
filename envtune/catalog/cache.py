"""The compiled catalog in the user's cache directory. JSON, never pickle: reading it cannot run code.

A file is a header line (what it was compiled from, and a checksum of the rest) and the compiled form. A file that is
missing, truncated, of another version or writable by others is treated as no cache.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time
import zlib
from typing import Optional

from envtune.records import NamedTuple, expression
from envtune.version import __version__

FORMAT = 8
KEPT_DAYS = 90
_NAME = expression(r"catalog-[0-9a-f]{8}\.json(?:\.\d+)?")  # a number is that of a process that was killed


class Cached(NamedTuple):
    """The content of a cache file: the stamp and content hash of its sources, and the compiled form of them."""

    stamp: str
    content: str
    text: bytes


def cache_file(key: str, checkout: str = "") -> Optional[str]:
    """Return the path of the cache for these layers; None if this user has no cache directory.

    With `checkout`: the one that `make` fills in the checkout, for users whose home is not writable.
    """
    return cache_path(f"catalog-{zlib.crc32(key.encode('utf-8', 'surrogateescape')):08x}.json", checkout)


def cache_path(name: str, checkout: str = "") -> Optional[str]:
    """Return the path of a cache file of this name; None if this user has no cache directory."""
    base = os.path.join(checkout, ".cache") if checkout else os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # the XDG specification: a relative path is to be ignored
        home = os.path.expanduser("~")
        if not os.path.isabs(home):
            return None
        base = os.path.join(home, ".cache")
    return os.path.join(base, "envtune", name)


def read(path: str) -> Optional[Cached]:
    """Return the cache, None if there is no usable one."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
                return None
            head, _, text = file.read().partition(b"\n")
        header = json.loads(head)
        if (header["format"], header["envtune"]) != (FORMAT, __version__) or header["crc32"] != zlib.crc32(text):
            return None
        return Cached(str(header["stamp"]), str(header["content"]), text)
    except (OSError, ValueError, LookupError, TypeError):
        return None


def write(path: str, cached: Cached) -> None:
    """Write the cache atomically, readable by this user only; do without it if that fails."""
    header = {
        "format": FORMAT,
        "envtune": __version__,
        "crc32": zlib.crc32(cached.text),
        "content": cached.content,
        "stamp": cached.stamp,
    }
    temporary = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError:
        return
    try:
        with open(descriptor, "wb") as file:
            file.write(json.dumps(header).encode("ascii") + b"\n" + cached.text)
        os.replace(temporary, path)
        _remove_old(os.path.dirname(path))
    except (OSError, ValueError):
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def _remove_old(folder: str) -> None:
    """Remove caches written long ago: each set of --catalog directories has its own, and one in use is rebuilt."""
    oldest = time.time() - KEPT_DAYS * 86400
    with os.scandir(folder) as entries:
        for entry in entries:
            if _NAME.fullmatch(entry.name) and entry.stat(follow_symlinks=False).st_mtime < oldest:
                os.unlink(entry.path)
