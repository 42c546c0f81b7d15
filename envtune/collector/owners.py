"""Read as the users who decide what is read: root must not read for others what they may not read themselves.

The owner of a directory or link on the path to a file decides where the path leads; the owner of a launch script, an
env file or a process names further files in it. As root, a file is opened as every one of these users: the kernel
decides in the very call that opens it, so that nothing can be replaced between check and read.
"""

import errno
import os
import re
import stat as stat_module
from contextlib import contextmanager
from typing import Any, Callable, Dict, FrozenSet, Iterable, Iterator, List, Mapping, Optional, Set, Tuple

from .paths import LINK_LIMIT, resolve

# machine -> numbers of setgroups, setfsuid, setfsgid: called directly, they affect this thread only.
# Sources: setfsuid(2), nptl(7) "C library/kernel differences", asm/unistd.h.
_CALLS = {"x86_64": (116, 122, 123), "aarch64": (159, 151, 152)}
# System files that checks need: root may read them for everybody. They reveal no more than what is recorded anyway.
_SYSTEM_FILES = (  # compiled when a job names a file, like the others here
    r"/sys/|/proc/(?:net|sys)/|/proc/(?:[0-9]+|self)/(?:stat|status|cmdline|cgroup|comm|limits|mountinfo|net/.*)$"
    r"|/etc/(?:ufw|firewalld|nftables|iptables|sysconfig|sysctl\.d|tuned|default|modprobe\.d)/|/etc/(?:nftables|sysctl)\.conf$"
    r"|/boot/|/(?:usr/)?lib/modules/|/var/lib/dpkg/"
)
# Only the kernel creates directories and links there, and the links do not leave the file system. Source: sysfs.rst;
# other parts of /sys are file systems in which users may get a directory (control groups, bpf).
_OF_THE_KERNEL = ("/proc/", "/sys/devices/", "/sys/class/")
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_IDS = rb"(?m)^(Uid|Gid|Groups):([\s0-9]*)$"
NOBODY = 65534  # the user who may read only what everybody may read
_groups: Dict[int, Tuple[int, List[int]]] = {}  # user -> main group, all groups


def users_on_the_way(path: str) -> FrozenSet[int]:
    """Return the owners of the directories and links on the path to `path`, except root; raises OSError."""
    if path.startswith(_OF_THE_KERNEL) and "/.." not in path:
        return frozenset()
    users: Set[int] = set()

    def link_at(step: str, last: bool) -> Optional[str]:
        if step.startswith("/proc/"):
            return None  # a kernel link: its text is not a path
        status = os.lstat(step)
        is_link = stat_module.S_ISLNK(status.st_mode)
        if is_link or stat_module.S_ISDIR(status.st_mode):
            users.add(status.st_uid)
        return os.readlink(step) if is_link else None

    resolve(os.path.abspath(path) if not path.startswith("/") else path, link_at)
    return frozenset(users - {0})


def readers_of(path: str, users: Iterable[int] = ()) -> FrozenSet[int]:
    """Return the users as whom `path`, named by `users`, is read in addition to root; empty if not running as root.

    Raises OSError.
    """
    if os.geteuid() != 0:
        return frozenset()
    way, named = users_on_the_way(path), frozenset(users) - {0}
    if not named:
        return way
    process = re.match(r"/proc/[0-9]+(?=/[a-z_]+$)", path)
    if process is not None:  # its owner may read all of it; the kernel also requires the same group
        named -= frozenset(_process_ids(process.group(), b"Uid"))
    return way | (frozenset() if not way and re.match(_SYSTEM_FILES, path) else named)


def names_as(path: str, users: Iterable[int]) -> None:
    """Raise OSError, EACCES if one of `users`, or an owner of the path, may not list a directory."""
    for user in sorted(readers_of(path + "/", users)):
        with acting_as(user):
            os.scandir(path).close()


def open_as(path: str, flags: int, users: Iterable[int]) -> int:
    """Open a file that every one of `users` may open; raises OSError, EACCES if one of them may not."""
    if not users:
        return os.open(path, flags)
    opened: List[int] = []
    try:
        for user in sorted(users):
            try:
                with acting_as(user):
                    opened.append(os.open(path, flags))
            except _CannotActError:
                opened.append(os.open(path, flags))
                _require_readable(opened[-1], path, user)
        if len({os.fstat(descriptor)[1:3] for descriptor in opened}) > 1:  # replaced meanwhile
            raise OSError(errno.EACCES, os.strerror(errno.EACCES), path)
        return opened.pop()
    finally:
        for descriptor in opened:
            os.close(descriptor)


class _CannotActError(OSError):
    """Cannot act as another user: no CAP_SETUID, no such user here, or no known way to do it."""


def _require_readable(descriptor: int, path: str, user: int) -> None:
    """Raise OSError unless `user` may read an open file, by its owner and mode and those of its parent directories.

    Groups and access control lists are ignored: a user who may read only by these is refused. To move the file
    meanwhile, one must have write permission for its directory.
    """
    place, wanted = "/proc/self/fd/%d" % descriptor, stat_module.S_IROTH
    while _permissions(os.stat(place), user) & wanted:
        if place == "/":
            return
        place = os.path.dirname(os.readlink(place) if wanted == stat_module.S_IROTH else place)
        wanted = stat_module.S_IXOTH
    raise OSError(errno.EACCES, os.strerror(errno.EACCES), path)


