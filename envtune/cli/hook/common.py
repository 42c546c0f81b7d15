"""The options that several hooks have, and what they say."""

from __future__ import annotations

import os
from typing import Any, List, Optional, Sequence

import typer

from envtune.cli import options
from envtune.messages import N_, Message

FAIL_ON: Any = typer.Option(
    None,
    "--fail-on",
    metavar="LEVEL",
    help=N_("Findings of this severity or higher are problems; none: none are (default: the policy's, else high)."),
)
NODE: Any = typer.Option(
    "", "--node", metavar="NAME", help=N_("Name of the node (default: SLURMD_NODENAME, else the host name).")
)
SCONTROL: Any = typer.Option("scontrol", "--scontrol", metavar="PATH", help=N_("scontrol, if in no system directory."))
STATE: Any = typer.Option(
    None, "--state", metavar="DIR", help=N_("Directory of verdict and drain (default: /var/lib/envtune/scheduler).")
)
DRY_RUN: Any = typer.Option(False, "--dry-run", help=N_("Print what would be done; change nothing, refuse no job."))


def timeout(seconds: float, most: float) -> Any:
    """Return the option with the time in which the hook ends."""
    text = N_("The hook ends within this time, in seconds.")
    return typer.Option(seconds, "--timeout", min=1, max=most, metavar="SECONDS", help=text)


def state_of(named: Optional[str]) -> str:
    """Return the directory with what hooks keep."""
    if named:
        return os.path.abspath(named)
    from envtune.executor.state import state_directory

    return os.path.join(state_directory(), "scheduler")


def fail_on_named(word: Optional[str]) -> str:
    """Return the value of --fail-on, nothing where it is not given. Raises UsageError."""
    if word is not None:
        options.threshold_named(word)
    return word or ""


def split(words: Optional[Sequence[str]]) -> tuple[str, ...]:
    """Return what is joined by commas as one word each."""
    return tuple(part for word in words or () for part in word.split(",") if part)


def require_one_protocol(plugin: bool, termination_log: Optional[str]) -> None:
    """Raise UsageError for options that contradict each other."""
    if plugin and termination_log:
        from envtune.errors import UsageError

        raise UsageError(Message("--plugin writes no termination message; leave out --termination-log"))


Words = Optional[List[str]]
