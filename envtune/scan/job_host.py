"""The host of a launch file's job: nothing is read from it, so that a scan has the same result everywhere."""

from __future__ import annotations

import time
from typing import Iterator, Mapping, NoReturn, Sequence

from envtune.context import Context
from envtune.context.open import Expectations
from envtune.context.registry import fact_names
from envtune.errors import Elsewhere
from envtune.job.target import JobEnvironment, Target, TargetOptions
from envtune.messages import Message
from envtune.model import CommandResult, Disk, Fact, FileStat, Interface, Listener, Process

UNREAD = Message("the job's host was not read")


class UnreadHost:
    """A host that answers no question. Every method raises Elsewhere."""

    name = ""
    live = False
    uname: Mapping[str, str] = {"sysname": "Linux", "nodename": "", "release": "", "machine": ""}
    euid = 1
    cwd = "/"
    environ: Mapping[str, str] = {}

    def __init__(self) -> None:
        self.now = time.time()  # for the expiry of waivers

    def _refuse(self, path: str) -> NoReturn:
        raise Elsewhere(path)

    def read(self, path: str) -> str:
        """Raise Elsewhere."""
        self._refuse(path)

    def read_bytes(self, path: str) -> bytes:
        """Raise Elsewhere."""
        self._refuse(path)

    def head(self, path: str) -> bytes:
        """Raise Elsewhere."""
        self._refuse(path)

    def stat(self, path: str, follow: bool = True) -> FileStat:
        """Raise Elsewhere."""
        self._refuse(path)

    def readlink(self, path: str) -> str:
        """Raise Elsewhere."""
        self._refuse(path)

    def listdir(self, path: str) -> tuple[str, ...]:
        """Raise Elsewhere."""
        self._refuse(path)

    def glob(self, pattern: str) -> tuple[str, ...]:
        """Raise Elsewhere."""
        self._refuse(pattern)

    def record_digest(self, path: str) -> str:
        """Raise Elsewhere."""
        self._refuse(path)

    def runtime_versions(self, path: str) -> str:
        """Raise Elsewhere."""
        self._refuse(path)

    def tree_size(self, path: str) -> str:
        """Raise Elsewhere."""
        self._refuse(path)

    def run(self, argv: Sequence[str], timeout: float = 5.0) -> CommandResult:
        """Raise Elsewhere."""
        self._refuse(" ".join(argv))

    def processes(self) -> tuple[Process, ...]:
        """Raise Elsewhere."""
        self._refuse("/proc")

    def listeners(self) -> tuple[Listener, ...]:
        """Raise Elsewhere."""
        self._refuse("/proc/net/tcp")

    def owner(self, listener: Listener) -> Listener:
        """Raise Elsewhere."""
        self._refuse("/proc")

    def interfaces(self) -> tuple[Interface, ...]:
        """Raise Elsewhere."""
        self._refuse("/sys/class/net")

    def disk(self, path: str) -> Disk:
        """Raise Elsewhere."""
        self._refuse(path)


def job_context(environment: JobEnvironment, host: UnreadHost, expectations: Expectations) -> Context:
    """Return the context for checking a job of which only the environment is known."""
    target = Target(TargetOptions(), None, UNREAD, environment)
    return Context(host, target, {fact.name: fact for fact in _facts(environment)}, expectations)


def _facts(environment: JobEnvironment) -> Iterator[Fact]:
    known = {"ascend_job": "true", "ascend": "unread", "system": "Linux"}
    for name in fact_names():
        value = known.get(name)
        yield Fact(name, value, environment.description, None if value is not None else UNREAD)
