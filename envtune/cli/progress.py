"""Running the executor for a verb: progress on stderr, its refusals as words of ours, and runs that were killed."""

from __future__ import annotations

from typing import Any, Callable, Mapping

import typer

from envtune import executor
from envtune.errors import UsageError
from envtune.fix.executor_messages import told
from envtune.messages import Message


def guarded(lang: str, progress: Progress, work: Callable[[], Any]) -> Any:
    """Run the executor: long commands shown while they run, its refusals as words of ours."""
    executor.OUTPUT = progress.output
    try:
        return work()
    except (executor.Locked, executor.Refused) as error:
        raise UsageError(told(str(error))) from None
    except executor.JournalLost as error:
        reason = told(str(error))
        raise UsageError(
            Message("the journal cannot be written any more, the run stopped where it was: {reason}", reason=reason)
        ) from None
    except OSError as error:
        raise UsageError(
            Message(
                "{reason}: nothing was changed; $ENVTUNE_STATE names another directory for the journal",
                reason=told(executor.describe_error(error)),
            )
        ) from None
    finally:
        executor.OUTPUT = None


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
            error = f": {printable(told(record['error']).to(self._lang))}" if record["error"] else ""
            typer.echo(f"      {words}{error}", err=True)

    def output(self, line: str) -> None:
        """A line of a running command."""
        from envtune.report.layout import printable

        typer.echo(f"      | {printable(line)}", err=True)


def finish_run(name: str, lang: str, format_: str, wait: float) -> int:
    """`envtune fix --finish RUN`: end what a killed run began; 0 when everything it planned is done."""
    import json

    from envtune.cli.options import fail, terminal_width
    from envtune.errors import EnvtuneError

    state, progress = executor.state_directory(), Progress(lang, 0)
    try:
        past = guarded(lang, progress, lambda: executor.Past(state, name))
        progress.total = len(past.plan["changes"]) - len(past.results())
        results = guarded(lang, progress, lambda: executor.resume(state, name, progress, wait))
    except EnvtuneError as error:
        fail(error.message, lang)
    if format_ == "json":
        typer.echo(json.dumps({"run": name, "results": results}, ensure_ascii=False))
    else:
        from envtune.report.fix_text import result_lines

        for line in result_lines(results, lang, executor.Past(state, name), terminal_width()):
            typer.echo(line)
        if past.plan["changes"] and past.doing == "apply":
            typer.echo(_look_again(past, lang))
    good = all(result["status"] in ("done", "undone") for result in results)
    return 0 if good else 1


def _look_again(past: executor.Past, lang: str) -> str:
    checks = dict.fromkeys(str(change.get("finding", "")) for change in past.plan["changes"])
    line = f"envtune check --select {','.join(check for check in checks if check)}"
    return f"查看检查结果：{line}" if lang == "zh" else f"What the checks say now: {line}"
