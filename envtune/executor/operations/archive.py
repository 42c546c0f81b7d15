"""Archives of directory trees: save everything in them, and restore the trees to exactly that state.

Trees are restored in place, file by file: directories of the lower layer of an overlayfs cannot be renamed, and there
may be no room for a second copy. If restoring is interrupted, the archive still contains everything.
"""

import json
import os
import stat
from typing import IO, Any, Dict, Iterator, List, Tuple

from ..common import Record, failpoint, with_path
from ..directories import Directory, open_below, parent_of
from ..files import (
    apply_metadata,
    file_metadata,
    make_directories,
    missing_parents,
    replace_name,
    require_no_flag,
    status_metadata,
)
from ..problems import RefusedError
from .trees import TreeEntry, is_compiled_cache, open_entry, remove_entry, visit_trees

_METADATA = "ENVTUNE.metadata"  # in a pax header: times in ns and extended attributes, which tar does not store


def write_archive(file: IO[bytes], root: str, names: List[str]) -> None:
    """Write everything matched by the names below the root. Raises RefusedError for what could not be restored."""
    import tarfile

    def add(entry: TreeEntry) -> None:
        info = tarfile.TarInfo(entry.path)
        if stat.S_ISLNK(entry.status.st_mode):
            info.type, info.linkname = tarfile.SYMTYPE, os.readlink(entry.name, dir_fd=entry.directory)
            archive.addfile(_described(info, status_metadata(entry.status)))
            return
        descriptor = open_entry(entry)
        try:
            path = os.path.join(root, entry.path)
            require_no_flag(descriptor, path)
            _described(info, file_metadata(descriptor, path))
            if stat.S_ISDIR(os.fstat(descriptor).st_mode):
                info.type = tarfile.DIRTYPE
                archive.addfile(info)
            else:
                info.size = os.fstat(descriptor).st_size
                with open(descriptor, "rb", closefd=False) as source:
                    archive.addfile(info, source)
        finally:
            os.close(descriptor)

    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
        visit_trees(root, names, add)


def _described(info: Any, metadata: Record) -> Any:
    info.mode, info.uid, info.gid = metadata["mode"], metadata["uid"], metadata["gid"]
    info.mtime = metadata["mtime_ns"] // 10**9
    info.pax_headers = {_METADATA: json.dumps(metadata, sort_keys=True)}
    return info


