"""`envtune check`: read the host, check it, print the report, end with what was found."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Callable, List, Optional, Sequence

import typer

from envtune.cli import options
from envtune.messages import N_

if TYPE_CHECKING:
    from envtune.context.open import Expectations
    from envtune.host import Host
    from envtune.job.target import TargetOptions
    from envtune.model import Check, Report, Severity

HELP = N_(
    """Is this host ready for training, and if not, what exactly is wrong?

Reads only; needs no root (what needs a right you lack is said so). Examples:

\b
  envtune check                         this host, the Python and environment of this shell
  envtune check --script train.sh       the environment that a launch script sets
  envtune check --pid 4711              a running job
  envtune check --select CPU,NET        two families
  envtune check --snapshot host.tar.gz  a recorded host
  envtune check --snapshot *.tar.gz     several recorded hosts, compared (or a directory of them)

Exit status: 0 clean, 1 findings at or above --fail-on, 2 usage, 3 something there could not be told, or nothing was
checked.
"""
)
SELECT = typer.Option(None, "--select", "-s", help=N_("Only these: ids, id prefixes, names (comma or repeat)."))
STRICT = typer.Option(False, "--strict", help=N_("What a missing right hides counts as unknown, too."))
VERBOSE = typer.Option(False, "--verbose", "-v", help=N_("Also list what passed and what does not apply."))
SNAPSHOT = typer.Option(None, "--snapshot", help=N_("Check a recorded host (directory, tar.gz, JSON), or several."))
FURTHER = typer.Argument(None, metavar="[SNAPSHOT]...", help=N_("Further recorded hosts, after --snapshot."))
PROBE = typer.Option(False, "--probe", help=N_("Connect to MASTER_ADDR and the peers, at the job's ports."))
CATALOG = typer.Option(None, "--catalog", help=N_("More checks, by id over the shipped ones."))


def command(
    further: Optional[List[Path]] = FURTHER,
    select: Optional[List[str]] = SELECT,
    ignore: Optional[List[str]] = options.IGNORE,
    tag: Optional[List[str]] = options.TAG,
    severity: str = options.SEVERITY,
    fail_on: str = options.FAIL_ON,
    strict: bool = STRICT,
    format_: str = options.FORMAT,
    lang: Optional[str] = options.LANG,
    verbose: bool = VERBOSE,
    snapshot: Optional[List[Path]] = SNAPSHOT,
    python: Optional[str] = options.PYTHON,
    pid: Optional[int] = options.PID,
    script: Optional[str] = options.SCRIPT,
    env_file: Optional[str] = options.ENV_FILE,
    peer: Optional[List[str]] = options.PEER,
    hostfile: Optional[Path] = options.HOSTFILE,
    probe: bool = PROBE,
    catalog: Optional[List[Path]] = CATALOG,
) -> None:
    from envtune.audit.verdict import exit_code
    from envtune.catalog import select as select_checks
    from envtune.context.open import open_host
    from envtune.job.target import TargetOptions

    lang = options.language(lang)
    threshold = options.severity_named(fail_on)
    options.require_choice("--format", format_, options.FORMATS)
    target = TargetOptions(python, pid, script, env_file, _peers(peer, hostfile), probe)
    catalogue = options.load_catalogue(catalog, lang)
    checks = select_checks(catalogue.checks, select, ignore, tag, options.severity_named(severity))
    question, answer = (target, checks, catalogue.expectations), (format_, lang, verbose, threshold, strict)
    host = open_host(_single_host(snapshot, further, question, answer))
    report = _checked(host, target, checks, catalogue.expectations, verbose)
    _print(report, format_, lang, verbose)
    options.exit_now(exit_code(report.findings, threshold, strict))


def _single_host(
    named: Optional[Sequence[Path]],
    further: Optional[Sequence[Path]],
    question: tuple[TargetOptions, Sequence[Check], Expectations],
    answer: tuple[str, str, bool, Severity, bool],
) -> Optional[Path]:
    """Return the one recorded host, None for this one; several are compared, which ends the program."""
    if not named and not further:
        return None
    from envtune.cli.hosts.several import Answer, Question, check_several

    check_several(named, further, Question(*question), Answer(*answer))
    return named[0] if named else None


def _checked(
    host: Host, target: TargetOptions, checks: Sequence[Check], expectations: Expectations, verbose: bool
) -> Report:
    if host.live:
        from envtune.audit import check_host

        return check_host(host, target, checks, _progress(), expectations)
    from envtune.audit.limited import check_limited

    def note(text: str) -> None:
        if verbose:
            typer.echo(text, err=True)

    return check_limited(host, target, checks, _progress(), expectations, note)


def _peers(peer: Optional[List[str]], hostfile: Optional[Path]) -> tuple[str, ...]:
    if not peer and hostfile is None:
        return ()
    from envtune.job.peers import read_peers

    return read_peers(peer or [], hostfile, "")


def _progress() -> Optional[Callable[[Check], None]]:
    """Name the running check on a terminal once a second has passed; None where nobody watches."""
    from envtune.report.output import StandardStream

    stream = sys.stderr
    if not isinstance(stream, StandardStream) or not stream.isatty():
        return None
    began = time.monotonic()

    def show(check: Check) -> None:
        if time.monotonic() - began > 1:
            stream.replace_line(f"{check.id} {check.name} ...")

    return show


def _print(report: Report, format_: str, lang: str, verbose: bool) -> None:
    if format_ == "json":
        from envtune.report.check_json import render as render_json

        options.print_document(render_json(report, lang) + "\n")
        return
    from envtune.report import check_text

    width, colour = options.terminal_width(), options.colour_wanted()
    typer.echo(check_text.render(report, lang, width=width, colour=colour, verbose=verbose))
