"""`envtune history`: what `envtune fix` changed on this host, run by run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, Mapping, Optional

import typer

from envtune.cli.options import fail, language
from envtune.messages import Message

if TYPE_CHECKING:
    from envtune.executor.history import RecordedRun

HELP = """What `envtune fix` changed on this host: the runs, the oldest first, and what became of their changes."""
_STATUS: Mapping[str, tuple[str, str]] = {
    "interrupted": ("INTERRUPTED", "已中断"),
    "applied": ("applied", "已完成"),
    "partly": ("applied in part", "部分完成"),
    "failed": ("nothing was changed", "未做改动"),
    "undone": ("undone", "已撤销"),
    "partly-undone": ("undone in part", "部分撤销"),
    "empty": ("nothing was begun", "未开始"),
}


def command(
    format_: str = typer.Option("text", "--format", "-f", help="text or json."),
    lang: Optional[str] = typer.Option(None, "--lang", help="en or zh (default: your locale)."),
) -> None:
    import json

    from envtune.cli.interrupted import told_of_interrupted
    from envtune.executor.history import recorded_runs
    from envtune.executor.state import state_directory

    lang = language(lang)
    if format_ not in ("text", "json"):
        fail(Message("--format {format}: text or json", format=format_), lang)
    state = state_directory()
    try:
        runs = recorded_runs(state)
        told_of_interrupted(state, lang)
    except OSError as error:
        from envtune.fix.executor_messages import error_message

        fail(error_message(error), lang)
    if format_ == "json":
        rows = [_data(past) for past in runs]
        typer.echo(json.dumps({"schema": "envtune.history/1", "runs": rows}, ensure_ascii=False, indent=1))
        return
    for past in runs:
        for line in _lines(past, lang):
            typer.echo(line)
    if not runs:
        typer.echo(f"{state}：没有运行记录" if lang == "zh" else f"{state}: no run")


def _data(past: RecordedRun) -> dict[str, Any]:
    results = {result["change"]: result for result in past.results()}
    open_ = {change for change, _ in past.open_steps()}
    changes = []
    for change in past.plan["changes"]:
        result = results.get(change["id"], {"status": "begun" if change["id"] in open_ else "not begun", "error": None})
        undone = (
            past.last_undo and result["status"] == "done" and change["id"] not in open_ and _wrote(past, change["id"])
        )
        row = {name: change.get(name, "") for name in ("id", "finding", "action", "target", "view")}
        row.update(status="undone" if undone else result["status"], error=result["error"])
        changes.append(row)
    row = {"run": past.name, "begun": past.begin.get("time", ""), "status": past.status, "changes": changes}
    return {**row, "journal": past.path, "damaged": past.damaged}


def _wrote(past: RecordedRun, change: str) -> bool:
    return any(key[0] == change for key in past.steps)


def _lines(past: RecordedRun, lang: str) -> Iterator[str]:
    from envtune.fix.executor_messages import result_message
    from envtune.report.layout import pad, printable

    results = {result["change"]: result for result in past.results()}
    zh = lang == "zh"
    yield f"{past.name}  {_STATUS[past.status][zh]}"
    for change in _data(past)["changes"]:
        words = printable(f"{change['finding']}  {change['target']}".strip())
        error = f"  ({printable(result_message(results[change['id']]).to(lang))})" if change["error"] else ""
        yield f"  {pad(change['id'], 5)} {pad(_change_word(change['status'], zh), 10)} {words}{error}"
    if past.damaged:
        lines = ", ".join(str(number) for number in past.damaged)
        yield f"  {past.path}：第 {lines} 行已损坏" if zh else f"  {past.path}: damaged lines: {lines}"


def _change_word(status: str, zh: bool) -> str:
    words = {"done": "完成", "failed": "失败", "refused": "拒绝", "stopped": "已停止"}
    more = {"begun": "已开始", "not begun": "未开始", "undone": "已撤销"}
    return {**words, **more}[status] if zh else status
