"""Every path of the executor is opened here: directory by directory, each one checked and kept open.

Whoever can write a directory can replace its content between a check and a write. So no path is resolved twice: every
component is opened relative to the previous one without following links, and reads, writes, renames and removals use
names relative to the open directory. For root in a directory that belongs to another user, all of that happens with the
rights of that user, who thereby gains nothing; if no such user can be determined, it is refused.

Symbolic links are followed only in directories in which only root (and the caller) can create them.
"""

import contextlib
import errno
import os
import signal
import stat
from typing import Any, List, NamedTuple, Optional

from .common import fsync_directory, with_path
from .problems import RefusedError, errno_problem

_PATH_ONLY = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_LINKS = 40  # per path, as in the kernel
_SYSTEM_GROUPS = 1000  # groups below are the distribution's own; those above may have members in a directory service
_NO_GROUP = 65534


class Owner(NamedTuple):
    """A user on whose behalf root writes."""

    uid: int
    gid: int


class Directory:
    """An open directory; its `with` block runs as `owner`, None for the current user."""

    def __init__(self, descriptor: int, path: str, owner: Optional[Owner], real_path: str = "") -> None:
        self.descriptor = descriptor
        self.path = path
        self.real_path = real_path  # without links
        self.owner = owner
        self._acting = _ActingAs(owner, path)

    def __enter__(self) -> "Directory":
        try:
            self._acting.begin()
        except BaseException:
            os.close(self.descriptor)
            raise
        return self

    def __exit__(self, *error: Any) -> None:
        try:
            self._acting.end()
        finally:
            os.close(self.descriptor)

    def open(self, name: str, flags: int = os.O_RDONLY, mode: int = 0o600) -> int:
        """Open a name without following links; does not block on a FIFO."""
        return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode, dir_fd=self.descriptor)

    def status(self, name: str) -> Optional[os.stat_result]:
        """Return the lstat result of a name, None if it does not exist."""
        try:
            return os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def rename(self, old: str, new: str) -> None:
        """Rename `old` to `new`, replacing it."""
        os.rename(old, new, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)

    def unlink(self, name: str) -> None:
        """Remove a name that is not a directory; a missing one is ignored."""
        try:
            os.unlink(name, dir_fd=self.descriptor)
        except OSError:
            if self.status(name) is not None:  # a read-only file system reports that for any name
                raise

    def sync(self) -> None:
        """Flush the entries to disk."""
        with contextlib.suppress(PermissionError):  # with search but no read permission it cannot be flushed
            fsync_directory(".", self.descriptor)

    def identity(self) -> List[int]:
        """Return device and inode."""
        status = os.fstat(self.descriptor)
        return [status.st_dev, status.st_ino]


def open_directory(path: str, entry: str = "") -> Directory:
    """Open a directory to work with the name `entry` in it.

    Raises FileNotFoundError or another OSError with the path, RefusedError if root must not write there.
    """
    walk = _Walk()
    try:
        walk.follow(path)
        return Directory(walk.descriptor, path, walk.owner_for(path, entry), walk.here)
    except BaseException as error:
        os.close(walk.descriptor)
        if isinstance(error, OSError):
            raise with_path(error, path) from error
        raise


def parent_of(path: str) -> Directory:
    """Open the parent directory of a path, to work with its last component."""
    return open_directory(os.path.dirname(path), os.path.basename(path))


def path_without_links(path: str) -> str:
    """Return the path that is really written for a path. Raises RefusedError for a link that others can replace."""
    for _ in range(_MOST_LINKS):
        name = os.path.basename(path)
        with parent_of(path) as parent:
            status, place = parent.status(name), os.path.join(parent.real_path, name)
            if status is None or not stat.S_ISLNK(status.st_mode):
                return place
            if parent.owner is not None:
                raise RefusedError("link-of-others", path=place, directory=parent.real_path)
            path = os.path.join(parent.real_path, os.readlink(name, dir_fd=parent.descriptor))
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)


def open_below(descriptor: int, names: List[str]) -> int:
    """Open a directory in an open one without following links."""
    current = os.open(".", _PATH_ONLY | os.O_DIRECTORY, dir_fd=descriptor)
    for name in names:
        try:
            following = os.open(name, _PATH_ONLY | os.O_DIRECTORY, dir_fd=current)
        finally:
            os.close(current)
        current = following
    return current


