"""Mounted file systems: which of them may hang, and how much space they have."""

import errno
import os
import re
import stat
from typing import Any, Dict, List, Optional, Set

from .commands import run_command
from .files import read_bytes
from .paths import resolve

# File systems served by another machine or process, which may be gone; then a read hangs forever.
REMOTE = (  # without version numbers; and every fuse.*
    "nfs", "cifs", "smb", "smbfs", "fuse", "fuseblk", "ceph", "lustre", "gpfs", "9p", "glusterfs", "beegfs", "afs",
    "panfs", "wekafs", "pvfs", "ocfs", "gfs", "virtiofs", "dpc", "ncpfs",
)  # fmt: skip
TOUCH_SECONDS = 2.0
# File systems whose free space is recorded; asking others may hang.
MEASURED = ("ext2", "ext3", "ext4", "xfs", "btrfs", "tmpfs", "zfs", "f2fs", "vfat")


class Mounts:
    """Keep reads away from mounts that do not answer: each is first touched by a child with a deadline, once.

    A child that hangs is abandoned (it cannot be killed in state D) and everything below its mount is ETIMEDOUT.
    """

    def __init__(self) -> None:
        self._remote: Optional[Dict[str, str]] = None
        self._hung: Dict[str, bool] = {}
        self._entered: Set[str] = set()  # mounts in which something was touched
        self._links: Dict[str, Optional[str]] = {}
        self._known: Set[str] = set()

    def remote(self) -> Dict[str, str]:
        """Return {mount point: file system type} of those that may hang."""
        if self._remote is None:
            try:
                self._remote = remote_mounts(read_bytes("/proc/self/mountinfo", 1 << 26).decode("utf-8", "replace"))
            except OSError:
                self._remote = {}
        return self._remote

    def enter(self, path: str) -> None:
        """Raise ETIMEDOUT if `path`, which contains no link, is on a mount that does not answer; call before use.

        To be called for each step of a path: both the mount point and the first path accessed in it are touched,
        because a mount that still reports its size may not answer anything else.
        """
        point = path if path in self.remote() else os.path.dirname(path)
        kind = self.remote().get(point)
        if kind is None:
            return
        if point not in self._hung:
            # `stat -f` asks the server, not the attribute cache; no variable makes its loader search a mount that hangs
            self._hung[point] = _hangs("stat", "-f", "--", point)
        if path != point and point not in self._entered:
            self._entered.add(point)
            self._hung[point] = self._hung[point] or _reading_hangs(path)
        if self._hung[point]:
            raise OSError(errno.ETIMEDOUT, "the %s file system at %s does not answer" % (kind, point), path)

    def guard(self, path: str) -> None:
        """Call `enter` for every directory on the path to `path`, links included; call before reading it."""
        if not self.remote():
            return
        self.enter("/")
        try:
            resolve(path, self._enter_step, known=self._known)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENAMETOOLONG):  # reading meets these, too
                raise

    def _enter_step(self, step: str, _last: bool) -> Optional[str]:
        self.enter(step)
        if step not in self._links:
            try:
                self._links[step] = os.readlink(step)
            except OSError:
                self._links[step] = None
        return self._links[step]


def _hangs(*argv: str) -> bool:
    return run_command(argv, TOUCH_SECONDS).get("error") == "timeout"


def _reading_hangs(path: str) -> bool:
    """Return whether examining a file or directory, or the beginning of its content, hangs."""
    row = run_command(("stat", "-L", "-c", "%f", "--", path), TOUCH_SECONDS)
    if row.get("error") == "timeout":
        return True
    found = re.match("[0-9a-f]+$", str(row.get("stdout", "")).strip())
    mode = int(found.group(), 16) if found else 0
    if stat.S_ISREG(mode):
        return _hangs("dd", "if=" + path, "of=/dev/null", "bs=1", "count=1", "iflag=nonblock", "status=none")
    return stat.S_ISDIR(mode) and _hangs("find", "-H", path, "-maxdepth", "0", "-empty")


def remote_mounts(mountinfo: str) -> Dict[str, str]:
    """Return {mount point: type} of the mounts in a mountinfo text that may hang; the last one on a point counts."""
    remote: Dict[str, str] = {}
    for line in mountinfo.splitlines():
        head, _, tail = line.partition(" - ")
        fields, kinds = head.split(), tail.split()
        if len(fields) < 5 or not kinds:
            continue
        point = fields[4]
        if "\\" in point:
            point = re.sub(r"\\([0-7]{3})", lambda m: chr(int(m.group(1), 8)), point)
        remote.pop(point, None)
        if kinds[0].rstrip("0123456789") in REMOTE or kinds[0].startswith("fuse."):
            remote[point] = kinds[0]
    return remote


def disk_space(path: str) -> Dict[str, Any]:
    """Return {path, total, free} in bytes of the file system at `path`, and the same in inodes.

    Free is what an ordinary user may use.
    """
    values = os.statvfs(path)
    return {
        "path": path,
        "total": values.f_frsize * values.f_blocks,
        "free": values.f_frsize * values.f_bavail,
        "inodes": values.f_files,
        "free_inodes": values.f_favail,
    }


def mounted_disks() -> List[Dict[str, Any]]:
    """Return the `disk_space` of mounts for data."""
    rows = []
    for line in read_bytes("/proc/self/mountinfo").decode("utf-8", "replace").splitlines():
        fields = line.split()
        path, kind = fields[4], fields[fields.index("-") + 1]
        if kind in MEASURED or path == "/":
            try:
                rows.append(disk_space(path))
            except OSError:
                continue
    return rows
