"""`envtune undo`: take back what a run changed, from its journal."""

from __future__ import annotations

import re
from typing import Any, Iterator, List, Mapping, Optional

import typer

from envtune.cli.options import fail, language, terminal_width
from envtune.messages import Message

HELP = """Take back a run of `envtune fix`, or one change of it.

Refused where somebody changed the thing since; both versions are shown, and --force keeps a copy of what is there.

\b
  envtune undo                        the latest run
  envtune undo 20250102-030405        that run (envtune history lists them)
  envtune undo C03                    one change of the latest run
  envtune undo 20250102-030405 C03    one change of that run

Exit status: 0 everything is as it was, 1 something could not be taken back, 2 usage.
"""
_CHANGE = re.compile("C[0-9]{2,}$", re.I)


def command(
    words: Optional[List[str]] = typer.Argument(None, metavar="[RUN] [CHANGE]"),
    force: bool = typer.Option(False, "--force", help="Also what somebody changed since; a copy of it is kept."),
    wait: float = typer.Option(0.0, "--wait", min=0.0, help="Seconds to wait for another run to end."),
    format_: str = typer.Option("text", "--format", "-f", help="text or json."),
    lang: Optional[str] = typer.Option(None, "--lang", help="en or zh (default: your locale)."),
) -> None:
    from envtune.errors import EnvtuneError

    lang = language(lang)
    if format_ not in ("text", "json"):
        fail(Message("--format {format}: text or json", format=format_), lang)
    try:
        raise typer.Exit(_undo(words or [], force, wait, format_, lang))
    except EnvtuneError as error:
        fail(error.message, lang)


def _undo(words: List[str], force: bool, wait: float, format_: str, lang: str) -> int:
    import json

    from envtune.cli.interrupted import told_of_interrupted
    from envtune.cli.progress import Progress, guarded
    from envtune.executor.history import RecordedRun
    from envtune.executor.recover import undo_run
    from envtune.executor.state import state_directory
    from envtune.report.fix_text import result_lines

    state = state_directory()
    changes = [word.upper() for word in words if _CHANGE.match(word)]
    runs = [word for word in words if not _CHANGE.match(word)]
    if len(changes) > 1 or len(runs) > 1:
        fail(Message("name one run and at most one change"), lang)
    if not runs:
        told_of_interrupted(state, lang)
    name = runs[0] if runs else _latest(state, changes, lang)
    change = changes[0] if changes else None
    results = guarded(lambda: undo_run(state, name, change, force, Progress(lang, 0), wait))
    if format_ == "json":
        typer.echo(json.dumps({"run": name, "results": results}, ensure_ascii=False))
    else:
        typer.echo(f"运行 {name}：" if lang == "zh" else f"Run {name}:")
        past = RecordedRun(state, name)
        for line in result_lines(results, lang, past, terminal_width()):
            typer.echo(line)
        for line in _strangers(past, results, lang):
            typer.echo(line)
        if not results:
            typer.echo("  没有需要撤销的内容" if lang == "zh" else "  nothing to take back")
    return 0 if all(result["status"] == "undone" for result in results) else 1


def _latest(state: str, changes: List[str], lang: str) -> str:
    from envtune.executor.history import recorded_runs

    for past in reversed(recorded_runs(state)):
        if past.open_steps(changes[0] if changes else None):
            return past.name
    fail(Message("no run in {state} has anything to take back", state=state), lang)


def _strangers(past: Any, results: List[Mapping[str, Any]], lang: str) -> Iterator[str]:
    """Where somebody changed the thing since: what this run left, and what is there now."""
    import base64

    from envtune.executor.files import read_content
    from envtune.report.plan_text import diff

    for result in results:
        operation = past.steps.get((result["change"], result["number"]), {}).get("operation", {})
        if "copy" in result:
            yield (
                f"    被他人改动的内容已保存：{result['copy']}"
                if lang == "zh"
                else f"    kept a copy: {result['copy']}"
            )
        if "foreign" in result and operation.get("op") == "file":
            left = b"" if operation["content"] is None else base64.b64decode(operation["content"])
            there = read_content(operation["path"]) or b""
            yield f"    {operation['path']}"
            yield "    - 本次运行留下的内容" if lang == "zh" else "    - what this run left"
            yield "    + 现有内容" if lang == "zh" else "    + what is there now"
            for line in diff(left.decode("utf-8", "replace"), there.decode("utf-8", "replace")):
                yield f"      {line}"
    if any("foreign" in result for result in results):
        yield "    仍要撤销请加 --force" if lang == "zh" else "    --force takes it back all the same"
