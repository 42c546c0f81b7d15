"""`envtune run`: preflight, start the job, and when it fails say why at once. Exits as the job did."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Iterator, List, Mapping, NoReturn, Optional, Sequence

import typer

from envtune.cli import options
from envtune.errors import system_error_text
from envtune.messages import N_, Joined, Message, Text, enumerated, in_context, plural

if TYPE_CHECKING:
    from envtune.context import Context
    from envtune.observe.background import Observer
    from envtune.run.preflight import Preflight
    from envtune.run.result import ExitResult

HELP = N_(
    """Check, run a command, diagnose if it fails.

\b
  envtune run -- python train.py
  envtune run --select CANN,NET --fail-on critical -- bash train.sh
  envtune run --profile debug -- python train.py        a debugging run
  envtune run --profile none --no-preflight -- CMD      no checks, no variables: only diagnose
  torchrun --nproc_per_node 8 --no_python envtune run -- python train.py
  mpirun -n 8 envtune run -- python train.py            one preflight per node, by the first rank
  srun -K envtune run -- python train.py                -K: one rank that does not start ends the others

Terminal, process group, pipes, signals and exit status of the command are unchanged. The profile (envtune env) sets
variables for the command only, and prints a line for each. No diagnosis after Ctrl-C or when a launcher ends the
command.

Exit status: the command's; 1 not started (findings at or above --fail-on); 2 usage error; 126 and 127 as in a shell.
"""
)
CONTEXT = {"allow_interspersed_args": False}  # what follows the command is the command's, with or without --
DIAGNOSIS_SECONDS = 30.0  # what takes longer is given up: a launcher waits for our end to end the other ranks

ARGV = typer.Argument(..., metavar="-- CMD...", help=N_("The command and its arguments."))
SELECT = typer.Option(None, "--select", "-s", help=N_("Run only these checks before the command."))
IGNORE = typer.Option(None, "--ignore", "-i", help=N_("Skip these checks."))
FAIL_ON = typer.Option(
    "high", "--fail-on", help=N_("Do not start on findings of this severity or higher; none: always start.")
)
FORCE = typer.Option(False, "--force", help=N_("Start anyway."))
PREFLIGHT = typer.Option(True, "--preflight/--no-preflight", help=N_("Check the host first."))
PROFILE = typer.Option("train", "--profile", "-p", help=N_("train, debug or none."))
KEEP = typer.Option(None, "--keep", help=N_("A variable that the profile does not change."))
CAPTURE = typer.Option(
    True,
    "--capture/--no-capture",
    help=N_("Keep the last output for the diagnosis; without it only the plog is read."),
)
OBSERVE = typer.Option(False, "--observe", help=N_("Say at the end what the job waited for (envtune observe)."))
CATALOG = typer.Option(None, "--catalog", help=N_("More entries; the same id replaces a built-in one."))


def command(
    argv: List[str] = ARGV,
    select: Optional[List[str]] = SELECT,
    ignore: Optional[List[str]] = IGNORE,
    fail_on: str = FAIL_ON,
    force: bool = FORCE,
    preflight: bool = PREFLIGHT,
    profile: str = PROFILE,
    keep: Optional[List[str]] = KEEP,
    capture: bool = CAPTURE,
    observe: bool = OBSERVE,
    lang: Optional[str] = options.LANG,
    catalog: Optional[List[Path]] = CATALOG,
) -> None:
    from envtune.cli.env import profile_named
    from envtune.run.process import run_command
    from envtune.run.profile import later_rank
    from envtune.run.result import exit_like

    lang = options.language(lang)
    profile = profile_named(profile, lang)
    first = not later_rank(os.environ)
    env: Mapping[str, str] = os.environ
    if profile != "none" or (preflight and first):
        env, context = _environment(argv, profile, keep or [], lang, first, catalog or [])
        if preflight and first:
            _preflight(context, select, ignore, fail_on, force, lang, catalog)
    began = time.time()
    observer = _observer(lang) if observe and first else None
    try:
        result = run_command(argv, env, capture)
    except OSError as error:
        _fail_to_start(argv[0], error, lang)
    if result.status and not result.by_request:
        _explain_detached(lambda: _explain(argv, result, began, env, lang, catalog), lang)
    if observer is not None:
        _say_what_was_observed(observer, lang)
    exit_like(result.status)


def _explain_detached(explain: Callable[[], None], lang: str) -> None:
    """Diagnose in a process of its own, which a launcher's signal does not reach."""
    from envtune.run.background import run_detached
    from envtune.run.signals import ForkError

    try:
        run_detached(explain, DIAGNOSIS_SECONDS)
    except ForkError as error:
        _say_no_diagnosis(error, lang)


def _observer(lang: str) -> Optional[Observer]:
    """Start to observe the command; without an observer it runs all the same."""
    from envtune.observe.background import Observer

    try:
        return Observer()
    except OSError as error:
        options.print_error(Message("the job is not observed: {reason}", reason=system_error_text(error)), lang)
        return None