class _Walk:
    """A walk down from the root directory; `descriptor` is the current directory."""

    def __init__(self) -> None:
        self._as_root = os.geteuid() == 0
        self._trusted = (0, os.geteuid())
        self._links = 0
        self.descriptor = os.open("/", _PATH_ONLY | os.O_DIRECTORY)
        self._begin_at_root()

    def _begin_at_root(self) -> None:
        self.here = "/"
        self._exposed = ""  # the first directory on the path whose entries others can replace
        self._sticky = False  # in this one, others can only replace their own files
        self._owner: Optional[Owner] = None
        self._judge(os.fstat(self.descriptor))

    def follow(self, path: str) -> None:
        """Change to a directory, relative to the current one or from the root."""
        if path.startswith("/") and self.here != "/":
            root = os.open("/", _PATH_ONLY | os.O_DIRECTORY)
            os.close(self.descriptor)
            self.descriptor = root
            self._begin_at_root()
        for name in path.split("/"):
            if name not in ("", "."):
                self._step(name)

    def _step(self, name: str) -> None:
        child = os.open(name, _PATH_ONLY, dir_fd=self.descriptor)
        try:
            status = os.fstat(child)
            path = os.path.dirname(self.here) if name == ".." else os.path.join(self.here, name)
            if stat.S_ISLNK(status.st_mode):
                if self._is_of_others(status):
                    raise RefusedError("link-of-others", path=path, directory=self._exposed or self.here)
                target = os.readlink("", dir_fd=child)
            elif stat.S_ISDIR(status.st_mode):
                self.descriptor, child = child, self.descriptor
                self.here = path
                self._judge(status)
                return
            else:
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        finally:
            os.close(child)
        self._links += 1
        if self._links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        self.follow(target)

    def _is_of_others(self, link: os.stat_result) -> bool:
        """Return whether somebody else may have created this link, or may replace it."""
        if link.st_uid in self._trusted:
            return bool(self._exposed) and self._as_root
        return bool(self._exposed) or self._sticky

    def _judge(self, status: os.stat_result) -> None:
        """Note who can replace entries of the directory that was just entered."""
        owner, above = status.st_uid, self._exposed
        if owner not in self._trusted:
            if self._as_root and self._owner is not None and self._owner.uid != owner:
                user = self._owner.uid
                raise RefusedError(
                    "directory-of-several-users", path=self.here, owner=owner, directory=above, user=user
                )
            self._owner = self._owner or Owner(owner, _group_of(owner, status.st_gid))
            self._exposed = above or self.here
        elif above and self._as_root:  # if not root, only what the user could write anyway is written
            raise RefusedError("below-a-directory-of-others", path=self.here, directory=above)
        self._sticky = False
        if _others_can_write(status, self.descriptor):
            if status.st_mode & stat.S_ISVTX and owner in self._trusted:
                self._sticky = True
            else:
                self._exposed = self._exposed or self.here

    def owner_for(self, path: str, entry: str) -> Optional[Owner]:
        """Return the user on whose behalf `entry` is handled here; raises RefusedError if none can be determined."""
        if not self._as_root:
            return None
        if self._exposed and self._owner is None:
            raise RefusedError("directory-writable-by-others", path=path)
        if self._sticky and entry:
            try:
                status = os.stat(entry, dir_fd=self.descriptor, follow_symlinks=False)
            except FileNotFoundError:
                return self._owner
            if status.st_uid not in self._trusted:
                return Owner(status.st_uid, _group_of(status.st_uid, status.st_gid))
        return self._owner


def _others_can_write(status: os.stat_result, descriptor: int) -> bool:
    """Return whether anyone but the owner of a directory can write it; system groups without members cannot."""
    if status.st_mode & 0o002:
        return True
    if not status.st_mode & 0o020:
        return False
    return _has_members(status.st_gid) or _has_access_list(descriptor)


def _has_members(gid: int) -> bool:
    import grp
    import pwd

    if gid in (0, os.getegid()):
        return False
    try:
        members = [name for name in grp.getgrgid(gid).gr_mem if name != "root"]
    except KeyError:
        return True
    return gid >= _SYSTEM_GROUPS or bool(members) or any(row.pw_gid == gid and row.pw_uid for row in pwd.getpwall())


def _has_access_list(directory: int) -> bool:
    try:
        descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
    except OSError:
        return False
    try:
        return "system.posix_acl_access" in os.listxattr(descriptor)
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _group_of(uid: int, fallback: int) -> int:
    """Return the user's primary group; for a user without an entry `fallback`, unless that is root's."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_gid
    except KeyError:
        return fallback or _NO_GROUP


class _ActingAs:
    """The effective user, group and groups of this process, changed temporarily; no signal is raised in between.

    The kernel then checks every access as that user's, without the capabilities that would override it.
    """

    def __init__(self, owner: Optional[Owner], path: str) -> None:
        self._owner = owner if os.geteuid() == 0 else None
        self._path = path
        self._group = 0
        self._groups: Optional[List[int]] = None  # once they have been changed

    def begin(self) -> None:
        if self._owner is None:
            return
        self._group, groups = os.getegid(), os.getgroups()
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
        try:
            os.setgroups(_groups_of(self._owner))
            self._groups = groups
            os.setegid(self._owner.gid)
            os.seteuid(self._owner.uid)
        except OSError as error:  # a user that does not exist in this namespace
            self.end()
            reason = errno_problem(error)
            raise RefusedError("cannot-act-as", path=self._path, user=self._owner.uid, reason=reason) from error

    def end(self) -> None:
        if self._owner is None:
            return
        os.seteuid(0)
        os.setegid(self._group)
        if self._groups is not None:
            os.setgroups(self._groups)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)


def set_owner(descriptor: int, uid: int, gid: int) -> None:
    """Give an open file its owner and group; also a group that only root could have given to a user's file."""
    try:
        os.fchown(descriptor, uid, gid)
    except PermissionError:
        user = os.geteuid()
        if os.getuid() != 0 or user == 0 or uid != user:
            raise
        os.seteuid(0)
        try:
            os.fchown(descriptor, -1, gid)
        finally:
            os.seteuid(user)


def _groups_of(owner: Owner) -> List[int]:
    import pwd

    try:
        return os.getgrouplist(pwd.getpwuid(owner.uid).pw_name, owner.gid)
    except KeyError:
        return [owner.gid]
