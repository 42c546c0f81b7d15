"""Commands: short ones that only read, and long ones that are logged line by line."""

import os
import select
import time
from typing import Any, Dict, List, Optional, Tuple

from ..trust.environment import VariableError
from ..trust.programs import UntrustedError
from ..trust.start import start_program
from .common import Record, failpoint, private_opener
from .problems import FailedError, RefusedError
from .processes import RUN_VARIABLE, running_commands
from .run_directory import RunDirectory
from .system.signals import uninterruptible

Environment = Optional[Dict[str, str]]
_QUERY_TIMEOUT = 60  # seconds
_END_OF_DETACHED = 5.0  # seconds; a process that hangs in the kernel is abandoned
_LINE_LIMIT = 65536  # bytes of output without a newline that are kept together


def command_output(argv: List[str], env: Environment) -> str:
    """Return the output of a read-only command."""
    return _query(argv, env)[1]


def check_status(check: Record, env: Environment) -> int:
    """Return the exit status of a check's command; 127 if the program does not exist, as in a shell."""
    try:
        return _query(check["argv"], env)[0]
    except OSError:
        return 127


def check_holds(check: Record, env: Environment) -> bool:
    """Return whether a check's command exits with 0 and, with `contains`, prints that text."""
    try:
        status, text = _query(check["argv"], env)
    except OSError:
        return False  # a program that does not exist has done nothing
    return status == 0 and check.get("contains", "") in text


def _query(argv: List[str], env: Environment) -> Tuple[int, str]:
    """Return (exit status, output) of a read-only command; its whole process group is killed at the deadline."""
    import signal
    import subprocess

    child = _start(argv, env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        output, _ = child.communicate(timeout=_QUERY_TIMEOUT)
    except subprocess.TimeoutExpired:
        raise FailedError("no-answer", command=" ".join(argv), seconds=_QUERY_TIMEOUT) from None
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
    return child.returncode, output.decode("utf-8", "replace")


def _start(argv: List[str], env: Environment, **more: Any) -> Any:
    """Start a command; raises RefusedError if others can change what it runs, OSError if it does not exist."""
    try:
        return start_program(argv, env, **more)
    except UntrustedError as error:
        path, user, mode = error.exposure.path, error.exposure.uid, "%04o" % error.exposure.mode
        if error.exposure.foreign:
            raise RefusedError("program-of-another-user", program=error.program, path=path, user=user) from None
        raise RefusedError(
            "program-writable-by-others", program=error.program, path=path, user=user, mode=mode
        ) from None
    except VariableError as error:
        raise RefusedError("variable-not-allowed", name=error.name) from None


def run_checked(argv: List[str], timeout: float, env: Environment, directory: RunDirectory) -> str:
    """Run a long command and return its last lines; raise FailedError with them unless it exits with 0."""
    status, tail = run_logged(argv, timeout, env, directory)
    if status != 0:
        raise FailedError("command-failed", command=" ".join(argv), status=status, output=tail)
    return tail


def run_logged(argv: List[str], timeout: float, env: Environment, directory: RunDirectory) -> Tuple[int, str]:
    """Run a long command, sending every line to output.log and `on_output` of the run: (exit status, last lines).

    Its whole process group is killed when this run is stopped, and at the deadline, which raises FailedError.
    """
    import signal
    import subprocess

    child = None
    log = _OutputLog(os.path.join(directory.path, "output.log"), argv, directory)
    try:
        with uninterruptible():  # a started command is always registered, so that it can be killed
            mark = {RUN_VARIABLE: directory.path}
            child = _start(argv, env, marks=mark, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert child.stdout is not None
        failpoint("command-started")
        if not _log_until_end(child, child.stdout.fileno(), log, time.monotonic() + timeout):
            seconds = "%g" % timeout
            raise FailedError("command-timed-out", command=" ".join(argv), seconds=seconds, output=log.tail())
        return child.wait(), log.tail()
    finally:
        if child is not None:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
                _kill_detached(directory.path)
            if child.stdout is not None:
                child.stdout.close()
        log.close()


def _kill_detached(run: str) -> None:
    """Kill what the commands of a run started in other sessions, and what those start until they end."""
    import signal

    deadline = time.monotonic() + _END_OF_DETACHED
    running = running_commands(run)
    while running and time.monotonic() < deadline:
        for pid in running:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:  # it has ended, or belongs to another user
                pass
        time.sleep(0.01)
        running = running_commands(run)


def _log_until_end(child: Any, descriptor: int, log: "_OutputLog", deadline: float) -> bool:
    """Log the command's output until it ends; False at the deadline. Does not wait for daemons it leaves running."""
    import subprocess

    while True:
        ended = child.poll() is not None
        ready, _, _ = select.select([descriptor], [], [], 0.1)
        data = os.read(descriptor, 65536) if ready else b""
        log.write(data)
        if ended and not data:
            return True
        if ready and not data:  # it closed its output: it has ended, or continues without printing
            try:
                child.wait(0.1)
            except subprocess.TimeoutExpired:
                pass
        if not ended and time.monotonic() > deadline:
            return child.poll() is not None


class _OutputLog:
    """The output of a command, to a file and a callback, with its last lines kept; line by line, without secrets."""

    def __init__(self, path: str, argv: List[str], directory: RunDirectory) -> None:
        self._on_line, self._redact = directory.on_output, directory.redact
        self._last_lines: List[str] = []
        self._partial = b""
        self._file = open(path, "ab", 0, opener=private_opener)  # noqa: SIM115 (closed by close)
        self._append("$ %s\n" % self._redact(" ".join(argv)))

    def _append(self, text: str) -> None:
        try:
            self._file.write(text.encode("utf-8", "surrogateescape"))
        except OSError:
            pass  # a full disk is no reason to stop the command

    def write(self, data: bytes) -> None:
        lines = (self._partial + data).split(b"\n")
        self._partial = lines.pop()
        for line in lines:
            self._end_line(line, "\n")
        if len(self._partial) > _LINE_LIMIT:
            self._end_line(self._partial, "")
            self._partial = b""

    def _end_line(self, line: bytes, end: str) -> None:
        shown = self._redact(line.decode("utf-8", "surrogateescape"))
        self._append(shown + end)
        text = shown.encode("utf-8", "surrogateescape").decode("utf-8", "replace").rstrip("\r").rpartition("\r")[2]
        self._last_lines = self._last_lines[-19:] + [text]
        if self._on_line is not None:
            self._on_line(text)

    def tail(self) -> str:
        return " | ".join(line for line in self._last_lines[-5:] if line)

    def close(self) -> None:
        if self._partial:
            self._end_line(self._partial, "")
        self._file.close()
