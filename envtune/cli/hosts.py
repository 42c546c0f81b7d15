"""Several recorded hosts for `envtune check` and `envtune diff`: which are meant, and what is found on each."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Optional, Sequence

import typer

from envtune.cli import options
from envtune.errors import SnapshotError, UsageError
from envtune.messages import Message
from envtune.records import NamedTuple

if TYPE_CHECKING:
    from envtune.compare.comparison import Comparison
    from envtune.compare.hosts import Unread
    from envtune.context.open import Expectations
    from envtune.job.target import TargetOptions
    from envtune.model import Check, Report, Severity


class Question(NamedTuple):
    """What is checked on each host."""

    target: TargetOptions
    checks: Sequence[Check]
    expectations: Expectations


class Answer(NamedTuple):
    """How the comparison is shown, and from which severity on it ends with 1."""

    format_: str
    lang: str
    verbose: bool
    fail_on: Severity
    strict: bool


def named_snapshots(named: Optional[Sequence[Path]], further: Optional[Sequence[Path]]) -> Optional[list[Path]]:
    """Return the snapshots when several are named, or directories that hold them; None for at most one.

    Raises UsageError for words that belong to no --snapshot.
    """
    if further and not named:
        raise UsageError(
            Message("{word}: checks are named with --select, recorded hosts with --snapshot", word=str(further[0]))
        )
    if not named:
        return None
    from envtune.snapshot.several import snapshots_in

    paths = [*named, *(further or ())]
    inside = [snapshots_in(path) for path in paths]
    if len(paths) == 1 and inside[0] is None:
        return None
    found = [one for path, within in zip(paths, inside) for one in within or (path,)]
    return list(dict.fromkeys(found))


def check_several(paths: Sequence[Path], question: Question, answer: Answer) -> int:
    """Check and compare recorded hosts, print the comparison, and return the exit status."""
    from envtune.compare.comparison import compare
    from envtune.compare.hosts import labelled

    options.require_choice("--format", answer.format_, options.FORMATS)
    if question.target.probe:
        raise UsageError(Message("--probe connects to the job's hosts, which a recorded host cannot do"))
    read, unread = _check_all(paths, question, _progress(len(paths), answer.lang))
    comparison = compare(labelled(read), unread)
    _print(comparison, answer)
    return comparison.exit_code(answer.fail_on, answer.strict)


def _check_all(
    paths: Sequence[Path], question: Question, progress: Callable[[int, str], None]
) -> tuple[list[tuple[str, Report]], list[Unread]]:
    """Return the report of each host, and what could not be read; raises UsageError where nothing could be."""
    from envtune.compare.hosts import Unread

    read: list[tuple[str, Report]] = []
    unread: list[Unread] = []
    for path in paths:
        if not path.exists():
            raise UsageError(Message("{path}: no such file or directory", path=str(path)))
    _import_probes(question.checks)
    for number, path in enumerate(paths, 1):
        progress(number, path.name)
        try:
            read.append((str(path), check_recorded(path, question)))
        except (SnapshotError, UsageError) as error:
            unread.append(Unread(str(path), error.message))
    progress(0, "")
    if not read:
        raise UsageError(unread[0].reason)
    return read, unread


def _import_probes(checks: Sequence[Check]) -> None:
    """Import what the checks need once, here, and not in the process that checks each host."""
    from envtune.context.registry import fact_names, find_fact, find_probe

    for check in checks:
        find_probe(check.probe)
    for name in fact_names():
        find_fact(name)


def check_recorded(path: Path, question: Question) -> Report:
    """Return the report on one recorded host, with the settings it is compared by; raises SnapshotError, UsageError."""
    from envtune.audit.limited import check_limited
    from envtune.audit.settings import read_settings
    from envtune.compare.hosts import lean
    from envtune.context.open import open_host

    host = open_host(path)
    checks, expectations = question.checks, question.expectations
    return lean(check_limited(host, question.target, checks, None, expectations, more_facts=read_settings))


def _progress(total: int, lang: str) -> Callable[[int, str], None]:
    """Return what names the snapshot that is read, on a terminal and once a second has passed; 0 ends it."""
    from envtune.report.output import StandardStream

    stream, began = sys.stderr, time.monotonic()

    def show(number: int, name: str) -> None:
        if isinstance(stream, StandardStream) and stream.isatty() and time.monotonic() - began > 1:
            text = Message("reading {name} ({number} of {total}) ...", name=name, number=number, total=total)
            stream.replace_line(text.to(lang) if number else "")

    return show


def _print(comparison: Comparison, answer: Answer) -> None:
    if answer.format_ == "json":
        from envtune.report.comparison.json import comparison_data

        options.print_json(comparison_data(comparison, answer.lang), 1)
        return
    from envtune.report.comparison.text import render

    width, colour = options.terminal_width(), options.colour_wanted()
    typer.echo(render(comparison, answer.lang, width=width, colour=colour, verbose=answer.verbose))
