"""Who else could change what we are about to read? Asked for overlays and caches when root runs us."""

from __future__ import annotations

import os
import posixpath
import stat
from typing import Optional

from envtune.messages import Message, Text

_MOST_LINKS = 40


def distrust(path: str) -> Optional[Text]:
    """Why somebody other than root could change what `path` leads to; None when nobody can.

    Every directory and link on the way is looked at. A directory that others may write is good enough only with the
    sticky bit, because there nobody can replace an entry of root's.
    """
    done, hops = "/", _MOST_LINKS
    parts = [part for part in posixpath.abspath(path).split("/") if part]
    problem = _problem(done)
    while parts and problem is None:
        part = parts.pop(0)
        if part in (".", ".."):
            done = posixpath.dirname(done) if part == ".." else done
            continue
        step = posixpath.join(done, part)
        problem = _problem(step)
        if problem is not None or not os.path.islink(step):
            done = step
            if os.path.isfile(step):
                break  # what is left of the path lies inside an archive (the zipapp)
            continue
        hops -= 1
        if hops < 0:
            return Message("{path}: too many levels of symbolic links", path=path)
        target = os.readlink(step)
        done = "/" if target.startswith("/") else done
        parts = [p for p in target.split("/") if p] + parts
    return problem


def _problem(path: str) -> Optional[Text]:
    try:
        status = os.lstat(path)
    except OSError as error:
        return Message("{path} cannot be examined: {strerror}", path=path, strerror=error.strerror)
    if status.st_uid != 0:
        return Message("{path} belongs to uid {st_uid}, not to root", path=path, st_uid=status.st_uid)
    if stat.S_ISLNK(status.st_mode) or not status.st_mode & 0o022:
        return None
    if stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX:
        return None
    mode = f"{stat.S_IMODE(status.st_mode):04o}"
    return Message("{path} may be written by others than root (mode {mode})", path=path, mode=mode)
