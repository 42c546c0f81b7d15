"""A text file that the command line names: read up to a limit, and what is wrong with it in the user's language."""

from __future__ import annotations

from pathlib import Path

from envtune.errors import UsageError
from envtune.fix.executor_messages import error_message
from envtune.messages import Joined, Message


def read_text(option: str, path: Path, limit: int) -> str:
    """The text of a file or pipe (`<(...)`), at most `limit` bytes. Raises UsageError, naming the option."""
    try:
        with open(path, "rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise UsageError(Joined((option, error_message(error)), " ")) from None
    if len(data) > limit:
        raise UsageError(
            Message("{option} {path}: larger than {limit} MiB", option=option, path=path, limit=limit >> 20)
        )
    try:
        return data.decode("utf-8")
    except ValueError:
        raise UsageError(Message("{option} {path}: not UTF-8 text", option=option, path=path)) from None
