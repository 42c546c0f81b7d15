"""`envtune resume`: finish a run of `envtune fix` that was killed in the middle."""

from __future__ import annotations

from typing import Any, NoReturn, Optional

import typer

from envtune.cli import options
from envtune.messages import N_, Message, enumerated

HELP = N_(
    """Finish an interrupted fix run.

Completed changes stay; started and remaining changes are completed as planned. A run that was interrupted during undo
is undone completely.

\b
Examples:
  envtune resume                    the interrupted run
  envtune resume 20250102-030405    that run (envtune history lists them)
  envtune undo 20250102-030405      undo it instead

Exit status: 0 all changes are made, 1 something could not be done, 2 usage error, 128+n ended by signal n.
"""
)
RUN = typer.Argument(None, metavar="[RUN]", help=N_("The run (default: the interrupted one)."))


def command(
    run: Optional[str] = RUN,
    wait: float = options.WAIT,
    format_: str = options.FORMAT,
    lang: Optional[str] = options.LANG,
) -> None:
    lang = options.language(lang)
    options.require_choice("--format", format_, options.FORMATS)
    resume(_interrupted() if run is None else run, wait, format_, lang)


def _interrupted() -> str:
    """Return the name of the one interrupted run; raises UsageError where there is none, or several."""
    from envtune.errors import UsageError
    from envtune.executor.history import interrupted_runs
    from envtune.executor.state import state_directory
    from envtune.fix.executor_messages import error_message

    try:
        names = [run.name for run in interrupted_runs(state_directory())]
    except OSError as error:
        raise UsageError(error_message(error)) from None
    if not names:
        raise UsageError(Message("no run was interrupted"))
    if len(names) > 1:
        raise UsageError(Message("several runs were interrupted; specify one: {runs}", runs=enumerated(names)))
    return names[0]


def resume(name: str, wait: float, format_: str, lang: str) -> NoReturn:
    """Finish an interrupted run and print what became of it; exit with 0 when everything it planned is done."""
    from envtune.cli.progress import Progress, print_results
    from envtune.fix.runs import finish_run, recorded_run

    progress, run = Progress(lang), recorded_run(name)
    progress.total = len(run.plan["changes"]) - len(run.results())
    results = finish_run(name, progress, wait)
    print_results(recorded_run(name), results, format_, lang)
    if format_ == "text" and run.in_progress == "apply":
        _print_check_again(run.plan["changes"], lang)
    good = all(result["status"] in ("done", "undone") for result in results)
    raise typer.Exit(128 + progress.signal if progress.signal else 0 if good else 1)


def _print_check_again(changes: Any, lang: str) -> None:
    import shlex

    from envtune.commandline import for_this_host
    from envtune.report.layout import shown

    checks = dict.fromkeys(str(change.get("finding", "")) for change in changes)
    if checks:
        words = ["envtune", "check", "--select", ",".join(check for check in checks if check)]
        command = for_this_host(shlex.join(words))
        typer.echo(shown(Message("To check again: {command}", command=command), lang))
