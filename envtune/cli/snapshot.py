"""`envtune snapshot`: record this host, so that it can be checked elsewhere, later, or by somebody else."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, List, Optional, Sequence

import typer

from envtune.cli import options
from envtune.messages import N_, Literal, Message, Text, enumerated

if TYPE_CHECKING:
    from envtune.job.target import TargetOptions

HELP = N_(
    """Record this host to a file.

The file holds everything the checks read, without secrets. Read-only, no root needed. Check it anywhere with
`envtune check --snapshot FILE`.

\b
Examples:
  envtune snapshot -o host.tar.gz                     this host and the environment of this shell
  envtune snapshot -o job.tar.gz --pid 4711           a running job
  envtune snapshot -o job.tar.gz --script train.sh    the environment that a launch script sets
  envtune snapshot > host.tar.gz                      to standard output

Checks from /etc/envtune and --catalog are run during recording, so that the file includes what they read.

Values of variables and options that look like keys, tokens or passwords are left out. Exit status: 0 success, 2 error.
"""
)
OUTPUT = typer.Option(None, "--output", "-o", help=N_("The file to write (tar.gz)."))
FORCE = typer.Option(False, "--force", help=N_("Overwrite an existing file."))


def command(
    output: Optional[Path] = OUTPUT,
    force: bool = FORCE,
    python: Optional[str] = options.PYTHON,
    pid: Optional[int] = options.PID,
    script: Optional[str] = options.SCRIPT,
    env_file: Optional[str] = options.ENV_FILE,
    catalog: Optional[List[Path]] = options.CATALOG,
    lang: Optional[str] = options.LANG,
) -> None:
    from envtune.collector.snapshot import write_new
    from envtune.context.open import resolve_target
    from envtune.host import LocalHost
    from envtune.job.recording import record_host
    from envtune.job.target import TargetOptions
    from envtune.report.layout import shown
    from envtune.report.output import write_bytes

    lang = options.language(lang)
    output = None if str(output) == "-" else output
    _require_writable(output, force)
    clock = time.monotonic()
    target = resolve_target(LocalHost(), TargetOptions(python, pid, script, env_file))
    recording = record_host(target, _recorder_of_site_checks(catalog or [], target, lang))
    if output is None:
        write_bytes(recording.data)
    else:
        try:
            write_new(str(output), recording.data, force)
        except OSError as error:
            options.fail_to_write(str(output), error, lang)
    seconds = time.monotonic() - clock
    summary = _summary(str(output or "-"), len(recording.data), seconds, recording.unread)
    typer.echo(shown(summary, lang), err=True)


def _recorder_of_site_checks(catalog: List[Path], target: TargetOptions, lang: str) -> Callable[[Any], None]:
    """Return what records the reading of checks that are not shipped; the catalog is loaded only where there are."""
    from envtune.catalog.layers import overlays

    directories = [layer.directory for layer in overlays(catalog)]
    if not directories:
        return lambda recorder: None
    from envtune.context.recording import record_checks

    catalogue = options.load_catalogue(catalog, lang)
    files = catalogue.files("checks")
    checks = [check for check in catalogue.checks if files[check.id].startswith(tuple(f"{d}/" for d in directories))]
    return lambda recorder: record_checks(recorder, checks, target)


def _require_writable(output: Optional[Path], force: bool) -> None:
    """Raise UsageError for a file that cannot be written, before seconds are spent on reading."""
    from envtune.errors import UsageError, missing_parent_text

    problem: Optional[Text] = None
    if output is None:
        if sys.stdout.isatty():
            problem = Message("a snapshot is a tar.gz file and is not written to a terminal: add -o FILE")
    elif os.path.isdir(output):  # Path.is_dir() raises what is no plain absence
        problem = Message("{output} is a directory: name a file in it", output=output)
    elif os.path.lexists(output) and not force:
        problem = Message("{output} already exists: --force replaces it", output=output)
    else:
        reason = missing_parent_text(str(output))
        problem = reason and Message("-o {output}: {reason}", output=output, reason=reason)
    if problem is not None:
        raise UsageError(problem)


def _summary(path: str, size: int, seconds: float, unread: Sequence[str]) -> Text:
    shown = enumerated([*unread[:5], *([f"+{len(unread) - 5}"] if len(unread) > 5 else [])])
    rest = Message("; {count} could not be read: {names}", count=len(unread), names=shown) if unread else Literal("")
    return Message(
        "{path}: {size:.1f} KiB in {seconds:.1f} s{rest}", path=path, size=size / 1024, seconds=seconds, rest=rest
    )
