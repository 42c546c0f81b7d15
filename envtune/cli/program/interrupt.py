"""Ctrl-C: one line that says so, and what the verb had changed by then. It needs no typer."""

from __future__ import annotations

import sys

from envtune.errors import InterruptedRun
from envtune.messages import Message
from envtune.report.output import end_line


def report_interrupt(interrupt: KeyboardInterrupt, lang: str) -> None:
    """Say on stderr that the program was interrupted, with what is left of a run that had begun."""
    end_line()
    said = Message("Interrupted.").to(lang)
    if isinstance(interrupt, InterruptedRun):
        said += (" " if lang == "en" else "") + interrupt.left.to(lang)
    sys.stderr.write(said + "\n")
    sys.stderr.flush()
