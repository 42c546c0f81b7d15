"""Files with several names: a change replaces the file under one of them, and says so.

Writing in place would keep the names together, but leave half a file behind a crash, and change what a package manager
shares between environments (conda, uv).
"""

from __future__ import annotations

from typing import Iterator

from envtune.errors import HostError
from envtune.host import Host
from envtune.messages import Text, clauses, plural
from envtune.model import Change


def with_other_names(change: Change, host: Host) -> Change:
    """Return the change with a note about every file of it that has other names, which keep the old content."""
    notes = [*([] if change.note is None else [change.note]), *_notes(change, host)]
    return change._replace(note=clauses(notes)) if len(notes) > (change.note is not None) else change


def _notes(change: Change, host: Host) -> Iterator[Text]:
    for operation in change.operations:
        if operation["op"] == "file" and host.live:
            try:
                status = host.stat(operation["path"], follow=False)
            except HostError:
                continue
            if status.kind == "file" and status.links > 1:
                yield plural(
                    "{path} has one more name (a hard link), which keeps the old content",
                    "{path} has {count} more names (hard links), which keep the old content",
                    status.links - 1,
                    path=operation["path"],
                )
