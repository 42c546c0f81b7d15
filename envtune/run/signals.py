"""Distinguish received signals: sent to the whole process group (the command got them, too), or to us alone.

Ctrl-C, a closing terminal and `kill -- -PGID` reach every process of the group, the command among them; passing them on
would deliver them twice. `kill PID`, which is what most launchers do, reaches us alone and has to be passed on. No
system call distinguishes the two afterwards, so a sentinel process in the same group keeps all signals blocked: what is
pending there was sent to the group.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import time
from typing import Iterator, Optional

_NOT_PASSED_ON = {
    *(signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXCPU, signal.SIGXFSZ, signal.SIGURG),
    *(signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP, signal.SIGSYS),
    signal.SIGTTOU,  # if the terminal stops background output, copying stops like any other writer
}
PASSED_ON = sorted(int(number) for number in signal.valid_signals() - _NOT_PASSED_ON)
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)  # requests to end
STOPPING = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
PATIENCE = 0.02  # seconds for a sender that signals the processes one by one (Slurm, systemd)


class ForkError(Exception):
    """No process can be started: a limit of processes (RLIMIT_NPROC, pids.max), of memory, or a system call filter."""


def fork() -> int:
    """Fork; raises ForkError."""
    try:
        return os.fork()
    except OSError as error:
        raise ForkError(str(error)) from error


class GroupSentinel:
    """A process of our group that blocks all signals."""

    def __init__(self) -> None:
        line, its = socket.socketpair()
        before = signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
        try:
            self.pid = fork()
            if self.pid == 0:
                _hold_signals(its.detach())
        except ForkError:
            line.close()
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            its.close()
        self._line = line

    def received(self, number: int) -> bool:
        """Return whether the signal was sent to the group, and clear it."""
        end = time.monotonic() + PATIENCE
        while not (pending := self._pending(number)) and time.monotonic() < end:
            time.sleep(0.002)
        self.forget(number)
        return pending

    def forget(self, number: int) -> None:
        """Clear the signal pending in the sentinel."""
        with contextlib.suppress(OSError):
            self._line.send(bytes([number]))
            if select.select([self._line], [], [], 1)[0]:
                self._line.recv(1)

    def end(self) -> None:
        """End the process."""
        self._line.close()
        os.waitpid(self.pid, 0)

    def _pending(self, number: int) -> bool:
        try:
            with open(f"/proc/{self.pid}/status", encoding="ascii") as file:
                masks = [int(line.split()[1], 16) for line in file if line.startswith(("SigPnd", "ShdPnd"))]
        except (OSError, ValueError):
            return False
        # A stop signal after SIGCONT discards it (signal(7)): the command, which got both, must stop.
        numbers = (number, *STOPPING) if number == signal.SIGCONT else (number,)
        return any(mask >> (n - 1) & 1 for mask in masks for n in numbers)


def _hold_signals(line: int) -> None:
    """Run as the sentinel: keep only the pipe to the parent open, and exit with the parent."""
    try:
        top = os.dup2(line, 0)
        os.closerange(top + 1, 4096)
        while wanted := os.read(0, 1):
            signal.sigtimedwait([wanted[0]], 0)
            os.write(0, b".")
    finally:
        os._exit(0)


@contextlib.contextmanager
def listening(wake: int) -> Iterator[tuple[int, ...]]:
    """Signals write their number to `wake` instead of ending us; ignored ones stay so (nohup). Restored at the end.

    Yields the handled signal numbers.
    """
    numbers = [n for n in PASSED_ON if signal.getsignal(n) not in (signal.SIG_IGN, None)]
    before = {number: signal.signal(number, _wake) for number in (*numbers, signal.SIGCHLD)}
    old = signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    try:
        yield tuple(numbers)
    finally:
        signal.set_wakeup_fd(old)
        for number, handler in before.items():
            signal.signal(number, handler)


def _wake(*_: object) -> None:
    """Do nothing: the number is already in the pipe."""


def pass_on(number: int, child: int, sentinel: GroupSentinel) -> None:
    """Pass on a received signal to the command, unless it already has it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if not sentinel.received(number):
            os.kill(child, number)
        elif _has_own_group(child):
            os.killpg(child, number)


def _has_own_group(child: int) -> bool:
    """Return whether the command has its own process group, as it would have as a job of a shell."""
    own = os.getpgrp()
    return own == os.getpid() and os.getpgid(child) == child and os.getsid(child) == os.getsid(0)


def stop_with(number: int) -> None:
    """Stop by the same signal that stopped the command (Ctrl-Z); return when both continue."""
    before: Optional[object] = signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    signal.signal(number, before)  # type: ignore[arg-type]
