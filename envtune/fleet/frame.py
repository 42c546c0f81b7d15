"""Find the snapshot in a host's output: the first complete frame (written by `collector/frame.py`)."""

from __future__ import annotations

import base64
import enum
import hashlib
import re
from typing import Iterator

from envtune.collector.frame import FRAME_LIMIT
from envtune.records import NamedTuple

_START = re.compile(rb"@@ENVTUNE/1 ([0-9]{1,9}) ([0-9a-f]{16})\r?\n")
_TOO_OLD = re.compile(rb"@@ENVTUNE/1 too_old ")
_END = re.compile(rb"\r?\n@@END\b")
MAX_FRAMES = 16  # starts of frames examined in one output


class FrameState(enum.Enum):
    """Whether there is a complete frame in an output, and if not, why."""

    COMPLETE = "complete"
    NONE = "none"
    TRUNCATED = "truncated"
    CORRUPT = "corrupt"
    TOO_OLD = "too_old"


class Frame(NamedTuple):
    """The packed snapshot of a frame; empty unless it is complete."""

    state: FrameState
    snapshot: bytes = b""


def find_frame(output: bytes) -> Frame:
    """Return the first complete frame in a host's output, else why there is none. Surrounding text is ignored."""
    state = FrameState.TOO_OLD if _TOO_OLD.search(output) else FrameState.NONE
    for number, start in enumerate(_START.finditer(output)):
        if number == MAX_FRAMES:
            break
        found = _frame_at(output, start)
        if found.state is FrameState.COMPLETE:
            return found
        state = found.state
    return Frame(state)


def each_frame(output: bytes) -> Iterator[Frame]:
    """Yield every frame of a stream, including incomplete ones."""
    for start in _START.finditer(output):
        yield _frame_at(output, start)


def _frame_at(output: bytes, start: re.Match[bytes]) -> Frame:
    size = int(start[1])
    if size > FRAME_LIMIT:
        return Frame(FrameState.CORRUPT)
    payload = output[start.end() : start.end() + size]
    if len(payload) < size or len(output) == start.end() + size:
        return Frame(FrameState.TRUNCATED)
    digest = hashlib.sha256(payload).hexdigest()[:16].encode("ascii")
    if digest != start[2] or not _END.match(output, start.end() + size):
        return Frame(FrameState.CORRUPT)
    try:
        return Frame(FrameState.COMPLETE, base64.b64decode(payload, validate=True))
    except ValueError:
        return Frame(FrameState.CORRUPT)
