"""Running the executor for a verb: progress on stderr, its refusals as words of ours, and runs that were killed."""

from __future__ import annotations

from typing import Any, Callable, Mapping

import typer

from envtune.errors import UsageError
from envtune.executor.history import RecordedRun
from envtune.executor.problems import JournalError, LockedError, RefusedError
from envtune.executor.recover import resume_run
from envtune.executor.state import state_directory
from envtune.fix.executor_messages import error_message, result_message
from envtune.messages import Message


def guarded(work: Callable[[], Any]) -> Any:
    """Run the executor: its errors as usage errors, in the reader's language."""
    try:
        return work()
    except (LockedError, RefusedError) as error:
        raise UsageError(error_message(error)) from None
    except JournalError as error:
        raise UsageError(
            Message(
                "the journal cannot be written any more, the run stopped where it was: {reason}",
                reason=error_message(error),
            )
        ) from None
    except OSError as error:
        raise UsageError(
            Message(
                "{reason}: nothing was changed; $ENVTUNE_STATE names another directory for the journal",
                reason=error_message(error),
            )
        ) from None


class Progress:
    """Tells on stderr what happens, a line per change, and what long commands print."""

    _WORDS: Mapping[str, tuple[str, str]] = {
        "done": ("done", "完成"),
        "failed": ("failed", "失败"),
        "refused": ("refused", "拒绝"),
        "stopped": ("stopped", "已停止"),
        "undone": ("undone", "已撤销"),
    }

    def __init__(self, lang: str, total: int) -> None:
        self.total = total
        self._lang, self._number = lang, 0

    def __call__(self, kind: str, record: Mapping[str, Any]) -> None:
        from envtune.report.layout import printable

        if kind == "start":
            self._number += 1
            typer.echo(f"[{self._number}/{self.total}] {record['id']} {printable(record['target'])}", err=True)
        elif kind == "change":
            words = self._WORDS[record["status"]][self._lang == "zh"]
            error = f": {printable(result_message(record).to(self._lang))}" if record["error"] else ""
            typer.echo(f"      {words}{error}", err=True)
        elif kind == "output":  # of a running command
            typer.echo(f"      | {printable(record['line'])}", err=True)


def finish_run(name: str, lang: str, format_: str, wait: float) -> int:
    """`envtune fix --finish RUN`: end what a killed run began; 0 when everything it planned is done."""
    import json

    from envtune.cli.options import fail, terminal_width
    from envtune.errors import EnvtuneError

    state, progress = state_directory(), Progress(lang, 0)
    try:
        past = guarded(lambda: RecordedRun(state, name))
        progress.total = len(past.plan["changes"]) - len(past.results())
        results = guarded(lambda: resume_run(state, name, progress, wait))
    except EnvtuneError as error:
        fail(error.message, lang)
    if format_ == "json":
        typer.echo(json.dumps({"run": name, "results": results}, ensure_ascii=False))
    else:
        from envtune.report.fix_text import result_lines

        for line in result_lines(results, lang, RecordedRun(state, name), terminal_width()):
            typer.echo(line)
        if past.plan["changes"] and past.in_progress == "apply":
            typer.echo(_look_again(past, lang))
    good = all(result["status"] in ("done", "undone") for result in results)
    return 0 if good else 1


def _look_again(past: RecordedRun, lang: str) -> str:
    checks = dict.fromkeys(str(change.get("finding", "")) for change in past.plan["changes"])
    line = f"envtune check --select {','.join(check for check in checks if check)}"
    return f"查看检查结果：{line}" if lang == "zh" else f"What the checks say now: {line}"
