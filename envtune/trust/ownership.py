"""Who can change what is at a path: judged by owner and mode of every component, following links."""

import errno
import os
import stat
from typing import Any, Callable, FrozenSet, Iterator, NamedTuple, Optional

_MAXIMUM_LINKS = 40  # as in the kernel: path_resolution(7)
_STAFF = 50  # base-passwd's users-and-groups.txt
_UID_MAP, _OVERFLOW_UID = "/proc/self/uid_map", "/proc/sys/kernel/overflowuid"


class Exposure(NamedTuple):
    """A component that somebody else can change: its owner, and its permission bits."""

    path: str
    uid: int
    mode: int
    foreign: bool  # it belongs to another user; otherwise its permissions let others write


def who_can_change(
    path: str,
    user: Optional[int] = None,
    status: Callable[[str], Any] = os.lstat,
    readlink: Callable[[str], str] = os.readlink,
    live: bool = True,
) -> Optional[Exposure]:
    """Return the first component of an absolute path that users other than root and `user` (the caller) can change.

    Links are followed, and each component is judged: its owner, and whether its group (unless that is root's) or others
    may write. A directory with the sticky bit protects what root or `user` owns in it, so it only counts at the end of
    the path. If `status` and `readlink` are those of a recorded host, `live` is false: its access control lists and
    groups are unknown. Raises OSError if a component cannot be read, ValueError for a relative path.
    """
    if not path.startswith("/"):
        raise ValueError("not an absolute path: %s" % path)
    caller = os.geteuid() if user is None else user
    place, rest, links = "/", _parts(path), 0
    exposure = _exposure("/", status("/"), caller, not rest, live)
    while rest and exposure is None:
        part = rest.pop(0)
        if part == "..":
            place = os.path.dirname(place)
            continue
        step = os.path.join(place, part)
        found = status(step)
        exposure = _exposure(step, found, caller, not rest, live)
        if not stat.S_ISLNK(found.st_mode):
            place = step
            continue
        links += 1
        if links > _MAXIMUM_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        target = readlink(step)
        place = "/" if target.startswith("/") else place
        rest = _parts(target) + rest
    return exposure


def exposed_below(top: str, left_out: Any = ()) -> Optional[Exposure]:
    """Return the first thing in the tree below a directory that others can change; names `left_out` are not entered.

    A link is judged by its target. Raises OSError.
    """
    caller = os.geteuid()
    for entry in _walk(top, left_out):
        found = entry.stat(follow_symlinks=False)
        exposure = _exposure(entry.path, found, caller, True)
        if exposure is None and entry.is_symlink() and os.path.exists(entry.path):
            exposure = who_can_change(os.path.abspath(entry.path))
        if exposure is not None:
            return exposure
    return None


def _walk(top: str, left_out: Any) -> Iterator[Any]:
    pending = [top]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                yield entry
                if entry.is_dir(follow_symlinks=False) and entry.name not in left_out:
                    pending.append(entry.path)


def _parts(path: str) -> Any:
    return [part for part in path.split("/") if part not in ("", ".")]


def _exposure(path: str, found: Any, caller: int, last: bool, live: bool = True) -> Optional[Exposure]:
    mode = stat.S_IMODE(found.st_mode)
    if found.st_uid not in (0, caller) and not (live and found.st_uid in _unmapped_owner()):
        return Exposure(path, found.st_uid, mode, True)
    if stat.S_ISLNK(found.st_mode) or not mode & (stat.S_IWGRP | stat.S_IWOTH):
        return None
    if stat.S_ISDIR(found.st_mode) and mode & stat.S_ISVTX and not last:
        return None
    if mode & stat.S_IWOTH or not _is_own_group(path, found, caller, live):
        return Exposure(path, found.st_uid, mode, False)
    return None


def _is_own_group(path: str, found: Any, caller: int, live: bool) -> bool:
    """Return whether the group with write permission is root's, was chosen by the caller, or has no members."""
    if found.st_uid == caller != 0:
        return True
    if found.st_gid != 0:
        return live and found.st_gid == _STAFF and path.startswith("/usr/local/") and _is_staff_empty()
    if not live:
        return True
    try:  # with an access control list the group's bits are its mask, and do not show who may write; acl(5)
        return "system.posix_acl_access" not in os.listxattr(path, follow_symlinks=False)
    except OSError:
        return True  # a file system without such lists


def _is_staff_empty() -> bool:
    """Return whether the group staff, which owns /usr/local on Debian and Ubuntu, has no members."""
    try:
        with open("/etc/group", encoding="utf-8", errors="replace") as file:
            rows = [line.rstrip("\n").split(":") for line in file]
        with open("/etc/passwd", encoding="utf-8", errors="replace") as file:
            primary = {line.split(":")[3] for line in file if line.count(":") > 3}
    except OSError:
        return False
    own = [row for row in rows if len(row) == 4 and row[2] == str(_STAFF)]
    return bool(own) and all(not row[3] for row in own) and str(_STAFF) not in primary


def _unmapped_owner() -> FrozenSet[int]:
    """Return the uid that represents every owner outside this user namespace, if system files have it.

    In a namespace with one user (`unshare -r`) root's files cannot be distinguished from those of others, and none of
    them can be written; user_namespaces(7).
    """
    try:
        with open(_OVERFLOW_UID) as file:
            overflow = int(file.read())
        if os.stat("/").st_uid != overflow:
            return frozenset()
        with open(_UID_MAP) as file:
            ranges = [(int(first), int(count)) for first, _, count in (line.split() for line in file)]
    except (OSError, ValueError):
        return frozenset()
    mapped = any(first <= overflow < first + count for first, count in ranges)
    return frozenset() if mapped else frozenset((overflow,))
