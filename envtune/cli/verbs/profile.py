"""`envtune profile`: outputs of profilers -> where the time of a step goes, and what on the host can explain it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Callable, List, Optional

import typer

from envtune.cli import options
from envtune.errors import system_error_text
from envtune.messages import N_, Message

if TYPE_CHECKING:
    from envtune.job.target import TargetOptions
    from envtune.profile.analyze import ProfileReport
    from envtune.profile.explain import Explanation
    from envtune.report.output import Output

HELP = N_(
    """Show what limits a training step in a profile.

Reads the output of torch_npu, MindSpore and msprof. For each rank it shows the shares of computing, communication and
free time in a step, which rank is slow, and what takes the time. If the host or the data limits the step, it runs the
checks that can explain it.

\b
Examples:
  envtune profile prof/*_ascend_pt                   the ranks of one job
  envtune profile PROF_000001_20260605/              output of msprof
  envtune profile prof/ --snapshot host.tar.gz       checked on a recorded host
  envtune profile prof/ --script train.sh            checked for the job of a launch script
  envtune profile prof/ --format json                as JSON

Exit status: 0 compute-bound or balanced, 1 limited by the host, the data or communication, 2 usage error, 3 no verdict.
"""
)
PROFILES = typer.Argument(..., metavar="DIR...", help=N_("Directories or files written by a profiler."))
CHECK = typer.Option(True, "--check/--no-check", help=N_("Run the checks that can explain the verdict."))
SNAPSHOT = typer.Option(None, "--snapshot", help=N_("Check a recorded host."))
FORMAT = options.format_option(N_("text or json; json=FILE writes a file; repeat for several."))
NOT_LIMITED = ("compute", "balanced")


def command(
    profiles: List[str] = PROFILES,
    check: bool = CHECK,
    format_: List[str] = FORMAT,
    lang: Optional[str] = options.LANG,
    snapshot: Optional[List[Path]] = SNAPSHOT,
    python: Optional[str] = options.PYTHON,
    pid: Optional[int] = options.PID,
    script: Optional[str] = options.SCRIPT,
    env_file: Optional[str] = options.ENV_FILE,
    catalog: Optional[List[Path]] = options.CATALOG,
) -> None:
    from envtune.job.target import TargetOptions
    from envtune.profile.analyze import profile
    from envtune.profile.explain import can_explain

    lang = options.language(lang)
    wanted = options.outputs(format_, options.FORMATS)
    recorded = options.single_snapshot(snapshot)
    try:
        report = profile(profiles, _progress(lang))
    except OSError as error:
        reason = system_error_text(error)
        options.print_error(Message("{path}: {reason}", path=error.filename, reason=reason), lang)
        raise typer.Exit(options.USAGE) from None
    explanation = None
    if check and can_explain(report.bound):
        target = TargetOptions(python, pid, script, env_file)
        explanation = _explain(report, target, recorded, catalog, lang)
    done = options.write(wanted, lambda output: _render(report, explanation, output, lang), lang)
    options.exit_now(_status(report) if done else options.USAGE)


def _explain(
    report: ProfileReport, target: TargetOptions, recorded: Optional[Path], catalog: Optional[List[Path]], lang: str
) -> Explanation:
    from envtune.cli.verbs.explaining import checking
    from envtune.profile.explain import EXPLAINS, explain

    return explain(EXPLAINS[report.bound], checking(recorded, catalog, lang), target, report.noted)


def _progress(lang: str) -> Optional[Callable[[str], None]]:
    """Name the file that is read on a terminal from one second on; None where nobody watches."""
    if not sys.stderr.isatty():
        return None
    from envtune.cli.program.waiting import show_while_waiting

    names = [""]
    show_while_waiting(lambda: Message("reading {path}", path=names[-1]), lang)
    return names.append


def _status(report: ProfileReport) -> int:
    if report.bound.value == "unknown":
        return options.NOT_READ
    return 0 if report.bound.value in NOT_LIMITED else 1


def _render(report: ProfileReport, explanation: Optional[Explanation], output: Output, lang: str) -> str:
    if output.format == "json":
        from envtune.report.profile.json import render_json

        return render_json(report, explanation, lang) + "\n"
    from envtune.report.profile.text import render

    width, colour = options.screen(output)
    return render(report, explanation, lang, width=width, colour=colour)
