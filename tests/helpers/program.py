"""The program from its start to its end in a fork of the tests: its streams are real ones, its imports are paid for."""

from __future__ import annotations

import ctypes
import importlib
import io
import os
import platform
import signal
import struct
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Callable, Mapping, NamedTuple, Optional

from envtune.catalog import load
from envtune.cli.app import VERBS
from helpers.killed_runs import forked

CLOSED, FULL, LEFT, KEPT = "closed", "full", "reader has left", "kept"
# <asm/unistd.h>: clone, fork, vfork, clone3
CALLS = {"x86_64": (56, 57, 58, 435), "aarch64": (220, 435)}


class Ended(NamedTuple):
    """`status` is as a shell shows it."""

    status: int
    out: bytes
    err: bytes


def program(
    *words: str,
    stdout: str = KEPT,
    stderr: str = KEPT,
    stdin: str = KEPT,
    encoding: str = "utf-8",
    variables: Optional[Mapping[str, str]] = None,
    before: Callable[[], object] = lambda: None,
) -> Ended:
    """Run `envtune` with these words, its streams closed, on a full device, or a pipe whose reader has left."""
    _load_once()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        kept = (out.fileno(), err.fileno())

        def main() -> None:
            os.environ.update(variables or {})
            sys.argv = ["envtune", *words]
            sys.modules["__main__"].__package__ = None  # `python -m pytest` is no part of the name in a usage error
            for number, kind, file in ((1, stdout, kept[0]), (2, stderr, kept[1])):
                _redirect(number, kind, file)
            sys.stdout, sys.stderr = (_standard(kind, n, encoding) for n, kind in ((1, stdout), (2, stderr)))
            if stdin == CLOSED:
                os.close(0)
                sys.stdin = None  # type: ignore[assignment]
            before()
            os._exit(_status())

        _, status = os.waitpid(forked(main), 0)
        out.seek(0)
        err.seek(0)
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
        return Ended(code, out.read(), err.read())


def completed(
    *words: str, env: Optional[Mapping[str, str]] = None, cwd: Optional[Path] = None
) -> subprocess.CompletedProcess[str]:
    """Run `envtune` with these words as `subprocess.run` would; `env` is its whole environment."""
    ended = program(*words, before=lambda: go_to(env, cwd))
    status = ended.status if ended.status <= 128 else 128 - ended.status
    return subprocess.CompletedProcess(words, status, ended.out.decode("utf-8"), ended.err.decode("utf-8"))


def go_to(env: Optional[Mapping[str, str]], cwd: Optional[Path]) -> None:
    """Have this process, a fork, the environment and the working directory with which a program is started."""
    if env is not None:
        os.environ.clear()
        os.environ.update(env)
    os.chdir(cwd or ".")


def started(*words: str, env: Mapping[str, str]) -> int:
    """Start `envtune` with these words and this whole environment in /; nobody reads its output. Returns its pid."""
    _load_once()

    def main() -> None:
        go_to(env, Path("/"))
        sys.argv = ["envtune", *words]
        sys.stdout = sys.stderr = io.StringIO()  # in whose place the program puts its own
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os._exit(_status())

    return forked(main)


@cache
def _load_once() -> None:
    """Import the verbs and open the catalogue here: what a fork inherits it does not do again."""
    load()
    for module in VERBS.values():
        importlib.import_module(f"envtune.cli.{module}")


def _redirect(number: int, kind: str, file: int) -> None:
    if kind == CLOSED:
        os.close(number)
        return
    if kind == FULL:
        file = os.open("/dev/full", os.O_WRONLY)
    elif kind == LEFT:
        reader, file = os.pipe()
        os.close(reader)
    os.dup2(file, number)


def _standard(kind: str, number: int, encoding: str) -> object:
    """What Python makes of the descriptor when it starts."""
    return None if kind == CLOSED else open(number, "w", encoding=encoding, closefd=False)


def _status() -> int:
    """The status with which Python would end, with what it does at its end."""
    from envtune.cli import main

    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        main()
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    try:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except OSError:
        return 120  # Py_FinalizeEx
    return code


def deny_processes(error: int) -> None:
    """Have the kernel refuse this process to start another one, or a thread (seccomp(2))."""
    numbers = CALLS[platform.machine()]
    rows = [(0x20, 0, 0, 0)]  # the number of the call
    rows += [(0x15, len(numbers) - place, 0, number) for place, number in enumerate(numbers)]  # equal: to the last row
    rows += [(0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x00050000 | error)]  # SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO
    filter_ = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
    argument = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(rows), ctypes.addressof(filter_)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, argument, 0, 0):  # PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP
        raise OSError(ctypes.get_errno(), "prctl")
