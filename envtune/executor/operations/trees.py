"""Directory trees: names by pattern, digests, flushing, removal."""

import fnmatch
import glob
import hashlib
import os
from typing import IO, Iterable, Iterator, List

from ..common import fsync_directory


def expand_names(root: str, names: List[str]) -> List[str]:
    """Return the names below `root` that are there; the last part of a name may be a shell pattern."""
    existing = set()
    for name in names:
        parent, _, last = name.rpartition("/")
        if not glob.has_magic(last):
            existing |= {name} if os.path.lexists(os.path.join(root, name)) else set()
        elif os.path.isdir(os.path.join(root, parent)):
            for match in fnmatch.filter(os.listdir(os.path.join(root, parent)), last):
                existing.add(parent + "/" + match if parent else match)
    return sorted(existing)


def is_covered(path: str, names: List[str]) -> bool:
    """Return whether a path below the root is one of the names or lies below one."""
    for name in names:
        depth = name.count("/") + 1
        if fnmatch.fnmatchcase("/".join(path.split("/")[:depth]), name):
            return True
    return False


def tree_digest(paths: Iterable[str]) -> str:
    """Return the SHA-256 of names and content of these trees, without compiled Python."""
    state = hashlib.sha256()
    for top in paths:
        for path in walk_tree(top):
            state.update(path.encode("utf-8", "surrogateescape") + b"\0")
            if os.path.islink(path):
                state.update(os.readlink(path).encode("utf-8", "surrogateescape"))
            elif os.path.isfile(path) and not path.endswith(".pyc"):
                with open(path, "rb") as file:
                    state.update(file_digest(file))
    return "sha256:" + state.hexdigest()


def file_digest(file: IO[bytes]) -> bytes:
    """Return the SHA-256 of an open file."""
    state = hashlib.sha256()
    for block in iter(lambda: file.read(1 << 20), b""):
        state.update(block)
    return state.digest()


def walk_tree(path: str) -> Iterator[str]:
    """Yield the path, if it is there, and everything below it, sorted."""
    if not os.path.lexists(path):
        return
    yield path
    if os.path.isdir(path) and not os.path.islink(path):
        for name in sorted(os.listdir(path)):
            if name != "__pycache__":
                yield from walk_tree(os.path.join(path, name))


def fsync_tree(path: str) -> None:
    """Flush to disk what commands wrote to a tree."""
    for place in walk_tree(path):
        if os.path.islink(place):
            continue
        if os.path.isdir(place):
            fsync_directory(place)
        elif os.path.isfile(place):
            descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
    if os.path.isdir(os.path.dirname(path)):
        fsync_directory(os.path.dirname(path))


def new_work_directory(path: str) -> str:
    """Make an empty private directory of that name, with a place for temporary files in it."""
    remove_tree(path)
    os.mkdir(path, 0o700)
    os.mkdir(os.path.join(path, "tmp"), 0o700)
    return path


def remove_tree(path: str) -> None:
    """Remove what can be removed of a tree."""
    import shutil

    shutil.rmtree(path, ignore_errors=True)
