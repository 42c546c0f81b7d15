"""Describe a file that an action would write: the executor's operation, and the current content."""

from __future__ import annotations

import base64
import posixpath
from typing import Any, Optional

from envtune.errors import Denied, HostError, Missing
from envtune.executor.directories import path_without_links
from envtune.executor.files import digest, normalized
from envtune.executor.problems import RefusedError
from envtune.host import Host, realpath
from envtune.messages import Message, Text


def content(host: Host, path: str) -> Optional[bytes]:
    """Return the current content of the file; None if it does not exist."""
    try:
        return host.read_bytes(path)
    except Missing:
        return None


def written_path(host: Host, path: str) -> str:
    """Return the path without links, in the form for an operation.

    As root no link is followed that another user can replace: the executor then refuses the original path.
    """
    if not host.live or host.euid != 0:
        return realpath(host, path)
    try:
        return path_without_links(path)
    except (OSError, RefusedError):
        return posixpath.normpath(path)


def file_operation(host: Host, path: str, text: Optional[str], mode: Optional[int] = None) -> dict[str, Any]:
    """Return the operation that writes `text` to `path` (None removes it), if the file has not changed by then."""
    now = content(host, path)
    written = None if text is None else base64.b64encode(text.encode("utf-8", "surrogateescape")).decode("ascii")
    operation = {"op": "file", "path": path, "content": written, "expect": digest(normalized(path, now))}
    return operation if mode is None else {**operation, "mode": mode}


def shown(data: Optional[bytes]) -> str:
    """Return content for a diff."""
    return "" if data is None else data.decode("utf-8", "replace")


def needs_root(host: Host, path: str) -> bool:
    """Return whether this user may not write `path`, as far as owner and mode tell."""
    if host.euid == 0:
        return path.startswith(("/etc/", "/usr/", "/sys/", "/proc/"))
    nearest = path  # the file, else its nearest existing parent directory
    while True:
        try:
            stat = host.stat(nearest)
            break
        except Denied:
            return True
        except HostError:
            if nearest == "/":
                return True
            nearest = posixpath.dirname(nearest)
    return stat.uid != host.euid and not stat.mode & 0o002


def mounted_read_only(host: Host, path: str) -> Optional[Text]:
    """Return the note that the file system of `path` is mounted read-only, as in a container; None if it is not."""
    try:
        rows = host.read("/proc/self/mountinfo").splitlines()
    except HostError:
        return None
    mount, options = "", ""
    for row in rows:
        fields = row.split()
        if len(fields) > 5 and _is_below(fields[4], path) and len(fields[4]) >= len(mount):
            mount, options = fields[4], fields[5]
    if "ro" not in options.split(","):
        return None
    return Message("{mount} is mounted read-only here (a container?): the host has to change it", mount=mount)


def _is_below(mount: str, path: str) -> bool:
    return mount == "/" or path == mount or path.startswith(mount + "/")
