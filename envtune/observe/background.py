"""Observe the command that this process runs: a second process samples it, and returns what it saw at the end."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
from typing import Optional

from envtune.observe.npu import npu_reader
from envtune.observe.sampling import Observation, observe

LONGEST = 10 * 24 * 3600.0  # seconds


class Observer:
    """The process that samples what this one starts. Raises OSError if no process can be started."""

    def __init__(self, seconds: float = LONGEST) -> None:
        result, self._write = os.pipe()
        stop, self._stop = os.pipe()
        self._result, parent = result, os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            self._sample(parent, seconds, stop)
        os.close(self._write)
        os.close(stop)

    def _sample(self, parent: int, seconds: float, stop: int) -> None:
        """Sample until the parent closes its end, and exit without cleaning up what belongs to the parent."""
        try:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
                signal.signal(number, signal.SIG_IGN)
            os.close(self._stop)
            os.close(self._result)
            for stream in (0, 1, 2):
                with contextlib.suppress(OSError):
                    os.close(stream)
            found = observe(parent, seconds, stop, npu_reader(), frozenset((parent, os.getpid())))
            with os.fdopen(self._write, "wb") as file:
                pickle.dump(found, file)
        finally:
            os._exit(0)

    def finish(self) -> Optional[Observation]:
        """Return what was seen; None if the sampling process failed."""
        os.close(self._stop)
        with os.fdopen(self._result, "rb") as file:
            data = file.read()
        with contextlib.suppress(OSError):
            os.waitpid(self._pid, 0)
        if not data:
            return None
        found = pickle.loads(data)  # from our own process
        return found if isinstance(found, Observation) else None
