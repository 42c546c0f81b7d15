"""Several recorded hosts for `envtune check` and `envtune diff`: which are meant, and what is found on each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Mapping, Optional, Sequence

from envtune.cli import options
from envtune.errors import SnapshotError, UsageError, missing_text
from envtune.messages import Message, Text, enumerated
from envtune.records import NamedTuple

if TYPE_CHECKING:
    from envtune.compare.comparison import Comparison
    from envtune.compare.hosts import Unread
    from envtune.context.open import Expectations
    from envtune.job.target import TargetOptions
    from envtune.model import Check, Report, Severity
    from envtune.report.output import Output


class Question(NamedTuple):
    """What is checked on each host."""

    target: TargetOptions
    checks: Sequence[Check]
    expectations: Expectations


class Answer(NamedTuple):
    """In which documents the comparison is shown, and from which severity on it ends with 1."""

    wanted: Sequence[Output]
    lang: str
    verbose: bool
    fail_on: Optional[Severity]
    strict: bool
    policy: Mapping[str, str] = {}  # `file` and `profile` of the policy in use


def check_several(
    named: Optional[Sequence[Path]], further: Optional[Sequence[Path]], question: Question, answer: Answer
) -> None:
    """Check and compare the recorded hosts, and end with the exit status; does nothing where only one is named."""
    paths = named_snapshots(named, further)
    if paths is not None:
        options.exit_now(_compared(_once(paths, answer.lang), question, answer))


def _once(paths: Sequence[Path], lang: str) -> Sequence[Path]:
    """Return the paths with each recorded host once, and say which was named again."""
    distinct: dict[Path, Path] = {}
    for path in paths:
        place = path.resolve()
        if place in distinct:
            text = Message("{path}: this recorded host is named more than once; it is counted once", path=str(path))
            options.print_error(text, lang)
        distinct.setdefault(place, path)
    return list(distinct.values())


def named_snapshots(named: Optional[Sequence[Path]], further: Optional[Sequence[Path]]) -> Optional[list[Path]]:
    """Return the snapshots when several are named, or directories that hold them; None for at most one.

    Raises UsageError for words that name none, where no --snapshot is given.
    """
    absent = next((path for path in further or () if not named and not path.exists()), None)
    if absent is not None:
        raise UsageError(
            Message("{word}: not a recorded host (no such file); use --select for checks", word=str(absent))
        )
    paths = [*(named or ()), *(further or ())]
    if not paths:
        return None
    from envtune.snapshot.several import snapshots_in

    inside = [snapshots_in(path) for path in paths]
    if len(paths) == 1 and inside[0] is None:
        return None
    found = [one for path, within in zip(paths, inside) for one in within or (path,)]
    return found


def _compared(paths: Sequence[Path], question: Question, answer: Answer) -> int:
    """Print the comparison, and return the exit status."""
    from envtune.compare.comparison import compare
    from envtune.compare.hosts import labelled

    for output in answer.wanted:
        if output.format not in options.FORMATS:
            raise UsageError(
                Message(
                    "--format {format}: comparing hosts supports only {formats}",
                    format=output.format,
                    formats=enumerated(options.FORMATS),
                )
            )
    if question.target.probe:
        raise UsageError(Message("--probe connects to the job's hosts, which is not possible for a recorded host"))
    read, unread = _check_all(paths, question, Progress(len(paths), answer.lang))
    comparison = compare(labelled(read), unread)
    written = options.write(answer.wanted, lambda output: _document(comparison, output, answer), answer.lang)
    return comparison.exit_code(answer.fail_on, answer.strict) if written else options.USAGE


def _check_all(
    paths: Sequence[Path], question: Question, progress: Progress
) -> tuple[list[tuple[str, Report]], list[Unread]]:
    """Return the report of each host, and what could not be read; raises UsageError where nothing could be."""
    from envtune.compare.hosts import Unread

    read: list[tuple[str, Report]] = []
    unread: list[Unread] = []
    for path in paths:
        if not path.exists():
            raise UsageError(Message("{path}: {reason}", path=str(path), reason=missing_text()))
    _import_probes(question.checks)
    for path in paths:
        try:
            read.append((str(path), check_recorded(path, question, progress)))
        except SnapshotError as error:
            member = error.where[len(f"{path}: ") :]
            unread.append(Unread(str(path), SnapshotError(member, error.reason).message))
        except UsageError as error:
            unread.append(Unread(str(path), error.message))
    if not read:
        raise SnapshotError(unread[0].source, unread[0].reason)
    return read, unread


def _import_probes(checks: Sequence[Check]) -> None:
    """Import what the checks need once, here, and not in the process that checks each host."""
    from envtune.context.registry import fact_names, find_fact, find_probe

    for check in checks:
        find_probe(check.probe)
    for name in fact_names():
        find_fact(name)


def check_recorded(path: Path, question: Question, progress: Progress) -> Report:
    """Return the report on one recorded host, with the settings it is compared by; raises SnapshotError, UsageError."""
    from envtune.audit.limited import check_limited
    from envtune.audit.settings import read_settings
    from envtune.compare.hosts import lean
    from envtune.context.open import open_host

    progress.start(path.name)
    checks, expectations = question.checks, question.expectations
    host = open_host(path)
    return lean(check_limited(host, question.target, checks, progress, expectations, more_facts=read_settings))


def check_here(question: Question, progress: Progress) -> Report:
    """Return the report on this host, with the settings it is compared by."""
    from envtune.audit import check_host
    from envtune.audit.settings import read_settings
    from envtune.compare.hosts import lean
    from envtune.host import LocalHost

    progress.start(Message("this host").en)
    checks, expectations = question.checks, question.expectations
    return lean(check_host(LocalHost(), question.target, checks, progress, expectations, more_facts=read_settings))


class Progress:
    """Names the host that is checked, and the check, in the line that is drawn while somebody waits."""

    def __init__(self, total: int, lang: str) -> None:
        from envtune.cli.program.waiting import show_while_waiting

        self._total, self._number, self._name = total, 0, ""
        self._check: Optional[Check] = None
        show_while_waiting(self._text, lang)

    def start(self, name: str) -> None:
        """Go on with the next host."""
        self._number, self._name, self._check = self._number + 1, name, None

    def __call__(self, check: Check) -> None:
        """Go on with the next check."""
        self._check = check

    def _text(self) -> Text:
        doing = self._name if self._check is None else f"{self._name}, {self._check.id}"
        return Message("checking {name} ({number} of {total}) ...", name=doing, number=self._number, total=self._total)


def _document(comparison: Comparison, output: Output, answer: Answer) -> str:
    if output.format == "json":
        from envtune.report.comparison.json import comparison_data
        from envtune.trust.characters import json_text

        policy = {"policy": dict(answer.policy)} if answer.policy else {}
        return json_text({**comparison_data(comparison, answer.lang), **policy}, 1) + "\n"
    from envtune.report.comparison.text import render

    width, colour = options.screen(output)
    text = render(comparison, answer.lang, width=width, colour=colour, verbose=answer.verbose)
    if not answer.policy:
        return text
    from envtune.report.policy_text import policy_file

    return "\n".join([text, *policy_file(answer.policy, answer.lang, width)])
