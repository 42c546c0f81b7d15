"""Paths on any host: symbolic links, the type of a path, and the directories of PATH.

`host` is any object with the interface of the live machine (stat, readlink, listdir) that raises OSErrors.
"""

import errno
import os
from typing import Any, Callable, List, Mapping, Optional, Sequence, Set, Tuple

LINK_LIMIT = 40  # as in Linux
PATH_LIMIT = 4096  # bytes with the NUL at the end, as in Linux
KNOWN_LIMIT = PATH_LIMIT // 2  # directories remembered as free of links: as many as one path can have


class LinkLoop(OSError):
    """A path with more than LINK_LIMIT symbolic links."""


def resolve(
    path: str, link_at: Callable[[str, bool], Optional[str]], follow: bool = True, known: Optional[Set[str]] = None
) -> str:
    """Return the absolute `path` with every symbolic link followed; raises LinkLoop, and what `link_at` raises.

    `link_at(step, last)` is called for each step and returns the target of a link, None for anything else; `last` is
    true for the final step. Without `follow` it is not called for the final step. `known` are directories that an
    earlier call found to contain no link, so that resolving every step of a path in turn is linear.
    """
    if len(path) >= PATH_LIMIT:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), path)
    if "\0" in path:  # as from a file of /proc that is read as a script
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    hops = LINK_LIMIT
    done, rest = _known_start(path, known)
    parts = [part for part in reversed(rest.split("/")) if part not in ("", ".")]
    while parts:
        part = parts.pop()
        if part == "..":
            done = os.path.dirname(done)
            continue
        step = done + "/" + part if done != "/" else "/" + part
        target = link_at(step, not parts) if parts or follow else None
        if target is None:
            done = step
            _remember(known, done if parts else "/")
            continue
        hops -= 1
        if hops < 0:
            raise LinkLoop(errno.ELOOP, os.strerror(errno.ELOOP), path)
        if target.startswith("/"):
            done = "/"
        parts.extend(part for part in reversed(target.split("/")) if part not in ("", "."))
    return done


def _remember(known: Optional[Set[str]], folder: str) -> None:
    if known is not None:
        if len(known) >= KNOWN_LIMIT:
            known.clear()
        known.add(folder)


def _known_start(path: str, known: Optional[Set[str]]) -> Tuple[str, str]:
    """Return the longest known prefix of `path`, and the rest."""
    if not known:
        return "/", path
    start = path.rpartition("/")[0]
    while start and start not in known:
        start = start.rpartition("/")[0]
    return start or "/", path[len(start) :]


def real_path(host: Any, path: str) -> str:
    """Return `path` on `host` without links; raises FileNotFoundError for a dangling one and LinkLoop for a loop."""

    def link_at(step: str, _last: bool) -> Optional[str]:
        return host.readlink(step) if host.stat(step, follow=False).kind == "link" else None

    return resolve(path, link_at)


def kind_at(host: Any, path: str) -> Optional[str]:
    """Return file, dir, ... for the type of `path`, None if it does not exist; other errors are passed on."""
    try:
        return str(host.stat(path).kind)
    except (FileNotFoundError, NotADirectoryError):
        return None


def link_text(host: Any, path: str) -> Optional[str]:
    """Return the target of the link at `path`, None if it cannot be read."""
    try:
        return str(host.readlink(path))
    except OSError:
        return None


def names_in(host: Any, folder: str) -> List[str]:
    """Return the names in a directory, none if it does not exist; other errors are passed on."""
    try:
        return list(host.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []


def search_path(variables: Mapping[str, str], cwd: str) -> List[str]:
    """Return the directories of PATH, absolute, each once."""
    folders = variables.get("PATH", "/usr/local/bin:/usr/bin:/bin").split(":")
    return list(dict.fromkeys(os.path.normpath(os.path.join(cwd, folder)) for folder in folders))


def on_path(host: Any, variables: Mapping[str, str], cwd: str, name: str, without: Sequence[str] = ()) -> Optional[str]:
    """Return the first file called `name` on PATH, as found by a shell; None if there is none."""
    for folder in search_path(variables, cwd):
        if folder not in without and kind_at(host, folder + "/" + name) == "file":
            return folder + "/" + name
    return None
