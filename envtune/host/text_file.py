"""A text file named by the user with an option: read up to a limit; problems with it become usage errors."""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path
from typing import Optional

from envtune.errors import UsageError, system_error_text
from envtune.host.input import open_input
from envtune.messages import Message, Text
from envtune.trust.ownership import who_can_change


def read_text_file(option: str, path: Path, limit: int) -> str:
    """Return the text of a file or pipe (`<(...)`), at most `limit` bytes. Raises UsageError, naming the option."""
    return _text(option, path, read_file(option, path, limit), limit)


def read_file(option: str, path: Path, limit: int) -> bytes:
    """Return the content of a file or pipe (`<(...)`), at most `limit` bytes. Raises UsageError, naming the option."""
    try:
        with io.BufferedReader(open_input(path)) as file:
            return _limited(option, path, file.read(limit + 1), limit)
    except OSError as error:
        reason = system_error_text(error)
        raise UsageError(Message("{option} {path}: {reason}", option=option, path=path, reason=reason)) from None


def _limited(option: str, path: Path, data: bytes, limit: int) -> bytes:
    if len(data) > limit:
        raise UsageError(
            Message("{option} {path}: larger than {limit} MiB", option=option, path=path, limit=limit >> 20)
        )
    return data


def _text(option: str, path: Path, data: bytes, limit: int) -> str:
    try:
        return _limited(option, path, data, limit).decode("utf-8")
    except ValueError:
        raise UsageError(Message("{option} {path}: not UTF-8 text", option=option, path=path)) from None


def read_own_file(option: str, path: Path, limit: int) -> str:
    """Return the text of a regular file that only root or the caller can have written, at most `limit` bytes.

    The file is opened once, and the open file is checked. Raises UsageError, naming the option and what to do.
    """
    try:
        # O_NONBLOCK: opening a FIFO or device without a peer would block
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            fault = _distrust(os.fstat(descriptor), path)
            data = b"" if fault is not None else file.read(limit + 1)
    except OSError as error:
        link = error.errno == errno.ELOOP
        fault = Message("a symbolic link; name the file itself") if link else system_error_text(error)
    if fault is not None:
        raise UsageError(Message("{option} {path}: {reason}", option=option, path=path, reason=fault))
    return _text(option, path, data, limit)


def _distrust(status: os.stat_result, path: Path) -> Optional[Text]:
    """Return why somebody else may have written the open file; None if nobody else can."""
    user = os.geteuid()
    if not stat.S_ISREG(status.st_mode):
        return Message("not a regular file")
    if status.st_uid not in (0, user):
        if user == 0:
            return Message(
                "belongs to uid {owner}, who can write what root would carry out; run the command that made it as root",
                owner=status.st_uid,
            )
        return Message("belongs to uid {owner}, neither to you nor to root", owner=status.st_uid)
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = f"{stat.S_IMODE(status.st_mode):o}"
        return Message("can be written by others (mode {mode}); check it, then `chmod go-w` it", mode=mode)
    exposure = who_can_change(os.path.join(os.getcwd(), path), user)  # the links on the path, too
    if exposure is not None:
        folder = exposure.path
        return Message("others can write to {folder} and replace the file; keep it elsewhere", folder=folder)
    return None
