"""Starts a command and stands beside it: same terminal, same signals, same end, and the last output kept.

The child is a job of its own, as under a shell: its own process group, in the foreground of the terminal when there is
one, so that Ctrl-C, Ctrl-\\ and Ctrl-Z reach it and not us. Where stdout is a terminal the child gets a pseudo terminal
of the same size and modes; otherwise stdout and stderr stay two pipes.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import selectors
import signal
import struct
import sys
import termios
import tty
from typing import Iterator, Mapping, Optional, Sequence

from envtune.launch_end import Ended, Ring

CHUNK = 1 << 20
PIPE_SIZE = 1 << 20
FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
F_SETPIPE_SZ = 1031  # linux/fcntl.h; the fcntl module names it from Python 3.10 on


def run_command(argv: Sequence[str], env: Mapping[str, str], capture: bool = True) -> Ended:
    """Run `argv` to its end. OSError when it cannot be started."""
    if not capture:
        return _Job(argv, env, None).run()
    if sys.stdout.isatty():
        return _Job(argv, env, _Terminal()).run()
    return _Job(argv, env, _Pipes()).run()


class _Pipes:
    """stdout and stderr as two pipes."""

    def __init__(self) -> None:
        self._ends = [os.pipe(), os.pipe()]
        for read, _ in self._ends:
            with contextlib.suppress(OSError):
                fcntl.fcntl(read, F_SETPIPE_SZ, PIPE_SIZE)

    def in_child(self) -> None:
        """Wire the child's descriptors."""
        os.dup2(self._ends[0][1], 1)
        os.dup2(self._ends[1][1], 2)

    def in_parent(self) -> dict[int, int]:
        """Descriptor to read -> descriptor to copy it to."""
        for _, write in self._ends:
            os.close(write)
        return {self._ends[0][0]: 1, self._ends[1][0]: 2}

    @contextlib.contextmanager
    def attached(self) -> Iterator[None]:
        """Nothing to restore."""
        yield

    def resize(self) -> None:
        """A pipe has no size."""

    def typed(self) -> Optional[int]:
        """The child reads our stdin itself."""
        return None


class _Terminal:
    """A pseudo terminal of the size and modes of ours."""

    def __init__(self) -> None:
        self._master, self._slave = os.openpty()
        self._modes = termios.tcgetattr(1)
        termios.tcsetattr(self._slave, termios.TCSANOW, self._modes)
        self.resize()

    def in_child(self) -> None:
        """A session of its own, with the pseudo terminal as its terminal."""
        os.setsid()
        fcntl.ioctl(self._slave, termios.TIOCSCTTY, 0)
        for number in (0, 1, 2) if sys.stdin.isatty() else (1, 2):
            os.dup2(self._slave, number)

    def in_parent(self) -> dict[int, int]:
        """Descriptor to read -> descriptor to copy it to."""
        os.close(self._slave)
        return {self._master: 1}

    @contextlib.contextmanager
    def attached(self) -> Iterator[None]:
        """Our terminal passes every key on while the child runs."""
        if not sys.stdin.isatty():
            yield
            return
        modes = termios.tcgetattr(0)
        tty.setraw(0, termios.TCSADRAIN)
        output = termios.tcgetattr(0)
        output[1] = modes[1]  # the pseudo terminal has done the output processing; ours keeps its own for our notes
        output[1] &= ~termios.OPOST
        termios.tcsetattr(0, termios.TCSADRAIN, output)
        try:
            yield
        finally:
            termios.tcsetattr(0, termios.TCSADRAIN, modes)

    def resize(self) -> None:
        """Give the child's terminal our size; the kernel tells the child."""
        size = fcntl.ioctl(1, termios.TIOCGWINSZ, struct.pack("HHHH", 0, 0, 0, 0))
        with contextlib.suppress(OSError):
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)

    def suspends(self, piece: bytes, leader: int) -> bool:
        """Whether this is the suspend key for a command that leaves it to the system.

        The command leads a session of its own, so its process group is orphaned and the kernel drops the stop signal
        that the key sends (POSIX General Terminal Interface); it has to be stopped from outside. A shell's own jobs,
        and a program that handles the key itself, get the key.
        """
        modes = termios.tcgetattr(self._master)
        key = modes[6][termios.VSUSP]
        if not modes[3] & termios.ISIG or key not in piece or os.tcgetpgrp(self._master) != leader:
            return False
        with open(f"/proc/{leader}/status", encoding="ascii") as file:
            masks = [int(line.split()[1], 16) for line in file if line.startswith(("SigIgn", "SigCgt"))]
        return not any(mask >> (signal.SIGTSTP - 1) & 1 for mask in masks)

    def typed(self) -> Optional[int]:
        """Where what is typed goes."""
        return self._master if sys.stdin.isatty() else None


