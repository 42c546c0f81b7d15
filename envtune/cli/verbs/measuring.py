"""Measure what a fix changes, keep it or undo it, and say so: what `bench` and `fix --bench` share."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Iterator, Mapping, Optional, Sequence

import typer

from envtune.cli import options
from envtune.cli.options import is_interactive
from envtune.errors import UsageError, system_error_text
from envtune.messages import Message

if TYPE_CHECKING:
    from envtune.bench.changes import FixedChanges
    from envtune.bench.compare import Comparison, Measurement
    from envtune.fix.apply import FixOutcome
    from envtune.fix.consent import Consent
    from envtune.fix.prepare import PreparedFix

_LINES = 10  # of the output of a command that failed


class Bench:
    """One measurement: what is measured, and what is done about its result. `compared` and `is_kept` say what came."""

    def __init__(
        self,
        lang: str,
        *,
        probe: Optional[str] = None,
        data: Optional[Path] = None,
        argv: Sequence[str] = (),
        keep: bool = False,
        yes: bool = False,
        format_: str = "text",
    ) -> None:
        self.compared: Optional[Comparison] = None
        self.is_kept = False
        self._lang, self._keep, self._yes, self._format = lang, keep, yes, format_
        self._probe, self._data, self._argv = probe, data, tuple(argv)
        self._checks: tuple[str, ...] = ()

    def refuse_early(self, prepared: PreparedFix) -> None:
        """Raise UsageError, before anything is changed, where this fix cannot be measured so."""
        from envtune.bench.changes import refuse_unmeasurable
        from envtune.bench.measure import NAMES, probe_for
        from envtune.fix.plan import fixed_checks

        refuse_unmeasurable(prepared)
        changes = prepared.plan.changes
        self._checks = tuple(dict.fromkeys(id_ for change in changes for id_ in fixed_checks(change)))
        if self._argv:
            return
        self._probe = self._probe or probe_for(self._checks)
        if self._probe is None:
            words = "envtune bench {checks} -- CMD"
            command = words.format(checks=",".join(self._checks))
            raise UsageError(Message("no built-in measurement fits; name a command: {command}", command=command))
        options.require_choice("--probe", self._probe, NAMES)
        if self._data is not None and not self._data.is_dir():
            raise UsageError(Message("--data {path}: not a directory", path=self._data))
        if self._probe == "storage" and self._data is None:
            raise UsageError(Message("--probe storage requires --data: the directory of the data set"))
        with self._work(prepared) as work:
            work()  # what cannot be measured is not changed

    @property
    def measured(self) -> str:
        """What is measured, in a word or as the command."""
        return " ".join(self._argv) or self._probe or ""

    def can_measure(self, outcome: FixOutcome) -> bool:
        """Return whether everything was written; what failed is reported as it is without a measurement."""
        results = outcome.result.results.values()
        return bool(outcome.result.run) and not outcome.result.signal and all(r["status"] == "done" for r in results)

    def decide(self, prepared: PreparedFix, outcome: FixOutcome, consent: Consent) -> Optional[FixOutcome]:
        """Measure a fix that was applied; return what it comes to where it is kept, None where it is undone."""
        from envtune.bench.changes import FixedChanges
        from envtune.bench.statistics import Verdict

        changes = FixedChanges(prepared, outcome.result, lambda kind, record: None)
        with _undone_on_failure(changes, self._lang), self._work(prepared) as work:
            self.compared = compared = self._compare(work, changes)
            self.is_kept = compared.verdict is Verdict.FASTER and self._keep
            if self.is_kept:
                changes.make()
        if not self.is_kept:
            self._offer_to_undo(changes)
        self._print()
        if not self.is_kept:
            options.print_error(Message("undone: everything is as before"), self._lang)
        return changes.conclude(consent) if self.is_kept else None

    def _offer_to_undo(self, changes: FixedChanges) -> None:
        """Undo what does not help; a person who keeps what helps is asked first."""
        asked = self._keep and is_interactive() and not self._yes and self._format == "text"
        if asked and not typer.confirm(Message("It does not help. Undo it?").to(self._lang), default=True, err=True):
            changes.make()
            self.is_kept = True
        else:
            changes.undo()

    def _compare(self, work: Callable[[], Measurement], changes: FixedChanges) -> Comparison:
        from envtune.bench.compare import compare

        def show(number: int, ratio: float) -> None:
            words = Message("pair {number}: {ratio} of the time", number=number, ratio=f"{ratio:.2f}")
            options.print_error(words, self._lang)

        return compare(work, changes, show)

    def _print(self) -> None:
        from envtune.report.profile import measured

        assert self.compared is not None
        if self._format == "json":
            text = measured.render_json(self.compared, self._checks, self.measured, self._lang, is_kept=self.is_kept)
            options.print_document(text + "\n")
            return
        width, colour = options.terminal_width(), options.colour_wanted()
        text = measured.render(self.compared, self._checks, self.measured, self._lang, width=width, colour=colour)
        typer.echo(text, nl=False)

    @contextmanager
    def _work(self, prepared: PreparedFix) -> Iterator[Callable[[], Measurement]]:
        """Give what takes one measurement; its files are removed afterwards."""
        from envtune.bench.measure import OF_THE_JOB, measure, probe_named, python_variables

        folder = tempfile.mkdtemp(prefix="envtune-bench-")
        try:
            if self._argv:
                files = [change.verify.get("env_file") for change in prepared.plan.changes]
                named = [str(file) for file in dict.fromkeys([prepared.target.env_file, *files]) if file]
                yield lambda: _timed(self._argv, named, os.path.join(folder, "output"))
                return
            data = folder if self._data is None else str(self._data.absolute())
            probe = probe_named(str(self._probe), sys.executable, data, {})
            if self._probe in OF_THE_JOB:
                python = str(prepared.target.python or prepared.plan.target.get("python") or sys.executable)
                probe = probe_named(str(self._probe), python, data, python_variables(prepared.plan.changes))
            yield lambda: measure(probe)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _undone_on_failure(changes: FixedChanges, lang: str) -> Iterator[None]:
    """Undo the changes where they cannot be measured, or a signal ends it; the reason goes on."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    previous = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    except BaseException:
        changes.undo()
        options.print_error(Message("undone: everything is as before"), lang)
        raise
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _timed(argv: Sequence[str], files: Sequence[str], output: str) -> Measurement:
    """Run the user's command with the variables of its files as they are now; raises UsageError where it fails."""
    from envtune.bench.compare import Measurement
    from envtune.run.process import run_command

    environment = _with_files(os.environ, files)
    with _written_to(output):
        start = time.monotonic()
        try:
            result = run_command(argv, environment, capture=False)
        except OSError as error:
            raise UsageError(Message("{path}: {reason}", path=argv[0], reason=system_error_text(error))) from None
        seconds = time.monotonic() - start
    if result.status:
        last = Path(output).read_text("utf-8", "replace").splitlines()[-_LINES:]
        words = Message("{command} failed: {output}", command=argv[0], output=" | ".join(last) or str(result.status))
        raise UsageError(words)
    return Measurement(seconds)


def _with_files(environment: Mapping[str, str], files: Sequence[str]) -> dict[str, str]:
    from envtune.job.environment import parse_env_file

    variables = dict(environment)
    for path in files:
        try:
            text = Path(path).read_text("utf-8", "surrogateescape")
        except FileNotFoundError:
            continue  # the change writes it
        for name, value in parse_env_file(text, path)[0].items():
            if value is None:
                variables.pop(name, None)
            else:
                variables[name] = value
    return variables


@contextmanager
def _written_to(path: str) -> Iterator[None]:
    """Have what a command prints go to a file: twenty runs of it are not what the user asked for."""
    kept = [os.dup(number) for number in (1, 2)]
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        for number in (1, 2):
            os.dup2(file, number)
        yield
    finally:
        os.close(file)
        for number, descriptor in zip((1, 2), kept):
            os.dup2(descriptor, number)
            os.close(descriptor)
