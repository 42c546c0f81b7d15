"""A recorded host judged without a process of its own: as in one, event by event, each as it comes through the pipe."""

from __future__ import annotations

import pickle
from typing import Any, Sequence

from envtune.audit import limited
from envtune.model import Check


class JudgedHere(limited._Process):
    """In place of the forked process; a fork of the tests copies what thousands of tests have left in memory."""

    def __init__(self, judge: limited.Judge, checks: Sequence[Check]) -> None:
        self.checking = False
        self._checks, self._judged = list(checks), limited._or_failed(judge(checks))

    def _receive(self, seconds: float) -> Any:
        return pickle.loads(limited._packed(next(self._judged)))

    def _end(self) -> None:
        self._judged.close()
