"""`envtune run`: preflight, start the job, and when it fails say why at once. Ends as the job ended."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, List, Mapping, Optional, Sequence

import typer

from envtune.cli.options import fail, language

if TYPE_CHECKING:
    from envtune.launch_end import Ended
    from envtune.model import Finding

HELP = """Check the host, run a command, and diagnose it when it fails.

\b
  envtune run -- python train.py
  envtune run --select CANN,NET --fail-on critical -- bash train.sh
  torchrun --nproc_per_node 8 --no-python envtune run -- python train.py     one preflight per node

The command gets your terminal, your signals and your descriptors; envtune ends as it ended: with the same status, or by
the same signal. --no-capture hands the descriptors over, and nothing is kept to diagnose but the plog.
"""
# Set by launchers for each process of a node: only the first of a node checks it.
LOCAL_RANKS = (
    "LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "SLURM_LOCALID",
    "MV2_COMM_WORLD_LOCAL_RANK",
)


def command(
    argv: List[str] = typer.Argument(..., metavar="-- CMD...", help="The command and its arguments."),
    select: Optional[List[str]] = typer.Option(None, "--select", "-s", help="Checks of the preflight."),
    ignore: Optional[List[str]] = typer.Option(None, "--ignore", "-i", help="Checks to leave out."),
    fail_on: str = typer.Option("high", "--fail-on", help="Do not start where a finding is this severe."),
    force: bool = typer.Option(False, "--force", help="Start all the same."),
    preflight: bool = typer.Option(True, "--preflight/--no-preflight", help="Check the host first."),
    capture: bool = typer.Option(True, "--capture/--no-capture", help="Keep the last output for a diagnosis."),
    lang: Optional[str] = typer.Option(None, "--lang", help="en or zh (default: your locale)."),
    catalog: Optional[List[Path]] = typer.Option(None, "--catalog", help="More checks and entries."),
) -> None:
    from envtune.errors import EnvtuneError
    from envtune.launch import run_command
    from envtune.launch_end import end_as

    lang = language(lang)
    try:
        if preflight and not _later_rank(os.environ):
            _preflight(select, ignore, fail_on, force, lang, catalog or [])
    except EnvtuneError as error:
        fail(str(error), str(error), lang)
    began = time.time()
    try:
        ended = run_command(argv, os.environ, capture)
    except OSError as error:
        typer.echo(f"envtune: {argv[0]}: {error.strerror}", err=True)
        raise typer.Exit(127 if isinstance(error, FileNotFoundError) else 126) from None
    if ended.failed:
        _explain(argv, ended, began, lang, catalog or [])
    end_as(ended.status)


def _later_rank(environ: Mapping[str, str]) -> bool:
    return any(environ.get(name, "0").strip() not in ("", "0") for name in LOCAL_RANKS)


def _preflight(
    select: Optional[List[str]], ignore: Optional[List[str]], fail_on: str, force: bool, lang: str, catalog: List[Path]
) -> None:
    """Stop where a finding is at or above `fail_on`; what could not be told costs one line."""
    from envtune.audit import audit
    from envtune.cli.check import load_checks, open_host, severity_named
    from envtune.scene import open_scene
    from envtune.target import TargetOptions

    floor = severity_named(fail_on)
    tags = None if select else ["preflight"]
    checks = load_checks(catalog, lang, select, ignore, tags, severity_named("info"))
    findings = audit(checks, open_scene(*open_host(None, TargetOptions())))
    stopping = [f for f in findings if f.outcome.value == "fail" and f.severity.rank >= floor.rank]
    _say_preflight(findings, stopping, lang)
    if stopping and not force:
        words = "not started (--force starts it all the same)", "没有启动任务（--force 可强制启动）"
        fail(*words, lang)


def _say_preflight(findings: Sequence[Finding], stopping: Sequence[Finding], lang: str) -> None:
    for finding in stopping:
        found = finding.actual.to(lang) if finding.actual else ""
        subject = f" [{finding.subject}]" if finding.subject else ""
        typer.echo(f"envtune: {finding.id}{subject} {finding.check.title.to(lang)}: {found}", err=True)
    untold = sorted({f.id for f in findings if f.outcome.value in ("unknown", "error")})
    if untold:
        words = "无法判断" if lang == "zh" else "could not be told"
        typer.echo(f"envtune: {words}: {', '.join(untold)}", err=True)


def _explain(argv: Sequence[str], ended: Ended, began: float, lang: str, catalog: List[Path]) -> None:
    """The diagnosis of a failed command, on stderr; never in the way of how it ended."""
    from envtune.cli.diagnose import confirmer, diagnose_files
    from envtune.diagnose.scan import Window
    from envtune.diagnose.sources import LogFile, find_plogs
    from envtune.report.diagnosis import render_text
    from envtune.target import TargetOptions

    try:
        kept = [(name, ring.text()) for name, ring in (("stdout", ended.out), ("stderr", ended.err))]
        files = [LogFile(name, content=text) for name, text in kept if text] + list(find_plogs(os.environ, began))
        found = diagnose_files(argv, files, catalog, Window(), confirmer(catalog, None, TargetOptions()))
    except Exception as error:  # the job's own end matters more than our words about it
        typer.echo(f"envtune: no diagnosis: {type(error).__name__}: {error}", err=True)
        return
    if found.diagnoses or found.first_error:
        typer.echo("\n" + render_text(found, lang, colour=sys.stderr.isatty()), err=True)
