"""What every kind of operation can do."""

import os
from typing import ClassVar, Optional

from ..common import Record
from ..directories import Directory
from ..problems import RefusedError
from ..run_directory import RunDirectory
from ..validators import Members


class Operation:
    """One operation of a plan; `wire` is its JSON form, `subject` what messages call it.

    `saved` is what `backup` returned. From `is_applied` on, every method may be called again after a crash at any point
    of it.
    """

    members: ClassVar[Members]  # of the JSON form, besides `op` and `expect`

    def __init__(self, wire: Record) -> None:
        self.wire = wire
        self.subject = str(wire["op"])
        self.planned: Optional[str] = wire.get("expect")  # what the plan expects `observe` to say before

    def observe(self) -> str:
        """Return what is there now, as text that can be compared. Raises RefusedError when it may not be touched."""
        raise NotImplementedError

    def final_state(self) -> str:
        """Return what `observe` says once it is applied; empty when that cannot be known before."""
        return ""

    def backup(self, directory: RunDirectory) -> Record:
        """Keep everything that is needed to undo it: a record with `was`, what `observe` says; bytes in files."""
        return {"was": self.observe()}

    def apply(self, saved: Record, directory: RunDirectory) -> None:
        """Write. Raises OSError or ExecutorError."""
        raise NotImplementedError

    def is_applied(self, saved: Record) -> bool:
        """Return whether the host is now as the operation wants it."""
        return self.observe() == self.final_state()

    def changed_by_others(self, saved: Record, step: Record) -> str:
        """Return what is there now if it is neither what was there nor what the step left, else nothing."""
        return ""

    def save_copy(self, directory: RunDirectory) -> Optional[str]:
        """Keep what is there now; the name of the copy, or None."""
        return None

    def revert(self, saved: Record, directory: RunDirectory) -> None:
        """Undo it. Raises OSError or ExecutorError."""
        raise NotImplementedError

    def is_reverted(self, saved: Record) -> bool:
        """Return whether the host is as it was."""
        return bool(self.observe() == saved["was"])

    def clean_up(self, saved: Record) -> None:
        """Remove what a killed run left on the host."""


def temporary_name() -> str:
    """Return a name that nobody can take beforehand."""
    return ".envtune-%d-%s" % (os.getpid(), os.urandom(4).hex())


def require_same_directory(directory: Directory, saved: Record) -> None:
    """Refuse a directory that its owner has put in the place of the one that `saved` is about; closes it then.

    Where only root can do that there is nothing to refuse, and after a reboot device numbers tell nothing.
    """
    device, inode = saved.get("parent") or (0, 0)
    now = directory.identity()
    if directory.owner is not None and now[0] == device and now[1] != inode:
        os.close(directory.descriptor)
        raise RefusedError("directory-exchanged", path=directory.path)
