"""Directory trees: names by pattern, digests, flushing, removal; below an open directory, without following links."""

import fnmatch
import glob
import hashlib
import os
import stat
from typing import IO, Callable, Iterator, List, NamedTuple

from ..common import with_path
from ..directories import open_directory, parent_of
from ..problems import RefusedError


class TreeEntry(NamedTuple):
    """One entry of a tree walk: `name` in the open directory, `path` below the root, `top` of its tree."""

    path: str
    top: str
    directory: int
    name: str
    status: os.stat_result


def expand_names(root: str, names: List[str]) -> List[str]:
    """Return the names that exist below `root`; the last part of a name may be a shell pattern."""
    existing = set()
    for name in names:
        parent, _, last = name.rpartition("/")
        try:
            with open_directory(os.path.join(root, parent) if parent else root) as directory:
                if not glob.has_magic(last):
                    found = [last] if directory.status(last) is not None else []
                else:
                    found = fnmatch.filter(_listed(directory.descriptor), last)
        except (FileNotFoundError, NotADirectoryError):
            continue
        existing |= {parent + "/" + match if parent else match for match in found}
    return sorted(existing)


def _listed(directory: int) -> List[str]:
    """Return the names in an open directory, sorted."""
    descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
    try:
        return sorted(os.listdir(descriptor))
    finally:
        os.close(descriptor)


def is_covered(path: str, names: List[str]) -> bool:
    """Return whether a path below the root is one of the names or inside one."""
    for name in names:
        depth = name.count("/") + 1
        if fnmatch.fnmatchcase("/".join(path.split("/")[:depth]), name):
            return True
    return False


def visit_trees(root: str, names: List[str], visit: Callable[[TreeEntry], None], bottom_up: bool = False) -> None:
    """Call `visit` for everything the names match below the root, sorted, each tree from its open parent."""
    for name in expand_names(root, names):
        with parent_of(os.path.join(root, name)) as parent:  # not a generator: it could stay suspended as another user
            for entry in walk_tree(parent.descriptor, os.path.basename(name), name, name, bottom_up):
                try:
                    visit(entry)
                except OSError as error:
                    raise with_path(error, os.path.join(root, entry.path)) from error


def walk_tree(directory: int, name: str, path: str, top: str, bottom_up: bool = False) -> Iterator[TreeEntry]:
    """Yield an entry of an open directory, if it exists, and everything below it, sorted."""
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return
    entry = TreeEntry(path, top, directory, name, status)
    if not bottom_up:
        yield entry
    if stat.S_ISDIR(status.st_mode):
        below = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        try:
            for child in _listed(below):
                yield from walk_tree(below, child, path + "/" + child, top, bottom_up)
        finally:
            os.close(below)
    if bottom_up:
        yield entry


def open_entry(entry: TreeEntry, flags: int = os.O_RDONLY) -> int:
    """Open a regular file or directory of a tree. Raises RefusedError if it has become something else."""
    flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(entry.name, flags, dir_fd=entry.directory)
    if stat.S_IFMT(os.fstat(descriptor).st_mode) not in (stat.S_IFREG, stat.S_IFDIR):
        os.close(descriptor)
        raise RefusedError("not-a-regular-file", path=entry.path)
    return descriptor


def tree_digest(root: str, names: List[str]) -> str:
    """Return the SHA-256 of names and content of these trees, without compiled Python."""
    state = hashlib.sha256()

    def add(entry: TreeEntry) -> None:
        if is_compiled_cache(entry):
            return
        state.update(os.path.join(root, entry.path).encode("utf-8", "surrogateescape") + b"\0")
        if stat.S_ISLNK(entry.status.st_mode):
            state.update(os.readlink(entry.name, dir_fd=entry.directory).encode("utf-8", "surrogateescape"))
        elif stat.S_ISREG(entry.status.st_mode) and not entry.path.endswith(".pyc"):
            with open(open_entry(entry), "rb") as file:
                state.update(file_digest(file))

    visit_trees(root, names, add)
    return "sha256:" + state.hexdigest()


def is_compiled_cache(entry: TreeEntry) -> bool:
    """Return whether Python itself writes this file when it imports the module next to it."""
    return "__pycache__" in entry.path[len(entry.top) :].split("/")


def file_digest(file: IO[bytes]) -> bytes:
    """Return the SHA-256 of an open file."""
    state = hashlib.sha256()
    for block in iter(lambda: file.read(1 << 20), b""):
        state.update(block)
    return state.digest()


def fsync_trees(root: str, names: List[str]) -> None:
    """Flush to disk what commands wrote to trees."""

    def flush(entry: TreeEntry) -> None:
        if stat.S_IFMT(entry.status.st_mode) in (stat.S_IFREG, stat.S_IFDIR):
            descriptor = open_entry(entry)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    visit_trees(root, names, flush, bottom_up=True)
    for parent in sorted({os.path.dirname(os.path.join(root, name)) for name in names}):
        try:
            with open_directory(parent) as directory:
                directory.sync()
        except (FileNotFoundError, NotADirectoryError):
            continue


def remove_entry(entry: TreeEntry) -> None:
    """Remove one entry; a directory must be empty."""
    try:
        if stat.S_ISDIR(entry.status.st_mode):
            os.rmdir(entry.name, dir_fd=entry.directory)
        else:
            os.unlink(entry.name, dir_fd=entry.directory)
    except FileNotFoundError:
        pass


def new_work_directory(path: str) -> str:
    """Create an empty private directory of that name, with a directory for temporary files in it."""
    remove_tree(path)
    os.mkdir(path, 0o700)
    os.mkdir(os.path.join(path, "tmp"), 0o700)
    return path


def remove_tree(path: str) -> None:
    """Remove what can be removed of a private tree of the state directory."""
    import shutil

    shutil.rmtree(path, ignore_errors=True)
