"""`envtune diagnose`: a log -> the known error, its cause, what this host says to it, and the fix."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, List, Optional, Sequence

import typer

from envtune.cli.options import colour_wanted, fail, language, terminal_width

if TYPE_CHECKING:
    from envtune.diagnose.answer import Answer, Confirm
    from envtune.diagnose.scan import Window
    from envtune.diagnose.sources import LogFile
    from envtune.model import Finding
    from envtune.resources import Scene
    from envtune.target import TargetOptions

HELP = """Which known error is in this log, what causes it, and is that so on this host?

\b
  envtune diagnose train.log                      one log
  envtune diagnose rank*.log                      several ranks: which one failed first?
  envtune diagnose hostA/ hostB/                  log trees of several hosts
  torchrun ... 2>&1 | envtune diagnose -          a stream
  envtune diagnose train.log --snapshot h.tar.gz  confirmed on a recorded host

Exit status: 0 nothing found, 1 something found, 2 usage, 3 a log could not be read.
"""


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
    from envtune.errors import EnvtuneError
    from envtune.target import TargetOptions

    lang = language(lang)
    if format_ not in ("text", "json", "markdown"):
        fail(f"--format {format_}: text, json or markdown", f"--format {format_}：可选 text、json、markdown", lang)
    try:
        window = _window(since, until)
        options = TargetOptions(python, pid, script, env_file)
        confirm = confirmer(catalog or [], snapshot, options) if check else None
        found = diagnose(logs, catalog or [], window, confirm)
    except EnvtuneError as error:
        fail(str(error), str(error), lang)
    for path, why in found.unreadable:
        typer.echo(f"envtune: {path}: {why}", err=True)
    typer.echo(render(found, format_, lang))
    sys.stdout.flush()
    raise typer.Exit(3 if found.unreadable and not found.diagnoses else 1 if found.diagnoses else 0)


def diagnose(logs: Sequence[str], catalog: Sequence[Path], window: Window, confirm: Optional[Confirm]) -> Answer:
    """The answer for these logs."""
    from envtune.diagnose.sources import find_logs

    return diagnose_files(logs, find_logs(logs), catalog, window, confirm)


def diagnose_files(
    names: Sequence[str], files: Sequence[LogFile], catalog: Sequence[Path], window: Window, confirm: Optional[Confirm]
) -> Answer:
    """The answer for inputs that were found already."""
    from envtune import catalog as catalogue
    from envtune.diagnose.answer import answer
    from envtune.diagnose.patterns import Matcher, choose, patterns_of
    from envtune.diagnose.resolve import resolve
    from envtune.diagnose.scan import scan

    entries = catalogue.load(tuple(catalog)).faq
    patterns = patterns_of(entries)
    found = scan(files, Matcher(patterns), choose(patterns, files), window)
    return answer(names, found, resolve(found, entries), confirm)


def render(found: Answer, format_: str, lang: str) -> str:
    """The answer in one of the formats."""
    from envtune.report import diagnosis

    if format_ == "json":
        return diagnosis.render_json(found, lang)
    if format_ == "markdown":
        return diagnosis.render_markdown(found, lang)
    return diagnosis.render_text(found, lang, width=terminal_width(), colour=colour_wanted())


def _window(since: Optional[str], until: Optional[str]) -> Window:
    from envtune.diagnose.lines import time_of
    from envtune.diagnose.scan import Window
    from envtune.errors import UsageError

    times = []
    for word in (since, until):
        padded = None if word is None else f"{word}:00" if word.count(":") == 1 else word
        time = None if padded is None else time_of(padded)
        if word is not None and time is None:
            raise UsageError(f"{word}: not a time like 2024-03-28 10:25")
        times.append(time)
    return Window(*times)


def confirmer(catalog: Sequence[Path], snapshot: Optional[Path], options: TargetOptions) -> Confirm:
    """Runs the confirming checks when a diagnosis asks for them; the host is opened once."""
    scenes: list[Scene] = []

    def confirm(ids: Sequence[str]) -> Sequence[Finding]:
        from envtune import catalog as catalogue
        from envtune.audit import audit
        from envtune.cli.check import open_host
        from envtune.scene import open_scene

        if not scenes:
            scenes.append(open_scene(*open_host(snapshot, options)))
        wanted = [check for check in catalogue.load(tuple(catalog)).checks if check.id in ids]
        return audit(wanted, scenes[0])

    return confirm
