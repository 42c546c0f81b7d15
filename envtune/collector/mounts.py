"""Mounted file systems: which of them may hang, and how much space they have."""

import errno
import os
import re
from typing import Any, Dict, List, Optional, Set

from .commands import run_command
from .files import read_bytes
from .paths import resolve

# File systems whose answer comes from another machine or process, which may be gone; then a read hangs for ever.
REMOTE = (  # without the number of a version; and every fuse.*
    "nfs", "cifs", "smb", "smbfs", "fuse", "fuseblk", "ceph", "lustre", "gpfs", "9p", "glusterfs", "beegfs", "afs",
    "panfs", "wekafs", "pvfs", "ocfs", "gfs", "virtiofs", "dpc", "ncpfs",
)  # fmt: skip
TOUCH_SECONDS = 2.0


class Mounts:
    """Keep reads away from mounts that do not answer: each is first touched by a child with a deadline, once.

    A child that hangs is abandoned (it cannot be killed in state D) and everything below its mount is ETIMEDOUT.
    """

    def __init__(self) -> None:
        self._remote: Optional[Dict[str, str]] = None
        self._hung: Dict[str, bool] = {}
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
        """Raise ETIMEDOUT when `path`, which holds no link, is a mount that does not answer; call before use."""
        kind = self.remote().get(path)
        if kind is None:
            return
        if path not in self._hung:
            # `stat -f` asks the server, not the attribute cache; no variable has its loader search a mount that hangs
            row = run_command(("stat", "-f", "--", path), TOUCH_SECONDS)
            self._hung[path] = row.get("error") == "timeout"
        if self._hung[path]:
            raise OSError(errno.ETIMEDOUT, "the %s file system at %s does not answer" % (kind, path), path)

    def guard(self, path: str) -> None:
        """Call `enter` for every directory on the way to `path`, links included; call before reading it."""
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
    """Return {path, total, free} in bytes of the file system at `path`; free is what an ordinary user may use."""
    values = os.statvfs(path)
    return {"path": path, "total": values.f_frsize * values.f_blocks, "free": values.f_frsize * values.f_bavail}


def mounted_disks() -> List[Dict[str, Any]]:
    """Return `disk_space` of the mounts that hold data."""
    rows = []
    for line in read_bytes("/proc/self/mountinfo").decode("utf-8", "replace").splitlines():
        fields = line.split()
        path, kind = fields[4], fields[fields.index("-") + 1]
        if kind in ("ext2", "ext3", "ext4", "xfs", "btrfs", "tmpfs", "zfs", "f2fs", "vfat") or path == "/":
            try:
                rows.append(disk_space(path))
            except OSError:
                continue
    return rows