class TreeArchive:
    """An existing archive, and the trees below `root` that it covers."""

    def __init__(self, file: IO[bytes], root: str, names: List[str]) -> None:
        import tarfile

        self._root, self._names = root, names
        self._archive = tarfile.open(fileobj=file, mode="r")  # noqa: SIM115 (the file is the caller's)
        self._members: Dict[str, Any] = {member.name: member for member in self._archive.getmembers()}

    def matches(self) -> bool:
        """Return whether the trees match the archive; files that Python has compiled since do not count."""
        missing, differing = set(self._members), []

        def compare(entry: TreeEntry) -> None:
            missing.discard(entry.path)
            member = self._members.get(entry.path)
            if not (is_compiled_cache(entry) if member is None else self._is_same(entry.directory, entry.name, member)):
                differing.append(entry.path)

        visit_trees(self._root, self._names, compare)
        return not missing and not differing

    def restore(self, temporary: str) -> None:
        """Restore the trees: first remove what was not there, then replace what differs, name by name."""

        def remove_foreign(entry: TreeEntry) -> None:
            member = self._members.get(entry.path)
            if member is None or member.isdir() != stat.S_ISDIR(entry.status.st_mode):
                remove_entry(entry)
                failpoint("tree-removed")

        visit_trees(self._root, self._names, remove_foreign, bottom_up=True)
        for top, members in self._tops():
            path = os.path.join(self._root, top)
            make_directories(missing_parents(path))
            with parent_of(path) as directory:
                self._restore_top(directory, top, members, temporary)
                directory.sync()

    def _tops(self) -> Iterator[Tuple[str, List[Any]]]:
        """Yield each tree with its members, the outermost first."""
        top, members = "", []  # type: Tuple[str, List[Any]]
        for name, member in self._members.items():
            if not top or not name.startswith(top + "/"):
                if top:
                    yield top, members
                top, members = name, []
            members.append(member)
        if top:
            yield top, members

    def _restore_top(self, directory: Directory, top: str, members: List[Any], temporary: str) -> None:
        above = top.count("/")
        for member in members:
            names = member.name.split("/")[above:]
            try:
                with Directory(open_below(directory.descriptor, names[:-1]), top, None) as parent:
                    self._restore(parent, names[-1], member, temporary)
            except OSError as error:
                raise with_path(error, os.path.join(self._root, member.name)) from error
        for member in reversed(members):  # directories, innermost first: writing in them changes their times
            if member.isdir():
                descriptor = open_below(directory.descriptor, member.name.split("/")[above:])
                try:
                    _set_directory(descriptor, _metadata_of(member))
                finally:
                    os.close(descriptor)

    def _restore(self, parent: Directory, name: str, member: Any, temporary: str) -> None:
        if self._is_same(parent.descriptor, name, member):
            return
        if member.isdir():
            if parent.status(name) is None:
                os.mkdir(name, 0o700, dir_fd=parent.descriptor)
                failpoint("tree-directory-made")
        elif member.issym():
            _replace_link(parent, name, member, temporary)
        else:
            replace_name(parent, name, temporary, lambda descriptor: self._fill(descriptor, member), expendable=True)
            failpoint("tree-restored")

    def _fill(self, descriptor: int, member: Any) -> None:
        import shutil

        with open(descriptor, "wb", closefd=False) as file:
            shutil.copyfileobj(self._content(member), file, 1 << 20)
        apply_metadata(descriptor, _metadata_of(member), True)

    def _is_same(self, directory: int, name: str, member: Any) -> bool:
        """Return whether an entry matches the archive; a directory is compared without its content and times."""
        try:
            status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:
            return False
        metadata = _metadata_of(member)
        if member.issym():
            if not stat.S_ISLNK(status.st_mode) or os.readlink(name, dir_fd=directory) != member.linkname:
                return False
            return (status.st_uid, status.st_gid) == (metadata["uid"], metadata["gid"])
        if stat.S_IFMT(status.st_mode) != (stat.S_IFDIR if member.isdir() else stat.S_IFREG):
            return False
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(name, flags, dir_fd=directory)
        try:
            found = file_metadata(descriptor, "")
            compared = ["mode", "uid", "gid", *(["xattrs"] if "xattrs" in metadata else [])]
            compared += [] if member.isdir() else ["mtime_ns"]
            if any(found[key] != metadata[key] for key in compared):
                return False
            return member.isdir() or self._has_content(descriptor, member)
        finally:
            os.close(descriptor)

    def _content(self, member: Any) -> IO[bytes]:
        kept = self._archive.extractfile(member)
        if kept is None:
            raise RefusedError("not-a-regular-file", path=os.path.join(self._root, member.name))
        return kept

    def _has_content(self, descriptor: int, member: Any) -> bool:
        kept = self._content(member)
        with open(descriptor, "rb", closefd=False) as file:
            while True:
                here, there = file.read(1 << 20), kept.read(1 << 20)
                if here != there:
                    return False
                if not here:
                    return True


def _metadata_of(member: Any) -> Record:
    """Return owner, mode, times and attributes; an archive of envtune 0.1 has no attributes, and only tar's times."""
    if _METADATA in member.pax_headers:
        found: Record = json.loads(member.pax_headers[_METADATA])
        return found
    times = int(member.mtime * 10**9)
    return {"mode": member.mode, "uid": member.uid, "gid": member.gid, "atime_ns": times, "mtime_ns": times}


def _replace_link(parent: Directory, name: str, member: Any, temporary: str) -> None:
    metadata = _metadata_of(member)
    os.symlink(member.linkname, temporary, dir_fd=parent.descriptor)
    try:
        status = os.stat(temporary, dir_fd=parent.descriptor, follow_symlinks=False)
        if (status.st_uid, status.st_gid) != (metadata["uid"], metadata["gid"]):
            os.chown(temporary, metadata["uid"], metadata["gid"], dir_fd=parent.descriptor, follow_symlinks=False)
        times = (metadata["atime_ns"], metadata["mtime_ns"])
        os.utime(temporary, ns=times, dir_fd=parent.descriptor, follow_symlinks=False)
        failpoint("temporary-written")
        parent.rename(temporary, name)
    except BaseException:
        parent.unlink(temporary)
        raise
    failpoint("tree-restored")


def _set_directory(path_descriptor: int, metadata: Record) -> None:
    """Restore a directory's owner, mode, attributes and times, and flush it to disk."""
    descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=path_descriptor)
    try:
        found = file_metadata(descriptor, "")
        if any(found[key] != metadata[key] for key in ("mode", "uid", "gid", "mtime_ns", "xattrs") if key in metadata):
            apply_metadata(descriptor, metadata, True)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
