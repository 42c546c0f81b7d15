"""A text file that the user names with an option: read up to a limit, and what is wrong with it as a usage error."""

from __future__ import annotations

import io
from pathlib import Path

from envtune.errors import UsageError, system_error_text
from envtune.host.input import open_input
from envtune.messages import Message


def read_text_file(option: str, path: Path, limit: int) -> str:
    """Return the text of a file or pipe (`<(...)`), at most `limit` bytes. Raises UsageError, naming the option."""
    try:
        with io.BufferedReader(open_input(path)) as file:
            data = file.read(limit + 1)
    except OSError as error:
        reason = system_error_text(error)
        raise UsageError(Message("{option} {path}: {reason}", option=option, path=path, reason=reason)) from None
    if len(data) > limit:
        raise UsageError(
            Message("{option} {path}: larger than {limit} MiB", option=option, path=path, limit=limit >> 20)
        )
    try:
        return data.decode("utf-8")
    except ValueError:
        raise UsageError(Message("{option} {path}: not UTF-8 text", option=option, path=path)) from None