class _Job:
    """One child from start to end."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], wires: _Pipes | _Terminal | None) -> None:
        self._argv, self._env, self._wires = list(argv), dict(env), wires
        self._rings = {1: Ring(), 2: Ring()}
        self._pid = 0
        self._foreground = not isinstance(wires, _Terminal) and os.isatty(0) and os.tcgetpgrp(0) == os.getpgrp()

    def run(self) -> Ended:
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_write, False)
        os.set_blocking(wake_read, False)
        # The terminal is ours before the child runs: a key typed at once must not be taken by the line discipline.
        with _handlers(wake_write), self._wires.attached() if self._wires else contextlib.nullcontext():
            self._pid = self._start()
            status = self._stand_by(wake_read)
        if self._foreground:
            _take_foreground(os.getpgrp())
        return Ended(status, self._rings[1], self._rings[2])

    def _start(self) -> int:
        """Fork and exec; an exec that fails is reported through a pipe as the OSError it is."""
        told_read, told_write = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            self._become(told_write)
        os.close(told_write)
        if not isinstance(self._wires, _Terminal):  # there the child leads a session of its own
            with contextlib.suppress(OSError):
                os.setpgid(pid, pid)
        if self._foreground:
            _take_foreground(pid)
        told = os.read(told_read, 16)
        os.close(told_read)
        if told:
            os.waitpid(pid, 0)
            number = int(told)
            raise OSError(number, os.strerror(number), self._argv[0])
        return pid

    def _become(self, told: int) -> None:
        try:
            if not isinstance(self._wires, _Terminal):
                os.setpgid(0, 0)
                if self._foreground:
                    _take_foreground(os.getpid())
            if self._wires is not None:
                self._wires.in_child()
            for number in (*FORWARDED, signal.SIGWINCH, signal.SIGCHLD, signal.SIGTTOU, signal.SIGPIPE, signal.SIGCONT):
                signal.signal(number, signal.SIG_DFL)
            os.execvpe(self._argv[0], self._argv, self._env)
        except OSError as error:
            os.write(told, str(error.errno or errno.ENOEXEC).encode("ascii"))
        finally:
            os._exit(127)

    def _stand_by(self, wake: int) -> int:
        routes = self._wires.in_parent() if self._wires else {}
        typed = self._wires.typed() if self._wires else None
        status: Optional[int] = None
        with selectors.DefaultSelector() as selector:
            for source in (wake, *routes, *([0] if typed is not None else [])):
                selector.register(source, selectors.EVENT_READ)
            while status is None or routes:
                # After the child's end only what is already in its pipes matters: a daemon it left may keep them open.
                events = selector.select(None if status is None else 0.2)
                if status is not None and not events:
                    break
                for key, _ in events:
                    if key.fd == wake:
                        status = self._signals(wake, status)
                    elif key.fd == 0 and typed is not None:
                        self._type(selector, typed)
                    elif not self._copy(key.fd, routes[key.fd]):
                        selector.unregister(key.fd)
                        self._drop(key.fd, routes)
        return status if status is not None else self._wait()

    def _drop(self, source: int, routes: dict[int, int]) -> None:
        """The stream has ended. A terminal stays open: closing it would hang up on a child that only closed its end."""
        del routes[source]
        if not isinstance(self._wires, _Terminal):
            os.close(source)

    def _copy(self, source: int, target: int) -> bool:
        """One piece from the child to us and to the ring; False at its end."""
        try:
            piece = os.read(source, CHUNK)
        except OSError as error:
            return error.errno in (errno.EAGAIN, errno.EINTR)  # EIO: the child closed its terminal
        if not piece:
            return False
        self._rings[target].add(piece)
        rest = memoryview(piece)
        while rest:
            try:
                rest = rest[os.write(target, rest) :]
            except BlockingIOError:
                select_writable(target)
            except BrokenPipeError:
                return False  # our reader is gone: the child learns it by SIGPIPE, as without us
        return True

    def _type(self, selector: selectors.BaseSelector, target: int) -> None:
        piece = os.read(0, 65536)
        if piece and isinstance(self._wires, _Terminal) and self._wires.suspends(piece, self._pid):
            # Not waited for: a shell in the middle of a vfork cannot report that it was stopped.
            os.killpg(self._pid, signal.SIGSTOP)
            self._stop_with_child()
        elif piece:
            os.write(target, piece)
        else:
            selector.unregister(0)

    def _signals(self, wake: int, status: Optional[int]) -> Optional[int]:
        with contextlib.suppress(BlockingIOError):
            for number in os.read(wake, 4096):
                if number == signal.SIGWINCH and self._wires is not None:
                    self._wires.resize()
                elif number in FORWARDED:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(self._pid, number)
        while status is None:
            pid, found = os.waitpid(self._pid, os.WNOHANG | os.WUNTRACED)
            if pid == 0:
                return None
            if not os.WIFSTOPPED(found):
                return found
            self._stop_with_child()
        return status

    def _stop_with_child(self) -> None:
        """The child was stopped (Ctrl-Z): give the terminal back, stop too, and go on together."""
        modes = termios.tcgetattr(0) if isinstance(self._wires, _Terminal) and os.isatty(0) else None
        if modes is not None and isinstance(self._wires, _Terminal):
            termios.tcsetattr(0, termios.TCSADRAIN, self._wires._modes)
        if self._foreground:
            _take_foreground(os.getpgrp())
        os.kill(os.getpid(), signal.SIGSTOP)
        if modes is not None:
            termios.tcsetattr(0, termios.TCSADRAIN, modes)
            assert self._wires is not None
            self._wires.resize()
        if self._foreground:
            _take_foreground(self._pid)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGCONT)

    def _wait(self) -> int:
        return os.waitpid(self._pid, 0)[1]


@contextlib.contextmanager
def _handlers(wake: int) -> Iterator[None]:
    """Signals wake the loop instead of ending us; what was there before comes back."""
    numbers = (*FORWARDED, signal.SIGCHLD, signal.SIGWINCH, signal.SIGCONT)
    before = {number: signal.signal(number, lambda *_: None) for number in numbers}
    before[signal.SIGTTOU] = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    old = signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(old)
        for number, handler in before.items():
            signal.signal(number, handler)


def _take_foreground(group: int) -> None:
    with contextlib.suppress(OSError):
        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        os.tcsetpgrp(0, group)
        signal.signal(signal.SIGTTOU, before)


def select_writable(descriptor: int) -> None:
    """Wait until a non-blocking descriptor takes bytes again."""
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_WRITE)
        selector.select()
