"""Work in a separate process that is killed after a time limit, with everything it has started.

Only what the process has reported counts. If it raises, is killed, or does not end in time, what it reported until then
counts, and nothing else is affected: the scheduler sees the exit status of the process that waits here.
"""

from __future__ import annotations

import json
import os
import select
import signal
import time
from contextlib import suppress
from typing import Any, Callable, Mapping, Optional

from envtune.hook.records import HookError
from envtune.records import NamedTuple

Say = Callable[..., None]
Work = Callable[[Say], None]
_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_GRACE = 0.5  # seconds in which a killed process ends, unless it is in state D


class Ended(NamedTuple):
    """What the process has reported, one mapping per line, and why that is not complete (None if it is)."""

    said: tuple[Mapping[str, Any], ...]
    fault: Optional[str]
    timed_out: bool = False

    def last(self, key: str, default: Any = None) -> Any:
        """Return the last value reported under this key."""
        return next((line[key] for line in reversed(self.said) if key in line), default)


def run_limited(work: Work, seconds: float) -> Ended:
    """Call `work(say)` in a forked process and return what it has reported; never raises.

    After `seconds` the process is killed with all its children. It reports what it is doing under the key `step`.
    """
    seconds = max(seconds, 0.1)
    with _EndedAlong() as along:
        try:
            reader, writer = os.pipe()
            child = along.fork()
        except OSError as error:
            return Ended((), f"no process could be started: {error.strerror}")
        if child == 0:
            _work_and_end(work, writer, seconds)
        os.close(writer)
        text, in_time = _read(reader, seconds)
        os.close(reader)
        status = _reap(child, _GRACE) if in_time else None
        if status is None:
            end_tree(child)
            _reap(child, _GRACE)
    return _ended(text, status if in_time else None, in_time, seconds)


def _ended(text: bytes, status: Optional[int], in_time: bool, seconds: float) -> Ended:
    said = []
    for line in text.split(b"\n")[:-1]:  # what follows the last newline is incomplete
        with suppress(ValueError):
            row = json.loads(line)
            said.append(row if isinstance(row, dict) else {})
    ended = Ended(tuple(said), None)
    doing = ended.last("step")
    during = f" during: {doing}" if doing else ""
    if not in_time:
        return ended._replace(fault=f"no answer within {seconds:.3g} s{during}", timed_out=True)
    if status is None or os.WIFSIGNALED(status):
        return ended._replace(fault=f"killed by signal {os.WTERMSIG(status or 9)}{during}")
    if os.WEXITSTATUS(status) != 0:
        return ended._replace(fault=ended.last("fault", f"ended with {os.WEXITSTATUS(status)}{during}"))
    return ended


def _work_and_end(work: Work, writer: int, seconds: float) -> None:
    """Run in the child; never returns."""
    status = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds + 2)  # in case the waiting process was killed
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_RDWR), 0)

        def say(**what: Any) -> None:
            _write_all(writer, json.dumps(what).encode("ascii") + b"\n")

        try:
            work(say)
            status = 0
        except BaseException as error:
            say(fault=_text(error)[:500])
    except BaseException:  # nobody reads any more
        status = 1
    finally:
        os._exit(status)


def _text(error: BaseException) -> str:
    from envtune.errors import EnvtuneError

    own = isinstance(error, (HookError, EnvtuneError))
    return str(error) if own else f"{type(error).__name__}: {error}"


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _read(reader: int, seconds: float) -> tuple[bytes, bool]:
    """Return what is written before the deadline, and whether the writer has ended by then."""
    text, end = bytearray(), time.monotonic() + seconds
    while True:
        left = end - time.monotonic()
        if left <= 0 or not select.select([reader], [], [], left)[0]:
            return bytes(text), False
        chunk = os.read(reader, 1 << 16)
        if not chunk:
            return bytes(text), True
        text += chunk


def _reap(child: int, seconds: float) -> Optional[int]:
    """Return the status of a child that ends within this time, else None."""
    end = time.monotonic() + seconds
    while True:
        with suppress(ChildProcessError):
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                return status
        if time.monotonic() >= end:
            return None
        time.sleep(0.01)


class _EndedAlong:
    """While active, a signal that ends this process first kills the whole tree of its child."""

    def __init__(self) -> None:
        self._child = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _EndedAlong:
        with suppress(ValueError):  # not on the main thread
            for number in _ENDING:
                self._before[number] = signal.signal(number, self._end)
        return self

    def __exit__(self, *error: Any) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def fork(self) -> int:
        """Fork, with signals held back until both processes are ready for them. Raises OSError."""
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
        try:
            self._child = os.fork()
            if self._child == 0:
                self.__exit__()
            return self._child
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)

    def _end(self, number: int, frame: object) -> None:
        if self._child:
            end_tree(self._child)
        os._exit(0)  # the scheduler has ended the hook: says nothing about the node


def end_tree(root: int) -> None:
    """Kill a child and all its descendants, including those in other sessions.

    Each is stopped before its children are listed, so that none is missed.
    """
    found: list[int] = []
    pending = [root]
    while pending:
        for pid in pending:
            with suppress(OSError):
                os.kill(pid, signal.SIGSTOP)
        found += pending
        below = _children(set(found))
        pending = [pid for pid in below if pid not in found]
    for pid in reversed(found):
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def _children(parents: set[int]) -> list[int]:
    """Return the processes whose parent is one of these; proc_pid_stat(5)."""
    children = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        with suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{name}/stat", "rb") as file:
                parent = int(file.read().rpartition(b")")[2].split()[1])
            if parent in parents:
                children.append(int(name))
    return children
