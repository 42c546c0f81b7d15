"""Add what a site's checks read to a recording: their probes are run on the recorder.

What the shipped checks read is listed in the collector's tables. A site's checks read further paths and commands, so if
envtune is installed, `envtune snapshot` runs their probes on a host that keeps every answer.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Iterable

from envtune.context import Context
from envtune.context.open import open_context
from envtune.context.registry import find_probe
from envtune.context.worker import Worker
from envtune.job.recording import as_host
from envtune.job.target import TargetOptions
from envtune.model import Check


def record_checks(recorder: Any, checks: Iterable[Check], options: TargetOptions) -> None:
    """Record what the probes of these checks read, each within the check's deadline; ignore what they raise."""
    context = open_context(as_host(recorder), options)
    worker = Worker()
    for check in checks:
        worker.call(partial(_read, check, context), check.deadline)
    worker.end()


def _read(check: Check, context: Context) -> None:
    try:
        for name in check.applies:
            context.facts.value(name)
        list(find_probe(check.probe)(context, **check.arguments))
    except Exception:  # reported when the recording is checked
        return
