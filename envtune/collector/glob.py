"""Shell patterns on any host: `*`, `?` and `[...]` do not cross a slash."""

import errno
import fnmatch
import itertools
import os
import re
from typing import Any, Iterable, Iterator, List

MATCH_LIMIT = 10000  # paths matching at any step; a pattern with more is too general


def glob_paths(host: Any, pattern: str) -> List[str]:
    """Return the sorted paths on `host` that match; a final `**` is every path below that is not a directory.

    Raises OSError, EFBIG if more than MATCH_LIMIT match.
    """
    matches = ["/"]
    parts = [p for p in pattern.split("/") if p]
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        if part == "**":
            return sorted(_counted(pattern, (path for base in matches for path in _below(host, base))))
        steps: List[str] = []
        for base in matches:
            names = _matching(host, base, part) if re.search(r"[*?\[]", part) else [part]
            steps += _counted(pattern, (os.path.join(base, name) for name in names))
            _counted(pattern, steps)
        matches = [step for step in steps if is_there(host, step, not last)]
    return sorted(matches)


def _counted(pattern: str, paths: Iterable[str]) -> List[str]:
    counted = list(itertools.islice(paths, MATCH_LIMIT + 1))
    if len(counted) > MATCH_LIMIT:
        raise OSError(errno.EFBIG, "more than %d files match" % MATCH_LIMIT, pattern)
    return counted


def _matching(host: Any, folder: str, pattern: str) -> List[str]:
    hidden = pattern.startswith(".")
    return [n for n in _names(host, folder) if fnmatch.fnmatchcase(n, pattern) and (hidden or not n.startswith("."))]


def is_there(host: Any, path: str, follow: bool = True) -> bool:
    """Return whether `path` exists and can be examined."""
    try:
        host.stat(path, follow)
    except OSError:  # as in Python's glob: what cannot be examined does not match
        return False
    return True


def _below(host: Any, folder: str, depth: int = 12) -> Iterator[str]:
    for name in _names(host, folder) if depth else ():
        step = os.path.join(folder, name)
        try:
            kind = host.stat(step, False).kind
        except OSError:
            continue
        if kind == "dir":
            for path in _below(host, step, depth - 1):
                yield path
        else:
            yield step


def _names(host: Any, folder: str) -> List[str]:
    try:
        return list(host.listdir(folder))
    except OSError:
        return []
