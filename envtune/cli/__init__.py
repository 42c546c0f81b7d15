"""The command line: the only importer of typer. One module per verb, imported when it is called."""

from __future__ import annotations

import envtune.trust.import_path  # noqa: F401 (before any other import)

# isort: split
import os
import signal
import sys
from typing import NoReturn

INTERNAL_ERROR = 70  # EX_SOFTWARE of sysexits.h: no verb ends with it on purpose
INTERRUPTED = 130


def main() -> None:
    """Entry point of the `envtune` command."""
    from envtune.cli.app import COMPLETION_VARIABLE, app

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end_by_signal)
    try:
        app(complete_var=COMPLETION_VARIABLE)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)  # what a shell shows for SIGPIPE
    except SystemExit as end:
        if end.code == INTERRUPTED:
            _end_running_commands()
        raise
    except Exception as error:
        _report_internal_error(error)


def _end_by_signal(number: int, frame: object) -> None:
    """End as the signal would have ended us, and take the commands along that are running: they have own sessions."""
    _end_running_commands()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _end_running_commands() -> None:
    from envtune.collector.commands import end_running_commands

    end_running_commands()


def _report_internal_error(error: Exception) -> NoReturn:
    """Write the traceback to a file that only its owner can read, say where it is, and exit with 70."""
    import traceback

    from envtune.cli.app import language_of
    from envtune.messages import Message
    from envtune.report.redaction import redacted

    details = redacted("".join(traceback.format_exception(type(error), error, error.__traceback__)))
    try:
        place = _write_details(details)
    except OSError:
        sys.stderr.write(details)
        place = "stderr"
    message = Message(
        "envtune: internal error ({kind}: {error}); please report it, details in {place}",
        kind=type(error).__name__,
        error=redacted(str(error)),
        place=place,
    )
    sys.stderr.write(message.to(language_of(sys.argv[1:])) + "\n")
    sys.exit(INTERNAL_ERROR)


def _write_details(details: str) -> str:
    import platform
    import tempfile

    from envtune.version import __version__

    path = os.path.join(tempfile.mkdtemp(prefix="envtune-crash-"), "traceback.txt")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(f"envtune {__version__}, Python {sys.version.split()[0]}, {platform.platform()}\n{details}")
    return path
