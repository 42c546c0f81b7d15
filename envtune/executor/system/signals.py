"""SIGINT, SIGTERM and SIGHUP during a run: noted at once, raised only where the current step can be reverted."""

import os
import signal
from typing import Any, Dict, List

from ..problems import StoppedError

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_active_handlers: List["SignalHandlers"] = []


class SignalHandlers:
    """While entered, a signal raises StoppedError inside of `interruptible` blocks and is remembered elsewhere.

    `number` is the first signal received, 0 for none. A signal that is ignored (nohup) stays ignored. Outside the main
    thread signals are left to their existing handlers.
    """

    def __init__(self) -> None:
        self.number = 0
        self.reported = False  # the run has taken note of `number`
        self.may_raise = False
        self._previous: Dict[int, Any] = {}

    def __enter__(self) -> "SignalHandlers":
        _active_handlers.append(self)
        for number in STOP_SIGNALS:
            previous = signal.getsignal(number)
            if previous in (signal.SIG_IGN, None):  # None: set by C code, which could not be restored
                continue
            try:
                signal.signal(number, self._note)
            except ValueError:  # not the main thread
                break
            self._previous[number] = previous
        return self

    def __exit__(self, *error: Any) -> None:
        self.may_raise = False
        _active_handlers.remove(self)
        for number, previous in self._previous.items():
            signal.signal(number, previous)
        if self.number and not self.reported:
            os.kill(os.getpid(), self.number)  # it came after the end: let it have its default effect

    def _note(self, number: int, frame: Any) -> None:
        self.number = self.number or number
        self.raise_noted()

    def raise_noted(self) -> None:
        """Raise the noted signal, once: a second signal must not interrupt the cleanup after the first."""
        if self.number and self.may_raise:
            self.may_raise = False
            raise StoppedError(self.number)

    def interruptible(self) -> "_SignalBlock":
        """Return a context in which a signal raises StoppedError at once, including one noted before."""
        return _SignalBlock(self, True)


class _SignalBlock:
    """Sets whether signals raise, and restores the previous setting on exit."""

    def __init__(self, handlers: SignalHandlers, may_raise: bool) -> None:
        self._handlers, self._may_raise = handlers, may_raise

    def __enter__(self) -> None:
        self._before = self._handlers.may_raise
        self._handlers.may_raise = self._may_raise
        self._handlers.raise_noted()

    def __exit__(self, kind: Any, *error: Any) -> None:
        self._handlers.may_raise = self._before and kind is None
        self._handlers.raise_noted()


def uninterruptible() -> _SignalBlock:
    """Return a context in which a signal raises only at its end: a started child is always registered."""
    return _SignalBlock(_active_handlers[-1] if _active_handlers else SignalHandlers(), False)
