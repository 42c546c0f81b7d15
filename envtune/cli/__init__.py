"""The command line: the only importer of typer. One module per verb, imported when it is called."""

from __future__ import annotations

import envtune.trust.import_path  # noqa: F401 (before any other import)

# isort: split
import gc
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from envtune.report.output import OutputError

USAGE = 2
INTERNAL_ERROR = 70  # EX_SOFTWARE of sysexits.h: no verb ends with it on purpose
INTERRUPTED = 130
READER_LEFT = 141  # what a shell shows for SIGPIPE
GARBAGE_THRESHOLD = 50_000  # objects, instead of 700: starting makes thousands, and none of them is garbage


def main() -> None:
    """Entry point of the `envtune` command: every end of it becomes an exit status here."""
    gc.set_threshold(GARBAGE_THRESHOLD)
    try:
        status = _ended()
    except KeyboardInterrupt as interrupt:
        _report_interrupt(interrupt)
        _end_running_commands()
        status = INTERRUPTED
    except Exception as error:
        status = _report_missing_package(error) or _report_internal_error(error)
    _stop_waiting()
    sys.exit(status)


def _ended() -> int:
    from envtune.report.output import OutputError, open_standard_streams

    open_standard_streams()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end_by_signal)
    try:
        status = _run()
        sys.stdout.flush()
    except OutputError as error:
        status = _report_lost_output(error)
    return status


def _run() -> int:
    """Run the command line; return its exit status. Raises OutputError."""
    quick = _prolog()
    if quick is not None:
        return quick
    from envtune import commandline
    from envtune.cli.app import COMPLETION_VARIABLE, app

    commandline.is_program = True
    shell = os.environ.pop(COMPLETION_VARIABLE, "")
    try:
        if shell:
            return _complete(shell)
        app(complete_var=COMPLETION_VARIABLE)
    except SystemExit as end:
        if end.code == INTERRUPTED:
            _end_running_commands()
        return end.code if isinstance(end.code, int) else 0 if end.code is None else INTERNAL_ERROR
    except MemoryError:
        return _report_no_memory()
    return 0


def _prolog() -> Optional[int]:
    """Return the exit status of Slurm's prolog, which does without typer; None for every other command line."""
    if sys.argv[1:3] != ["hook", "slurm-prolog"] or "_ENVTUNE_COMPLETE" in os.environ:
        return None
    from envtune.cli.hook import quick

    words = quick.parse(sys.argv[3:])
    return None if words is None else quick.run(words)


def _complete(shell: str) -> int:
    """Answer a shell that asks what completes a line; return the exit status."""
    import typer

    from envtune.cli.app import app
    from envtune.cli.program.completion import answer
    from envtune.cli.program.language import language_of

    words = sys.argv[1:]
    return answer(typer.main.get_command(app), shell, words, language_of(words[:-1]))


def _report_no_memory() -> int:
    from envtune.cli.options import NOT_READ, print_error
    from envtune.cli.program.language import language_of
    from envtune.messages import Message

    print_error(Message("not enough memory"), language_of(sys.argv[1:]))
    return NOT_READ


def _report_lost_output(error: OutputError) -> int:
    """Return the status of a report that nobody got: neither "nothing found" nor "something found"."""
    if error.reader_has_left:
        return READER_LEFT
    from envtune.cli.options import print_error
    from envtune.cli.program.language import language_of
    from envtune.errors import system_error_text
    from envtune.messages import Message

    reason = system_error_text(error.cause)
    message = Message("{place}: not written: {reason}", place=Message("standard output"), reason=reason)
    print_error(message, language_of(sys.argv[1:]))
    return USAGE


def _end_by_signal(number: int, frame: object) -> None:
    """End as the signal would have ended us, and take the commands along that are running: they have own sessions."""
    _end_running_commands()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _end_running_commands() -> None:
    from envtune.collector.commands import end_running_commands

    end_running_commands()


def _report_interrupt(interrupt: KeyboardInterrupt) -> None:
    from envtune.cli.program.interrupt import report_interrupt
    from envtune.cli.program.language import language_of

    report_interrupt(interrupt, language_of(sys.argv[1:]))


def _stop_waiting() -> None:
    from envtune.report.output import stop_waiting

    stop_waiting()


def _report_missing_package(error: Exception) -> int:
    """Say which package is not installed, where that is what failed, and return the status of a usage error, else 0.

    It may be typer, by which all else is printed.
    """
    from envtune.errors import missing_package

    missing = missing_package(error)
    if missing is None:
        return 0
    from envtune.cli.program.language import language_of

    sys.stderr.write(f"envtune: {missing.to(language_of(sys.argv[1:]))}\n")
    return USAGE


def _report_internal_error(error: Exception) -> int:
    """Say in one line what failed, and where the traceback is: in a file that only its owner can read.

    Whatever fails meanwhile, too, is passed over: the exit status says it all the same. Returns it.
    """
    try:
        _describe(error)
    except Exception:  # the disk is full, nobody reads stderr, a module cannot be imported
        with suppress(Exception):
            os.write(2, f"envtune: internal error ({type(error).__name__})\n".encode())
    return INTERNAL_ERROR


def _describe(error: Exception) -> None:
    import traceback

    from envtune.cli.options import print_error
    from envtune.cli.program.language import language_of
    from envtune.messages import Message
    from envtune.report.redaction import redacted

    frames = traceback.extract_tb(error.__traceback__)
    try:
        place = _write_details(redacted("".join(traceback.format_exception(type(error), error, error.__traceback__))))
    except OSError:
        place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "-"
    message = Message(
        "internal error ({kind}: {error}); please report it, details in {place}",
        kind=type(error).__name__,
        error=redacted(str(error)),
        place=place,
    )
    print_error(message, language_of(sys.argv[1:]))


def _write_details(details: str) -> str:
    import platform
    import tempfile

    from envtune.version import __version__

    path = os.path.join(tempfile.mkdtemp(prefix="envtune-crash-"), "traceback.txt")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(f"envtune {__version__}, Python {sys.version.split()[0]}, {platform.platform()}\n{details}")
    return path
