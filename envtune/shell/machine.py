"""What reading a script asks of the machine it would run on."""

from __future__ import annotations

from typing import Mapping, Protocol

from envtune.model import FileStat


class Machine(Protocol):
    """A machine whose files can be read. Every method raises `HostError`s only."""

    uname: Mapping[str, str]  # `machine` is what `uname -m` prints

    def read(self, path: str) -> str:
        """Return the text of a file."""

    def read_bytes(self, path: str) -> bytes:
        """Return the content of a file."""

    def stat(self, path: str, follow: bool = True) -> FileStat:
        """Return what kind of thing is at `path`."""

    def readlink(self, path: str) -> str:
        """Return the text of a symbolic link."""
