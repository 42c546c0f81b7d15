"""Run calls with a deadline, on a thread that is abandoned if a call hangs."""

from __future__ import annotations

import queue
import threading
import time
from typing import Any, Callable, Optional, Sequence, TypeVar

from envtune.messages import Message, Text

T = TypeVar("T")
# False in a process that is killed from outside if it does not answer: threads would cost a sixth of its time.
has_deadlines = True


class Worker:
    """A daemon thread that runs calls one after the other; a hung one is replaced, so that only its call is lost.

    If no thread can be started (RLIMIT_NPROC, a limit of address space), calls are run without a deadline.
    """

    def __init__(self) -> None:
        self._start()

    def call(self, function: Callable[[], T], deadline: float) -> Optional[T]:
        """Return what the function returns, raise what it raises; return None if it does neither before the deadline.

        `deadline` is in seconds.
        """
        return self.call_each([(function, deadline)])[0]

    def call_each(self, calls: Sequence[tuple[Callable[[], T], float]]) -> list[Optional[T]]:
        """Return what each of these functions returns, None for one that does not before its deadline; raise as `call`.

        The thread continues from one to the next by itself: waking another thread after each costs more than many
        calls.
        """
        answers: list[Optional[T]] = []
        while len(answers) < len(calls):
            left = calls[len(answers) :]
            if not self._threaded:
                return answers + [function() for function, _ in left]
            batch = _Batch(left)
            self._batches.put(batch)
            answers += batch.wait()
            if batch.is_abandoned:
                answers.append(None)
                self.end()
                self._start()
        return answers

    def end(self) -> None:
        """Accept no more calls: the thread ends, a hung one as soon as it returns."""
        self._batches.put(None)

    def _start(self) -> None:
        self._batches: queue.SimpleQueue[Optional[_Batch]] = queue.SimpleQueue()
        self._threaded = False
        if not has_deadlines:
            return
        try:
            threading.Thread(target=_serve, args=(self._batches,), daemon=True).start()
            self._threaded = True
        except (RuntimeError, MemoryError):
            return


class _Batch:
    """Calls that a thread runs, and their answers so far."""

    def __init__(self, calls: Sequence[tuple[Callable[[], Any], float]]) -> None:
        self.is_abandoned = False
        self._calls = calls
        self._answers: list[Any] = []
        self._error: Optional[BaseException] = None
        self._at = 0, time.monotonic()  # index of the running call, and when it began
        self._running = threading.Lock()
        self._running.acquire()

    def run(self) -> None:
        """Run the calls, up to one that fails."""
        try:
            for number, (function, _) in enumerate(self._calls):
                if self.is_abandoned:
                    return
                self._at = number, time.monotonic()
                self._answers.append(function())
        except BaseException as error:  # raised again in the calling thread
            self._error = error
        finally:
            self._running.release()

    def wait(self) -> Sequence[Any]:
        """Return the answers; if a call exceeds its deadline, those before it, and the batch is abandoned."""
        shortest = min(deadline for _, deadline in self._calls)  # it may belong to a later call
        while True:
            number, began = self._at
            left = began + self._calls[number][1] - time.monotonic()
            if left <= 0:
                self.is_abandoned = True
                return self._answers[:number]
            if self._running.acquire(timeout=min(left, shortest)):
                break
        if self._error is not None:
            raise self._error
        return self._answers


def _serve(batches: queue.SimpleQueue[Optional[_Batch]]) -> None:
    while (batch := batches.get()) is not None:
        batch.run()


def no_answer(deadline: float) -> Text:
    """Return the reason to report for a call that did not answer before its deadline."""
    return Message("no response within {deadline:g} s", deadline=deadline)