def _permissions(status: os.stat_result, user: int) -> int:
    """Return the permission bits that apply to a user, in the position of those for others."""
    return (status.st_mode >> 6 if status.st_uid == user else status.st_mode) & 0o7


def open_folder(path: str) -> int:
    """Open a directory to write in it, following no link created by another user; raises OSError.

    Names used relative to the descriptor are in that directory, whatever others put in its place.
    """
    current, links = os.open("/" if path.startswith("/") else ".", _FOLDER), LINK_LIMIT
    parts = list(reversed(path.split("/")))
    try:
        while parts:
            part = parts.pop() or "."
            target = _own_link(part, current, path)
            if target is not None:
                links -= 1
                parts.extend(reversed(target.split("/")))
                part = "/" if target.startswith("/") else "."
            if links < 0:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            following = os.open(part, _FOLDER, dir_fd=current)
            os.close(current)
            current = following
        return current
    except BaseException:
        os.close(current)
        raise


def _own_link(name: str, folder: int, path: str) -> Optional[str]:
    """Return the target of a link created by root or the caller; None if it is not a link."""
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if not stat_module.S_ISLNK(status.st_mode):
        return None
    if status.st_uid not in (0, os.geteuid()):
        raise OSError(errno.ELOOP, "the path has a symbolic link of another user", path)
    return os.readlink(name, dir_fd=folder)


@contextmanager
def acting_as(user: int) -> Iterator[None]:
    """Access files as `user` on this thread; raises OSError, EACCES if that is not possible."""
    if user == 0 or os.geteuid() != 0:
        yield
        return
    numbers = _CALLS.get(os.uname().machine)
    if numbers is None:
        raise _CannotActError(errno.EACCES, "cannot read as another user on this machine")
    import ctypes

    call: Any = ctypes.CDLL(None, use_errno=True).syscall
    own, (group, groups) = os.getgroups(), _groups_of(user)
    try:
        _set_groups(call, numbers[0], groups)
        call(numbers[2], group)
        call(numbers[1], user)
        if call(numbers[1], -1) != user:  # a user that does not exist in this namespace
            raise _CannotActError(errno.EACCES, "cannot read as user %d" % user)
        yield
    finally:
        call(numbers[1], 0)
        call(numbers[2], os.getegid())
        _set_groups(call, numbers[0], own)


def _set_groups(call: Any, number: int, groups: List[int]) -> None:
    import ctypes

    if call(number, len(groups), (ctypes.c_uint32 * len(groups))(*groups)) != 0:
        raise _CannotActError(errno.EACCES, "cannot give up the groups of root")


def _groups_of(user: int) -> Tuple[int, List[int]]:
    """Return the main group of a user and all groups; those of nobody for a user without a name."""
    if user not in _groups:
        import pwd

        try:
            row = pwd.getpwuid(user)
            _groups[user] = row.pw_gid, os.getgrouplist(row.pw_name, row.pw_gid)
        except (KeyError, OSError):
            _groups[user] = NOBODY, [NOBODY]
    return _groups[user]


def job_users(target: Mapping[str, Any], guard: Callable[[str], None], root: str = "") -> FrozenSet[int]:
    """Return the owners of the script, env file or process that names the job, and of links to it, except root.

    `target` has the keys script, env_file and pid. What does not exist has no owner; nor has a path that `guard`
    refuses with an OSError because its mount does not answer: it is not read then.
    """
    users: Set[int] = set()
    for path in (target.get("script"), target.get("env_file")):
        try:
            guard(root + str(path))
        except OSError:
            continue
        users |= writers_of(root + str(path)) if path else frozenset()
    pid = target.get("pid")
    if pid is not None:
        folder = "%s/proc/%d" % (root, pid)
        users |= set(_process_ids(folder, b"Uid"))  # real and effective user
        groups = _process_ids(folder, b"Gid")[-1:], _process_ids(folder, b"Groups")
        if len(users) == 1 and groups[0] and not root:
            _groups[min(users)] = groups[0][0], groups[1] or groups[0]
    return frozenset(users - {0})


def writers_of(path: str) -> FrozenSet[int]:
    """Return the owners of a file and of the link to it, except root; nobody if it is world-writable.

    They decide what its text names. A missing file has no owner. A group with write permission counts as trusted by the
    file's owner, as is usual for users' private groups.
    """
    users: Set[int] = set()
    for look in (os.stat, os.lstat):
        try:
            status = look(path)
        except OSError:
            continue
        users.add(status.st_uid)
        writable = status.st_mode & (0o002 if status.st_uid or not status.st_gid else 0o022)
        if writable and stat_module.S_ISREG(status.st_mode):
            users.add(NOBODY)
    return frozenset(users - {0})


def _process_ids(folder: str, name: bytes) -> List[int]:
    """Return the numbers in a line of /proc/PID/status; none if the process is gone."""
    try:
        with open(folder + "/status", "rb") as stream:
            rows = dict(re.findall(_IDS, stream.read(1 << 16)))
    except OSError:
        return []
    return [int(word) for word in rows.get(name, b"").split()]
