"""The hook of Kubernetes: k8s-init, in an init container or for the node-problem-detector."""

from __future__ import annotations

import json
import os
import stat
import time
from contextlib import suppress
from typing import Optional

from envtune.hook import log
from envtune.hook.kubernetes import MESSAGE_LENGTH, Answer, answer, condition, condition_text, shortened
from envtune.hook.limits import Say, Work, run_limited
from envtune.hook.node import REFUSED, verdict_of
from envtune.records import NamedTuple

HOOK = "k8s-init"
_WRITING = 5.0  # seconds for a file
_LIMIT = 1 << 16  # bytes of a condition that is read


class Settings(NamedTuple):
    """The options. `condition` is a file, `plugin` the protocol of the node-problem-detector."""

    timeout: float
    fail_on: str = ""
    condition: str = ""
    plugin: bool = False
    termination_log: str = "/dev/termination-log"
    dry_run: bool = False


def init(settings: Settings, judge: Work) -> int:
    """Check, write the requested output, and return the exit status; never raises."""
    ended = run_limited(judge, settings.timeout)
    verdict = verdict_of(ended)
    answered = answer(verdict, settings.fail_on, ended.fault or "no check was run")
    if settings.condition:
        _write(settings, settings.condition, answered, _write_condition)
    if settings.termination_log and not settings.plugin:
        _write(settings, settings.termination_log, answered, _write_message)
    if settings.plugin:
        log.answer(answered.plugin_line)
        return answered.plugin_status
    log.note(answered.message, quiet=True)
    return REFUSED if answered.status == "True" and not settings.dry_run else 0


def _write(settings: Settings, path: str, answered: Answer, write: object) -> None:
    if settings.dry_run:
        if not settings.plugin:
            log.note(f"would write {path}", quiet=True)
        return

    def work(say: Say) -> None:
        write(path, answered)  # type: ignore[operator]

    ended = run_limited(work, _WRITING)
    if ended.fault is not None:
        log.warn(f"{HOOK}: {path} was not written: {ended.fault}")


def _write_condition(path: str, answered: Answer) -> None:
    """Replace the existing condition; raises EnvtuneError."""
    from envtune.report.formats.files import write_file

    data = condition(answered, _before(path), time.time())
    write_file(path, condition_text(data).encode("ascii"))


def _before(path: str) -> Optional[object]:
    """Return the existing condition; None if there is none or it is invalid."""
    with suppress(OSError, ValueError, RecursionError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            found: object = json.loads(file.read(_LIMIT))
            return found
    return None


def _write_message(path: str, answered: Answer) -> None:
    """Write the termination message into the file created by the kubelet, if there is one. Raises OSError.

    It is bind-mounted into the container, and so cannot be replaced.
    """
    with suppress(FileNotFoundError):
        descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "wb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(f"{path} is not a regular file")
            file.truncate()
            file.write(shortened(answered.message, MESSAGE_LENGTH).encode("utf-8")[:MESSAGE_LENGTH])
