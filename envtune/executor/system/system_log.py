"""A line in the host's log for every change that is written or undone. Does nothing if there is no log."""

import os

from ..common import Record
from .caller import current_caller, one_line


def log_change(run: str, change: Record, status: str) -> None:
    """Write one line: run, change, its check, action and target, the result, and who did it.

    No values and no command output: they may contain secrets, and others can read the log.
    """
    import syslog

    caller = current_caller()
    who = " ".join("%s=%s" % (key, value) for key, value in sorted(caller.items()))
    what = " ".join(str(change.get(key, "")) for key in ("id", "finding", "action", "target"))
    text = "run %s: %s: %s (%s)" % (run, one_line(what, 400), status, who)
    try:
        syslog.openlog("envtune", syslog.LOG_PID, syslog.LOG_AUTHPRIV if os.geteuid() == 0 else syslog.LOG_USER)
        syslog.syslog(syslog.LOG_NOTICE, text)
    except (OSError, ValueError):
        pass
    finally:
        syslog.closelog()
