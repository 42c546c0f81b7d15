"""The diagnosis of a command that failed, from its output and from the plog that it wrote."""

from __future__ import annotations

import os
import signal
from functools import partial
from typing import Iterator, Mapping, Sequence

from envtune.catalog import Catalogue
from envtune.diagnose import diagnose_files
from envtune.diagnose.confirm import ConfirmingHost
from envtune.diagnose.diagnosis import DiagnosisReport
from envtune.diagnose.logs.files import LogFile, find_plogs
from envtune.fix.fixable import find_fixes
from envtune.job.target import TargetOptions
from envtune.messages import Message, Text
from envtune.ranges import decimal
from envtune.run.profile import interpreter
from envtune.run.result import ExitResult

RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
# Signals by which the kernel, a scheduler or the program itself ends a rank without any output.
ABRUPT = (signal.SIGKILL, signal.SIGABRT, signal.SIGSEGV)


def diagnose_failure(
    argv: Sequence[str], result: ExitResult, began: float, env: Mapping[str, str], catalogue: Catalogue, lang: str
) -> DiagnosisReport:
    """Return the diagnosis of a command that began at `began` (seconds since the epoch), confirmed on this host."""
    files = [*_output(result, env, lang), *_plogs(env, began)]
    target = TargetOptions(python=interpreter(argv, env))
    plan = partial(find_fixes, catalogue.playbooks)
    host = ConfirmingHost(None, target, catalogue, ran_with=env, find_fixes=plan)
    return diagnose_files(argv, files, catalogue.faq, host=host, dictionary=catalogue)


def exit_text(name: str, status: int) -> Text:
    """Return how a command ended, from its waitpid status."""
    name = os.path.basename(name)
    if not os.WIFSIGNALED(status):
        return Message("{name} ended with status {code}", name=name, code=os.WEXITSTATUS(status))
    number = os.WTERMSIG(status)
    word = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    return Message("{name} was ended by {word}", name=name, word=word)


def ended_abruptly(status: int) -> bool:
    """Return whether the command was ended by a signal that leaves no output."""
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) in ABRUPT


def _output(result: ExitResult, env: Mapping[str, str], lang: str) -> Iterator[LogFile]:
    """Return the output that was kept; lines of its tail are numbered from where the kept part begins."""
    ranks = (decimal(env.get(name, "")) for name in RANKS)
    rank = next((rank for rank in ranks if rank is not None), None)
    for output in result.output:
        if output.head:
            yield LogFile(output.name, rank=rank, content=output.head)
        if output.tail:
            size = f"{len(output.tail) / (1 << 20):.1f} MiB"
            name = Message("{name} (last {size})", name=output.name, size=size)
            yield LogFile(name.to(lang), rank=rank, content=output.tail)


def _plogs(env: Mapping[str, str], began: float) -> Iterator[LogFile]:
    """Return the plog files written since, without those of still running processes: they belong to another job."""
    for file in find_plogs(env, began):
        if file.pid is None or not os.path.exists(f"/proc/{file.pid}"):
            yield file
