"""What earlier runs left: the verbs that write say what was interrupted, and how to end it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from envtune.executor.history import RecordedRun


def told_of_interrupted(state: str, lang: str) -> list[RecordedRun]:
    """The runs that were killed, after saying so on stderr with the two ways out."""
    from envtune.executor.history import interrupted_runs

    try:
        found = interrupted_runs(state)
    except OSError as error:
        from envtune.fix.executor_messages import error_message

        typer.echo(f"envtune: {error_message(error).to(lang)}", err=True)
        return []
    for past in found:
        typer.echo(_words(past, lang), err=True)
    return found


def _words(past: RecordedRun, lang: str) -> str:
    begun = past.begin.get("time", "?")
    total, done = len(past.plan["changes"]), len([r for r in past.results() if r["status"] == "done"])
    ways = f"  envtune fix --finish {past.name}\n  envtune undo {past.name}"
    if past.in_progress == "undo":
        en, zh = f"run {past.name} was interrupted while it was undone", f"运行 {past.name} 在撤销过程中被中断"
    else:
        en = f"run {past.name} ({begun}) was interrupted after {done} of {total} changes"
        zh = f"运行 {past.name}（{begun}）在完成 {done}/{total} 项改动后被中断"
    if lang == "zh":
        return f"envtune: {zh}。请完成或撤销：\n{ways}"
    return f"envtune: {en}. Finish it or take it back:\n{ways}"
