"""What continues after a command has ended: copying the output of background processes, and the diagnosis."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from typing import Callable, Sequence

from envtune.run.result import PR_SET_PDEATHSIG, set_process_option
from envtune.run.signals import ENDING, ForkError, fork
from envtune.run.streams import PipedStream, pump, register


def keep_copying(streams: Sequence[PipedStream]) -> None:
    """Continue copying, in a separate process, until the last writer has exited.

    What a script left running in the background (`python train.py &`) keeps its stdout and stderr, as without envtune;
    whoever waits for the end of the output waits as long as without envtune. If no process can be started, this one
    does it: a late exit is better than lost output.
    """
    try:
        child = fork()
    except ForkError:
        _copy_until_closed(list(streams))
        return
    if child:
        for stream in streams:
            stream.close()
        return
    try:
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGTSTP, signal.SIGTTOU):
            signal.signal(number, signal.SIG_IGN)
        signal.set_wakeup_fd(-1)
        _close_all_but(streams)
        _copy_until_closed(list(streams))
    finally:
        os._exit(0)


def _close_all_but(streams: Sequence[PipedStream]) -> None:
    needed = {fd for stream in streams for fd in (stream.source, stream.target) if fd is not None}
    low = 0
    for fd in sorted(needed):  # nothing else may be kept open here, least of all the other stream
        os.closerange(low, fd)
        low = fd + 1
    os.closerange(low, 4096)


def _copy_until_closed(streams: list[PipedStream]) -> None:
    while streams:
        poll = select.poll()
        register(poll, streams)
        pump(streams, dict(poll.poll()))


def run_detached(work: Callable[[], None], seconds: float) -> None:
    """Do something in a separate process: a crash, a hang or a lack of memory in it does not affect this one.

    Ends early if this process is asked to end (Ctrl-C, SIGTERM, SIGHUP). Raises ForkError.
    """
    read, write = os.pipe()
    wake, wakes = os.pipe()
    os.set_blocking(wakes, False)
    pid = fork()
    if pid == 0:
        os.close(read)
        set_process_option(PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in ENDING:
            signal.signal(number, signal.SIG_DFL)
        try:
            work()
            sys.stderr.flush()
        finally:
            os._exit(0)
    os.close(write)
    before = [(number, signal.signal(number, lambda *_: None)) for number in ENDING]
    old = signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    select.select([read, wake], [], [], seconds)
    signal.set_wakeup_fd(old)
    for number, handler in before:
        signal.signal(number, handler)
    for fd in (read, wake, wakes):
        os.close(fd)
    _end(pid)


def _end(pid: int) -> None:
    """Reap it, killing it if necessary; do not wait for one that hangs in the kernel."""
    end = time.monotonic() + 1
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        if os.waitpid(pid, os.WNOHANG)[0]:
            return
        time.sleep(0.01)
        os.kill(pid, signal.SIGKILL)
        while not os.waitpid(pid, os.WNOHANG)[0] and time.monotonic() < end:
            time.sleep(0.005)
