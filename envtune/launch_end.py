"""How a command ended, what it said last, and how to end in the same way."""

from __future__ import annotations

import os
import signal
import sys
from collections import deque
from dataclasses import dataclass, field
from typing import Deque


@dataclass
class Ring:
    """The last `limit` bytes of a stream, kept in the pieces they came in."""

    limit: int = 4 << 20
    total: int = 0
    _pieces: Deque[bytes] = field(default_factory=deque)
    _held: int = 0

    def add(self, piece: bytes) -> None:
        """Append, and forget the oldest pieces beyond the limit."""
        self.total += len(piece)
        self._pieces.append(piece)
        self._held += len(piece)
        while self._held - len(self._pieces[0]) >= self.limit:
            self._held -= len(self._pieces.popleft())

    def text(self) -> bytes:
        """What is kept; begins with a whole line when something was forgotten."""
        kept = b"".join(self._pieces)[-self.limit :]
        return kept if self.total <= len(kept) else kept[kept.find(b"\n") + 1 :]


@dataclass(frozen=True)
class Ended:
    """How the command ended: `status` as waitpid gives it, and the last output of both streams (one on a terminal)."""

    status: int
    out: Ring
    err: Ring

    @property
    def code(self) -> int:
        """The exit code a shell would show: 128 + n for signal n."""
        if os.WIFSIGNALED(self.status):
            return 128 + os.WTERMSIG(self.status)
        return os.WEXITSTATUS(self.status)

    @property
    def failed(self) -> bool:
        """Whether it ended other than with 0."""
        return self.status != 0


def end_as(status: int) -> None:
    """End this process as the child ended: with its exit code, or by its signal (without a second core file)."""
    sys.stdout.flush()
    sys.stderr.flush()
    if os.WIFSIGNALED(status):
        import resource

        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        signal.signal(number, signal.SIG_DFL) if number not in (signal.SIGKILL, signal.SIGSTOP) else None
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
        os.kill(os.getpid(), number)
        os._exit(128 + number)  # the signal was ignored or blocked by our parent
    os._exit(os.WEXITSTATUS(status))
