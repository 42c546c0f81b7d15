"""`envtune history`: what `envtune fix` changed on this host, run by run; and what the other verbs say of past runs."""

from __future__ import annotations

import calendar
import math
import shlex
import time
from typing import Any, Iterator, Mapping, Optional, Sequence

import typer

from envtune.cli import options
from envtune.commandline import for_this_host
from envtune.executor.history import RecordedRun, interrupted_runs, recorded_runs
from envtune.executor.state import state_directory
from envtune.fix.executor_messages import error_message, result_message
from envtune.fix.outcome import END_STATES
from envtune.messages import N_, Joined, Message, Text, enumerated, in_context, plural

HELP = N_(
    """List fix runs on this host.

Oldest first: when, by whom, with which command, the result of each change, and how to undo it.
"""
)
MIN_GROUP = 4  # changes of one kind from which on they are one line
_STATUS: Mapping[str, Text] = {
    "interrupted": Message("INTERRUPTED"),
    "applied": Message("applied"),
    "partly": Message("applied in part"),
    "failed": in_context("history", "nothing was changed"),
    "left": END_STATES["failed-left"].text,
    "undone": END_STATES["undone"].text,
    "partly-undone": END_STATES["partly-undone"].text,
    "empty": Message("not started"),
    "unreadable": Message("not readable: what it changed is unknown"),
}
PRUNE = typer.Option(False, "--prune", help=N_("Remove the records of runs that leave nothing to undo."))
KEEP = typer.Option(0, "--keep", min=0, metavar="N", help=N_("With --prune: keep the latest N runs."))
OLDER_THAN = typer.Option(0.0, "--older-than", min=0.0, metavar="DAYS", help=N_("With --prune: only older runs."))
LOSE_UNDO = typer.Option(
    False, "--lose-undo", help=N_("With --prune: also runs that can be undone; they cannot be undone afterwards.")
)
_KEPT: Mapping[str, str] = {  # what they kept may still be needed
    **dict.fromkeys(
        ("applied", "partly", "partly-undone", "left"),
        N_("{run}: kept, because it can be undone (--lose-undo also removes it)"),
    ),
    "unreadable": N_("{run}: kept, because its journal is not readable (--lose-undo also removes it)"),
}
CLOSED = ("undone", "failed", "empty")  # of such a run nothing is left on the host


def command(
    prune: bool = PRUNE,
    keep: int = KEEP,
    older_than: float = OLDER_THAN,
    lose_undo: bool = LOSE_UNDO,
    format_: str = options.FORMAT,
    lang: Optional[str] = options.LANG,
) -> None:
    from envtune.errors import UsageError

    lang = options.language(lang)
    options.require_choice("--format", format_, options.FORMATS)
    if not prune and (keep or older_than or lose_undo):
        raise UsageError(Message("--keep, --older-than and --lose-undo require --prune"))
    state = state_directory()
    try:
        runs = recorded_runs(state)
        report_interrupted_runs(lang)
    except OSError as error:
        raise UsageError(error_message(error)) from None
    if prune:
        _prune(runs, keep, older_than, lose_undo, lang)
        return
    if format_ == "json":
        rows = [_data(run) for run in runs]
        options.print_json({"schema": "envtune.history/1", "runs": rows}, 1)
        return
    for run in runs:
        for line in _lines(run, lang):
            typer.echo(line)
    _print_end(runs, state, lang)


def _print_end(runs: Sequence[RecordedRun], state: str, lang: str) -> None:
    """Say how the newest run is undone, or that there is none."""
    from envtune.report.layout import shown

    undo = next((run.name for run in reversed(runs) if run.status in ("applied", "partly")), None)
    if undo is not None:
        line = for_this_host(f"envtune undo {undo}", same_user=True)
        typer.echo(shown(Message("To undo a run: {command}", command=line), lang))
    if not runs:
        typer.echo(shown(Message("no fix has been applied on this host ({state})", state=state), lang))


def _prune(runs: Sequence[RecordedRun], keep: int, days: float, lose_undo: bool, lang: str) -> None:
    """Remove the records of closed runs, and say which stay because they could still be undone."""
    from envtune.errors import UsageError
    from envtune.fix.runs import remove_runs

    if math.isnan(days):
        raise UsageError(Message("--older-than nan: not a number of days"))

    old = [run for run in (runs[:-keep] if keep else runs) if not days or _age(run) > days]
    closed = [run.name for run in old if run.status in CLOSED]
    kept = {run.name: _KEPT[run.status] for run in old if run.status in _KEPT}
    removed = remove_runs([*closed, *(kept if lose_undo else ())])
    for name in removed:
        typer.echo(Message("{run}: removed", run=name).to(lang))
    for name in () if lose_undo else kept:
        typer.echo(Message(kept[name], run=name).to(lang))
    if not removed:
        typer.echo(Message("nothing was removed").to(lang))


