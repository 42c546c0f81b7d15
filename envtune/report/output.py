"""The standard streams: what is written there rules no terminal, and a report is never lost without a word.

Whatever prints (our verbs, typer, a traceback) goes through here. What cannot be written to standard output is an
OutputError, which ends the program with a status of its own; what cannot be written to stderr is dropped.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import Callable, ClassVar, Optional, TextIO

from envtune.records import NamedTuple, expression
from envtune.trust.characters import visible_lines

_COLOUR = expression("(\033\\[[0-9;]{1,8}m)")  # of layout.Paint; changes no character, wherever it stands


class Output(NamedTuple):
    """One document: its format, and the file it goes to; None is standard output."""

    format: str
    path: Optional[str] = None


class OutputError(Exception):
    """Standard output took no more; `cause` says why."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(str(cause))
        self.cause = cause

    @property
    def reader_has_left(self) -> bool:
        """Return whether it was a pipe whose reader has ended, as `head` does."""
        return self.cause.errno == errno.EPIPE


class StandardStream(io.TextIOWrapper):
    """Standard output (descriptor 1) or stderr (2), as text in the encoding of the locale.

    `before_output` is called before anything is written to either: it takes a line of progress away.
    """

    before_output: ClassVar[Optional[Callable[[], None]]] = None

    def __init__(self, descriptor: int, encoding: str) -> None:
        # What an encoding lacks is shown as its number. ASCII is what a misconfigured locale says (PEP 538).
        encoding = "utf-8" if encoding.lower() in ("ascii", "us-ascii", "ansi_x3.4-1968", "646") else encoding
        file = open(descriptor, "wb", closefd=False)  # noqa: SIM115 (the stream's own)
        super().__init__(file, encoding=encoding, errors="backslashreplace", line_buffering=file.isatty())
        self._is_report, self._lost = descriptor == 1, False
        self.keeps_colours = self.line_buffering  # a terminal; set where colors are wanted elsewhere, too

    def write(self, text: str) -> int:
        """Write text with everything in it visible; colors reach only what takes them. Raises OutputError."""
        if self.keeps_colours:
            text = "".join(part if n % 2 else visible_lines(part) for n, part in enumerate(_COLOUR.split(text)))
        else:
            text = visible_lines(text)
        self._write(text)
        return len(text)

    def write_bytes(self, data: bytes) -> None:
        """Write what is no text, or text that has an encoding already. Raises OutputError."""
        if StandardStream.before_output is not None:
            StandardStream.before_output()
        self.flush()
        try:
            self.buffer.write(data)
        except OSError as error:
            self._fail(error)
        self.flush()

    def flush(self) -> None:
        """Hand over what was written. Raises OutputError."""
        if self._lost:
            return
        try:
            super().flush()
        except OSError as error:
            self._fail(error)

    def _write(self, text: str) -> None:
        if StandardStream.before_output is not None:
            StandardStream.before_output()
        if self._lost:
            return
        try:
            super().write(text)
        except OSError as error:
            self._fail(error)
        if not self._is_report:
            self.flush()

    def _fail(self, error: OSError) -> None:
        self._lost = True
        if self._is_report:
            raise OutputError(error) from None


def open_standard_streams() -> None:
    """Take over standard output and stderr.

    A descriptor that is closed would be that of the next file to be opened. It gets one that takes nothing and that no
    program we start inherits, so that a program has it closed as well.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_CLOEXEC | (os.O_RDONLY if descriptor else os.O_WRONLY))
    sys.stdout = StandardStream(1, _encoding(sys.stdout))
    sys.stderr = StandardStream(2, _encoding(sys.stderr))


def stop_waiting() -> None:
    """Remove the line that says what is waited for; its timer would end the interpreter, which drops its handler."""
    if StandardStream.before_output is not None:
        StandardStream.before_output()


def end_line() -> None:
    """End the line in which a terminal shows `^C`: a shell ends it only for a program that dies of the signal."""
    stop_waiting()
    if sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty():
        sys.stderr.write("\n")


def _encoding(stream: Optional[TextIO]) -> str:
    return getattr(stream, "encoding", None) or "utf-8"


def write_bytes(data: bytes) -> None:
    """Write to standard output what is no text in the locale's encoding. Raises OutputError."""
    if isinstance(sys.stdout, StandardStream):
        sys.stdout.write_bytes(data)
    else:  # replaced by whoever runs us in a process of their own
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def print_text(output: Output, text: str) -> None:
    """Write a document to standard output: prose in the encoding of the locale, data in UTF-8. Raises OutputError."""
    if output.format in ("text", "markdown"):
        sys.stdout.write(with_end(text))
    else:
        write_bytes(with_end(text).encode("utf-8", "backslashreplace"))


def with_end(text: str) -> str:
    """Return a document with a line end after its last line."""
    return text if text.endswith("\n") else text + "\n"
