"""Snapshots from other sources: files of a directory, or consecutive frames in a stream."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import BinaryIO, Iterator

from envtune.errors import UsageError, system_error_text
from envtune.fleet.frame import FrameState, each_frame
from envtune.fleet.judge import Question, Snapshot, judge_all
from envtune.fleet.record import HostRecord
from envtune.host.input import open_input
from envtune.messages import Message
from envtune.snapshot.open import LIMITS
from envtune.snapshot.several import ENDINGS

FRAME = ".frame"
NO_FRAME = "no frame"
MOST_INPUT = 1 << 30  # bytes of a stream: 20,000 frames


def ingest(place: str, stream: BinaryIO, question: Question) -> Iterator[HostRecord]:
    """Yield the record of each snapshot in a directory, a file, or for `-` in a stream of frames; raises UsageError.

    A host is named as in its snapshot; if that cannot be read, by its file.
    """
    snapshots = _framed("-", stream.read(MOST_INPUT)) if place == "-" else _in_files(_files(Path(place)))
    yield from judge_all(snapshots, question)


def _files(path: Path) -> list[Path]:
    try:
        names = sorted(os.listdir(path)) if path.is_dir() else [""]
    except OSError as error:
        raise UsageError(Message("{path}: {reason}", path=str(path), reason=system_error_text(error))) from None
    found = [path / name for name in names if not name or name.endswith((*ENDINGS, FRAME))]
    if not found or not path.exists():
        raise UsageError(Message("{path}: no snapshots (*.tar.gz, *.json, *.frame)", path=str(path)))
    return found


def _in_files(paths: list[Path]) -> Iterator[Snapshot]:
    for path in paths:
        name = path.name
        for ending in (*ENDINGS, FRAME):
            name = name[: -len(ending)] if name.endswith(ending) else name
        try:
            with io.BufferedReader(open_input(path)) as file:
                data = file.read(LIMITS.member + 1)
        except OSError as error:
            yield Snapshot(name, b"", False, reason=system_error_text(error).en)
            continue
        if path.name.endswith(FRAME):
            found = list(_framed(name, data))
            yield from found or [Snapshot(name, b"", False, reason=NO_FRAME)]
        else:
            yield Snapshot(name, data, False, named_by_snapshot=True)


def _framed(name: str, data: bytes) -> Iterator[Snapshot]:
    for number, frame in enumerate(each_frame(data), 1):
        if frame.state is FrameState.COMPLETE:
            yield Snapshot(f"{name}:{number}", frame.snapshot, True, named_by_snapshot=True)
        else:
            yield Snapshot(f"{name}:{number}", b"", True, reason=frame.state.value)
