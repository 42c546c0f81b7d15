"""`envtune diagnose`: a log -> the known error, its cause, what this host says to it, and the fix."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, List, Optional, Sequence

import typer

from envtune.cli import options
from envtune.messages import N_, Message, enumerated

if TYPE_CHECKING:
    from envtune.catalog import Catalogue
    from envtune.diagnose.diagnosis import DiagnosisReport
    from envtune.host import Host
    from envtune.job.target import TargetOptions
    from envtune.report.output import Output

HELP = N_(
    """Find the known error in a log.

It explains the cause, confirms it on this host and shows the fix.

\b
Examples:
  envtune diagnose                                the logs of your newest run, where they are usually written
  envtune diagnose train.log                      one log
  envtune diagnose rank*.log                      several ranks: which failed first?
  envtune diagnose hostA/ hostB/                  log trees of several hosts
  envtune diagnose ~/ascend/log                   the plog of the latest runs
  torchrun ... 2>&1 | envtune diagnose -          a stream
  envtune diagnose train.log --env-file job.env   checked for the job that failed
  envtune diagnose train.log --snapshot h.tar.gz  checked on a recorded host
  envtune diagnose train.log -f markdown          to paste into an issue

Exit status: 0 no known error, 1 known error found, 2 usage error, 3 a log could not be read, 4 unknown errors only.
"""
)
FORMATS = ("text", "json", "markdown", "html")
KNOWN, UNREADABLE, UNEXPLAINED = 1, 3, 4

LOGS = typer.Argument(
    None, help=N_("Files, directories (plog trees too), .gz, or - for standard input; none: your newest run.")
)
SINCE = typer.Option(None, "--since", help=N_("Only lines from this time on: 2024-03-28 10:25[:48]."))
UNTIL = typer.Option(None, "--until", help=N_("Only lines up to this time."))
CHECK = typer.Option(True, "--check/--no-check", help=N_("Run the confirming checks on this host."))
FORMAT = options.format_option(N_("text, json, markdown or html; html=FILE writes a file; repeat for several."))
SCHEMA = typer.Option(
    2, "--schema", min=1, max=2, help=N_("Version of the JSON document (1: supported until the next release).")
)
SNAPSHOT = typer.Option(None, "--snapshot", help=N_("Confirm on a recorded host."))


def command(
    logs: Optional[List[str]] = LOGS,
    since: Optional[str] = SINCE,
    until: Optional[str] = UNTIL,
    check: bool = CHECK,
    format_: List[str] = FORMAT,
    schema: int = SCHEMA,
    lang: Optional[str] = options.LANG,
    snapshot: Optional[List[Path]] = SNAPSHOT,
    python: Optional[str] = options.PYTHON,
    pid: Optional[int] = options.PID,
    script: Optional[str] = options.SCRIPT,
    env_file: Optional[str] = options.ENV_FILE,
    catalog: Optional[List[Path]] = options.CATALOG,
) -> None:
    from envtune.catalog import load
    from envtune.context.open import open_host
    from envtune.job.target import TargetOptions

    lang = options.language(lang)
    wanted = options.outputs(format_, FORMATS)
    recorded = options.single_snapshot(snapshot)
    options.limit_reading(recorded, lang, cpu=False)  # logs may be large, and have limits of their own
    host = open_host(recorded)
    target = TargetOptions(python, pid, script, env_file)
    catalogue = load(tuple(catalog or ()))
    if sys.stderr.isatty():
        _show_progress(logs or (), lang)
    result = _diagnosed(logs or (), host, target, catalogue, (since, until), check, lang)
    result = with_catalogs(result, catalog or ())
    if recorded is not None:
        result = replace(result, recording=str(recorded))
    _print_looked(result, lang)
    for path, reason in result.unreadable:
        options.print_error(Message("{path}: {reason}", path=path, reason=reason), lang)
    done = options.write(wanted, lambda output: _render(result, output, lang, schema), lang)
    raise typer.Exit(_status(result) if done else options.USAGE)


def _diagnosed(
    logs: Sequence[str],
    host: Optional[Host],
    target: TargetOptions,
    catalogue: Catalogue,
    window: tuple[Optional[str], Optional[str]],
    check: bool,
    lang: str,
) -> DiagnosisReport:
    """Return the diagnosis; ends the program where standard input cannot be read."""
    from envtune.cli.check import find_fixes
    from envtune.diagnose import diagnose

    (since, until), plan = window, find_fixes(catalogue)
    try:
        return diagnose(logs, host, target, catalogue=catalogue, since=since, until=until, check=check, find_fixes=plan)
    except OSError as error:
        options.print_error(_unreadable(error), lang)
        raise typer.Exit(UNREADABLE) from None


def with_catalogs(result: DiagnosisReport, catalogs: Sequence[Path]) -> DiagnosisReport:
    """Return the result with commands that name the directories of `--catalog`: without them an entry is unknown."""
    if not catalogs:
        return result
    from envtune.commandline import with_catalogs

    named = tuple(str(directory) for directory in catalogs)
    return replace(result, target=with_catalogs(result.target, named).lstrip(), catalogs=named)


def _show_progress(logs: Sequence[str], lang: str) -> None:
    from envtune.cli.program.waiting import describe_reading, show_while_waiting

    if "-" in logs and options.is_interactive():
        options.print_error(Message("reading standard input; end with Ctrl-D"), lang)
    show_while_waiting(describe_reading(logs), lang)


def _status(result: DiagnosisReport) -> int:
    if result.diagnoses:
        return KNOWN
    return UNREADABLE if result.unreadable else UNEXPLAINED if result.unexplained else 0


def _print_looked(result: DiagnosisReport, lang: str) -> None:
    """Say on standard error where logs were looked for: standard output is the document."""
    for place in result.looked:
        if not place.empty:
            options.print_error(place.text, lang)
    empty = [place.path for place in result.looked if place.empty]
    if empty:
        options.print_error(Message("no log in {paths}", paths=enumerated(empty)), lang)


def _unreadable(error: OSError) -> Message:
    """Return the message about an input that could not even be opened."""
    if not error.filename:
        return Message("cannot read {reason}", reason=str(error))
    from envtune.errors import system_error_text

    reason = Message("{path}: {reason}", path=error.filename, reason=system_error_text(error))
    return Message("cannot read {reason}", reason=reason)


def _render(result: DiagnosisReport, output: Output, lang: str, schema: int) -> str:
    """Return the diagnosis in one of the formats."""
    if output.format == "json":
        from envtune.report.diagnosis.json import render_json

        return render_json(result, lang, schema) + "\n"
    if output.format == "markdown":
        from envtune.report.diagnosis.markdown import render_markdown

        return render_markdown(result, lang)
    if output.format == "html":
        from envtune.report.formats.documents import diagnosis_page

        return diagnosis_page(result, lang)
    from envtune.report.diagnosis.text import render_text

    width, colour = options.screen(output)
    return render_text(result, lang, width=width, colour=colour)
