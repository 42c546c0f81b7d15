"""`envtune check`: read the host, check it, print the report, end with what was found."""

# No `from __future__ import annotations`: typer would compile the annotations of `command`, 0.8 ms at each start.
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Iterator, List, Mapping, NoReturn, Optional, Sequence

import typer

from envtune.cli import options
from envtune.messages import N_

if TYPE_CHECKING:
    from envtune.audit import FindFixes
    from envtune.catalog import Catalogue
    from envtune.context import Context
    from envtune.context.open import Expectations
    from envtune.host import Host
    from envtune.job.target import TargetOptions
    from envtune.model import Check, Finding, Fixes, Report, Severity
    from envtune.report.output import Output

HELP = N_(
    """Check whether this host is ready for training.

Read-only, no root needed. Checks that need more permissions say so.

\b
Examples:
  envtune check                     this host, with this shell's environment
  envtune check --script train.sh   the environment that a launch script sets
  envtune check --pid 4711          a running job
  envtune check --select CPU,NET    two families
  envtune check host.tar.gz         a recorded host
  envtune check *.tar.gz            several recorded hosts, compared

Exit status: 0 no problems, 1 findings at or above --fail-on, 2 usage error, 3 something is unknown, or nothing was
checked.
"""
)
FORMATS = ("text", "json", "markdown", "html", "junit", "sarif", "prometheus", "nagios")
FORMAT = options.format_option(
    N_("text, json, markdown, html, junit, sarif, prometheus or nagios; html=FILE writes a file; repeat for several.")
)
SELECT = typer.Option(
    None,
    "--select",
    "-s",
    help=N_("Run only these checks: ids, id prefixes, names or tags (comma-separated or repeated)."),
)
STRICT = typer.Option(False, "--strict", help=N_("Exit 3 also for checks that only lack permissions."))
VERBOSE = typer.Option(
    0, "--verbose", "-v", count=True, show_default=False, help=N_("Show all details; twice: passed checks as well.")
)
SNAPSHOT = typer.Option(None, "--snapshot", help=N_("Check a recorded host (directory, tar.gz, JSON), or several."))
FURTHER = typer.Argument(None, metavar="[SNAPSHOT]...", help=N_("Recorded hosts to check, as with --snapshot."))
PROBE = typer.Option(False, "--probe", help=N_("Connect to MASTER_ADDR and the peers, at the job's ports."))
SCHEMA = typer.Option(
    2, "--schema", min=1, max=2, help=N_("Version of the JSON document (1: supported until the next release).")
)
CATALOG = typer.Option(None, "--catalog", help=N_("More checks; the same id replaces a built-in one."))


def command(
    context: typer.Context,
    further: Optional[List[Path]] = FURTHER,
    select: Optional[List[str]] = SELECT,
    ignore: Optional[List[str]] = options.IGNORE,
    tag: Optional[List[str]] = options.TAG,
    severity: str = options.SEVERITY,
    fail_on: str = options.FAIL_ON,
    strict: bool = STRICT,
    format_: List[str] = FORMAT,
    schema: int = SCHEMA,
    lang: Optional[str] = options.LANG,
    verbose: int = VERBOSE,
    snapshot: Optional[List[Path]] = SNAPSHOT,
    python: Optional[str] = options.PYTHON,
    pid: Optional[int] = options.PID,
    script: Optional[str] = options.SCRIPT,
    env_file: Optional[str] = options.ENV_FILE,
    peer: Optional[List[str]] = options.PEER,
    hostfile: Optional[Path] = options.HOSTFILE,
    probe: bool = PROBE,
    catalog: Optional[List[Path]] = CATALOG,
    policy: Optional[str] = options.POLICY,
    profile: Optional[str] = options.PROFILE,
) -> None:
    from envtune.cli.policy.loading import load_with_policy
    from envtune.context.open import open_host
    from envtune.job.target import TargetOptions

    lang = options.language(lang)
    wanted = options.outputs(format_, FORMATS)
    with _plugin_errors(wanted, lang):
        options.threshold_named(fail_on)
        target = TargetOptions(python, pid, script, env_file, _peers(peer, hostfile), probe)
        loaded = load_with_policy(catalog, lang, policy, profile)
        catalogue, threshold = loaded.catalogue, options.threshold_named(loaded.fail_on(context, fail_on))
        checks = loaded.select(select, ignore, tag, options.severity_named(severity))
        if policy is not None or profile is not None:
            checks = _with_policy(checks, context)
        question = (target, checks, catalogue.expectations)
        answer = (wanted, lang, verbose > 0, threshold, strict, loaded.shown)
        recorded = _single_host(snapshot, further, question, answer)
        host = open_host(recorded)
        fixes = find_fixes(catalogue, all_=_names_fixes(wanted)) if _names_fixes(wanted) or schema > 1 else None
        report = _report(host, question, fixes, verbose > 0)
    named = tuple(str(directory) for directory in catalog or ())
    settings, selection = options.repeated_options(context) if _names_fixes(wanted) else ((), ())
    report = report._replace(
        policy=loaded.shown,
        catalogs=named,
        snapshot=options.recorded_name(recorded),
        settings=settings,
        selection=selection,
    )
    _finish(report, wanted, lang, verbose, schema, threshold, strict)


