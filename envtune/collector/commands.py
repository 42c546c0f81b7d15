"""Run system commands with a deadline."""

import os
import threading
from typing import Any, Dict, List, Sequence, Tuple

from ..trust.programs import UntrustedError
from ..trust.start import start_program
from .files import error_name

OUTPUT_LIMIT = 4 * 1024 * 1024  # bytes of one command's output


def run_command(argv: Sequence[str], timeout: float = 5.0, limit: int = OUTPUT_LIMIT) -> Dict[str, Any]:
    """Run `argv` in its own process group: {argv, rc, stdout, stderr} or {argv, error: missing|denied|timeout}.

    At the deadline the whole group is killed; a child that SIGKILL does not end (state D) is abandoned, not waited for.
    A program that somebody else can change is denied, with the path as `untrusted`.
    """
    import subprocess

    argv = list(argv)
    try:
        with _starting:
            child = start_program(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            child.seconds = timeout
            _running_commands.append(child)
    except UntrustedError as refused:
        return {"argv": argv, "error": "denied", "untrusted": refused.exposure.path}
    except PermissionError:
        return {"argv": argv, "error": "denied"}
    except (FileNotFoundError, NotADirectoryError):
        return {"argv": argv, "error": "missing"}
    except OSError as error:  # out of processes, memory or descriptors: says nothing about the program
        return {"argv": argv, "error": error_name(error)}
    try:
        out, complete = _drain(child, timeout, limit)
    except BaseException:  # Ctrl-C: the command has its own session and would keep running
        _kill_group(child)
        raise
    finally:
        _running_commands.remove(child)
    if not complete:
        _kill_group(child)
        return {"argv": argv, "error": "timeout", "seconds": timeout}
    return {"argv": argv, "rc": child.returncode, "stdout": out[0], "stderr": out[1]}


_running_commands: List[Any] = []
_starting = threading.Lock()  # held while a command is started and not yet registered as running


def end_running_commands() -> None:
    """Kill every command running on any thread, with its process group; for a program that is about to exit."""
    if _starting.acquire(timeout=1):  # a signal may have interrupted while one was being started
        _starting.release()
    for child in list(_running_commands):
        _kill_group(child)


def waited_for() -> List[Tuple[List[str], float]]:
    """Return the running commands, each with its timeout in seconds."""
    return [(list(child.args), getattr(child, "seconds", 0.0)) for child in list(_running_commands)]


def _drain(child: Any, timeout: float, limit: int) -> Tuple[Tuple[str, str], bool]:
    """Read both pipes until the child has ended or `timeout` seconds have passed: (text of both, whether it ended)."""
    import selectors
    import time

    end = time.monotonic() + timeout
    texts: Dict[Any, bytearray] = {child.stdout: bytearray(), child.stderr: bytearray()}
    with selectors.DefaultSelector() as selector:
        for pipe in texts:
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            remaining = end - time.monotonic()
            if remaining <= 0:
                break
            # Wake up regularly: a grandchild may keep the pipe open after the command itself has ended.
            ready = [key.fileobj for key, _ in selector.select(min(remaining, 0.1))]
            for pipe in ready:
                if not _read_pipe(pipe, texts[pipe], limit):
                    selector.unregister(pipe)
            if not ready and child.poll() is not None:
                break
    _wait(child, end)
    for pipe in texts:
        pipe.close()
    out = tuple(bytes(t).decode("utf-8", "replace") for t in texts.values())
    return (out[0], out[1]), child.returncode is not None


def _read_pipe(pipe: Any, text: bytearray, limit: int) -> bool:
    """Read once, and keep what fits below `limit`; return whether the pipe is still open."""
    chunk = os.read(pipe.fileno(), 1 << 16)
    text += chunk[: max(0, limit - len(text))]
    return bool(chunk)


def _kill_group(child: Any) -> None:
    """Kill the child's process group and reap the child, unless it does not die."""
    import signal
    import time

    try:
        os.killpg(child.pid, signal.SIGKILL)
    except OSError:
        pass
    _wait(child, time.monotonic() + 0.2)
    if child.returncode is None:
        child.returncode = -9  # state D: forget it, so that Popen's destructor does not complain


def _wait(child: Any, end: float) -> None:
    """Wait until the child has ended, until `end` on the monotonic clock at most."""
    import time

    while child.poll() is None and time.monotonic() < end:
        time.sleep(0.002)
