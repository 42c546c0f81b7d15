"""How a command ended, its first and last output, and how to exit in the same way."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections import deque
from dataclasses import dataclass, field
from typing import Deque, NoReturn

PR_SET_PDEATHSIG, PR_SET_DUMPABLE = 1, 4  # linux/prctl.h
HEAD = 256 << 10  # bytes kept from the start of a stream: the first error is often early
TAIL = 4 << 20  # and from its end
SMALL = 4096  # smaller pieces are joined, so that a stream of single bytes does not need an object each


@dataclass
class Ring:
    """The first `head` and the last `limit` bytes of a stream; the rest is dropped."""

    limit: int = TAIL
    head: int = HEAD
    total: int = 0
    _first: bytearray = field(default_factory=bytearray)
    _pieces: Deque[bytes] = field(default_factory=deque)
    _size: int = 0

    def add(self, piece: bytes) -> None:
        """Append, and drop the oldest pieces beyond the limit."""
        self.total += len(piece)
        if len(self._first) < self.head:
            self._first += piece[: self.head - len(self._first)]
        if len(piece) < SMALL and self._pieces and len(self._pieces[-1]) < SMALL:
            self._size -= len(self._pieces[-1])
            piece = self._pieces.pop() + piece
        self._pieces.append(piece)
        self._size += len(piece)
        while self._size - len(self._pieces[0]) >= self.limit:
            self._size -= len(self._pieces.popleft())

    def parts(self) -> tuple[bytes, bytes]:
        """Return (head, tail), both of whole lines; if everything fits, it is all in the head."""
        tail = b"".join(self._pieces)[-self.limit :]
        if self.total <= len(tail):
            return tail, b""
        return whole_lines(bytes(self._first), tail)


def whole_lines(head: bytes, tail: bytes) -> tuple[bytes, bytes]:
    """Return a head without its last, broken line, and a tail without its first."""
    return head[: head.rfind(b"\n") + 1] or head, tail[tail.find(b"\n") + 1 :]


@dataclass(frozen=True)
class CapturedOutput:
    """What was kept of one stream. `name`: stdout, stderr, output (both in one), or the path of the file it went to."""

    name: str
    head: bytes
    tail: bytes = b""  # of an output too long to keep; the lines between are lost


@dataclass(frozen=True)
class ExitResult:
    """How the command ended: its waitpid status, and its output.

    `requested_signal` is the signal by which envtune or its process group was asked to end, 0 for none.
    """

    status: int
    output: tuple[CapturedOutput, ...] = ()
    requested_signal: int = 0

    @property
    def by_request(self) -> bool:
        """Return whether it was ended on purpose: a person's Ctrl-C, a launcher's SIGTERM, a closed pipe."""
        ended_by = os.WTERMSIG(self.status) if os.WIFSIGNALED(self.status) else 0
        return bool(self.requested_signal) or ended_by in (signal.SIGINT, signal.SIGPIPE)


def exit_like(status: int) -> NoReturn:
    """End this process as the child ended: with its exit code, or by its signal (without a second core file)."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # a reader that closed the pipe is not our error
            stream.flush()
    if not os.WIFSIGNALED(status):
        os._exit(os.WEXITSTATUS(status))
    number = os.WTERMSIG(status)
    _no_core()
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    os.kill(os.getpid(), number)
    os._exit(128 + number)  # process 1 of a container is not killed by it


def _no_core() -> None:
    """Prevent a core file and a call of the program that collects them.

    Sources: core(5), prctl(2) PR_SET_DUMPABLE; a limit of 0 does not keep a collector named with `|` from being called.
    """
    import resource

    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    set_process_option(PR_SET_DUMPABLE, 0)


def set_process_option(option: int, value: int) -> bool:
    """Call prctl(2); False if it cannot be called."""
    try:
        import ctypes

        return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)
    except (ImportError, OSError, AttributeError):
        return False
