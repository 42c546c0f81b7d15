"""Where stdout and stderr of the command go: as without envtune, while keeping the last part.

A terminal becomes a pseudo terminal of the same size and modes, whose output is copied to it. The command stays a job
of the user's terminal: the kernel handles keys, Ctrl-C, Ctrl-Z and /dev/tty as usual, and no terminal is left in raw
mode if envtune is killed. A pipe or a socket becomes a pipe. A regular file is passed on directly and read back at the
end, so that a full disk, O_APPEND and the order of two streams need no emulation. Two streams with the same destination
share one path.
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

from envtune.run.result import HEAD, TAIL, CapturedOutput, Ring, whole_lines

CHUNK = 64 << 10  # bytes read at once: the fastest measured between 64 KiB and 1 MiB (docs/benchmarks.md)
PIECES = 16  # reads of a terminal, 4 KiB each in the kernel, before one write
PIPE_SIZE = 256 << 10
F_SETPIPE_SZ = 1031  # linux/fcntl.h; the fcntl module names it from Python 3.10 on
NULL = os.makedev(1, 3)  # /dev/null, Documentation/admin-guide/devices.txt


class PipedStream:
    """A stream that passes through envtune: `fds` of the command write to our pipe or pseudo terminal."""

    def __init__(self, fds: tuple[int, ...], name: str, terminal: bool, sink: bool) -> None:
        self.fds, self.name, self.terminal = fds, name, terminal
        self.ring = Ring()
        self.pending = memoryview(b"")
        self.ended = False
        read, write = os.openpty() if terminal else os.pipe()
        self.source: int = above_stdio(read)
        self.end: int = above_stdio(write)  # the command's end
        self.target: Optional[int] = None if sink else _unblocked(fds[0])
        self.size = b""
        if terminal:
            self._copy_modes()
        else:
            with contextlib.suppress(OSError):
                fcntl.fcntl(self.source, F_SETPIPE_SZ, PIPE_SIZE)
        os.set_blocking(self.source, False)

    def _copy_modes(self) -> None:
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
        """Copy modes that the command set on its output (as curses does) to the terminal that is read."""
        with contextlib.suppress(termios.error, OSError):
            modes = termios.tcgetattr(self.source)
            if modes != self._modes and os.tcgetpgrp(self.fds[0]) == os.getpgrp():
                self._modes = modes
                real = termios.tcgetattr(self.fds[0])
                termios.tcsetattr(self.fds[0], termios.TCSANOW, [modes[0], real[1], *modes[2:]])

    def release(self) -> None:
        """Close the command's end.

        A terminal's is kept until the command has ended: without it the pseudo terminal would hang up on a command
        that closed it and opens it again.
        """
        if self.end >= 0:
            os.close(self.end)
            self.end = -1

    def read_available(self) -> bool:
        """Read available bytes into `rest` and the ring; False at the end of the stream."""
        found, alive = [], True
        for _ in range(PIECES if self.terminal else 1):
            try:
                piece = os.read(self.source, CHUNK)
            except BlockingIOError:
                break
            except OSError:  # EIO: nobody has the pseudo terminal open any more
                piece = b""
            alive = bool(piece)
            if not piece:
                break
            found.append(piece)
        data = b"".join(found) if len(found) != 1 else found[0]
        self.ring.add(data)
        self.pending = memoryview(b"" if self.target is None else data)
        if self.terminal:
            self.mirror()
        return alive

    def write_pending(self) -> bool:
        """Write what was read; False when our reader is gone."""
        try:
            while self.pending and self.target is not None:
                self.pending = self.pending[os.write(self.target, self.pending) :]
        except BlockingIOError:
            return True
        except OSError:
            self.pending = memoryview(b"")
            return False
        return True

    def close(self) -> None:
        """Close this stream; a command that keeps writing gets SIGPIPE or EIO."""
        self.release()
        os.close(self.source)
        self.source = -1

    def captured(self) -> CapturedOutput:
        """Return what was kept of the stream."""
        return CapturedOutput(self.name, *self.ring.parts())


class InheritedFile:
    """A stream that goes into a regular file, which is read back."""

    def __init__(self, fd: int, reader: int, name: str) -> None:
        self._reader, self._name = reader, name
        appended = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_APPEND
        self._start = os.fstat(fd).st_size if appended else os.lseek(fd, 0, os.SEEK_CUR)

    def captured(self) -> CapturedOutput:
        """Return the first and last part of what was written; a file truncated meanwhile is read from its start."""
        size = os.fstat(self._reader).st_size
        start = self._start if self._start <= size else 0
        name = self._name
        if start == 0:
            with contextlib.suppress(OSError):
                name = os.readlink(f"/proc/self/fd/{self._reader}")  # its line numbers are those of the file
        if size - start <= TAIL:
            return CapturedOutput(name, os.pread(self._reader, size - start, start))
        head, tail = os.pread(self._reader, HEAD, start), os.pread(self._reader, TAIL, size - TAIL)
        return CapturedOutput(name, *whole_lines(head, tail))


def plan_streams() -> tuple[list[PipedStream], list[InheritedFile]]:
    """Return what to do with descriptors 1 and 2; a closed one, or a device other than a terminal, is left alone."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for fd in (1, 2):
        with contextlib.suppress(OSError):
            found = os.fstat(fd)
            if not os.get_inheritable(fd):  # it was closed; it stays closed for the command, too
                continue
            groups.setdefault((found.st_dev, found.st_ino, found.st_rdev), []).append(fd)
    piped: list[PipedStream] = []
    inherited: list[InheritedFile] = []
    for fds in groups.values():
        name = "output" if len(fds) == 2 else "stdout" if fds[0] == 1 else "stderr"
        found = os.fstat(fds[0])
        if os.isatty(fds[0]):
            piped.append(PipedStream(tuple(fds), name, True, False))
        elif stat.S_ISFIFO(found.st_mode) or stat.S_ISSOCK(found.st_mode) or found.st_rdev == NULL:
            piped.append(PipedStream(tuple(fds), name, False, found.st_rdev == NULL))
        elif stat.S_ISREG(found.st_mode):
            with contextlib.suppress(OSError):  # one that cannot be read is only written
                reader = above_stdio(os.open(f"/proc/self/fd/{fds[0]}", os.O_RDONLY | os.O_CLOEXEC))
                inherited.append(InheritedFile(fds[0], reader, name))
    return piped, inherited


