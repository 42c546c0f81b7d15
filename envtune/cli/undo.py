"""`envtune undo`: undo what a run changed, from its journal."""

from __future__ import annotations

import re
from typing import Any, Iterator, List, Mapping, Optional

import typer

from envtune.cli import options
from envtune.cli.options import is_interactive
from envtune.fix.outcome import END_STATES
from envtune.messages import N_, Message

HELP = N_(
    """Undo a fix run or one change.

Refused if the target has changed since; both versions are shown. --force undoes it and keeps a copy.

\b
Examples:
  envtune undo                        the latest run
  envtune undo 20250102-030405        that run (envtune history lists them)
  envtune undo C03                    one change of the latest run
  envtune undo 20250102-030405 C03    one change of that run
  envtune undo --dry-run              what would be undone

On a terminal it asks first. Exit status: 0 everything is restored, 1 something could not be undone, 2 usage error,
128+n ended by signal n after the current step; the same command continues.
"""
)
WORDS = typer.Argument(None, metavar="[RUN] [CHANGE]")
FORCE = typer.Option(False, "--force", help=N_("Undo even if the target has changed since; a copy is kept."))
DRY_RUN = typer.Option(False, "--dry-run", help=N_("Show what would be undone; nothing is changed."))
YES = typer.Option(False, "--yes", "-y", help=N_("Do not ask."))
_CHANGE = re.compile("C[0-9]{2,}$", re.I)


def command(
    words: Optional[List[str]] = WORDS,
    force: bool = FORCE,
    dry_run: bool = DRY_RUN,
    yes: bool = YES,
    wait: float = options.WAIT,
    format_: str = options.FORMAT,
    lang: Optional[str] = options.LANG,
) -> None:
    from envtune.cli.history import report_interrupted_runs
    from envtune.cli.progress import Progress, print_results
    from envtune.fix.runs import latest_run, recorded_run, undo_run

    lang = options.language(lang)
    options.require_choice("--format", format_, options.FORMATS)
    name, change = _named(words or [])
    if not name:
        report_interrupted_runs(lang)
    name = name or latest_run(change).name
    if dry_run:
        raise typer.Exit(_preview(name, change, format_, lang))
    if not yes and is_interactive() and not _confirmed(name, change, lang):
        typer.echo(Message("envtune: nothing was changed").to(lang), err=True)
        raise typer.Exit(1)
    progress = Progress(lang)
    results = undo_run(name, change, force, progress, wait)
    run = recorded_run(name)
    if format_ == "text":
        typer.echo(Message("Run {run}:", run=name).to(lang))
    print_results(run, results, format_, lang)
    if format_ == "text":
        for line in (*_changed_by_others(run, results, lang), *_not_undone(run, results, lang)):
            typer.echo(line)
        if not results:
            typer.echo("  " + Message("nothing to undo").to(lang))
    undone = all(result["status"] == "undone" for result in results)
    raise typer.Exit(128 + progress.signal if progress.signal else 0 if undone else 1)


def _preview(name: str, change: Optional[str], format_: str, lang: str) -> int:
    """Print what would be undone; return 1 when some of it could not be."""
    from envtune.fix.runs import recorded_run, undo_preview

    run = recorded_run(name)
    rows = undo_preview(run, change)
    if format_ == "json":
        options.print_json({"run": name, "results": rows})
    else:
        typer.echo(Message("Run {run}:", run=name).to(lang))
        for line in _preview_lines(run, rows, lang):
            typer.echo(line)
        for line in _changed_by_others(run, rows, lang):
            typer.echo(line)
        typer.echo(Message("Nothing was changed.").to(lang))
    return 0 if all(row["status"] in ("ready", "undone") for row in rows) else 1


def _preview_lines(run: Any, rows: Any, lang: str) -> Iterator[str]:
    from envtune.fix.executor_messages import result_message
    from envtune.report.layout import printable
    from envtune.report.plan.result import subject_of

    labels = {"ready": Message("would be undone"), "undone": Message("already restored")}
    for row in rows:
        label = labels.get(row["status"], END_STATES["cannot-be-undone"].text).to(lang)
        error = f": {result_message(row).to(lang)}" if row["error"] else ""
        yield "  " + printable(f"{row['change']}  {label}  {subject_of(run, row)}{error}")
    if not rows:
        yield "  " + Message("nothing to undo").to(lang)


def _confirmed(name: str, change: Optional[str], lang: str) -> bool:
    """Show what would be undone, and ask."""
    from envtune.fix.runs import recorded_run, undo_preview

    run = recorded_run(name)
    rows = undo_preview(run, change)
    if not rows:
        return True
    typer.echo(Message("Run {run}:", run=name).to(lang), err=True)
    for line in _preview_lines(run, rows, lang):
        typer.echo(line, err=True)
    try:
        return typer.confirm(Message("Undo this?").to(lang), default=False, err=True)
    except typer.Abort as abort:
        typer.echo(err=True)  # Ctrl-C and Ctrl-D leave the cursor behind the question
        if isinstance(abort.__context__, KeyboardInterrupt):
            typer.echo(Message("envtune: nothing was changed").to(lang), err=True)
            raise typer.Exit(options.INTERRUPTED) from None
        return False


def _not_undone(run: Any, results: Any, lang: str) -> Iterator[str]:
    """Say of which changes only a part was undone, and which packages stay as the run left them."""
    from envtune.report.layout import printable

    for change in dict.fromkeys(result["change"] for result in results):
        if change and run.end_state(change) == "partly-undone":
            yield f"  {change} {END_STATES['partly-undone'].text.to(lang)}"
    upgraded = {name: row for result in results for name, row in result.get("upgraded", {}).items()}
    if upgraded:
        kept = Message("these packages keep the version that the run installed; undo does not revert an upgrade:")
        yield "    " + kept.to(lang)
    for name, (before, after) in sorted(upgraded.items()):
        yield f"      {printable(f'{name} {before} -> {after}')}"


def _named(words: List[str]) -> tuple[str, Optional[str]]:
    """Return the run and the change that were named, or raise UsageError."""
    from envtune.errors import UsageError

    changes = [word.upper() for word in words if _CHANGE.match(word)]
    runs = [word for word in words if not _CHANGE.match(word)]
    if len(changes) > 1 or len(runs) > 1 or "" in runs:  # of a script whose variable is empty
        raise UsageError(Message("specify one run and at most one change"))
    return runs[0] if runs else "", changes[0] if changes else None


def _changed_by_others(run: Any, results: Any, lang: str) -> Iterator[str]:
    """Where somebody changed the thing since: what this run wrote, and what is there now."""
    from envtune.report.layout import shown

    for result in results:
        operation = run.steps.get((result["change"], result["number"]), {}).get("operation", {})
        if "copy" in result:
            yield "    " + shown(Message("kept a copy: {path}", path=result["copy"]), lang)
        if "foreign" in result and operation.get("op") == "file":
            yield from _difference(operation, lang)
    if any("foreign" in result for result in results):
        yield "    " + Message("--force undoes it anyway").to(lang)


def _difference(operation: Mapping[str, Any], lang: str) -> Iterator[str]:
    import base64

    from envtune.fix.runs import current_text
    from envtune.report.layout import printable
    from envtune.report.plan.text import diff

    content = operation["content"]
    written = "" if content is None else base64.b64decode(content).decode("utf-8", "replace")
    yield f"    {printable(operation['path'])}"
    yield "    - " + Message("content written by this run").to(lang)
    yield "    + " + Message("current content").to(lang)
    yield from (f"      {line}" for line in diff(written, current_text(operation["path"])))
