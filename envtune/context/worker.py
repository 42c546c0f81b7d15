"""Runs calls with a deadline, each on a thread that is left behind when it hangs."""

from __future__ import annotations

import queue
import threading
from typing import Any, Callable, Optional, TypeVar

from envtune.messages import Message, Text

T = TypeVar("T")
# False in a process that is ended from outside when it does not answer: threads cost it a sixth of its time.
has_deadlines = True
_Outcome = tuple[Any, Optional[BaseException]]


class Worker:
    """A daemon thread that runs calls one after the other; one that hangs is replaced, so that it costs only itself.

    Where no thread may be started (RLIMIT_NPROC, a limit of address space), calls are run without a deadline.
    """

    def __init__(self) -> None:
        self._start()

    def call(self, function: Callable[[], T], deadline: float) -> Optional[T]:
        """Return what the function returns, raise what it raises; None when it does neither before the deadline.

        `deadline` is in seconds.
        """
        if not self._threaded:
            return function()
        self._calls.put(function)
        try:
            result, error = self._results.get(timeout=deadline)
        except queue.Empty:
            self.end()
            self._start()
            return None
        if error is not None:
            raise error
        returned: T = result
        return returned

    def end(self) -> None:
        """No more calls: the thread ends, a hung one as soon as it comes back."""
        self._calls.put(None)

    def _start(self) -> None:
        self._calls: queue.SimpleQueue[Optional[Callable[[], Any]]] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[_Outcome] = queue.SimpleQueue()
        if not has_deadlines:
            self._threaded = False
            return
        try:
            threading.Thread(target=_serve, args=(self._calls, self._results), daemon=True).start()
            self._threaded = True
        except (RuntimeError, MemoryError):
            self._threaded = False


def _serve(calls: queue.SimpleQueue[Optional[Callable[[], Any]]], results: queue.SimpleQueue[_Outcome]) -> None:
    while (function := calls.get()) is not None:
        try:
            results.put((function(), None))
        except BaseException as error:  # raised again where the call was made
            results.put((None, error))


def no_answer(deadline: float) -> Text:
    """Return the reason of what a call did not tell before its deadline."""
    return Message("no response within {deadline:g} s", deadline=deadline)
