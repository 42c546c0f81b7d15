"""`envtune observe`: sample a running job, or a command -> what its processes wait for, and what can explain it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, List, NoReturn, Optional

import typer

from envtune.cli import options
from envtune.messages import N_, Message

if TYPE_CHECKING:
    from envtune.observe.judge import Judgement
    from envtune.observe.sampling import Observation
    from envtune.profile.explain import Explanation
    from envtune.report.output import Output

HELP = N_(
    """Show what a running job's processes wait for.

Needs no profiler. Samples the main thread of each rank and its workers, the control group, storage and NPUs, and runs
the checks that can explain the result. Sampling from outside is no proof, so every verdict is marked as likely. Uses at
most 1% of one CPU.

\b
Examples:
  envtune observe --pid 4711                 a running job, for 30 seconds
  envtune observe --pid 4711 --seconds 5     for 5 seconds
  envtune observe -- torchrun train.py       a command, until it ends

Exit status: 0 nothing stands out, 1 the host or the data limits the job, 2 usage error, 3 no verdict; after -- that of
the command.
"""
)
CONTEXT = {"allow_interspersed_args": False}  # what follows the command is the command's, with or without --
ARGV = typer.Argument(None, metavar="[-- CMD...]", help=N_("Command to run and observe until it ends."))
SECONDS = typer.Option(
    30.0, "--seconds", metavar="SECONDS", min=1.0, max=3600.0, help=N_("How long to observe a running job.")
)
CHECK = typer.Option(True, "--check/--no-check", help=N_("Run the checks that can explain the verdict."))
FORMAT = options.format_option(N_("text or json; json=FILE writes a file; repeat for several."))
NOT_LIMITED = ("balanced", "compute")


def command(
    argv: Optional[List[str]] = ARGV,
    pid: Optional[int] = options.PID,
    seconds: float = SECONDS,
    check: bool = CHECK,
    format_: List[str] = FORMAT,
    lang: Optional[str] = options.LANG,
    catalog: Optional[List[Path]] = options.CATALOG,
) -> None:
    from envtune.errors import UsageError

    lang = options.language(lang)
    wanted = options.outputs(format_, options.FORMATS)
    if (pid is None) == (not argv):
        raise UsageError(Message("specify a running job with --pid, or a command after --"))
    if argv:
        _observe_command(argv, wanted, check, lang, catalog)
    assert pid is not None
    if not os.path.exists(f"/proc/{pid}/stat"):
        raise UsageError(Message("--pid {pid}: no such process", pid=pid))
    from envtune.observe.npu import npu_reader
    from envtune.observe.sampling import observe

    _show_time(seconds, lang)
    found = observe(pid, seconds, npu=npu_reader())
    options.exit_now(_report(found, None if found.ended else pid, wanted, check, lang, catalog))


def _observe_command(
    argv: List[str], wanted: tuple[Output, ...], check: bool, lang: str, catalog: Optional[List[Path]]
) -> NoReturn:
    """Run a command and end as it does; the report goes to stderr, where the command's output is not."""
    from envtune.errors import system_error_text
    from envtune.observe.background import Observer
    from envtune.run.process import run_command
    from envtune.run.result import exit_like

    observer = Observer()
    try:
        result = run_command(argv, os.environ, capture=False)
    except OSError as error:
        observer.finish()
        options.print_error(Message("{path}: {reason}", path=argv[0], reason=system_error_text(error)), lang)
        raise typer.Exit(127 if isinstance(error, FileNotFoundError) else 126) from None
    found = observer.finish()
    if found is not None:
        _report(found, None, wanted, check, lang, catalog, error_stream=True)
    exit_like(result.status)


def _report(
    found: Observation,
    pid: Optional[int],
    wanted: tuple[Output, ...],
    check: bool,
    lang: str,
    catalog: Optional[List[Path]],
    error_stream: bool = False,
) -> int:
    from envtune.observe.judge import judge

    judged = judge(found)
    explanation = _explain(judged, pid, catalog, lang) if check else None
    if error_stream and all(output.path is None for output in wanted):
        typer.echo(_render(found, judged, explanation, wanted[0], lang), err=True, nl=False)
        done = True
    else:
        done = options.write(wanted, lambda output: _render(found, judged, explanation, output, lang), lang)
    if not done:
        return options.USAGE
    if judged.bound.value == "unknown":
        return options.NOT_READ
    return 0 if judged.bound.value in NOT_LIMITED else 1


def _explain(judged: Judgement, pid: Optional[int], catalog: Optional[List[Path]], lang: str) -> Optional[Explanation]:
    """Return what the host says to the causes; None where there is none."""
    from envtune.cli.verbs.explaining import checking
    from envtune.job.target import TargetOptions
    from envtune.profile.explain import EXPLAINS_CAUSE, explain

    fitting = [id_ for cause in judged.causes for id_ in EXPLAINS_CAUSE.get(cause.name, ())]
    if not judged.causes:
        return None
    target = TargetOptions(pid=pid if pid is not None and os.path.exists(f"/proc/{pid}/environ") else None)
    return explain(fitting, checking(None, catalog, lang), target)


def _show_time(seconds: float, lang: str) -> None:
    """Say on a terminal how long it still takes."""
    from envtune.cli.program.waiting import show_while_waiting

    ends = time.monotonic() + seconds

    def describe() -> Message:
        return Message("observing, {seconds} s left", seconds=f"{max(ends - time.monotonic(), 0):.0f}")

    show_while_waiting(describe, lang)


def _render(
    found: Observation, judged: Judgement, explanation: Optional[Explanation], output: Output, lang: str
) -> str:
    from envtune.report.profile import observed

    if output.format == "json":
        return observed.render_json(found, judged, explanation, lang) + "\n"
    width, colour = options.screen(output)
    return observed.render(found, judged, explanation, lang, width=width, colour=colour)