def above_stdio(fd: int) -> int:
    """Return the same descriptor, above those of the standard streams: a closed one would be reused first."""
    if fd > 2:
        return fd
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(fd)


def _unblocked(fd: int) -> int:
    """Our stream, reopened so that waiting for its reader does not delay passing on signals.

    O_NONBLOCK on the descriptor itself would change it for everybody who shares it. A socket, or another user's
    terminal, cannot be reopened: it is written to directly.
    """
    try:
        flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        return above_stdio(os.open(f"/proc/self/fd/{fd}", flags))
    except OSError:
        return fd


def register(poll: select.poll, streams: list[PipedStream]) -> None:
    """Poll for what each stream waits for: bytes, or a reader; a closed reader is always reported."""
    for stream in streams:
        if not stream.pending:
            poll.register(stream.source, select.POLLIN)
        if stream.target is not None:
            poll.register(stream.target, select.POLLOUT if stream.pending else 0)


def pump(streams: list[PipedStream], events: Mapping[int, int]) -> None:
    """Copy what is ready; a stream at its end, or whose reader has closed, is closed and removed."""
    for stream in list(streams):
        left = events.get(-1 if stream.target is None else stream.target, 0) & (select.POLLERR | select.POLLHUP)
        if left:
            stream.pending = memoryview(b"")
        alive = not left
        if alive and not stream.pending and events.get(stream.source, 0):
            alive = stream.read_available()
        if stream.pending and not stream.write_pending():
            alive = False
        stream.ended = stream.ended or not alive
        if stream.ended and not stream.pending:
            streams.remove(stream)
            stream.close()
