"""The files that a command writes: saved before it runs, and restored byte by byte when it is undone.

A tool that reverts a setting leaves other traces: a zone's file where only the vendor's existed, a `.old` copy, lines
in a different order. Files that somebody else has changed since are left alone.
"""

import json
import os
import time
from typing import List

from ..common import Record
from ..files import digest, read_content
from ..run_directory import RunDirectory
from .file import FileOperation

_END = 30.0  # seconds within which a command has written if its run was killed before that was noted


class WrittenFiles:
    """The files at `paths`. Their saved state is in `saved["files"]`; `saved["notes"]` names files with notes."""

    def __init__(self, paths: List[str]) -> None:
        self._files = [FileOperation({"op": "file", "path": path, "content": None}) for path in paths]

    def backup(self, directory: RunDirectory) -> List[Record]:
        """Save every file; for one that does not exist, the missing parent directories."""
        return [file.backup(directory) for file in self._files]

    def _current(self) -> List[str]:
        return [digest(read_content(file.path)) for file in self._files]

    def note_written(self, saved: Record, directory: RunDirectory) -> None:
        """Note their content after the command."""
        text = json.dumps(self._current()).encode("ascii")
        directory.write_private(saved["notes"] + ".left", lambda file: file.write(text))

    def are_unchanged(self, saved: Record) -> bool:
        """Return whether nobody else wrote them since the command did, or since an undo of it began."""
        if os.path.exists(saved["notes"] + ".undoing"):
            return True
        if os.path.exists(saved["notes"] + ".left"):
            with open(saved["notes"] + ".left", "rb") as file:
                return bool(json.loads(file.read().decode("ascii")) == self._current())
        return all(_last_change(file.path) <= saved["time"] + _END for file in self._files)

    def are_restored(self, saved: Record) -> bool:
        """Return whether they are restored."""
        return self._current() == [kept["was"] for kept in saved["files"]]

    def begin_undo(self, saved: Record, directory: RunDirectory) -> None:
        """Note that they will be restored, before anything is undone."""
        if not os.path.exists(saved["notes"] + ".undoing"):
            directory.write_private(saved["notes"] + ".undoing", lambda file: file.write(b""))

    def restore(self, saved: Record, directory: RunDirectory) -> None:
        """Restore every file. Raises FailedError, OSError."""
        for file, kept in zip(self._files, saved["files"]):
            file.revert(kept, directory)  # even if the text is the same: the tool may have changed mode and owner
        self.clean_up(saved)

    def clean_up(self, saved: Record) -> None:
        """Remove temporary files, and the directories that were created for files that do not exist."""
        for file, kept in zip(self._files, saved["files"]):
            file.clean_up(kept)


def kept_at(directory: RunDirectory) -> Record:
    """Return where notes on one step go, and the time."""
    return {"notes": os.path.join(directory.path, directory.save(b"")), "time": time.time()}


def _last_change(path: str) -> float:
    try:
        return os.lstat(path).st_mtime
    except FileNotFoundError:
        return 0.0
