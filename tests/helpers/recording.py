"""A recorded host in the place of the live machine, so that the collector can be run on it."""

from __future__ import annotations

import errno
from typing import Any, Callable, Mapping, Optional, Sequence, TypeVar

from envtune.collector.files import FILE_LIMIT, Stat
from envtune.collector.machine import Machine
from envtune.collector.snapshot import take
from envtune.errors import Denied, HostError, Missing, NotRecorded, TimedOut
from envtune.snapshot.host import SnapshotHost

T = TypeVar("T")


class RecordedMachine(Machine):
    """What the collector sees when it runs on the machine that `host` was recorded from."""

    def __init__(self, host: SnapshotHost) -> None:
        super().__init__()
        self.host = host

    def lstat(self, path: str) -> Stat:
        return self._stat(path, False)

    def stat(self, path: str) -> Stat:
        return self._stat(path, True)

    def _stat(self, path: str, follow: bool) -> Stat:
        found = _as_kernel(lambda: self.host.stat(path, follow), path)
        return Stat(*found)

    def read_bytes(self, path: str, limit: int = FILE_LIMIT) -> bytes:
        return _as_kernel(lambda: self.host.read_bytes(path), path)

    def read_head(self, path: str) -> bytes:
        return _as_kernel(lambda: self.host.head(path), path)

    def readlink(self, path: str) -> str:
        return _as_kernel(lambda: self.host.readlink(path), path)

    def listdir(self, path: str) -> list[str]:
        return list(_as_kernel(lambda: self.host.listdir(path), path))

    def record_digest(self, path: str) -> str:
        return _as_kernel(lambda: self.host.record_digest(path), path)

    def runtime_versions(self, path: str) -> str:
        return _as_kernel(lambda: self.host.runtime_versions(path), path)

    def tree_size(self, path: str) -> str:
        return _as_kernel(lambda: self.host.tree_size(path), path)

    def identity(self) -> dict[str, Any]:
        host = self.host
        return {"uname": dict(host.uname), "euid": host.euid, "cwd": host.cwd, "now": host.now}

    def run(self, argv: Sequence[str], timeout: float = 5.0) -> Optional[dict[str, Any]]:
        line = list(argv)
        try:
            result = self.host.run(argv)
        except NotRecorded:
            return None
        except Missing:
            return {"argv": line, "error": "missing"}
        except Denied:
            return {"argv": line, "error": "denied"}
        except HostError:
            return {"argv": line, "error": "timeout", "seconds": timeout}
        return {"argv": line, "rc": result.returncode, "stdout": result.stdout, "stderr": result.stderr}

    def processes(self) -> Any:
        return self._plain("processes")

    def tables(self) -> dict[str, Any]:
        names = ("processes", "listeners", "interfaces", "disks")
        return {name: self._plain(name) for name in names if self.host.data.get(name) is not None}

    def _plain(self, name: str) -> Any:
        table = self.host.data.get(name)
        if not isinstance(table, list):
            return table
        return [{k: list(v) if isinstance(v, tuple) else v for k, v in row.items()} for row in table]


def _as_kernel(read: Callable[[], T], path: str) -> T:
    """The answer, or the OSError that a kernel would give in this place."""
    codes: Mapping[type, int] = {Missing: errno.ENOENT, Denied: errno.EACCES, TimedOut: errno.ETIMEDOUT}
    try:
        return read()
    except HostError as error:
        raise OSError(codes.get(type(error), errno.EIO), str(error), path) from None


def recorded_again(host: SnapshotHost) -> SnapshotHost:
    """The snapshot that the collector takes on the machine `host` was recorded from."""
    target = {"python": None, "pid": None, "script": None, "env_file": None, **host.data["target"]}
    return SnapshotHost(take(target, RecordedMachine(host), host.environ))
