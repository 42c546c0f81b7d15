"""Write or remove one file."""

import base64
import os
from typing import Optional

from ..common import Record
from ..files import (
    digest,
    file_metadata,
    is_kernel_file,
    make_directory,
    missing_parents,
    normalized,
    read_content,
    remove_file,
    write_file,
)
from ..problems import FailedError, RefusedError
from ..run_directory import RunDirectory
from ..validators import Members, is_content, is_count, is_mode, is_path
from .base import Operation


class FileOperation(Operation):
    """`{op: file, path, content|null, expect?, mode?, uid?, gid?}`: one regular or kernel file; null removes it.

    `content` is base64; `expect` is the digest of what must be there now. A new file gets mode (default 0644) and the
    writer's owner unless `uid`/`gid` are given; an existing one keeps its own. Missing directories are made (0755).
    """

    members = Members({"path": is_path, "content": is_content}, {"mode": is_mode, "uid": is_count, "gid": is_count})

    def __init__(self, wire: Record) -> None:
        super().__init__(wire)
        content = wire["content"]
        self.content = None if content is None else base64.b64decode(content)
        self.path = self.subject = wire["path"]

    def observe(self) -> str:
        """Return the digest of the normalized content, or `absent`; raises RefusedError unless it is a regular file."""
        return digest(normalized(self.path, read_content(self.path)))

    def final_state(self) -> str:
        """Return the digest of the planned content, or `absent`."""
        return digest(normalized(self.path, self.content))

    def backup(self, directory: RunDirectory) -> Record:
        """Keep the content and its metadata; of a file that is not there, the parent directories that are missing."""
        saved: Record = {"temporary": os.path.join(os.path.dirname(self.path), ".envtune-%d" % os.getpid())}
        data = read_content(self.path)
        if data is None:
            saved.update(was="absent", missing=missing_parents(self.path))
        else:
            was = digest(normalized(self.path, data))
            saved.update(original=directory.save(data), was=was, meta=file_metadata(self.path))
        return saved

    def apply(self, saved: Record, directory: RunDirectory) -> None:
        """Replace or remove the file; raises RefusedError when it has changed since `backup`."""
        if self.observe() != saved["was"]:
            raise RefusedError("changed-meanwhile", path=self.path)
        if self.content is None:
            remove_file(self.path)
            return
        metadata = saved.get("meta")
        if metadata is None:
            for parent in saved["missing"]:
                make_directory(parent)
            metadata = {"mode": self.wire.get("mode", 0o644), "uid": self.wire.get("uid"), "gid": self.wire.get("gid")}
        write_file(self.path, self.content, metadata, saved["temporary"])

    def changed_by_others(self, saved: Record, step: Record) -> str:
        """Return the digest of the content if it is not the original, the planned or the written one, else nothing."""
        if is_kernel_file(self.path) and step["state"] != "done":
            return ""  # the kernel may have made something else of what was written
        current = self.observe()
        return "" if current in (saved["was"], self.final_state(), step.get("now")) else current

    def save_copy(self, directory: RunDirectory) -> Optional[str]:
        """Keep the content; the name of the copy, or None where there is no file."""
        data = read_content(self.path)
        return None if data is None else directory.save(data)

    def revert(self, saved: Record, directory: RunDirectory) -> None:
        """Write the original with its owner, mode and times, or remove the file that was not there before.

        Raises FailedError when the original kept is damaged.
        """
        if saved["was"] == "absent":
            if read_content(self.path) is not None:
                remove_file(self.path)
            return
        with directory.open(saved["original"]) as file:
            data = file.read()
        if digest(normalized(self.path, data)) != saved["was"]:
            raise FailedError("backup-damaged", path=self.path, backup=saved["original"])
        if is_kernel_file(self.path):
            data = (normalized(self.path, data) or b"") + b"\n"
        for parent in missing_parents(self.path):
            make_directory(parent)
        write_file(self.path, data, saved["meta"], saved["temporary"], times=True)

    def clean_up(self, saved: Record) -> None:
        """Remove the temporary file, and the directories that were made for a file which is not there."""
        if os.path.lexists(saved["temporary"]):
            os.unlink(saved["temporary"])
        if saved["was"] == "absent" and not os.path.lexists(self.path):
            for parent in reversed(saved["missing"]):
                try:
                    os.rmdir(parent)
                except FileNotFoundError:
                    continue  # the run was killed before it was made
                except OSError:
                    break  # somebody uses it now
