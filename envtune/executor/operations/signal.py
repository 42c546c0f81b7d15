"""End one process by signals."""

import os
import time

from ..common import Record, failpoint
from ..problems import FailedError, RefusedError
from ..processes import ancestors, process_identity
from ..run_directory import RunDirectory
from ..validators import Members, is_count, is_flag, is_pid, is_seconds
from .base import Operation

_GRACE_AFTER_KILL = 5.0  # seconds


class SignalOperation(Operation):
    """`{op: signal, pid, started, uid, grace, kill?}`: TERM one process, KILL it after `grace` s if `kill` is true.

    `started` (clock ticks since boot) and `uid` identify the process; another one with the same pid is never touched.
    """

    members = Members({"pid": is_pid, "started": is_count, "uid": is_count, "grace": is_seconds}, {"kill": is_flag})

    def __init__(self, wire: Record) -> None:
        super().__init__(wire)
        self.pid = wire["pid"]
        self.start_time = wire["started"]
        self.user = wire["uid"]
        self.grace = wire["grace"]
        self.kill = wire.get("kill", False)

    def observe(self) -> str:
        """Return `running` or `gone`; raises RefusedError for another user's process or an ancestor of envtune."""
        identity = process_identity(self.pid)
        if identity is None or identity[0] != self.start_time or identity[2] == "Z":
            return "gone"
        if identity[1] != self.user:
            raise RefusedError("process-of-another-user", pid=self.pid, user=identity[1])
        if self.pid in ancestors(os.getpid()):
            raise RefusedError("process-is-envtune", pid=self.pid)
        return "running"

    def final_state(self) -> str:
        """Return `gone`."""
        return "gone"

    def apply(self, saved: Record, directory: RunDirectory) -> None:
        """Send the signals until the process is gone; raises FailedError if it survives them."""
        import signal

        signals = [(signal.SIGTERM, self.grace)] + ([(signal.SIGKILL, _GRACE_AFTER_KILL)] if self.kill else [])
        for number, grace in signals:
            if not self._send(number):
                return
            failpoint("signalled")
            deadline = time.monotonic() + grace
            while time.monotonic() < deadline:
                if self.observe() == "gone":
                    return
                time.sleep(0.05)
        raise FailedError("process-still-running", pid=self.pid)

    def _send(self, number: int) -> bool:
        """Signal exactly that process: open its descriptor, check the identity, then signal through it."""
        failpoint("before-signal")
        if not hasattr(os, "pidfd_open"):  # before Python 3.9: check right before the signal
            if self.observe() == "gone":
                return False
            os.kill(self.pid, number)
            return True
        import signal

        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return False
        try:
            failpoint("pidfd-open")
            if self.observe() == "gone":
                return False
            signal.pidfd_send_signal(descriptor, number)
            return True
        except ProcessLookupError:
            return False
        finally:
            os.close(descriptor)

    def revert(self, saved: Record, directory: RunDirectory) -> None:
        """Raise RefusedError: a process that ended cannot be restored."""
        raise RefusedError("process-not-restorable", pid=self.pid)
