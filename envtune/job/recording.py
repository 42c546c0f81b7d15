"""Read the job's environment through a recorder, so that a recording holds every file that the audit will ask for.

The collector travels alone and follows launch scripts with a few regular expressions; where envtune is installed, its
shell interpreter reads them through the recorder.
"""

from __future__ import annotations

from typing import Any, Callable, Iterator, Mapping, NamedTuple, TypeVar

from envtune.collector.snapshot import pack, take
from envtune.host import host_error
from envtune.job.environment import declared_environment, read_environment
from envtune.job.target import TargetOptions

T = TypeVar("T")


class _RecorderHost:
    """A recorder that raises the errors of a `Host`."""

    def __init__(self, recorder: Any) -> None:
        self._recorder = recorder
        self.environ, self.uname, self.cwd = recorder.environ, recorder.uname, recorder.cwd

    def read(self, path: str) -> str:
        return _translated(lambda: str(self._recorder.read(path)), path)

    def read_bytes(self, path: str) -> bytes:
        return _translated(lambda: bytes(self._recorder.read_bytes(path)), path)

    def stat(self, path: str, follow: bool = True) -> Any:
        return _translated(lambda: self._recorder.stat(path, follow), path)

    def readlink(self, path: str) -> str:
        return _translated(lambda: str(self._recorder.readlink(path)), path)


def _translated(read: Callable[[], T], path: str) -> T:
    try:
        return read()
    except OSError as error:
        raise host_error(error, path) from None


def record_environment(recorder: Any, options: TargetOptions) -> None:
    """Record what names the job's environment; the recorder looks afterwards where its variables point to."""
    host: Any = _RecorderHost(recorder)
    if options.pid is not None and (options.script is not None or options.env_file is not None):
        declared_environment(host, options)
    environment = read_environment(host, options)
    if environment.variables is not None and options.named:
        recorder.variables.update(environment.variables)


class Recording(NamedTuple):
    """A snapshot of this host as a tar.gz, and what is there and could not be read: paths, commands and tables."""

    data: bytes
    unread: tuple[str, ...]


def record_host(target: TargetOptions) -> Recording:
    """Record this host and the job's environment; reads only."""
    named = {"python": target.python, "pid": target.pid, "script": target.script, "env_file": target.env_file}
    snapshot = take(named, more=lambda recorder: record_environment(recorder, target))
    return Recording(pack(snapshot), tuple(_unread(snapshot)))


def _unread(snapshot: Mapping[str, Any]) -> Iterator[str]:
    for path, entry in snapshot.get("files", {}).items():
        if isinstance(entry, Mapping) and "error" in entry:
            yield path
    for row in snapshot.get("commands", ()):
        if row.get("error", "missing") != "missing":
            yield " ".join(row["argv"])
    yield from (name for name, table in snapshot.items() if isinstance(table, Mapping) and set(table) == {"error"})
