"""`envtune run`: preflight, start the job, and when it fails say why at once. Ends as the job ended."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Iterator, List, Mapping, NoReturn, Optional, Sequence

import typer

from envtune.cli.options import fail, language
from envtune.messages import Bilingual, Message, Text

if TYPE_CHECKING:
    from envtune.context import Context
    from envtune.diagnose.logs.files import LogFile
    from envtune.model import Finding
    from envtune.run.result import Ended

HELP = """Check the host, run a command with this host's environment, and diagnose it when it fails.

\b
  envtune run -- python train.py
  envtune run --select CANN,NET --fail-on critical -- bash train.sh
  envtune run --profile debug -- python train.py        a run that is to show where it fails
  envtune run --profile none --no-preflight -- CMD      only stand by, and diagnose
  torchrun --nproc_per_node 8 --no-python envtune run -- python train.py
  mpirun -n 8 envtune run -- python train.py            one preflight per node, by the first rank
  srun -K envtune run -- python train.py                -K: one rank that is not started ends the others

The command stays in your terminal, your process group and your pipes; envtune ends as it ended: with the same status,
or by the same signal. The profile (envtune env) is for the command only, one line for each variable it changes; your
shell and your files stay as they are. Nothing is diagnosed after Ctrl-C or when a launcher ends the command.

Exit status: the command's; 1 not started (findings at or above --fail-on); 2 usage; 126 and 127 as a shell.
"""
CONTEXT = {"allow_interspersed_args": False}  # what follows the command is the command's, with or without --
DIAGNOSIS_SECONDS = 30.0  # what takes longer is given up: a launcher waits for our end to end the other ranks
RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")


def command(
    argv: List[str] = typer.Argument(..., metavar="-- CMD...", help="The command and its arguments."),
    select: Optional[List[str]] = typer.Option(None, "--select", "-s", help="Checks of the preflight."),
    ignore: Optional[List[str]] = typer.Option(None, "--ignore", "-i", help="Checks to leave out."),
    fail_on: str = typer.Option("high", "--fail-on", help="Do not start where a finding is this severe."),
    force: bool = typer.Option(False, "--force", help="Start all the same."),
    preflight: bool = typer.Option(True, "--preflight/--no-preflight", help="Check the host first."),
    profile: str = typer.Option("training", "--profile", "-p", help="training, debug or none."),
    keep: Optional[List[str]] = typer.Option(None, "--keep", help="A variable that the profile leaves alone."),
    capture: bool = typer.Option(
        True, "--capture/--no-capture", help="Keep the last output for a diagnosis; without it only the plog is read."
    ),
    lang: Optional[str] = typer.Option(None, "--lang", help="en or zh (default: your locale)."),
    catalog: Optional[List[Path]] = typer.Option(None, "--catalog", help="More checks and entries."),
) -> None:
    from envtune.run.process import run_command
    from envtune.run.profile import PROFILES, later_rank
    from envtune.run.result import end_as

    lang = language(lang)
    profile = "training" if profile == "train" else profile
    if profile not in PROFILES:
        fail(
            Bilingual(
                f"--profile {profile}: one of {', '.join(PROFILES)}", f"--profile {profile}：可选 {'、'.join(PROFILES)}"
            ),
            lang,
        )
    first = not later_rank(os.environ)
    env: Mapping[str, str] = os.environ
    if profile != "none" or (preflight and first):
        env, context = _environment(argv, profile, keep or [], lang, first, catalog or [])
        if preflight and first:
            _preflight(context, select, ignore, fail_on, force, lang, catalog or [])
    began = time.time()
    try:
        ended = run_command(argv, env, capture)
    except OSError as error:
        _not_run(argv[0], error, lang)
    if ended.status and not ended.by_request:
        from envtune.run.background import aside

        aside(lambda: _explain(argv, ended, began, env, lang, catalog or []), DIAGNOSIS_SECONDS)
    end_as(ended.status)


def _not_run(name: str, error: OSError, lang: str) -> NoReturn:
    missing = isinstance(error, FileNotFoundError)
    en = "command not found" if missing else error.strerror
    zh = "找不到命令" if missing else f"无法执行（{error.strerror}）"
    typer.echo(f"envtune: {name}: {zh if lang == 'zh' else en}", err=True)
    raise typer.Exit(127 if missing else 126)


def _environment(
    argv: Sequence[str], profile: str, keep: Sequence[str], lang: str, aloud: bool, catalog: Sequence[Path]
) -> tuple[Mapping[str, str], Optional[Context]]:
    """The command's variables; what is changed is said by the first rank of a node, for all of them."""
    from envtune.catalog import load
    from envtune.run.profile import apply

    try:
        applied = apply(argv, profile, keep, load(tuple(catalog)).expectations)
    except Exception as error:  # a job is not kept from starting by our reading of the host
        en, zh = "the environment profile is not applied", "未应用环境配置"
        typer.echo(f"envtune: {zh if lang == 'zh' else en}: {type(error).__name__}: {error}", err=True)
        return os.environ, None
    for note in applied.notes if aloud else ():
        typer.echo(f"envtune: {note.to(lang)}", err=True)
    return applied.variables, applied.context


