"""Where stdout and stderr of the command go: as it would have them without us, and so that the last of it is kept.

A terminal becomes a pseudo terminal of the same size and modes, whose output is copied to it. The command stays a job
of the user's terminal: keys, Ctrl-C, Ctrl-Z and /dev/tty are the kernel's business as ever, and nothing is left raw
when we are killed. A pipe or a socket becomes a pipe. A regular file is handed over as it is and read back at the end,
so that a full disk, O_APPEND and the order of two streams need no imitation. Both streams in one place share one way.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import stat
import struct
import termios
from typing import Mapping, Optional

from envtune.run.result import HEAD, TAIL, Kept, Ring, whole_lines

CHUNK = 64 << 10  # bytes read at once: measured best between 64 KiB and 1 MiB (docs/benchmarks.md)
PIECES = 16  # reads of a terminal, 4 KiB each in the kernel, before one write
PIPE_SIZE = 256 << 10
F_SETPIPE_SZ = 1031  # linux/fcntl.h; the fcntl module names it from Python 3.10 on
NULL = os.makedev(1, 3)  # /dev/null, Documentation/admin-guide/devices.txt


class Copied:
    """A stream that passes through us: `fds` of the command write to our pipe or pseudo terminal."""

    def __init__(self, fds: tuple[int, ...], name: str, terminal: bool, sink: bool) -> None:
        self.fds, self.name, self.terminal = fds, name, terminal
        self.ring = Ring()
        self.rest = memoryview(b"")
        self.ended = False
        read, write = os.openpty() if terminal else os.pipe()
        self.source: int = high(read)
        self.end: int = high(write)  # the command's
        self.target: Optional[int] = None if sink else _unblocked(fds[0])
        self.size = b""
        if terminal:
            self._like_ours()
        else:
            with contextlib.suppress(OSError):
                fcntl.fcntl(self.source, F_SETPIPE_SZ, PIPE_SIZE)
        os.set_blocking(self.source, False)

    def _like_ours(self) -> None:
        modes = termios.tcgetattr(self.fds[0])
        modes[1] &= ~termios.OPOST  # done once, by the terminal itself
        termios.tcsetattr(self.end, termios.TCSANOW, modes)
        self._modes = termios.tcgetattr(self.end)
        self.resize()

    def resize(self) -> bool:
        """Give the pseudo terminal the terminal's size; True when it has changed."""
        before = self.size
        if self.terminal and self.source >= 0:
            with contextlib.suppress(OSError):
                self.size = fcntl.ioctl(self.fds[0], termios.TIOCGWINSZ, struct.pack("HHHH", 0, 0, 0, 0))
                fcntl.ioctl(self.end if self.end >= 0 else self.source, termios.TIOCSWINSZ, self.size)
        return self.size != before

    def mirror(self) -> None:
        """Modes that the command set on its output (curses does) are meant for the terminal that is read."""
        with contextlib.suppress(termios.error, OSError):
            modes = termios.tcgetattr(self.source)
            if modes != self._modes and os.tcgetpgrp(self.fds[0]) == os.getpgrp():
                self._modes = modes
                real = termios.tcgetattr(self.fds[0])
                termios.tcsetattr(self.fds[0], termios.TCSANOW, [modes[0], real[1], *modes[2:]])

    def release(self) -> None:
        """Let go of the command's end. A terminal's is kept until the command has ended: without it the pseudo
        terminal would hang up on a command that closed it and opens it again."""
        if self.end >= 0:
            os.close(self.end)
            self.end = -1

    def take(self) -> bool:
        """Read what is there into `rest` and the ring; False at the end of the stream."""
        found, alive = [], True
        for _ in range(PIECES if self.terminal else 1):
            try:
                piece = os.read(self.source, CHUNK)
            except BlockingIOError:
                break
            except OSError:  # EIO: nobody holds the pseudo terminal any more
                piece = b""
            alive = bool(piece)
            if not piece:
                break
            found.append(piece)
        data = b"".join(found) if len(found) != 1 else found[0]
        self.ring.add(data)
        self.rest = memoryview(b"" if self.target is None else data)
        if self.terminal:
            self.mirror()
        return alive

    def give(self) -> bool:
        """Write what was read; False when our reader is gone."""
        try:
            while self.rest and self.target is not None:
                self.rest = self.rest[os.write(self.target, self.rest) :]
        except BlockingIOError:
            return True
        except OSError:
            self.rest = memoryview(b"")
            return False
        return True

    def close(self) -> None:
        """No more of this stream; a command that goes on writing is told so, by SIGPIPE or EIO."""
        self.release()
        os.close(self.source)
        self.source = -1

    def kept(self) -> Kept:
        """What is left of it."""
        return Kept(self.name, *self.ring.parts())


