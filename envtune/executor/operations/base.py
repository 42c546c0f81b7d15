"""The interface of every kind of operation."""

import os
from typing import ClassVar, Optional

from ..common import Record
from ..directories import Directory
from ..problems import RefusedError
from ..run_directory import RunDirectory
from ..validators import Members


class Operation:
    """One operation of a plan; `wire` is its JSON form, `subject` what messages call it.

    `saved` is what `backup` returned. From `is_applied` on, every method may be called again after a crash at any
    point.
    """

    members: ClassVar[Members]  # of the JSON form, in addition to `op` and `expect`

    def __init__(self, wire: Record) -> None:
        self.wire = wire
        self.subject = str(wire["op"])
        self.planned: Optional[str] = wire.get("expect")  # what the plan expects `observe` to return beforehand

    def observe(self) -> str:
        """Return the current state as text that can be compared. Raises RefusedError if it must not be touched."""
        raise NotImplementedError

    def final_state(self) -> str:
        """Return what `observe` will return once it is applied; empty if that cannot be known beforehand."""
        return ""

    def backup(self, directory: RunDirectory) -> Record:
        """Keep everything that is needed to undo it: a record with `was`, the result of `observe`; bytes in files."""
        return {"was": self.observe()}

    def apply(self, saved: Record, directory: RunDirectory) -> None:
        """Write. Raises OSError or ExecutorError."""
        raise NotImplementedError

    def is_applied(self, saved: Record) -> bool:
        """Return whether the host is now in the intended state."""
        return self.observe() == self.final_state()

    def changed_by_others(self, saved: Record, step: Record) -> str:
        """Return the current state if it is neither the original nor what the step left, else an empty string."""
        return ""

    def save_copy(self, directory: RunDirectory) -> Optional[str]:
        """Keep a copy of the current state; return its name, or None."""
        return None

    def revert(self, saved: Record, directory: RunDirectory) -> None:
        """Undo it. Raises OSError or ExecutorError."""
        raise NotImplementedError

    def is_reverted(self, saved: Record) -> bool:
        """Return whether the original state is restored."""
        return bool(self.observe() == saved["was"])

    def clean_up(self, saved: Record) -> None:
        """Remove what a killed run left on the host."""


def temporary_name() -> str:
    """Return a name that nobody can predict."""
    return ".envtune-%d-%s" % (os.getpid(), os.urandom(4).hex())


def require_same_directory(directory: Directory, saved: Record) -> None:
    """Refuse, and close, a directory that its owner has substituted for the one that `saved` describes.

    If only root can do that there is nothing to refuse, and after a reboot device numbers mean nothing.
    """
    device, inode = saved.get("parent") or (0, 0)
    now = directory.identity()
    if directory.owner is not None and now[0] == device and now[1] != inode:
        os.close(directory.descriptor)
        raise RefusedError("directory-exchanged", path=directory.path)