def _say_what_was_observed(observer: Observer, lang: str) -> None:
    """Print what the job waited for while it ran, on stderr; whatever goes wrong does not change how it ended."""
    from envtune.observe.judge import judge
    from envtune.report.profile.observed import cause_lines

    try:
        found = observer.finish()
        if found is not None:
            for line in cause_lines(judge(found), lang):
                typer.echo(f"envtune: {line}", err=True)
    except Exception as error:
        kind = type(error).__name__
        options.print_error(Message("the job was not observed: {kind}: {error}", kind=kind, error=error), lang)


def _fail_to_start(name: str, error: OSError, lang: str) -> NoReturn:
    if isinstance(error, FileNotFoundError):
        options.print_error(Message("{name}: command not found", name=name), lang)
        raise typer.Exit(127)
    options.print_error(in_context("not started", "{name}: {reason}", name=name, reason=system_error_text(error)), lang)
    raise typer.Exit(126)


def _environment(
    argv: Sequence[str], profile: str, keep: Sequence[str], lang: str, aloud: bool, catalog: Sequence[Path]
) -> tuple[Mapping[str, str], Optional[Context]]:
    """Return the command's variables; the first rank of a node prints what is changed, for all of them."""
    from envtune.catalog import load
    from envtune.run.profile import apply_profile

    try:
        applied = apply_profile(argv, profile, keep, load(tuple(catalog)).expectations)
    except Exception as error:  # a job is not kept from starting by our reading of the host
        kind = type(error).__name__
        options.print_error(
            Message("the environment profile is not applied: {kind}: {error}", kind=kind, error=error), lang
        )
        return os.environ, None
    for note in applied.notes if aloud else ():
        options.print_error(note, lang)
    return applied.variables, applied.context


def _preflight(
    context: Optional[Context],
    select: Optional[List[str]],
    ignore: Optional[List[str]],
    fail_on: str,
    force: bool,
    lang: str,
    catalog: Optional[List[Path]],
) -> None:
    """Stop where a finding is at or above `fail_on`; what is below it, or unknown, costs one line."""
    from envtune.catalog import select as select_checks
    from envtune.cli.policy.loading import load_with_policy
    from envtune.context.open import open_context
    from envtune.host import LocalHost
    from envtune.run.preflight import preflight

    threshold = options.threshold_named(fail_on)
    loaded = load_with_policy(catalog, lang)
    catalogue, ignore = loaded.catalogue, [*loaded.selectors(select, None, ignore, None).ignore]
    checks = select_checks(catalogue.checks, select, ignore, None if select else ["preflight"])
    try:
        found = preflight(context or open_context(LocalHost(), expectations=catalogue.expectations), checks, threshold)
    except Exception as error:  # a job is not kept from starting by our reading of the host
        kind = type(error).__name__
        options.print_error(Message("no preflight: {kind}: {error}", kind=kind, error=error), lang)
        return
    for line in _preflight_lines(found):
        options.print_error(line, lang)
    if found.stopping and not force:
        options.print_error(Message("not started (--force starts it anyway)"), lang)
        raise typer.Exit(1)


def _preflight_lines(found: Preflight) -> Iterator[Text]:
    from envtune.audit.subjects import subject_text

    for finding in found.stopping:
        name = Joined((finding.id, " [", subject_text(finding.subject), "]") if finding.subject else (finding.id,), "")
        actual = finding.actual or ""
        yield Message("{check} {title}: {actual}", check=name, title=finding.check.title, actual=actual)
    if found.minor:
        checks = enumerated(found.minor)
        yield plural(
            "{count} problem: {checks} (envtune check)",
            "{count} problems: {checks} (envtune check)",
            len(found.minor),
            checks=checks,
        )
    if found.unknown:
        yield Message("unknown: {checks} (envtune check)", checks=enumerated(found.unknown))


def _explain(
    argv: Sequence[str],
    result: ExitResult,
    began: float,
    env: Mapping[str, str],
    lang: str,
    catalog: Optional[List[Path]],
) -> None:
    """Print how the command failed, and the diagnosis; whatever goes wrong here does not change how it ended."""
    try:
        _print_diagnosis(argv, result, began, env, lang, catalog)
    except Exception as error:
        _say_no_diagnosis(error, lang)


def _say_no_diagnosis(error: Exception, lang: str) -> None:
    kind = type(error).__name__
    options.print_error(Message("no diagnosis: {kind}: {error}", kind=kind, error=error), lang)


def _print_diagnosis(
    argv: Sequence[str],
    result: ExitResult,
    began: float,
    env: Mapping[str, str],
    lang: str,
    catalog: Optional[List[Path]],
) -> None:
    from envtune.catalog import load
    from envtune.cli.diagnose import with_catalogs
    from envtune.report.diagnosis.text import render_text
    from envtune.run.failure import diagnose_failure, ended_abruptly, exit_text

    diagnosis = diagnose_failure(argv, result, began, env, load(tuple(catalog or ())), lang)
    diagnosis = with_catalogs(diagnosis, catalog or ())
    how = exit_text(argv[0], result.status)
    if diagnosis.diagnoses or diagnosis.first_error:
        typer.echo(err=True)
        options.print_error(how, lang)
        typer.echo(render_text(diagnosis, lang, colour=options.colour_wanted(error_stream=True)), err=True)
    elif ended_abruptly(result.status):
        hint = Message("{how}; for the usual cause: envtune explain {entry}", how=how, entry="rank-killed")
        options.print_error(hint, lang)
