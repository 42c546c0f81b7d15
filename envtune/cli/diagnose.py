"""`envtune diagnose`: a log -> the known error, its cause, what this host says to it, and the fix."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, List, Mapping, NoReturn, Optional, Sequence

import typer

from envtune.cli.options import colour_wanted, fail, language, terminal_width
from envtune.messages import Message

if TYPE_CHECKING:
    from envtune.diagnose.confirm import HostWitness
    from envtune.diagnose.diagnosis import DiagnosisReport
    from envtune.diagnose.logs.files import LogFile
    from envtune.diagnose.rank import Environment
    from envtune.diagnose.scan import TimeWindow
    from envtune.job.target import TargetOptions

HELP = """Which known error is in this log, what causes it, and is that so on this host?

\b
  envtune diagnose train.log                      one log
  envtune diagnose rank*.log                      several ranks: which one failed first?
  envtune diagnose hostA/ hostB/                  log trees of several hosts
  envtune diagnose ~/ascend/log                   the plog of the latest runs
  torchrun ... 2>&1 | envtune diagnose -          a stream
  envtune diagnose train.log --env-file job.env   checked for the job that failed
  envtune diagnose train.log --snapshot h.tar.gz  checked on a recorded host
  envtune diagnose train.log -f markdown          to paste into an issue

Exit status: 0 nothing found, 1 something found, 2 usage, 3 a log could not be read.
"""
FORMATS = ("text", "json", "markdown")
UNREADABLE = 3


def command(
    logs: List[str] = typer.Argument(..., help="Files, directories (plog trees too), .gz, or - for standard input."),
    since: Optional[str] = typer.Option(None, "--since", help="Only from this time on: 2024-03-28 10:25 or ...:48."),
    until: Optional[str] = typer.Option(None, "--until", help="Only up to this time."),
    check: bool = typer.Option(True, "--check/--no-check", help="Run the confirming checks on this host."),
    format_: str = typer.Option("text", "--format", "-f", help="text, json or markdown."),
    lang: Optional[str] = typer.Option(None, "--lang", help="en or zh (default: your locale)."),
    snapshot: Optional[Path] = typer.Option(None, "--snapshot", help="Confirm on a recorded host."),
    python: Optional[str] = typer.Option(None, "--python", help="The job's Python."),
    pid: Optional[int] = typer.Option(None, "--pid", help="A running job."),
    script: Optional[str] = typer.Option(None, "--script", help="The job's launch script."),
    env_file: Optional[str] = typer.Option(None, "--env-file", help="The job's variables, KEY=VALUE lines."),
    catalog: Optional[List[Path]] = typer.Option(None, "--catalog", help="More entries, by id over the shipped ones."),
) -> None:
    from envtune.cli.check import _absolute
    from envtune.errors import EnvtuneError
    from envtune.job.target import TargetOptions

    lang = language(lang)
    if format_ not in FORMATS:
        fail(Message("--format {format}: text, json or markdown", format=format_), lang)
    try:
        window = _window(since, until)
        witness = confirmer(
            catalog or [], snapshot, TargetOptions(python, pid, _absolute(script), _absolute(env_file)), check
        )
        found = diagnose(logs, catalog or [], window, witness)
    except EnvtuneError as error:
        fail(error.message, lang)
    except OSError as error:
        _unreadable(error, lang)
    for path, why in found.unreadable:
        typer.echo(f"envtune: {path}: {why}", err=True)
    typer.echo(render(found, format_, lang))
    sys.stdout.flush()
    raise typer.Exit(UNREADABLE if found.unreadable and not found.diagnoses else 1 if found.diagnoses else 0)


def _unreadable(error: OSError, lang: str) -> NoReturn:
    """An input that could not even be opened."""
    words = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    typer.echo(f"envtune: 无法读取：{words}" if lang == "zh" else f"envtune: cannot read {words}", err=True)
    raise typer.Exit(UNREADABLE)


def diagnose(
    logs: Sequence[str], catalog: Sequence[Path], window: TimeWindow, witness: Optional[HostWitness] = None
) -> DiagnosisReport:
    """The answer for these logs. Raises UsageError, OSError."""
    from envtune.diagnose.logs.files import find_logs

    if "-" in logs and sys.stdin is None:
        raise OSError(0, "standard input is closed", "-")
    return diagnose_files(logs, find_logs(logs), catalog, window, witness)


def diagnose_files(
    names: Sequence[str],
    files: Sequence[LogFile],
    catalog: Sequence[Path],
    window: TimeWindow,
    witness: Optional[HostWitness] = None,
) -> DiagnosisReport:
    """The answer for inputs that were found already. `witness` None: nothing is asked of any host."""
    from envtune import catalog as catalogue
    from envtune.diagnose.diagnosis import report_diagnoses
    from envtune.diagnose.patterns import Matcher, patterns_of, select_prefilter
    from envtune.diagnose.rank import no_environment, resolve
    from envtune.diagnose.scan import scan

    entries = catalogue.load(tuple(catalog)).faq
    patterns = patterns_of(entries)
    found = scan(files, Matcher(patterns), select_prefilter(patterns, files), window)
    environment: Environment = no_environment if witness is None else witness.environment
    asked = witness if witness is not None and witness.check else None
    return replace(
        report_diagnoses(names, found, resolve(found, entries, environment), asked),
        target="" if witness is None else witness.words,
    )


def render(found: DiagnosisReport, format_: str, lang: str) -> str:
    """The answer in one of the formats."""
    if format_ == "json":
        from envtune.report.diagnosis.json import render_json

        return render_json(found, lang)
    if format_ == "markdown":
        from envtune.report.diagnosis.markdown import render_markdown

        return render_markdown(found, lang)
    from envtune.report.diagnosis.text import render_text

    return render_text(found, lang, width=terminal_width(), colour=colour_wanted())


def _window(since: Optional[str], until: Optional[str]) -> TimeWindow:
    from envtune.diagnose.logs.lines import time_of
    from envtune.diagnose.scan import TimeWindow
    from envtune.errors import UsageError

    times = []
    for word in (since, until):
        padded = None if word is None else f"{word}:00" if word.count(":") == 1 else word
        time = None if padded is None else time_of(padded)
        if word is not None and time is None:
            raise UsageError(Message("{word}: not a time like 2024-03-28 10:25", word=word))
        times.append(time)
    return TimeWindow(*times)


def confirmer(
    catalog: Sequence[Path],
    snapshot: Optional[Path],
    options: TargetOptions,
    check: bool = True,
    ran_with: Optional[Mapping[str, str]] = None,
) -> HostWitness:
    """The host that is asked when a diagnosis wants to know. `ran_with`: the variables of the job, where we ran it."""
    from envtune.diagnose.confirm import HostWitness

    return HostWitness(tuple(catalog), snapshot, options, check, ran_with)
