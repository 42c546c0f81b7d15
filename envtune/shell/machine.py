"""What reading a script needs from the machine it would run on."""

from __future__ import annotations

from typing import Mapping, Protocol

from envtune.errors import Missing, Unreadable
from envtune.model import FileStat
from envtune.shell.budget import PER_READ, Budget

MAX_PATH = 4095  # bytes of a path that Linux follows (PATH_MAX)


def script_text(path: str, data: bytes) -> str:
    """Return a script as a shell reads it, byte by byte: bytes that are not UTF-8 (GBK) are kept as in os.fsdecode.

    Raises Unreadable for NUL: UTF-16, or a program.
    """
    if b"\0" in data:
        raise Unreadable(path, f"not text: NUL at byte {data.index(0)}")
    return data.decode("utf-8", "surrogateescape")


class Machine(Protocol):
    """A machine whose files can be read. Methods raise only `HostError`s."""

    uname: Mapping[str, str]  # `machine` is what `uname -m` prints

    def read_bytes(self, path: str) -> bytes:
        """Return the content of a file."""

    def stat(self, path: str, follow: bool = True) -> FileStat:
        """Return the status of `path`."""

    def readlink(self, path: str) -> str:
        """Return the target of a symbolic link."""


class CountedMachine:
    """A machine on which every query is charged to a budget; overlong paths do not exist."""

    def __init__(self, machine: Machine, budget: Budget) -> None:
        self._machine, self._budget, self.uname = machine, budget, machine.uname

    def read(self, path: str) -> str:
        """Return the text of a file."""
        return script_text(path, self.read_bytes(path))

    def read_bytes(self, path: str) -> bytes:
        """Return the content of a file."""
        return self._machine.read_bytes(self._counted(path))

    def stat(self, path: str, follow: bool = True) -> FileStat:
        """Return the status of `path`."""
        return self._machine.stat(self._counted(path), follow)

    def readlink(self, path: str) -> str:
        """Return the target of a symbolic link."""
        return self._machine.readlink(self._counted(path))

    def _counted(self, path: str) -> str:
        self._budget.look(PER_READ + len(path))
        if len(path) > MAX_PATH:
            raise Missing(path)
        return path
