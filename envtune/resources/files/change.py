"""What an action says about a file that it would write: the executor's operation, and what is there now."""

from __future__ import annotations

import base64
import posixpath
from typing import Any, Optional

from envtune.errors import Denied, HostError, Missing
from envtune.executor.files import digest, normalized
from envtune.host import Host
from envtune.messages import Message, Text


def content(host: Host, path: str) -> Optional[bytes]:
    """What is in the file now; None when there is none."""
    try:
        return host.read_bytes(path)
    except Missing:
        return None


def file_operation(host: Host, path: str, text: Optional[str], mode: Optional[int] = None) -> dict[str, Any]:
    """The operation that leaves `text` in `path` (None removes it), if the file is then still as it is now."""
    now = content(host, path)
    written = None if text is None else base64.b64encode(text.encode("utf-8", "surrogateescape")).decode("ascii")
    operation = {"op": "file", "path": path, "content": written, "expect": digest(normalized(path, now))}
    return operation if mode is None else {**operation, "mode": mode}


def shown(data: Optional[bytes]) -> str:
    """Content as a diff shows it."""
    return "" if data is None else data.decode("utf-8", "replace")


def needs_root(host: Host, path: str) -> bool:
    """Whether this user may not write `path`, as far as owner and mode tell."""
    if host.euid == 0:
        return path.startswith(("/etc/", "/usr/", "/sys/", "/proc/"))
    place = path
    while True:
        try:
            found = host.stat(place)
            break
        except Denied:
            return True
        except HostError:
            if place == "/":
                return True
            place = posixpath.dirname(place)
    return found.uid != host.euid and not found.mode & 0o002


def mounted_read_only(host: Host, path: str) -> Optional[Text]:
    """That the file system `path` lies on is mounted read-only here, as a container's is; None when it is not."""
    try:
        rows = host.read("/proc/self/mountinfo").splitlines()
    except HostError:
        return None
    best: tuple[str, str] = ("", "")
    for row in rows:
        fields = row.split()
        if len(fields) > 5 and _holds(fields[4], path) and len(fields[4]) >= len(best[0]):
            best = (fields[4], fields[5])
    if "ro" not in best[1].split(","):
        return None
    return Message("{best} is mounted read-only here (a container?): the host has to change it", best=best[0])


def _holds(mount: str, path: str) -> bool:
    return mount == "/" or path == mount or path.startswith(mount + "/")
