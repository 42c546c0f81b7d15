"""What the executor does, as lines on stderr while it runs, and what became of it as lines of text or JSON."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

import typer

from envtune.cli import options
from envtune.executor.history import RecordedRun
from envtune.fix.executor_messages import result_message
from envtune.fix.outcome import END_STATES
from envtune.report.layout import printable
from envtune.report.plan.result import result_lines


class Progress:
    """Prints a line per change, and what long commands print. `total` may be set when it is known.

    `signal` is the one that ended the run early, 0 for none.
    """

    def __init__(self, lang: str, total: int = 0) -> None:
        self.total = total
        self.signal = 0
        self._lang, self._number = lang, 0

    def __call__(self, kind: str, record: Mapping[str, Any]) -> None:
        """Print the line for an event: `start` or `change` of a change, or a line of `output` of its command."""
        if kind == "start":
            self._number += 1
            typer.echo(f"[{self._number}/{self.total}] {record['id']} {printable(record['target'])}", err=True)
        elif kind == "change":
            error = f": {printable(result_message(record).to(self._lang))}" if record["error"] else ""
            typer.echo(f"      {END_STATES[record['state']].text.to(self._lang)}{error}", err=True)
        elif kind == "output":  # of a running command
            typer.echo(f"      | {printable(record['line'])}", err=True)
        elif kind in ("end", "undo-end"):
            self.signal = record.get("signal", 0)


def print_results(run: RecordedRun, results: Sequence[Mapping[str, Any]], format_: str, lang: str) -> None:
    """Print what became of the changes of a run that was finished, or of the steps of one that was undone."""
    if format_ == "json":
        states = {change["id"]: run.end_state(change["id"]) for change in run.plan["changes"]}
        options.print_json({"run": run.name, "results": results, "states": states})
        return
    for line in result_lines(results, lang, run, options.terminal_width()):
        typer.echo(line)
