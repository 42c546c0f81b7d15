"""One line for each thing a hook did or could not do: in the host's log, and on the output kept by the scheduler.

Lines are English whatever the locale: administrators and their programs search for them on many hosts.
"""

from __future__ import annotations

import sys
from contextlib import suppress

from envtune.trust.characters import visible

_LONGEST = 900  # bytes of a line that every syslog accepts; RFC 3164 allows 1024 including the header


def note(text: str, quiet: bool = False) -> None:
    """Print a line; one that is not `quiet` goes into the log as well."""
    _say(text, sys.stdout, None if quiet else "LOG_NOTICE")


def fault(hook: str, text: str) -> None:
    """Report what this program could not do, and that the node is unchanged."""
    _say(f"{hook}: {text}; the node is left as it is", sys.stderr, "LOG_WARNING")


def warn(text: str) -> None:
    """Report what went wrong without an effect on the answer."""
    _say(text, sys.stderr, "LOG_WARNING")


def answer(line: str) -> None:
    """Print what a program of the scheduler reads."""
    with suppress(Exception):
        sys.stdout.write(visible(line) + "\n")
        sys.stdout.flush()


def _say(text: str, stream: object, level: object) -> None:
    line = visible(text)[:_LONGEST]
    with suppress(Exception):  # nobody reads it; the decision stands all the same
        stream.write(f"envtune: {line}\n")  # type: ignore[attr-defined]
        stream.flush()  # type: ignore[attr-defined]
    if level is None:
        return
    import syslog

    with suppress(OSError, ValueError):
        syslog.openlog("envtune", syslog.LOG_PID, syslog.LOG_DAEMON)
        syslog.syslog(getattr(syslog, str(level)), line)
        syslog.closelog()
