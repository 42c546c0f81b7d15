"""`envtune scan`: launch files -> what they set wrongly for the job, with file and line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, List, Optional, Sequence

import typer

from envtune.cli import options
from envtune.cli.check import SELECT
from envtune.messages import N_, Message

if TYPE_CHECKING:
    from envtune.model import Severity
    from envtune.report.output import Output
    from envtune.scan.edit import Fixed
    from envtune.scan.model import ScanReport

HELP = N_(
    """Check what launch files set for a job.

Reads shell scripts, Slurm scripts, Dockerfiles and Kubernetes or Volcano jobs without running them, and checks the
environment variables of each job that they start. The host is not read, so the result is the same everywhere. To accept
a finding, add a comment: # envtune: ignore ENV003 -- reason.

\b
Examples:
  envtune scan train.sh                  one script, and what it sources
  envtune scan .                         all launch files of a directory
  envtune scan . --fix                   the changes that fix what is found, as a diff
  envtune scan . --fix | git apply       apply them
  envtune scan . --format sarif=scan.sarif --format text

Exit status: 0 no problems, 1 findings at or above --fail-on, 2 usage error, 3 something is unknown, or no launch
files were found.
"""
)
FORMATS = ("text", "json", "sarif", "junit")
PATHS = typer.Argument(..., metavar="PATH...", help=N_("Launch files, or directories with launch files."))
FORMAT = options.format_option(N_("text, json, sarif or junit; json=FILE writes a file; repeat for several."))
FIX = typer.Option(False, "--fix", help=N_("Print the changes that fix what is found, as a diff; write nothing."))


def command(
    context: typer.Context,
    paths: List[str] = PATHS,
    fix: bool = FIX,
    select: Optional[List[str]] = SELECT,
    ignore: Optional[List[str]] = options.IGNORE,
    tag: Optional[List[str]] = options.TAG,
    severity: str = options.SEVERITY,
    fail_on: str = options.FAIL_ON,
    format_: List[str] = FORMAT,
    lang: Optional[str] = options.LANG,
    catalog: Optional[List[Path]] = options.CATALOG,
    policy: Optional[str] = options.POLICY,
    profile: Optional[str] = options.PROFILE,
) -> None:
    from envtune.cli.policy.loading import load_with_policy
    from envtune.errors import UsageError
    from envtune.host import LocalHost
    from envtune.scan.check import Rules, fitting
    from envtune.scan.job_host import UnreadHost
    from envtune.scan.scan import exit_code, fixes, scan

    lang = options.language(lang)
    wanted = options.outputs(format_, FORMATS)
    options.threshold_named(fail_on)
    loaded = load_with_policy(catalog, lang, policy, profile)
    threshold = options.threshold_named(loaded.fail_on(context, fail_on))
    checks = fitting(loaded.select(select, ignore, tag, options.severity_named(severity)))
    if not checks:
        raise UsageError(Message("none of the selected checks is about the variables of a job"))
    _require(paths)
    host, rules = LocalHost(), Rules(checks, loaded.catalogue.expectations, UnreadHost())
    report = scan(host, paths, rules, [check.id for check in loaded.catalogue.checks])
    report = report._replace(policy=loaded.shown)
    asked = fix or any(output.format == "text" for output in wanted)
    fixed = fixes(host, report, rules) if asked else ()
    status = exit_code(report, threshold)
    answer = threshold, status, _fix_command(context, paths)
    done = options.write(wanted, lambda output: _render(report, fixed, fix, output, lang, *answer), lang)
    options.exit_now(status if done else options.USAGE)


def _fix_command(context: typer.Context, paths: Sequence[str]) -> str:
    """Return the command that shows the changes for what this one has found."""
    from envtune.commandline import with_words

    settings, selection = options.repeated_options(context)
    return with_words("envtune scan --fix", (*selection, *settings, *paths))


def _require(paths: Sequence[str]) -> None:
    """Raise UsageError where none of the paths exists; one beside others is a problem of the report."""
    from envtune.errors import UsageError, missing_text

    if not any(map(os.path.lexists, paths)):
        raise UsageError(Message("{path}: {reason}", path=paths[0], reason=missing_text()))


def _render(
    report: ScanReport,
    fixed: tuple[Fixed, ...],
    fix: bool,
    output: Output,
    lang: str,
    threshold: Optional[Severity],
    status: int,
    command: str,
) -> str:
    if output.format in ("sarif", "junit"):
        from envtune.report.formats.view import Settings
        from envtune.report.scan.formats import render_junit, render_sarif

        settings = Settings(threshold)
        if output.format == "junit":
            return render_junit(report, lang, settings)
        return render_sarif(report, lang, settings, status)
    from envtune.scan.edit import diff

    if output.format == "json":
        from envtune.report.scan.data import render_json

        return render_json(report, lang, diff(fixed) if fix else None) + "\n"
    from envtune.report.scan.text import render

    if fix:
        return diff(fixed)
    width, colour = options.screen(output)
    count = sum(not found.covered_by for one in fixed for found in one.found)
    return render(report, lang, width=width, colour=colour, fixable=count, command=command)
