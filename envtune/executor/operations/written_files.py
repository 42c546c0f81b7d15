"""The files that a command writes: kept before it runs, and put back byte by byte when it is undone.

A tool that takes a setting back leaves what it wrote on the way: a zone's file where there was only the vendor's, a
`.old` beside it, lines in another order. Files that somebody else changed since stay as they are.
"""

import json
import os
import time
from typing import List

from ..common import Record
from ..files import digest, read_content
from ..run_directory import RunDirectory
from .file import FileOperation

_END = 30.0  # seconds within which a command has written, whose run was killed before that was noted


class WrittenFiles:
    """The files at `paths`. What is kept of them is in `saved["files"]`; `saved["notes"]` names files beside them."""

    def __init__(self, paths: List[str]) -> None:
        self._files = [FileOperation({"op": "file", "path": path, "content": None}) for path in paths]

    def backup(self, directory: RunDirectory) -> List[Record]:
        """Keep every file as it is; of one that is not there, the parent directories that are missing."""
        return [file.backup(directory) for file in self._files]

    def _current(self) -> List[str]:
        return [digest(read_content(file.path)) for file in self._files]

    def note_written(self, saved: Record, directory: RunDirectory) -> None:
        """Note what the command has left in them."""
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
        """Return whether they are as they were."""
        return self._current() == [kept["was"] for kept in saved["files"]]

    def begin_undo(self, saved: Record, directory: RunDirectory) -> None:
        """Note that they will be put back, before anything is undone."""
        if not os.path.exists(saved["notes"] + ".undoing"):
            directory.write_private(saved["notes"] + ".undoing", lambda file: file.write(b""))

    def restore(self, saved: Record, directory: RunDirectory) -> None:
        """Put every file back as it was. Raises FailedError, OSError."""
        for file, kept in zip(self._files, saved["files"]):
            file.revert(kept, directory)  # also where the text is the same: the tool may have changed mode and owner
        self.clean_up(saved)

    def clean_up(self, saved: Record) -> None:
        """Remove temporary files, and the directories that were made for files which are not there."""
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
