"""`envtune undo`: take back what a run changed, from its journal."""

from __future__ import annotations

import re
from typing import Any, Iterator, List, Mapping, Optional

import typer

from envtune.cli import options
from envtune.messages import N_, Message

HELP = N_(
    """Take back a run of `envtune fix`, or one change of it.

Refused where somebody changed the thing since; both versions are shown, and --force keeps a copy of what is there.

\b
  envtune undo                        the latest run
  envtune undo 20250102-030405        that run (envtune history lists them)
  envtune undo C03                    one change of the latest run
  envtune undo 20250102-030405 C03    one change of that run

Exit status: 0 everything is as it was, 1 something could not be taken back, 2 usage.
"""
)
WORDS = typer.Argument(None, metavar="[RUN] [CHANGE]")
FORCE = typer.Option(False, "--force", help=N_("Also what somebody changed since; a copy of it is kept."))
_CHANGE = re.compile("C[0-9]{2,}$", re.I)


def command(
    words: Optional[List[str]] = WORDS,
    force: bool = FORCE,
    wait: float = options.WAIT,
    format_: str = options.FORMAT,
    lang: Optional[str] = options.LANG,
) -> None:
    from envtune.cli.history import report_interrupted_runs
    from envtune.cli.progress import Progress, print_results
    from envtune.fix.runs import recorded_run, undo_run

    lang = options.language(lang)
    options.require_choice("--format", format_, options.FORMATS)
    name, change = _named(words or [])
    if not name:
        report_interrupted_runs(lang)
    name = name or _latest(change)
    results = undo_run(name, change, force, Progress(lang), wait)
    run = recorded_run(name)
    if format_ == "text":
        typer.echo(Message("Run {run}:", run=name).to(lang))
    print_results(run, results, format_, lang)
    if format_ == "text":
        for line in _changed_by_others(run, results, lang):
            typer.echo(line)
        if not results:
            typer.echo("  " + Message("nothing to take back").to(lang))
    raise typer.Exit(0 if all(result["status"] == "undone" for result in results) else 1)


def _named(words: List[str]) -> tuple[str, Optional[str]]:
    """Return the run and the change that were named, or raise UsageError."""
    from envtune.errors import UsageError

    changes = [word.upper() for word in words if _CHANGE.match(word)]
    runs = [word for word in words if not _CHANGE.match(word)]
    if len(changes) > 1 or len(runs) > 1:
        raise UsageError(Message("name one run and at most one change"))
    return runs[0] if runs else "", changes[0] if changes else None


def _latest(change: Optional[str]) -> str:
    from envtune.errors import UsageError
    from envtune.executor.state import state_directory
    from envtune.fix.runs import latest_run

    run = latest_run(change)
    if run is None:
        raise UsageError(Message("no run in {state} has anything to take back", state=state_directory()))
    return run.name


def _changed_by_others(run: Any, results: Any, lang: str) -> Iterator[str]:
    """Where somebody changed the thing since: what this run wrote, and what is there now."""
    for result in results:
        operation = run.steps.get((result["change"], result["number"]), {}).get("operation", {})
        if "copy" in result:
            yield "    " + Message("kept a copy: {path}", path=result["copy"]).to(lang)
        if "foreign" in result and operation.get("op") == "file":
            yield from _difference(operation, lang)
    if any("foreign" in result for result in results):
        yield "    " + Message("--force takes it back all the same").to(lang)


def _difference(operation: Mapping[str, Any], lang: str) -> Iterator[str]:
    import base64

    from envtune.fix.runs import current_text
    from envtune.report.plan_text import diff

    content = operation["content"]
    written = "" if content is None else base64.b64decode(content).decode("utf-8", "replace")
    yield f"    {operation['path']}"
    yield "    - " + Message("what this run left").to(lang)
    yield "    + " + Message("what is there now").to(lang)
    yield from (f"      {line}" for line in diff(written, current_text(operation["path"])))