def _age(run: RecordedRun) -> float:
    """Return how many days ago a run was begun, by the time in its name; 0 where the clock was ahead then."""
    begun = calendar.timegm(time.strptime(run.name[:15], "%Y%m%d-%H%M%S"))
    return max(0.0, (time.time() - begun) / 86400)


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
    commands = (f"envtune resume {run.name}", f"envtune undo {run.name}")
    ways = Joined([f"  {for_this_host(command, same_user=True)}" for command in commands], "\n")
    if run.in_progress == "undo":
        return Message("run {run} was interrupted during undo. Finish or undo it:\n{ways}", run=run.name, ways=ways)
    return Message(
        "run {run} ({begun}) was interrupted after {done} of {total} changes. Finish or undo it:\n{ways}",
        run=run.name,
        begun=run.begin.get("time", "?"),
        done=sum(result["status"] == "done" for result in run.results()),
        total=len(run.plan["changes"]),
        ways=ways,
    )


def _data(run: RecordedRun) -> dict[str, Any]:
    results = {result["change"]: result for result in run.results()}
    open_changes = {change for change, _ in run.open_steps()}
    changes: list[dict[str, Any]] = []
    for change in run.plan["changes"]:
        status = "begun" if change["id"] in open_changes else "not begun"
        result = results.get(change["id"], {"status": status, "error": None})
        row = {name: change.get(name, "") for name in ("id", "finding", "action", "target", "view")}
        undone = run.last_undo and result["status"] == "done" and _is_reverted(run, change["id"], open_changes)
        row.update(status="undone" if undone else result["status"], error=result["error"])
        row.update(state=run.end_state(change["id"]))
        changes.append(row)
    row = {"run": run.name, "begun": run.begin.get("time", ""), "status": run.status, "changes": changes}
    row.update(by=_caller(run.begin), version=run.version, undone=run.last_undo.get("time", ""))
    row.update(undone_by=_caller(run.last_undo))
    return {**row, "journal": run.path, "damaged": run.damaged}


def _caller(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: record[name] for name in ("uid", "user", "login", "sudo_user") if name in record}


def _caller_words(record: Mapping[str, Any]) -> str:
    """Return `root`, or `root (sudo: alice, login: bob)`; empty where the journal does not tell."""
    if not record:
        return ""
    user = str(record.get("user", f"uid {record['uid']}" if "uid" in record else ""))
    more = [f"{label}: {record[key]}" for key, label in (("sudo_user", "sudo"), ("login", "login")) if key in record]
    return f"{user} ({', '.join(more)})" if more else user


def _is_reverted(run: RecordedRun, change: str, open_changes: set[str]) -> bool:
    """Return whether the change wrote something of which nothing is left."""
    return change not in open_changes and any(step[0] == change for step in run.steps)


def _status(run: RecordedRun) -> Text:
    if run.version:
        return Message("from another version of envtune ({version}), which can undo it", version=run.version)
    return _STATUS[run.status]


def _kind(change: Mapping[str, Any]) -> tuple[Any, ...]:
    kinds = (change[key] for key in ("finding", "action", "view", "state"))
    return (*kinds, change["id"] if change["error"] else "")


def _alike(changes: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Return changes in a row of the same kind and outcome together, as one for each CPU is; errors stay alone."""
    groups: list[list[Mapping[str, Any]]] = []
    for change in changes:
        if groups and _kind(change) == _kind(groups[-1][-1]):
            groups[-1].append(change)
        else:
            groups.append([change])
    return [part for group in groups for part in ([group] if len(group) >= MIN_GROUP else [[one] for one in group])]


def _ago(days: float) -> Text:
    minutes = int(days * 24 * 60)
    if minutes < 1:
        return Message("just now")
    if minutes < 60:
        return plural("{count} minute ago", "{count} minutes ago", minutes)
    if minutes < 48 * 60:
        return plural("{count} hour ago", "{count} hours ago", minutes // 60)
    return plural("{count} day ago", "{count} days ago", minutes // 60 // 24)


def _lines(run: RecordedRun, lang: str) -> Iterator[str]:
    from envtune.report.layout import pad, printable, shown

    results = {result["change"]: result for result in run.results()}
    ago = f" ({_ago(_age(run)).to(lang)})" if run.begin else ""
    time_ = f"{run.begin.get('time', '')}{ago}"
    yield printable(f"{run.name}  {_status(run).to(lang)}  {time_}  {_caller_words(run.begin)}").rstrip()
    if run.plan.get("command"):
        yield "  " + printable(shlex.join(map(str, run.plan["command"])))
    for group in _alike(_data(run)["changes"]):
        change, last = group[0], group[-1]
        name, target = change["id"], change["target"]
        if len(group) > 1:
            name, target = f"{name}-{last['id']}", f"{target} ... {last['target']} ({len(group)})"
        words = printable(f"{change['finding']}  {target}".strip())
        error = f"  ({printable(result_message(results[change['id']]).to(lang))})" if change["error"] else ""
        status = END_STATES[change["state"]].text.to(lang)
        yield f"  {pad(name, 5)} {pad(status, 10)} {words}{error}"
    if run.last_undo:
        fields = {"time": run.last_undo.get("time", ""), "user": _caller_words(run.last_undo) or "?"}
        yield "  " + printable(Message("undone: {time}, {user}", **fields).to(lang))
    if run.damaged:
        lines = enumerated(str(number) for number in run.damaged)
        yield "  " + shown(Message("{path}: damaged lines: {lines}", path=run.path, lines=lines), lang)
