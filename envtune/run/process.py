"""Run a command as if envtune were not there: same terminal, signals and exit status; its last output is kept.

The command stays in our process group: what a shell, a terminal or a launcher sends to the group reaches it directly
(docs/adr/0008). Signals sent to this process alone are passed on.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import sys
import time
from typing import AbstractSet, Mapping, NoReturn, Sequence

from envtune.run.background import keep_copying
from envtune.run.result import PR_SET_PDEATHSIG, ExitResult, set_process_option
from envtune.run.signals import ENDING, ForkError, GroupSentinel, fork, listening, pass_on, stop_with
from envtune.run.streams import PIPE_SIZE, InheritedFile, PipedStream, above_stdio, plan_streams, pump, register

GRACE = 0.5  # seconds for `> >(tee log)` and the like to write the rest after the command failed
RESPONSE = 60.0  # seconds: a command that ends later than this after SIGTERM or the like ended for another reason
JOB_CONTROL = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)


def run_command(argv: Sequence[str], env: Mapping[str, str], capture: bool = True) -> ExitResult:
    """Run `argv` to completion. Raises OSError if it cannot be started."""
    piped, inherited = plan_streams() if capture else ([], [])
    return _Job(argv, env, piped, inherited).run()


class _Job:
    """One child from start to end."""

    def __init__(
        self, argv: Sequence[str], env: Mapping[str, str], piped: list[PipedStream], inherited: list[InheritedFile]
    ) -> None:
        self._argv, self._env = list(argv), dict(env)
        self._streams, self._open, self._inherited = piped, list(piped), inherited
        self._pid, self._status, self._until = 0, -1, 0.0
        self._requested, self._requested_at, self._interrupted = 0, 0.0, False
        self._marks: dict[PipedStream, int] = {}

    def run(self) -> ExitResult:
        wake, wakes = (above_stdio(end) for end in os.pipe())
        os.set_blocking(wake, False)
        os.set_blocking(wakes, False)
        try:
            self._sentinel = GroupSentinel()
            try:
                with listening(wakes):
                    self._start()
                    self._supervise(wake)
            finally:
                self._sentinel.end()
        except ForkError:
            self._become()
        finally:
            os.close(wake)
            os.close(wakes)
        output = [stream.captured() for stream in self._streams] + [file.captured() for file in self._inherited]
        obeyed = time.monotonic() - self._requested_at < RESPONSE
        return ExitResult(self._status, tuple(output), self._requested if obeyed else 0)

    # ------------------------------------------------------------------ start

    def _start(self) -> None:
        """Fork and exec; an exec that fails is reported through a pipe as the OSError it is."""
        error_read, error_write = (above_stdio(end) for end in os.pipe())
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        parent = os.getpid()
        # Between fork and exec a signal must not be handled by a handler that is not the command's.
        before = signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
        try:
            self._pid = fork()
            if self._pid == 0:
                self._run_child(error_write, parent, before)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            os.close(error_write)
        for stream in self._streams:
            if not stream.terminal:
                stream.release()
        failed = os.read(error_read, 16)
        os.close(error_read)
        if failed:
            os.waitpid(self._pid, 0)
            raise OSError(int(failed), os.strerror(int(failed)), self._argv[0])

    def _run_child(self, error_write: int, parent: int, mask: AbstractSet[int]) -> None:
        try:
            # Killing this process outright is meant for the command. Not inherited by what it starts.
            set_process_option(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(128 + signal.SIGKILL)
            for stream in self._streams:
                for fd in stream.fds:
                    os.dup2(stream.end, fd)
            _restore_signals()
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            _execute(self._argv, self._env)
        except OSError as error:
            os.write(error_write, str(error.errno or errno.ENOEXEC).encode("ascii"))
        finally:
            os._exit(127)

    def _become(self) -> NoReturn:
        """Execute the command in this process if no other one can be started; then it cannot be diagnosed."""
        _restore_signals()
        _execute(self._argv, self._env)

    # ------------------------------------------------------------------ supervise

    def _supervise(self, wake: int) -> None:
        """Copy output and pass on signals until the command has ended and everything it wrote has arrived."""
        while self._status < 0 or self._open:
            events = self._wait(wake)
            if wake in events:
                self._signals(wake)
            pump(self._open, events)
            if self._interrupted or (self._status >= 0 and self._drained(events)):
                break
        if self._open:
            keep_copying(self._open)

    def _wait(self, wake: int) -> dict[int, int]:
        """Return what is ready; empty if the command has ended and nothing more arrived in time."""
        poll = select.poll()
        poll.register(wake, select.POLLIN)
        register(poll, self._open)
        if self._status < 0 or any(stream.pending for stream in self._open):
            return dict(poll.poll())
        return dict(poll.poll(max(0, int((self._until - time.monotonic()) * 1000))))

    def _ended(self, status: int) -> None:
        self._status = status
        self._until = time.monotonic() + (GRACE if status else 0)
        for stream in self._open:
            stream.release()
        self._marks = {stream: stream.ring.total for stream in self._open}

    def _drained(self, events: Mapping[int, int]) -> bool:
        """Return whether all that the command itself wrote has arrived; what it left running may write forever."""
        if time.monotonic() < self._until or any(stream.pending for stream in self._open):
            return False
        return not events or all(stream.ring.total - self._marks[stream] > PIPE_SIZE for stream in self._open)

    def _signals(self, wake: int) -> None:
        received: set[int] = set()
        with contextlib.suppress(BlockingIOError):
            received.update(os.read(wake, 4096))
        self._interrupted = self._status >= 0 and not received.isdisjoint(ENDING)
        for number in sorted(received - {signal.SIGCHLD}):
            if number in ENDING:
                self._requested, self._requested_at = number, time.monotonic()
            if self._status < 0:
                pass_on(number, self._pid, self._sentinel)
            if number in (signal.SIGWINCH, signal.SIGCONT):
                self._resize()
        self._reap()

    def _resize(self) -> None:
        changed = [stream for stream in self._streams if stream.resize()]
        if changed and self._status < 0:
            # The kernel has signaled the command before the pseudo terminal had its new size.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGWINCH)

    def _reap(self) -> None:
        while self._status < 0:
            pid, found = os.waitpid(self._pid, os.WNOHANG | os.WUNTRACED)
            if pid == 0:
                return
            if not os.WIFSTOPPED(found):
                self._ended(found)
            elif os.WSTOPSIG(found) in JOB_CONTROL:
                self._copy_available()
                stop_with(os.WSTOPSIG(found))

    def _copy_available(self) -> None:
        """Copy what was printed before the stop, so that it is seen before the shell reports the stop."""
        for _ in range(PIPE_SIZE // 4096):
            poll = select.poll()
            register(poll, self._open)
            events = dict(poll.poll(0))
            if not events:
                return
            pump(self._open, events)


def _restore_signals() -> None:
    """Reset signals as a command expects: none is caught, and those that Python ignores are restored."""
    for number in signal.valid_signals():
        if signal.getsignal(number) not in (signal.SIG_IGN, signal.SIG_DFL, None):
            signal.signal(number, signal.SIG_DFL)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, for itself
        signal.signal(number, signal.SIG_DFL)


def _execute(argv: Sequence[str], env: Mapping[str, str]) -> NoReturn:
    """Execute the command as a shell would: a script without a `#!` line is one for sh (execvp(3))."""
    try:
        os.execvpe(argv[0], list(argv), dict(env))
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
        import shutil

        found = shutil.which(argv[0], path=env.get("PATH")) or argv[0]
        os.execve("/bin/sh", ["sh", found, *argv[1:]], dict(env))
