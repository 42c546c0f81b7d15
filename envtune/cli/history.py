"""`envtune history`: what `envtune fix` changed on this host, run by run; and what the other verbs say of past runs."""

from __future__ import annotations

from typing import Any, Iterator, Mapping, Optional

import typer

from envtune.cli import options
from envtune.executor.history import RecordedRun, interrupted_runs, recorded_runs
from envtune.executor.state import state_directory
from envtune.fix.executor_messages import error_message, result_message
from envtune.messages import N_, Message, Text, in_context

HELP = N_("""What `envtune fix` changed on this host: the runs, the oldest first, and what became of their changes.""")
_STATUS: Mapping[str, Text] = {
    "interrupted": Message("INTERRUPTED"),
    "applied": Message("applied"),
    "partly": Message("applied in part"),
    "failed": in_context("history", "nothing was changed"),
    "undone": Message("undone"),
    "partly-undone": Message("undone in part"),
    "empty": Message("nothing was begun"),
}
_CHANGE_STATUS: Mapping[str, Text] = {
    "done": Message("done"),
    "failed": in_context("fix text", "failed"),
    "refused": Message("refused"),
    "stopped": Message("stopped"),
    "begun": Message("begun"),
    "not begun": Message("not begun"),
    "undone": Message("undone"),
}


def command(format_: str = options.FORMAT, lang: Optional[str] = options.LANG) -> None:
    import json

    from envtune.errors import UsageError

    lang = options.language(lang)
    options.require_choice("--format", format_, options.FORMATS)
    state = state_directory()
    try:
        runs = recorded_runs(state)
        report_interrupted_runs(lang)
    except OSError as error:
        raise UsageError(error_message(error)) from None
    if format_ == "json":
        rows = [_data(run) for run in runs]
        typer.echo(json.dumps({"schema": "envtune.history/1", "runs": rows}, ensure_ascii=False, indent=1))
        return
    for run in runs:
        for line in _lines(run, lang):
            typer.echo(line)
    if not runs:
        typer.echo(Message("{state}: no run", state=state).to(lang))


def report_interrupted_runs(lang: str) -> list[RecordedRun]:
    """Say on stderr which runs were killed, with the two ways out of each, and return them."""
    try:
        runs = interrupted_runs(state_directory())
    except OSError as error:
        options.print_error(error_message(error), lang)
        return []
    for run in runs:
        options.print_error(_interrupted(run), lang)
    return runs


def refuse_if_interrupted(lang: str) -> None:
    """End with 2 when a run was killed in the middle: nothing is written on top of it."""
    if report_interrupted_runs(lang):
        raise typer.Exit(options.USAGE)


def _interrupted(run: RecordedRun) -> Text:
    ways = f"  envtune fix --finish {run.name}\n  envtune undo {run.name}"
    if run.in_progress == "undo":
        return Message(
            "run {run} was interrupted while it was undone. Finish it or take it back:\n{ways}", run=run.name, ways=ways
        )
    return Message(
        "run {run} ({begun}) was interrupted after {done} of {total} changes. Finish it or take it back:\n{ways}",
        run=run.name,
        begun=run.begin.get("time", "?"),
        done=sum(result["status"] == "done" for result in run.results()),
        total=len(run.plan["changes"]),
        ways=ways,
    )


def _data(run: RecordedRun) -> dict[str, Any]:
    results = {result["change"]: result for result in run.results()}
    open_changes = {change for change, _ in run.open_steps()}
    changes = []
    for change in run.plan["changes"]:
        status = "begun" if change["id"] in open_changes else "not begun"
        result = results.get(change["id"], {"status": status, "error": None})
        row = {name: change.get(name, "") for name in ("id", "finding", "action", "target", "view")}
        undone = run.last_undo and result["status"] == "done" and _is_reverted(run, change["id"], open_changes)
        row.update(status="undone" if undone else result["status"], error=result["error"])
        changes.append(row)
    row = {"run": run.name, "begun": run.begin.get("time", ""), "status": run.status, "changes": changes}
    return {**row, "journal": run.path, "damaged": run.damaged}


def _is_reverted(run: RecordedRun, change: str, open_changes: set[str]) -> bool:
    """Return whether the change wrote something of which nothing is left."""
    return change not in open_changes and any(step[0] == change for step in run.steps)


def _lines(run: RecordedRun, lang: str) -> Iterator[str]:
    from envtune.report.layout import pad, printable

    results = {result["change"]: result for result in run.results()}
    yield f"{run.name}  {_STATUS[run.status].to(lang)}"
    for change in _data(run)["changes"]:
        words = printable(f"{change['finding']}  {change['target']}".strip())
        error = f"  ({printable(result_message(results[change['id']]).to(lang))})" if change["error"] else ""
        status = _CHANGE_STATUS[change["status"]].to(lang)
        yield f"  {pad(change['id'], 5)} {pad(status, 10)} {words}{error}"
    if run.damaged:
        lines = ", ".join(str(number) for number in run.damaged)
        yield "  " + Message("{path}: damaged lines: {lines}", path=run.path, lines=lines).to(lang)