def _preflight(
    context: Optional[Context],
    select: Optional[List[str]],
    ignore: Optional[List[str]],
    fail_on: str,
    force: bool,
    lang: str,
    catalog: List[Path],
) -> None:
    """Stop where a finding is at or above `fail_on`; what is below it, or could not be told, costs one line."""
    from envtune.audit import audit
    from envtune.catalog import select as select_checks
    from envtune.cli.check import load_catalogue, open_host, severity_named
    from envtune.context.open import open_context
    from envtune.errors import EnvtuneError
    from envtune.job.target import TargetOptions

    try:
        floor = severity_named(fail_on)
        catalogue = load_catalogue(catalog, lang)
        tags = None if select else ["preflight"]
        checks = select_checks(catalogue.checks, select, ignore, tags, severity_named("info"))
        if context is None:
            context = open_context(*open_host(None, TargetOptions()), catalogue.expectations)
        findings = audit(checks, context)
    except EnvtuneError as error:
        fail(error.message, lang)
    failed = [f for f in findings if f.outcome.value == "fail"]
    stopping = [f for f in failed if f.severity.rank >= floor.rank]
    for line in _lines(findings, stopping, failed, lang):
        typer.echo(f"envtune: {line}", err=True)
    if stopping and not force:
        words = "没有启动任务（--force 可强制启动）" if lang == "zh" else "not started (--force starts it all the same)"
        typer.echo(f"envtune: {words}", err=True)
        raise typer.Exit(1)


def _lines(
    findings: Sequence[Finding], stopping: Sequence[Finding], failed: Sequence[Finding], lang: str
) -> Iterator[str]:
    for finding in stopping:
        found = finding.actual.to(lang) if finding.actual else ""
        subject = f" [{finding.subject}]" if finding.subject else ""
        yield f"{finding.id}{subject} {finding.check.title.to(lang)}: {found}"
    zh = lang == "zh"
    lesser = sorted({f.id for f in failed} - {f.id for f in stopping})
    if lesser:
        yield f"{'较轻的问题' if zh else 'lesser findings'}: {', '.join(lesser)} (envtune check)"
    untold = sorted({f.id for f in findings if f.outcome.value in ("unknown", "error")})
    if untold:
        yield f"{'无法判断' if zh else 'could not be told'}: {', '.join(untold)} (envtune check)"


def _explain(
    argv: Sequence[str], ended: Ended, began: float, env: Mapping[str, str], lang: str, catalog: List[Path]
) -> None:
    """The diagnosis of a failed command, on stderr; never in the way of how it ended."""
    from envtune.cli.diagnose import confirmer, diagnose_files
    from envtune.diagnose.scan import TimeWindow
    from envtune.job.target import TargetOptions
    from envtune.report.diagnosis.text import render_text
    from envtune.run.profile import interpreter

    try:
        files = [*_said(ended, env, lang), *_plogs(env, began)]
        target = TargetOptions(python=interpreter(argv, env))
        found = diagnose_files(argv, files, catalog, TimeWindow(), confirmer(catalog, None, target, ran_with=env))
        text = render_text(found, lang, colour=sys.stderr.isatty()) if found.diagnoses or found.first_error else ""
    except Exception as error:  # the job's own end matters more than our words about it
        no = "无法诊断" if lang == "zh" else "no diagnosis"
        typer.echo(f"envtune: {no}: {type(error).__name__}: {error}", err=True)
        return
    if text:
        typer.echo(f"\nenvtune: {_how(argv[0], ended.status).to(lang)}\n{text}", err=True)


def _how(name: str, status: int) -> Text:

    name = os.path.basename(name)
    if not os.WIFSIGNALED(status):
        code = os.WEXITSTATUS(status)
        return Message("{name} ended with status {code}", name=name, code=code)
    import signal

    number = os.WTERMSIG(status)
    word = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    return Message("{name} was ended by {word}", name=name, word=word)


def _said(ended: Ended, env: Mapping[str, str], lang: str) -> Iterator[LogFile]:
    """The output that was kept; lines of its end are counted from where the kept part begins."""
    from envtune.diagnose.logs.files import LogFile

    rank = next((int(env[name]) for name in RANKS if env.get(name, "").isdigit()), None)
    for kept in ended.kept:
        if kept.head:
            yield LogFile(kept.name, rank=rank, content=kept.head)
        if kept.tail:
            size = f"{len(kept.tail) / (1 << 20):.1f} MiB"
            name = f"{kept.name}（最后 {size}）" if lang == "zh" else f"{kept.name} (last {size})"
            yield LogFile(name, rank=rank, content=kept.tail)


def _plogs(env: Mapping[str, str], began: float) -> Iterator[LogFile]:
    """The plog written since, without that of processes that run on: they are another job's."""
    from envtune.diagnose.logs.files import find_plogs

    for file in find_plogs(env, began):
        if file.pid is None or not os.path.exists(f"/proc/{file.pid}"):
            yield file
