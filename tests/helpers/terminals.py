"""A command beside which envtune stands, and a person at a terminal who starts it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from typing import Callable, Iterator, Mapping, Optional, Sequence

BESIDE = [
    sys.executable,
    "-c",
    "import os, sys; from envtune.run.process import run_command; from envtune.run.result import exit_like; "
    "exit_like(run_command(sys.argv[1:], os.environ).status)",
]
RUN = [sys.executable, "-m", "envtune", "run", "--no-preflight", "--profile", "none", "--"]
PATIENCE = 120.0  # seconds; a loaded machine is slow, a test that fails may be too


def shell_word(argv: Sequence[str]) -> str:
    """The words as a shell takes them."""
    import shlex

    return " ".join(shlex.quote(word) for word in argv)


def wait_until(true: Callable[[], object], what: str) -> None:
    """Until it is so."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def state_of(pid: int) -> str:
    """R, S, T, Z ... of a process; empty when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def alive(pid: int) -> bool:
    return state_of(pid) not in ("", "Z", "X")


class Terminal:
    """A command on a pseudo terminal, as a person at a shell would have it."""

    def __init__(
        self, argv: Sequence[str], size: tuple[int, int] = (24, 80), env: Optional[Mapping[str, str]] = None
    ) -> None:
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            # Started in the background or by nohup the tests ignore these; a person's shell does not.
            for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
            os.execve(argv[0], list(argv), dict(os.environ if env is None else env))
        self.seen = b""

    def read(self, seconds: float) -> bool:
        """Some output, if there is any in time; False at its end."""
        if not select.select([self.master], [], [], seconds)[0]:
            return True
        try:
            piece = os.read(self.master, 65536)
        except OSError:
            return False
        self.seen += piece
        return bool(piece)

    def until(self, text: bytes, seconds: float = PATIENCE) -> bytes:
        """Read on until the text was seen; what came before it and the text are taken off and returned."""
        end = time.monotonic() + seconds
        while text not in self.seen:
            assert self.read(max(0.0, end - time.monotonic())) or text in self.seen, self.seen
            assert time.monotonic() < end, self.seen
        before, found, self.seen = self.seen.partition(text)
        return before + found

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def given_to_the_job(self) -> None:
        """Until the shell, which says so before it does so, has given the terminal to a job and the job runs."""

        def given() -> bool:
            group = os.tcgetpgrp(self.master)
            return group != self.pid and state_of(group) not in ("", "T")

        wait_until(given, "the shell keeps the terminal")

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def hang_up(self) -> None:
        os.close(self.master)
        self.master = -1

    def end(self) -> int:
        """Read to the end; the wait status."""
        stop = time.monotonic() + PATIENCE
        while time.monotonic() < stop:
            if self.master >= 0 and not self.read(0.02):
                self.hang_up()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                while self.master >= 0 and select.select([self.master], [], [], 0)[0] and self.read(0):
                    pass
                if self.master >= 0:
                    self.hang_up()
                return status
        os.kill(self.pid, signal.SIGKILL)
        raise AssertionError(f"it did not end: {self.seen!r}")


@contextlib.contextmanager
def ended_afterwards(*pids: int) -> Iterator[None]:
    """Whatever happens, these are not left running."""
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
