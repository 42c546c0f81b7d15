"""Write or remove one file."""

import base64
import os
from typing import Optional

from ..common import Record
from ..directories import Directory, parent_of
from ..files import (
    digest,
    is_kernel_file,
    locked_by_flag,
    make_directories,
    missing_parents,
    normalized,
    read_content,
    read_file,
    remove_directory,
    remove_file,
    write_file,
)
from ..problems import FailedError, RefusedError
from ..run_directory import RunDirectory
from ..validators import Members, is_content, is_count, is_mode, is_path
from .base import Operation, require_same_directory, temporary_name


class FileOperation(Operation):
    """`{op: file, path, content|null, expect?, mode?, uid?, gid?}`: one regular or kernel file; null removes it.

    `content` is base64; `expect` is the digest of what must be there now. A new file gets mode (default 0644) and the
    writer's owner unless `uid`/`gid` are given; an existing one keeps its own. Missing directories are created (0755).
    """

    members = Members({"path": is_path, "content": is_content}, {"mode": is_mode, "uid": is_count, "gid": is_count})

    def __init__(self, wire: Record) -> None:
        super().__init__(wire)
        content = wire["content"]
        self.content = None if content is None else base64.b64decode(content)
        self.path = self.subject = wire["path"]

    def observe(self) -> str:
        """Return the digest of the normalized content, or `absent`; raises RefusedError unless it is a regular file."""
        return self._digest(read_content(self.path))

    def _digest(self, data: Optional[bytes]) -> str:
        return digest(normalized(self.path, data))

    def final_state(self) -> str:
        """Return the digest of the planned content, or `absent`."""
        return self._digest(self.content)

    def _require_replaceable(self, parent: Directory) -> None:
        """Raise RefusedError if chattr protects the file, or it does not belong to the user as whom root writes."""
        if is_kernel_file(self.path):
            return
        status = parent.status(os.path.basename(self.path))
        if status is not None and parent.owner is not None and status.st_uid != parent.owner.uid:
            user = parent.owner.uid
            raise RefusedError("file-of-another-user", path=self.path, owner=status.st_uid, user=user)
        locked = locked_by_flag(parent, self.path)
        if locked is not None:
            raise RefusedError("os-error", path=self.path, reason=locked)

    def backup(self, directory: RunDirectory) -> Record:
        """Keep the content and its metadata; for a file that does not exist, the missing parent directories."""
        saved: Record = {"temporary": os.path.join(os.path.dirname(self.path), temporary_name())}
        found = None
        try:
            with parent_of(self.path) as parent:
                self._require_replaceable(parent)
                saved["parent"] = parent.identity()
                found = read_file(parent, self.path)
        except FileNotFoundError:
            pass
        if found is None:
            saved.update(was="absent", missing=missing_parents(self.path))
        else:
            saved.update(original=directory.save(found[0]), was=self._digest(found[0]), meta=found[1])
        return saved

    def apply(self, saved: Record, directory: RunDirectory) -> None:
        """Replace or remove the file; raises RefusedError if it has changed since `backup`."""
        metadata = saved.get("meta")
        if metadata is None:
            make_directories(saved["missing"])
            metadata = {"mode": self.wire.get("mode", 0o644), "uid": self.wire.get("uid"), "gid": self.wire.get("gid")}
        with self._parent(saved) as parent:
            found = read_file(parent, self.path)
            if self._digest(None if found is None else found[0]) != saved["was"]:
                raise RefusedError("changed-meanwhile", path=self.path)
            if self.content is None:
                remove_file(parent, self.path)
            else:
                write_file(parent, self.path, self.content, metadata, os.path.basename(saved["temporary"]))

    def _parent(self, saved: Record) -> Directory:
        """Open the directory of the file; raises RefusedError if it is not the one that `backup` saw."""
        parent = parent_of(self.path)
        require_same_directory(parent, saved)
        return parent

    def changed_by_others(self, saved: Record, step: Record) -> str:
        """Return the digest of the content if it is not the original, the planned or the written one, else ""."""
        if is_kernel_file(self.path) and step["state"] != "done":
            return ""  # the kernel may have changed what was written
        current = self.observe()
        return "" if current in (saved["was"], self.final_state(), step.get("now")) else current

    def save_copy(self, directory: RunDirectory) -> Optional[str]:
        """Keep the content; return the name of the copy, or None if there is no file."""
        data = read_content(self.path)
        return None if data is None else directory.save(data)

    def revert(self, saved: Record, directory: RunDirectory) -> None:
        """Restore the original with its owner, mode and times, or remove a file that did not exist before.

        Raises FailedError if the saved original is damaged.
        """
        if saved["was"] == "absent":
            with self._parent(saved) as parent:
                if read_file(parent, self.path) is not None:
                    remove_file(parent, self.path)
            return
        with directory.open(saved["original"]) as file:
            data = file.read()
        if self._digest(data) != saved["was"]:
            raise FailedError("backup-damaged", path=self.path, backup=saved["original"])
        if is_kernel_file(self.path):
            data = (normalized(self.path, data) or b"") + b"\n"
        made = missing_parents(self.path)
        make_directories(made)
        with parent_of(self.path) if made else self._parent(saved) as parent:
            write_file(parent, self.path, data, saved["meta"], os.path.basename(saved["temporary"]), restored=True)

    def clean_up(self, saved: Record) -> None:
        """Remove the temporary file, and the directories that were created for a file that does not exist."""
        try:
            with self._parent(saved) as parent:
                parent.unlink(os.path.basename(saved["temporary"]))
                there = parent.status(os.path.basename(self.path)) is not None
        except FileNotFoundError:
            there = False
        if saved["was"] == "absent" and not there:
            for parent_path in reversed(saved["missing"]):
                if not remove_directory(parent_path):
                    break