def _with_policy(checks: "Sequence[Check]", context: typer.Context) -> "tuple[Check, ...]":
    """Return the checks with the options that name the policy in their lines, which would do something else without."""
    from envtune.catalog.entries import with_options
    from envtune.commandline import with_words

    words = with_words("", options.repeated_options(context, ("policy", "profile"))[0]).strip()
    return tuple(with_options(check, words) for check in checks)


def _single_host(
    named: Optional[Sequence[Path]],
    further: Optional[Sequence[Path]],
    question: "tuple[TargetOptions, Sequence[Check], Expectations]",
    answer: "tuple[Sequence[Output], str, bool, Optional[Severity], bool, Mapping[str, str]]",
) -> Optional[Path]:
    """Return the one recorded host, None for this one; several are compared, which ends the program."""
    if not named and not further:
        return None
    from envtune.cli.hosts.several import Answer, Question, check_several

    check_several(named, further, Question(*question), Answer(*answer))
    return next(iter((*(named or ()), *(further or ()))), None)


def _names_fixes(wanted: "Sequence[Output]") -> bool:
    """Return whether some document says what `envtune fix` could do."""
    return any(output.format in ("text", "html", "sarif") for output in wanted)


def find_fixes(catalogue: "Catalogue", all_: bool = True) -> "FindFixes":
    """Return what says which findings can be fixed; the plan is made only where something failed.

    Unless `all_` it is made only for findings with a line that runs `envtune fix`, to know whether that would do it.
    """

    def find(context: "Context", findings: "Sequence[Finding]") -> "Fixes":
        from envtune.audit.remedies import names_fix
        from envtune.model import Fixes, Outcome

        failed = [finding for finding in findings if finding.outcome is Outcome.FAIL]
        failed = failed if all_ else [finding for finding in failed if names_fix(finding)]
        if not failed:
            return Fixes(() if all_ else None)
        from envtune.fix.fixable import find_fixes

        fixes = find_fixes(catalogue.playbooks, context, failed)
        return fixes if all_ else fixes._replace(checks=None)

    return find


def _report(
    host: "Host",
    question: "tuple[TargetOptions, Sequence[Check], Expectations]",
    fixes: "Optional[FindFixes]",
    verbose: bool,
) -> "Report":
    """Check the host; a recorded one within limits."""
    target, checks, expectations = question
    if host.live:
        from envtune.audit import check_host

        return check_host(host, target, checks, _progress(), expectations, fixes)
    from envtune.audit.limited import check_limited

    def note(text: str) -> None:
        if verbose:
            typer.echo(text, err=True)

    return check_limited(host, target, checks, _progress(), expectations, note, fixes)


def _peers(peer: Optional[List[str]], hostfile: Optional[Path]) -> tuple[str, ...]:
    if not peer and hostfile is None:
        return ()
    from envtune.job.peers import read_peers

    return read_peers(peer or [], hostfile, "")


def _progress() -> "Optional[Callable[[Check], None]]":
    """Name the running check and its command on a terminal from one second on; None where nobody watches."""
    if not sys.stderr.isatty():
        return None
    from envtune.cli.program.waiting import describe_check, show_while_waiting

    names: list[str] = [""]
    show_while_waiting(describe_check(lambda: names[-1]), options.language(None))
    return lambda check: names.append(f"{check.id} {check.name}")


def _finish(
    report: "Report",
    wanted: "Sequence[Output]",
    lang: str,
    verbose: int,
    schema: int,
    fail_on: "Optional[Severity]",
    strict: bool,
) -> NoReturn:
    """Write the documents, and end with what was found; for a monitoring system by its rules."""
    from envtune.audit.verdict import exit_code

    def render(output: "Output") -> str:
        if output.format in options.FORMATS:
            return _text(report, output, lang, verbose, schema)
        from envtune.report.formats.documents import check_document
        from envtune.report.formats.view import Settings

        return check_document(report, output.format, lang, Settings(fail_on, strict))

    status = exit_code(report.findings, fail_on, strict, report.facts)
    failed = options.USAGE
    if options.is_plugin(wanted):
        from envtune.report.formats.documents import PLUGIN_FAILED, plugin_status
        from envtune.report.formats.view import Settings

        status, failed = plugin_status(report, Settings(fail_on, strict)), PLUGIN_FAILED
    options.exit_now(status if options.write(wanted, render, lang) else failed)


@contextmanager
def _plugin_errors(wanted: "Sequence[Output]", lang: str) -> Iterator[None]:
    """Have a monitoring system see UNKNOWN where it was asked wrongly: our exit status 2 is its CRITICAL."""
    from envtune.errors import EnvtuneError

    try:
        yield
    except EnvtuneError as error:
        if not options.is_plugin(wanted):
            raise
        from envtune.report.formats.documents import PLUGIN_FAILED, plugin_error

        options.print_document(plugin_error(error.message, lang))
        raise typer.Exit(PLUGIN_FAILED) from None


def _text(report: "Report", output: "Output", lang: str, verbose: int, schema: int) -> str:
    """Return the report as text or JSON."""
    if output.format == "json":
        from envtune.report.check_json import render as render_json

        return render_json(report, lang, schema) + "\n"
    width, colour = options.screen(output)
    if verbose:
        from envtune.report.check_text import render

        return render(report, lang, width=width, colour=colour, verbose=verbose > 1)
    from envtune.report.check_short import render as render_short

    return render_short(report, lang, width=width, colour=colour)