class Handed:
    """A stream that goes into a regular file, which is read back."""

    def __init__(self, fd: int, reader: int, name: str) -> None:
        self._reader, self._name = reader, name
        appended = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_APPEND
        self._start = os.fstat(fd).st_size if appended else os.lseek(fd, 0, os.SEEK_CUR)

    def kept(self) -> Kept:
        """The first and the last of what was written since; a file that was cut meanwhile is read from its start."""
        size = os.fstat(self._reader).st_size
        start = self._start if self._start <= size else 0
        name = self._name
        if start == 0:
            with contextlib.suppress(OSError):
                name = os.readlink(f"/proc/self/fd/{self._reader}")  # where its line numbers are those of the file
        if size - start <= TAIL:
            return Kept(name, os.pread(self._reader, size - start, start))
        head, tail = os.pread(self._reader, HEAD, start), os.pread(self._reader, TAIL, size - TAIL)
        return Kept(name, *whole_lines(head, tail))


def plan_streams() -> tuple[list[Copied], list[Handed]]:
    """What to do with descriptors 1 and 2; one that is closed, or a device that is no terminal, is left alone."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for fd in (1, 2):
        with contextlib.suppress(OSError):
            found = os.fstat(fd)
            groups.setdefault((found.st_dev, found.st_ino, found.st_rdev), []).append(fd)
    copied: list[Copied] = []
    handed: list[Handed] = []
    for fds in groups.values():
        name = "output" if len(fds) == 2 else "stdout" if fds[0] == 1 else "stderr"
        found = os.fstat(fds[0])
        if os.isatty(fds[0]):
            copied.append(Copied(tuple(fds), name, True, False))
        elif stat.S_ISFIFO(found.st_mode) or stat.S_ISSOCK(found.st_mode) or found.st_rdev == NULL:
            copied.append(Copied(tuple(fds), name, False, found.st_rdev == NULL))
        elif stat.S_ISREG(found.st_mode):
            with contextlib.suppress(OSError):  # one that may not be read is only written
                reader = high(os.open(f"/proc/self/fd/{fds[0]}", os.O_RDONLY | os.O_CLOEXEC))
                handed.append(Handed(fds[0], reader, name))
    return copied, handed


def high(fd: int) -> int:
    """The same descriptor, above those of the standard streams (which may be closed, and then are given out first)."""
    if fd > 2:
        return fd
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(fd)


def _unblocked(fd: int) -> int:
    """Our stream, opened anew so that waiting for its reader does not keep us from passing signals on.

    O_NONBLOCK on the descriptor itself would change it for everybody who shares it. A socket, or a terminal of another
    user, cannot be opened anew: it is written to as it is.
    """
    try:
        flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        return high(os.open(f"/proc/self/fd/{fd}", flags))
    except OSError:
        return fd


def watch(poll: select.poll, streams: list[Copied]) -> None:
    """Ask for what each stream waits for: bytes, or a reader; a reader that leaves is told always."""
    for one in streams:
        if not one.rest:
            poll.register(one.source, select.POLLIN)
        if one.target is not None:
            poll.register(one.target, select.POLLOUT if one.rest else 0)


def serve(streams: list[Copied], events: Mapping[int, int]) -> None:
    """Copy what is ready; a stream at its end, or whose reader has left, is closed and taken out."""
    for one in list(streams):
        left = events.get(-1 if one.target is None else one.target, 0) & (select.POLLERR | select.POLLHUP)
        if left:
            one.rest = memoryview(b"")
        alive = not left
        if alive and not one.rest and events.get(one.source, 0):
            alive = one.take()
        if one.rest and not one.give():
            alive = False
        one.ended = one.ended or not alive
        if one.ended and not one.rest:
            streams.remove(one)
            one.close()
