"""Files with several names: a change replaces the file under one of them, and the plan notes that.

Writing in place would keep the names linked, but a crash would leave half a file, and it would change what a package
manager shares between environments (conda, uv).
"""

from __future__ import annotations

from typing import Iterator

from envtune.errors import HostError
from envtune.host import Host
from envtune.messages import Text, clauses, plural
from envtune.model import Change


def with_other_names(change: Change, host: Host) -> Change:
    """Return the change with a note about each of its files that has other names, which keep the old content."""
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
