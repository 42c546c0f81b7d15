"""What a snapshot of an older collector does not hold."""

from __future__ import annotations

from envtune.errors import NotApplicable, NotRecorded
from envtune.messages import Message


def older_collector(error: NotRecorded) -> NotApplicable:
    """Return that a check does not concern a snapshot which was taken before its source was recorded."""
    return NotApplicable(Message("this snapshot does not record {path}", path=error.path), error.path)
