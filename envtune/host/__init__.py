"""The host interface: envtune reads everything through `Host`.

`LocalHost` is the live machine, `SnapshotHost` a recorded one. Both have the same methods and raise the same errors
(`Missing`, `Denied`, `TimedOut`, `Unreadable`, `NotRecorded`), so checks do not know which one they read.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from types import ModuleType
from typing import Any, Callable, Iterable, Mapping, Optional, Protocol, Sequence, TypeVar

from envtune.collector import network, processes
from envtune.collector.commands import run_command
from envtune.collector.files import file_status, list_names, open_regular, read_bytes, read_head, tree_size
from envtune.collector.glob import glob_paths
from envtune.collector.mounts import Mounts, disk_space
from envtune.collector.owners import job_users
from envtune.collector.paths import LinkLoop, real_path
from envtune.errors import NO_COMMAND, Denied, HostError, Missing, ReadFailed, TimedOut, Unreadable
from envtune.model import CommandResult, Disk, FileStat, Interface, Listener, Process

T = TypeVar("T")


class Host(Protocol):
    """A machine that can be read. Paths are absolute; methods raise only `HostError`s."""

    name: str
    live: bool
    uname: Mapping[str, str]  # sysname, nodename, release, machine
    euid: int
    cwd: str
    now: float  # seconds since the epoch at which the host was (or is being) read
    environ: Mapping[str, str]  # of the process that reads the host

    def read(self, path: str) -> str:
        """Return the text of a regular file."""

    def read_bytes(self, path: str) -> bytes:
        """Return the content of a regular file."""

    def head(self, path: str) -> bytes:
        """Return the first 64 bytes of a regular file of any size: enough for the header of a library."""

    def stat(self, path: str, follow: bool = True) -> FileStat:
        """Return the status of `path`."""

    def readlink(self, path: str) -> str:
        """Return the target of a symbolic link."""

    def listdir(self, path: str) -> tuple[str, ...]:
        """Return the sorted names in a directory."""

    def glob(self, pattern: str) -> tuple[str, ...]:
        """Return the sorted paths that match a shell pattern (`*`, `?`, `[...]`; `*` does not match a slash)."""

    def record_digest(self, path: str) -> str:
        """Return the `record_digest` of a wheel (`*.whl`) or of a RECORD file."""

    def runtime_versions(self, path: str) -> str:
        """Return the `runtime_versions` of a library: `needs:GLIBC_2.28 provides:GLIBCXX_3.4.30`."""

    def tree_size(self, path: str) -> str:
        """Return the `tree_size` of a directory: `bytes:1048576 files:12 complete`."""

    def run(self, argv: Sequence[str], timeout: float = 5.0) -> CommandResult:
        """Run a read-only command; raises Missing, Denied or TimedOut (its process group is killed)."""

    def processes(self) -> tuple[Process, ...]:
        """Return the process table."""

    def listeners(self) -> tuple[Listener, ...]:
        """Return the listening TCP sockets, without owners."""

    def owner(self, listener: Listener) -> Listener:
        """Return the same socket with its owner, if this user may read it."""

    def interfaces(self) -> tuple[Interface, ...]:
        """Return the network interfaces and their addresses."""

    def disk(self, path: str) -> Disk:
        """Return the capacity of the file system that contains `path`."""


def exists(host: Host, path: str) -> bool:
    """Return whether `path` exists. Denied, NotRecorded and the like are raised: they are not an answer."""
    try:
        host.stat(path)
    except Missing:
        return False
    return True


def is_dir(host: Host, path: str) -> bool:
    """Return whether `path` is a directory (or a link to one)."""
    try:
        return host.stat(path).kind == "dir"
    except Missing:
        return False


def disk_of(host: Host, path: str) -> Disk:
    """Return the file system that contains `path`, or will contain it once created; raises HostError."""
    try:
        return host.disk(path)
    except Missing:
        above = os.path.dirname(path)
        if above == path:
            raise
        return disk_of(host, above)


def realpath(host: Host, path: str) -> str:
    """Return `path` with every link followed; raises `Missing` for a dangling one, `Unreadable` for a loop."""
    try:
        return real_path(host, path)
    except LinkLoop:
        raise Unreadable(path, "too many levels of symbolic links") from None
    except HostError:
        raise
    except OSError as error:
        raise host_error(error, path) from None


def descendants(table: Iterable[Process], pid: int) -> frozenset[int]:
    """Return the pids of a process and of all its descendants."""
    children: dict[int, list[int]] = {}
    for process in table:
        children.setdefault(process.ppid, []).append(process.pid)
    found, left = {pid}, [pid]
    while left:
        new = [child for child in children.get(left.pop(), ()) if child not in found]
        found.update(new)
        left += new
    return frozenset(found)


def host_error(error: OSError, path: str) -> HostError:
    """Return the `HostError` for an operating system error about `path`."""
    if isinstance(error, HostError):
        return error
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ENXIO):
        return Missing(path)
    if error.errno in (errno.EACCES, errno.EPERM):
        return Denied(path)
    if error.errno in (errno.ETIMEDOUT, errno.ESTALE):
        return TimedOut(path, error.strerror or "")
    return ReadFailed(path, error.strerror or str(error))


class LocalHost:
    """The machine envtune runs on. Everything is read once per run: two checks never see two states of one file."""

    live = True

    def __init__(self) -> None:
        names = os.uname()
        self.uname: Mapping[str, str] = {
            "sysname": names.sysname,
            "nodename": names.nodename,
            "release": names.release,
            "machine": names.machine,
        }
        self.name = names.nodename
        self.euid = os.geteuid()
        self.now = time.time()
        self.environ: Mapping[str, str] = dict(os.environ)
        try:
            self.cwd = os.getcwd()
        except OSError:
            self.cwd = "/"  # the working directory was deleted
        self.users: frozenset[int] = frozenset()  # who name what is read: root reads only what they may read, too
        self._memory: dict[tuple[str, ...], Any] = {}
        self._mounts = Mounts()

    def name_readers(self, target: Mapping[str, Any]) -> None:
        """From now on, also read as the owners of what names the job (see `job_users`)."""
        self.users = job_users(target, self._mounts.guard)

    def _file(self, kind: str, path: str, read: Callable[[], T]) -> T:
        """Answer a question about a path once; the path may be on a mount that hangs."""

        def guarded() -> T:
            self._mounts.guard(path)
            return read()

        return self._once((kind, path), path, guarded)

    def _once(self, key: tuple[str, ...], path: str, read: Callable[[], T]) -> T:
        if key not in self._memory:
            try:
                self._memory[key] = read()
            except OSError as error:
                self._memory[key] = host_error(error, path)
        value = self._memory[key]
        if isinstance(value, HostError):
            raise value.with_traceback(None)
        return value  # type: ignore[no-any-return]

    def read_bytes(self, path: str) -> bytes:
        """Return the content of a regular file of at most 4 MiB."""
        return self._file("read", path, lambda: read_bytes(path, users=self.users))

    def read(self, path: str) -> str:
        """Return the text of a regular file; raises Unreadable if it is not UTF-8."""
        return decode(path, self.read_bytes(path))

    def head(self, path: str) -> bytes:
        """Return the first 64 bytes of a regular file."""
        return self._file("head", path, lambda: read_head(path, self.users))

    def stat(self, path: str, follow: bool = True) -> FileStat:
        """Return the status of `path`; without `follow`, that of a link itself."""
        if follow:
            return self._file("stat", path, lambda: FileStat(*file_status(os.stat(path))))
        return self._file("lstat", path, lambda: FileStat(*file_status(os.lstat(path))))

    def readlink(self, path: str) -> str:
        """Return the target of a symbolic link."""
        return self._file("link", path, lambda: os.readlink(path))

    def listdir(self, path: str) -> tuple[str, ...]:
        """Return the sorted names in a directory."""
        return self._file("list", path, lambda: tuple(sorted(list_names(path, self.users))))

    def glob(self, pattern: str) -> tuple[str, ...]:
        """Return the sorted paths that match a shell pattern, without entering a mount that hangs."""
        return self._once(("glob", pattern), pattern, lambda: tuple(glob_paths(self, pattern)))

    def record_digest(self, path: str) -> str:
        """Return the `record_digest` of a wheel (`*.whl`) or of a RECORD file."""

        def digest() -> str:
            from envtune.collector.wheels import record_digest, wheel_record

            if path.endswith(".whl"):
                return record_digest(wheel_record(path))
            return record_digest(self.read(path))

        return self._file("digest", path, digest)

    def runtime_versions(self, path: str) -> str:
        """Return the `runtime_versions` of a library; raises Unreadable if it is not one."""

        def versions() -> str:
            from envtune.collector.python.elf import file_versions

            return file_versions(open_regular(path, self.users))

        return self._file("versions", path, versions)

    def tree_size(self, path: str) -> str:
        """Return the `tree_size` of a directory, from a bounded part of its content."""
        return self._file("size", path, lambda: tree_size(path, self.users))

    def run(self, argv: Sequence[str], timeout: float = 5.0) -> CommandResult:
        """Run a read-only command; raises TimedOut after `timeout` seconds."""
        line = " ".join(argv)
        return self._once(("run", *argv), line, lambda: command_result(run_command(argv, timeout)))

    def processes(self) -> tuple[Process, ...]:
        """Return the process table."""

        def table() -> tuple[Process, ...]:
            rows = _tables(processes).process_table(bool(self.glob("/dev/davinci*")))
            return tuple(Process(**_tuples(row)) for row in rows)

        return self._once(("processes",), "/proc", table)

    def listeners(self) -> tuple[Listener, ...]:
        """Return the listening TCP sockets, without owners."""
        return tuple(row for row, _ in self._sockets())

    def _sockets(self) -> tuple[tuple[Listener, int], ...]:
        def sockets() -> tuple[tuple[Listener, int], ...]:
            rows = _tables(network).listening_sockets()
            return tuple((Listener(r["address"], r["port"]), r["inode"]) for r in rows)

        return self._once(("listeners",), "/proc/net/tcp", sockets)

    def owner(self, listener: Listener) -> Listener:
        """Return the same socket with its owner; reads the descriptors of every process to find it."""
        inodes = [
            inode for row, inode in self._sockets() if row.address == listener.address and row.port == listener.port
        ]
        for pid, process in network.socket_owners(inodes).values():
            return Listener(listener.address, listener.port, pid, process)
        return listener

    def interfaces(self) -> tuple[Interface, ...]:
        """Return the network interfaces and their addresses."""

        def table() -> tuple[Interface, ...]:
            return tuple(Interface(**_tuples(row)) for row in _tables(network).network_interfaces())

        return self._once(("interfaces",), "/sys/class/net", table)

    def disk(self, path: str) -> Disk:
        """Return the capacity of the file system that holds `path`, in bytes."""
        return self._file("disk", path, lambda: Disk(**disk_space(path)))


def _tables(linux: ModuleType) -> Any:
    """Return what reads processes, sockets and interfaces: the collector from /proc, psutil on systems without it."""
    if sys.platform == "linux":  # without /proc it raises an error; psutil would find nothing there, or fail
        return linux
    from envtune.host import psutil_tables

    return psutil_tables


def decode(path: str, data: bytes) -> str:
    """Decode UTF-8 text; raises Unreadable for anything else, because a verdict on mangled text would be a guess."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Unreadable(path, f"not text: {error.reason} at byte {error.start}") from None
    if "\0" in text:
        raise Unreadable(path, f"not text: NUL at character {text.index(chr(0))}")
    return text


def command_result(row: Mapping[str, Any]) -> CommandResult:
    """Return a collector row as a result; raises HostError if the command did not end by itself."""
    argv = tuple(row["argv"])
    line = " ".join(argv)
    error: Optional[str] = row.get("error")
    if error == "missing":
        raise Missing(line, NO_COMMAND)
    if error == "denied":
        raise Denied(line, row.get("untrusted", ""))
    if error not in (None, "timeout"):
        raise Unreadable(line, f"it could not be started: {error}")
    if error is not None:
        raise TimedOut(line, f"no response within {row.get('seconds', '?')} s")
    return CommandResult(argv, row["rc"], row.get("stdout", ""), row.get("stderr", ""))


def _tuples(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
