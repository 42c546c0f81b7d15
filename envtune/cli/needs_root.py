"""What a fix without root leaves for root: a plan to apply, and the same as lines to type."""

from __future__ import annotations

import os
import sys
import zipfile
from typing import Optional

import typer

from envtune.executor.problems import RefusedError
from envtune.executor.state import ensure_state_directory, state_directory
from envtune.fix.executor_messages import error_message
from envtune.fix.plan import Plan
from envtune.messages import Message, Text


def for_root(plan: Plan, run: str, lang: str) -> None:
    """Save the plan and say on stderr what root does with it, or without it."""
    import shlex

    from envtune.fix.document import render
    from envtune.fix.shell_commands import shell_lines
    from envtune.report.layout import printable

    path = os.path.join(state_directory(), f"needs-root-{run or 'plan'}.json")
    unsaved = _save(path, render(plan, lang))
    count = len(plan.changes)
    en = f"{count} {'change needs' if count == 1 else 'changes need'} root. As root:"
    typer.echo("\n" + (f"有 {count} 项改动需要 root。请以 root 执行：" if lang == "zh" else en), err=True)
    found = [change.finding for change in plan.changes]
    named = ["--plan", path] if unsaved is None else list(dict.fromkeys(found))
    line = ["sudo", *_ourselves(), "fix", *named, "--apply"]
    typer.echo("  " + " ".join(map(shlex.quote, line)), err=True)
    if unsaved is not None:
        note = Message("(the plan could not be saved: {unsaved})", unsaved=unsaved)
        typer.echo(f"  {printable(note.to(lang))}", err=True)
    by_hand = "或手动执行（不留撤销日志）：" if lang == "zh" else "or by hand, without a journal:"
    typer.echo(by_hand, err=True)
    for change in plan.changes:
        typer.echo(f"# {change.id} {change.finding} {printable(change.target)}", err=True)
        for command in shell_lines(change):
            typer.echo(printable(command), err=True)  # at the very left: the end of a here-document must be there


def _ourselves() -> list[str]:
    """How this very envtune is started: the one file that it may be packed into, else the module."""
    program = os.path.abspath(sys.argv[0])
    packed = os.path.isfile(program) and zipfile.is_zipfile(program)
    return [sys.executable, program] if packed else [sys.executable, "-m", "envtune"]


def _save(path: str, text: str) -> Optional[Text]:
    """Why the plan could not be saved, on a read-only home for one; None when it was."""
    try:
        ensure_state_directory(os.path.dirname(path))
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
    except (OSError, RefusedError) as error:
        return error_message(error)
    return None
