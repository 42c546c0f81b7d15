"""checks x host -> findings. Never raises, never hangs: a broken check is an `error`, a hung one `unknown`.

A probe runs on a worker thread with a deadline. A worker that does not come back (a read stuck in the kernel) is left
behind and the next check gets a new one, so a hung check costs only itself.
"""

from __future__ import annotations

import queue
import re
import shlex
import threading
from typing import Any, Callable, Iterable, Mapping, Optional, Sequence

from envtune import expect
from envtune.audit.applicability import excluded
from envtune.context import Context
from envtune.context.registry import find_probe
from envtune.errors import Denied, HostError, NotApplicable, Undetermined, host_error_text
from envtune.messages import Message, Text
from envtune.model import Check, Evidence, Finding, Outcome, Reading, Severity
from envtune.ranges import join_subjects

_DIGITS = re.compile(r"\d+")
_PYTHON = re.compile(r"(?<![\w./-])python3(?= -[cm] )")
EVIDENCE_LIMIT = 2000  # characters of raw text kept with a finding


def audit(
    checks: Iterable[Check], context: Context, progress: Optional[Callable[[Check], None]] = None
) -> tuple[Finding, ...]:
    """Every finding of every check, in the order of the checks; at least one finding per check."""
    worker = _Worker()
    found: list[Finding] = []
    for check in checks:
        if progress is not None:
            progress(check)
        answer = worker.call(lambda check=check: examine(check, context), check.deadline)  # type: ignore[misc]
        if answer is None:
            worker.end()
            worker = _Worker()
            answer = (_hung(check),)
        found.extend(answer)
    worker.end()
    return tuple(found)


def examine(check: Check, context: Context) -> tuple[Finding, ...]:
    """The findings of one check; any exception becomes an outcome."""
    severity = check.severity
    try:
        severity = severity_of(check, context)
        fact, reason, told = excluded(check.applies, context.facts)
        if fact is not None:
            outcome = Outcome.NOTAPPLICABLE if told else Outcome.UNKNOWN
            return (_single(check, severity, outcome, reason, Evidence(fact.source, fact.value or "")),)
        readings = tuple(find_probe(check.probe)(context, **check.arguments))
        return _judge(check, severity, readings, commands_of(check, context))
    except NotApplicable as verdict:
        evidence = Evidence(verdict.source, _cut(verdict.text))
        return (_single(check, severity, Outcome.NOTAPPLICABLE, verdict.reason, evidence),)
    except Undetermined as verdict:
        evidence = Evidence(verdict.source, _cut(verdict.text))
        return (_single(check, severity, Outcome.UNKNOWN, verdict.reason, evidence, verdict.needs_privilege),)
    except HostError as error:
        evidence = Evidence(error.path, str(error))
        needs_privilege = isinstance(error, Denied)
        return (_single(check, severity, Outcome.UNKNOWN, host_error_text(error), evidence, needs_privilege),)
    except Exception as error:  # our fault: say so, and go on with the other checks
        return (_single(check, severity, Outcome.ERROR, _fault(error), Evidence(check.probe, repr(error))),)


def severity_of(check: Check, context: Context) -> Severity:
    """The severity on this host (`severity_by` may lower or raise it by a fact)."""
    for when, severity in check.severity_by:
        if excluded(when, context.facts)[0] is None:
            return severity
    return check.severity


def commands_of(check: Check, context: Context) -> tuple[str, ...]:
    """What to type on this host (`commands_by` may say it for a fact)."""
    rows = (commands for when, commands in check.commands_by if excluded(when, context.facts)[0] is None)
    commands = next(rows, check.commands)
    if check.probe in ("torch.interpreter", "python.pip_command"):  # there the question is what `python3` means
        return commands
    return tuple(_PYTHON.sub(lambda _: _target_python(context), line) for line in commands)


def _target_python(context: Context) -> str:
    """How to start the Python that was judged: by its path, since another shell's `python3` may be another one."""
    python = context.target.python
    return "python3" if python is None else shlex.quote(python.path)


