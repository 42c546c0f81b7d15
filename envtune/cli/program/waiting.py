"""One line on a terminal's stderr that says what is waited for, from one second on; gone when something is printed.

A timer draws it (SIGALRM, in the main thread): processes that are forked meanwhile have no such timer, and no thread
keeps them from being forked.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress
from typing import Callable, Optional, Sequence

from envtune.messages import Message, Text, clauses
from envtune.report.output import StandardStream

AFTER, EVERY = 1.0, 0.25  # seconds
_COMMAND = 60  # characters of a command
Describe = Callable[[], Optional[Text]]


def show_while_waiting(describe: Describe, lang: str) -> None:
    """Draw what `describe` says until something is printed; nothing where stderr is no terminal."""
    stream = sys.stderr
    watched = isinstance(stream, StandardStream) and stream.isatty() and os.environ.get("TERM") != "dumb"
    if not watched or threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGALRM) is signal.SIG_DFL:
        _Line(describe, lang).begin()


class _Line:
    """The line, and the timer that draws it."""

    def __init__(self, describe: Describe, lang: str) -> None:
        self._describe, self._lang, self._is_shown = describe, lang, False

    def begin(self) -> None:
        signal.signal(signal.SIGALRM, lambda number, frame: self._draw())
        signal.siginterrupt(signal.SIGALRM, False)
        signal.setitimer(signal.ITIMER_REAL, AFTER, EVERY)
        StandardStream.before_output = self._end

    def _end(self) -> None:
        """Stop, before something else is printed."""
        StandardStream.before_output = None
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        if self._is_shown:
            self._write("")

    def _draw(self) -> None:
        """Write to the descriptor itself: the stream may be in the middle of something."""
        with suppress(Exception):  # what cannot be described now is described the next time
            text = self._describe()
            if text is not None:
                self._is_shown = True
                self._write(_fitting(text.to(self._lang)))

    def _write(self, text: str) -> None:
        encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
        with suppress(OSError):
            os.write(2, f"\r\033[K{text}\r".encode(encoding, "backslashreplace"))


def _fitting(text: str) -> str:
    """Return as much of it as fits a line."""
    from envtune.report.layout import display_width
    from envtune.trust.characters import visible

    text, columns = visible(text), 80
    with suppress(OSError):
        columns = os.get_terminal_size(2).columns or 80
    while display_width(text) >= columns:
        text = text[:-1]
    return text


def describe_check(name: Callable[[], str]) -> Describe:
    """Return what describes a check, by the name it has now, with the commands that are waited for."""

    def describe() -> Optional[Text]:
        command = _command()
        if not name():
            return None if command is None else Message("waiting for {command} ...", command=command)
        if command is None:
            return Message("checking {check} ...", check=name())
        return Message("checking {check} ({command}) ...", check=name(), command=command)

    return describe


def _command() -> Optional[Text]:
    from envtune.collector.commands import waited_for

    rows: list[Text] = [
        Message("{command}, up to {seconds:.0f} s", command=" ".join(argv)[:_COMMAND], seconds=seconds)
        for argv, seconds in waited_for()
    ]
    return clauses(rows[:2]) if rows else None


def describe_reading(logs: Sequence[str]) -> Describe:
    """Return what describes how far the reading of logs is, by the files that this process has open."""

    def describe() -> Optional[Text]:
        found = _place()
        if found is None:
            command = _command()
            if command is not None:
                return Message("waiting for {command} ...", command=command)
            return Message("reading standard input ...") if "-" in logs else None
        return Message("reading {path} {percent}% ...", path=found[0], percent=found[1])

    return describe


def _place() -> Optional[tuple[str, int]]:
    """Return the largest file that is open and read from, and how many percent of it; None where there is none."""
    found: list[tuple[int, str, int]] = []
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError, ValueError, IndexError):
            path = os.readlink(f"/proc/self/fd/{number}")
            size = os.stat(f"/proc/self/fd/{number}").st_size
            with open(f"/proc/self/fdinfo/{number}", encoding="ascii") as file:
                place = int(file.readline().split()[1])
            if place > 0 and size > 1 << 20:
                found.append((size, os.path.basename(path), min(100, place * 100 // size)))
    return max(found)[1:] if found else None
