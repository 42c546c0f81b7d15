"""`envtune check`: read the host, judge it, print the report, end with what was found."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, List, Mapping, Optional, Sequence

import typer

from envtune.cli.options import colour_wanted, fail, language, terminal_width
from envtune.messages import Message

if TYPE_CHECKING:
    from envtune.catalog import Catalogue
    from envtune.host import Host
    from envtune.job.target import TargetOptions
    from envtune.model import Expectation, Report, Severity

HELP = """Is this host ready for training, and if not, what exactly is wrong?

Reads only; needs no root (what needs a right you lack is said so). Examples:

\b
  envtune check                         this host, the Python and environment of this shell
  envtune check --script train.sh       the environment that a launch script sets
  envtune check --pid 4711              a running job
  envtune check --select CPU,NET        two families
  envtune check --snapshot host.tar.gz  a recorded host

Exit status: 0 clean, 1 findings at or above --fail-on, 2 usage, 3 something there could not be told.
"""


def command(
    select: Optional[List[str]] = typer.Option(
        None, "--select", "-s", help="Only these: ids, id prefixes, names (comma or repeat)."
    ),
    ignore: Optional[List[str]] = typer.Option(None, "--ignore", "-i", help="Leave these out."),
    tag: Optional[List[str]] = typer.Option(None, "--tag", help="Only checks with this tag."),
    severity: str = typer.Option("info", "--severity", help="Only checks of this severity and above."),
    fail_on: str = typer.Option("medium", "--fail-on", help="End with 1 from this severity on."),
    strict: bool = typer.Option(False, "--strict", help="What a missing right hides counts as unknown, too."),
    format_: str = typer.Option("text", "--format", "-f", help="text or json."),
    lang: Optional[str] = typer.Option(None, "--lang", help="en or zh (default: your locale)."),
    verbose: bool = typer.Option(False, "--verbose", "-v", help="Also list what passed and what does not apply."),
    snapshot: Optional[Path] = typer.Option(None, "--snapshot", help="Judge a recorded host (directory or tar.gz)."),
    python: Optional[str] = typer.Option(None, "--python", help="The job's Python."),
    pid: Optional[int] = typer.Option(None, "--pid", help="A running job."),
    script: Optional[str] = typer.Option(None, "--script", help="The job's launch script."),
    env_file: Optional[str] = typer.Option(None, "--env-file", help="The job's variables, KEY=VALUE lines."),
    peer: Optional[List[str]] = typer.Option(None, "--peer", help="Another host of the job: address, network, name."),
    hostfile: Optional[Path] = typer.Option(None, "--hostfile", help="The hosts of the job, one a line."),
    catalog: Optional[List[Path]] = typer.Option(None, "--catalog", help="More checks, by id over the shipped ones."),
) -> None:
    from envtune.audit import exit_code
    from envtune.catalog import select as select_checks
    from envtune.errors import EnvtuneError
    from envtune.job.target import TargetOptions

    lang = language(lang)
    options = TargetOptions(python, pid, _absolute(script), _absolute(env_file))
    try:
        floor, threshold = severity_named(severity), severity_named(fail_on)
        if format_ not in ("text", "json"):
            fail(Message("--format {format}: text or json", format=format_), lang)
        if peer or hostfile is not None:
            from envtune.job.peers import read_peers

            options = options._replace(peers=read_peers(peer or [], hostfile, ""))
        catalogue = load_catalogue(catalog or [], lang)
        checks = select_checks(catalogue.checks, select, ignore, tag, floor)
        host, options = open_host(snapshot, options)
        report = run(host, options, checks, catalogue.expectations)
    except EnvtuneError as error:
        fail(error.message, lang)
    typer.echo(_render(report, format_, lang, verbose))
    # A check that hung left a thread in the kernel: nothing may wait for it.
    _leave(exit_code(report.findings, threshold, strict))


def run(
    host: Host, options: TargetOptions, checks: object, expectations: Mapping[str, Sequence[Expectation]]
) -> Report:
    """One audit of `host` as a report."""
    from envtune.audit import audit
    from envtune.context.open import describe_target, open_context
    from envtune.model import Report

    began, clock = time.time(), time.monotonic()
    context = open_context(host, options, expectations)
    findings = audit(checks, context, _progress())  # type: ignore[arg-type]
    facts = tuple(context.facts[name] for name in context.facts.names())
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began if host.live else host.now))
    return Report(host.name, started, time.monotonic() - clock, describe_target(context.target), facts, findings)


def load_catalogue(catalog: List[Path], lang: str) -> Catalogue:
    from envtune.catalog import load

    loaded = load(tuple(catalog))
    for note in loaded.notes:
        typer.echo(f"envtune: {note.to(lang)}", err=True)
    return loaded


def open_host(snapshot: Optional[Path], options: TargetOptions) -> tuple[Host, TargetOptions]:
    if snapshot is None:
        from envtune.host import LocalHost

        return LocalHost(), options
    from envtune.context.open import recorded_options
    from envtune.job.target import TargetOptions
    from envtune.snapshot.open import open_snapshot

    recorded = open_snapshot(snapshot)
    named = recorded_options(recorded.data.get("target") or {})
    if options._replace(peers=()) == TargetOptions():
        options = named._replace(peers=options.peers or named.peers)
    return recorded, options


def _absolute(path: Optional[str]) -> Optional[str]:
    return None if path is None else str(Path(path).absolute())


def severity_named(word: str) -> Severity:
    from envtune.errors import UsageError
    from envtune.model import Severity

    try:
        return Severity(word)
    except ValueError:
        names = ", ".join(s.value for s in Severity)
        raise UsageError(Message("{word}: not a severity ({names})", word=word, names=names)) from None


def _progress() -> object:
    """Names the running check on a terminal once a second has passed; None where nobody watches."""
    if not sys.stderr.isatty():
        return None
    began = time.monotonic()

    def show(check: object) -> None:
        if time.monotonic() - began > 1:
            typer.echo(f"\r\033[K{check.id} {check.name} ...\r", nl=False, err=True)  # type: ignore[attr-defined]

    return show


def _render(report: Report, format_: str, lang: str, verbose: bool) -> str:
    if format_ == "json":
        from envtune.report import check_json as json

        return json.render(report, lang)
    from envtune.report import check_text as text

    return text.render(report, lang, width=terminal_width(), colour=colour_wanted(), verbose=verbose)


def _leave(code: int) -> None:
    import os

    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
