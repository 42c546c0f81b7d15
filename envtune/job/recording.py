"""Read the job's environment through a recorder, so that a recording contains every file that the audit will read.

The collector is stand-alone and follows launch scripts with a few regular expressions; if envtune is installed, its
shell interpreter reads them through the recorder.
"""

from __future__ import annotations

from typing import Any, Callable, Iterator, Mapping, NamedTuple, Sequence, TypeVar

from envtune.collector.snapshot import pack, take
from envtune.errors import NotRecorded
from envtune.host import command_result, host_error
from envtune.job.environment import declared_environment, read_environment
from envtune.job.target import TargetOptions
from envtune.model import CommandResult, Disk, Process

T = TypeVar("T")


class _RecorderHost:
    """A recorder that raises the errors of a `Host`, and implements one for files, commands and processes."""

    live = True

    def __init__(self, recorder: Any) -> None:
        self._recorder = recorder
        self.environ, self.uname, self.cwd = recorder.environ, recorder.uname, recorder.cwd
        self.name, self.euid = recorder.uname["nodename"], recorder.identity["euid"]
        self.now = recorder.identity["now"]

    def read(self, path: str) -> str:
        return _translated(lambda: str(self._recorder.read(path)), path)

    def read_bytes(self, path: str) -> bytes:
        return _translated(lambda: bytes(self._recorder.read_bytes(path)), path)

    def stat(self, path: str, follow: bool = True) -> Any:
        return _translated(lambda: self._recorder.stat(path, follow), path)

    def readlink(self, path: str) -> str:
        return _translated(lambda: str(self._recorder.readlink(path)), path)

    def head(self, path: str) -> bytes:
        return _translated(lambda: bytes(self._recorder.head(path)), path)

    def listdir(self, path: str) -> tuple[str, ...]:
        return _translated(lambda: tuple(self._recorder.listdir(path)), path)

    def glob(self, pattern: str) -> tuple[str, ...]:
        return _translated(lambda: tuple(self._recorder.glob(pattern)), pattern)

    def run(self, argv: Sequence[str], timeout: float = 5.0) -> CommandResult:
        return command_result(self._recorder.run(argv, timeout))

    def processes(self) -> tuple[Process, ...]:
        rows = self._recorder.machine.processes()
        if not isinstance(rows, list):
            raise NotRecorded("processes")
        return tuple(Process(row["pid"], row["ppid"], row["user"], row["name"]) for row in rows)

    def disk(self, path: str) -> Disk:
        self.stat(path)
        raise NotRecorded(path, "the table of disks is recorded anyway")


def as_host(recorder: Any) -> Any:
    """Return the recorder as a `Host`: what is read through it is kept."""
    return _RecorderHost(recorder)


def _translated(read: Callable[[], T], path: str) -> T:
    try:
        return read()
    except OSError as error:
        raise host_error(error, path) from None


def record_environment(recorder: Any, options: TargetOptions) -> None:
    """Record what names the job's environment; afterwards the recorder follows the paths in its variables."""
    host = as_host(recorder)
    if options.pid is not None and (options.script is not None or options.env_file is not None):
        declared_environment(host, options)
    environment = read_environment(host, options)
    if environment.variables is not None and options.named:
        recorder.variables.update(environment.variables)


class Recording(NamedTuple):
    """A snapshot of this host as a tar.gz, and what exists but could not be read: paths, commands and tables."""

    data: bytes
    unread: tuple[str, ...]


def record_host(target: TargetOptions, more: Callable[[Any], None] = lambda recorder: None) -> Recording:
    """Record this host and the job's environment; reads only. `more` may read more through the recorder."""

    def record(recorder: Any) -> None:
        record_environment(recorder, target)
        more(recorder)

    named = {"python": target.python, "pid": target.pid, "script": target.script, "env_file": target.env_file}
    snapshot = take(named, more=record)
    return Recording(pack(snapshot), tuple(_unread(snapshot)))


def _unread(snapshot: Mapping[str, Any]) -> Iterator[str]:
    for path, entry in snapshot.get("files", {}).items():
        if isinstance(entry, Mapping) and "error" in entry:
            yield path
    for row in snapshot.get("commands", ()):
        if row.get("error", "missing") != "missing":
            yield " ".join(row["argv"])
    yield from (name for name, table in snapshot.items() if isinstance(table, Mapping) and set(table) == {"error"})