def _judge(
    check: Check, severity: Severity, readings: Sequence[Reading], commands: tuple[str, ...]
) -> tuple[Finding, ...]:
    told = [r for r in readings if r.reason is None]
    untold = [r for r in readings if r.reason is not None]
    bad = expect.misses(check.expect, told)
    found = [_finding(check, severity, Outcome.FAIL, group, commands) for group in _groups(check, bad)]
    found += [_finding(check, severity, Outcome.UNKNOWN, group) for group in _alike(untold)]
    if found:
        return tuple(found)
    if not told:
        reason = Message("the probe found nothing to judge")
        return (_single(check, severity, Outcome.UNKNOWN, reason, Evidence(check.probe)),)
    return tuple(_finding(check, severity, Outcome.PASS, group) for group in _groups(check, told))


def _groups(check: Check, readings: Sequence[Reading]) -> list[list[Reading]]:
    """Readings that would read the same but for their subject, together."""
    groups: dict[tuple[str, str], list[Reading]] = {}
    for reading in readings:
        words = expect.actual_value(reading).en, expect.expected_value(reading, check.expect).en
        groups.setdefault(words, []).append(reading)
    return list(groups.values())


def _alike(readings: Sequence[Reading]) -> list[list[Reading]]:
    """Readings that could not be told for the same reason but for a number in a path, together."""
    groups: dict[tuple[str, bool], list[Reading]] = {}
    for reading in readings:
        words = reading.reason.en if reading.reason is not None else ""
        groups.setdefault((_DIGITS.sub("#", words), reading.needs_privilege), []).append(reading)
    return list(groups.values())


def _finding(
    check: Check, severity: Severity, outcome: Outcome, group: Sequence[Reading], commands: tuple[str, ...] = ()
) -> Finding:
    first = group[0]
    told = first.reason is None
    return Finding(
        check,
        outcome,
        severity,
        join_subjects([r.subject for r in group]),
        expect.actual_value(first) if told else first.shown,
        expect.expected_value(first, check.expect),
        first.reason,
        Evidence(first.evidence.source, _cut(first.evidence.text)),
        first.needs_privilege,
        first.commands or commands,
    )


def _single(
    check: Check,
    severity: Severity,
    outcome: Outcome,
    reason: Optional[Text],
    evidence: Evidence,
    needs_privilege: bool = False,
) -> Finding:
    return Finding(check, outcome, severity, "", None, expect.describe(check.expect), reason, evidence, needs_privilege)


def _cut(text: str) -> str:
    return text if len(text) <= EVIDENCE_LIMIT else text[:EVIDENCE_LIMIT] + " [...]"


def _fault(error: Exception) -> Text:
    kind = type(error).__name__
    return Message("envtune itself failed here: {kind}: {error}", kind=kind, error=error)


def _hung(check: Check) -> Finding:
    reason = Message("no answer within {deadline:g} s", deadline=check.deadline)
    return _single(check, check.severity, Outcome.UNKNOWN, reason, Evidence(check.probe))


class _Worker:
    """One daemon thread that runs calls one after the other."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Optional[Callable[[], Any]]] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            function = self._calls.get()
            if function is None:
                return
            self._answers.put(function())

    def end(self) -> None:
        """No more calls: the thread ends, a hung one as soon as it comes back."""
        self._calls.put(None)

    def call(self, function: Callable[[], Any], deadline: float) -> Any:
        """The function's answer, None when there is none before the deadline (in seconds)."""
        self._calls.put(function)
        try:
            return self._answers.get(timeout=deadline)
        except queue.Empty:
            return None


def summary(findings: Iterable[Finding]) -> Mapping[str, int]:
    """Count of findings per outcome, every outcome named."""
    counts = {outcome.value: 0 for outcome in Outcome}
    for finding in findings:
        counts[finding.outcome.value] += 1
    return counts


def exit_code(findings: Iterable[Finding], fail_on: Severity, strict: bool = False) -> int:
    """0 clean, 1 findings at or above `fail_on`, 3 could not tell there (missing rights only with `strict`)."""
    untold = False
    for finding in findings:
        if finding.severity.rank < fail_on.rank:
            continue
        if finding.outcome is Outcome.FAIL:
            return 1
        if finding.outcome is Outcome.ERROR or (
            finding.outcome is Outcome.UNKNOWN and (strict or not finding.needs_privilege)
        ):
            untold = True
    return 3 if untold else 0
