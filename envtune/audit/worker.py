"""Runs calls with a deadline, each on a thread that is left behind when it hangs."""

from __future__ import annotations

import queue
import threading
from typing import Any, Callable, Optional, TypeVar

T = TypeVar("T")


class Worker:
    """A daemon thread that runs calls one after the other; one that hangs is replaced, so that it costs only itself."""

    def __init__(self) -> None:
        self._start()

    def call(self, function: Callable[[], T], deadline: float) -> Optional[T]:
        """Return what the function returns; None when it does not return before the deadline (in seconds)."""
        self._calls.put(function)
        try:
            result: T = self._results.get(timeout=deadline)
        except queue.Empty:
            self.end()
            self._start()
            return None
        return result

    def end(self) -> None:
        """No more calls: the thread ends, a hung one as soon as it comes back."""
        self._calls.put(None)

    def _start(self) -> None:
        self._calls: queue.SimpleQueue[Optional[Callable[[], Any]]] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=_serve, args=(self._calls, self._results), daemon=True).start()


def _serve(calls: queue.SimpleQueue[Optional[Callable[[], Any]]], results: queue.SimpleQueue[Any]) -> None:
    while (function := calls.get()) is not None:
        results.put(function())
