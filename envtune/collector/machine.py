"""What the recorder reads from: this machine, or a tree of files in its place."""

import os
import re
from typing import Any, Callable, Dict, FrozenSet, List, Optional, Sequence

from .commands import run_command
from .files import (
    FILE_LIMIT,
    Stat,
    clean_name,
    error_name,
    file_status,
    list_names,
    open_regular,
    read_bytes,
    read_head,
    tree_size,
)
from .mounts import Mounts, mounted_disks
from .network import network_interfaces, owned_listeners
from .processes import process_table
from .python.elf import file_versions
from .wheels import record_digest, wheel_record


class Machine:
    """This machine, or the tree below `root` instead (an image, a test); then no command is run and no table read.

    Paths that are passed in contain no links (`Recorder` resolves them), so nothing outside `root` is reached.
    """

    def __init__(self, root: str = "") -> None:
        self.root = root.rstrip("/")
        self.runs = not self.root  # whether commands are run and tables read
        self.users: FrozenSet[int] = frozenset()  # who named what is read next: root reads only what they may read, too
        self.mounts = Mounts()
        self._tables: Dict[str, Any] = {}

    def lstat(self, path: str) -> Stat:
        """Return the status of `path` itself; raises OSError, ETIMEDOUT for a mount that does not answer."""
        self.mounts.enter(self.root + path)
        return file_status(os.lstat(self.root + path))

    def stat(self, path: str) -> Stat:
        """Return the status of the target of a link in a kernel tree."""
        return file_status(os.stat(self.root + path))

    def read_bytes(self, path: str, limit: int = FILE_LIMIT) -> bytes:
        """Return the content of a regular file; raises OSError, EFBIG for more than `limit` bytes."""
        return read_bytes(self.root + path, limit, self.users)

    def read_head(self, path: str) -> bytes:
        """Return the first HEAD_SIZE bytes of a regular file; raises OSError."""
        return read_head(self.root + path, self.users)

    def readlink(self, path: str) -> str:
        """Return the text of a symbolic link; raises OSError."""
        return os.readlink(self.root + path)

    def listdir(self, path: str) -> List[str]:
        """Return the names in a directory, unsorted and as the system encodes them; raises OSError."""
        return list_names(self.root + path, self.users)

    def run(self, argv: Sequence[str], timeout: float = 5.0) -> Optional[Dict[str, Any]]:
        """Return a row of `run_command`; None if commands are not run."""
        return run_command(argv, timeout) if self.runs else None

    def record_digest(self, path: str) -> str:
        """Return the `record_digest` of a wheel (`*.whl`) or of a RECORD file; raises OSError."""
        if path.endswith(".whl"):
            return record_digest(wheel_record(self.root + path))
        return record_digest(self.read_bytes(path).decode("utf-8", "replace"))

    def runtime_versions(self, path: str) -> str:
        """Return the `runtime_versions` of a library; raises OSError."""
        return file_versions(open_regular(self.root + path, self.users))

    def tree_size(self, path: str) -> str:
        """Return the `tree_size` of a directory; raises OSError."""
        return tree_size(self.root + path, self.users)

    def identity(self) -> Dict[str, Any]:
        """Return uname, euid, cwd and the time, in the form of the manifest."""
        import time

        names = os.uname()
        try:
            cwd = os.getcwd()
        except OSError:
            cwd = "/"  # the working directory was deleted
        return {
            "uname": {key: getattr(names, key) for key in ("sysname", "nodename", "release", "machine")},
            "euid": os.geteuid(),
            "cwd": clean_name(cwd),
            "now": round(time.time(), 3),
        }

    def processes(self) -> Any:
        """Return the process table, read once."""
        if "processes" not in self._tables:
            self._tables["processes"] = _table(lambda: process_table(self._has_devices()))
        return self._tables["processes"]

    def _has_devices(self) -> bool:
        try:
            return any(re.match(r"davinci[0-9]", name) for name in self.listdir("/dev"))
        except OSError:
            return False

    def tables(self) -> Dict[str, Any]:
        """Return processes, listeners, interfaces, disks; `{"error": ...}` for one that could not be read."""
        if not self.runs:
            return {}
        self.processes()
        self._tables["listeners"] = _table(owned_listeners)
        self._tables["interfaces"] = _table(network_interfaces)
        self._tables["disks"] = _table(mounted_disks)
        return self._tables


def _table(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except OSError as error:
        return {"error": error_name(error)}
