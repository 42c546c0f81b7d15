"""Carry out a plan: consent, the executor, the same checks again."""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, Mapping, NamedTuple, Optional, Sequence

from envtune import commandline
from envtune.collector.redact import redact_argv
from envtune.errors import EnvtuneError, InterruptedRun
from envtune.fix.consent import (
    Ask,
    Consent,
    Question,
    Withheld,
    agreed,
    ask_for_each,
    confirmable,
    sort_changes,
    withhold_running,
)
from envtune.fix.outcome import ApplyResult, JudgedFinding, change_states, exit_status, reconcile
from envtune.fix.plan import Plan, executable, fixed_checks
from envtune.fix.prepare import PreparedFix, examine
from envtune.fix.runs import OnEvent, apply_changes, journal_states
from envtune.host import LocalHost
from envtune.job.target import TargetOptions
from envtune.messages import Message
from envtune.model import Change, Check, Finding, Outcome, Severity
from envtune.resources.processes.running import find_running


class FixOutcome(NamedTuple):
    """The result of an applied fix: the findings afterwards, what was written or withheld, how each change ended."""

    judged: tuple[JudgedFinding, ...]
    result: ApplyResult
    relevant: tuple[Finding, ...]  # the findings that decide how it ended
    states: Mapping[str, str]  # change -> key of END_STATES

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings without how they ended."""
        return tuple(row.finding for row in self.judged)

    def exit_code(self, floor: Optional[Severity]) -> int:
        """Return 0 if everything relevant is good, 1 if something is wrong, 3 if something is unknown.

        After a signal 128 plus its number, as in a shell.
        """
        if self.result.signal:
            return 128 + self.result.signal
        return exit_status(self.relevant, self.result.results.values(), floor)


def is_root() -> bool:
    """Return whether changes that need root may be tried."""
    return os.geteuid() == 0


def apply(
    prepared: PreparedFix,
    consent: Consent,
    *,
    ask: Ask,
    on_event: OnEvent,
    show: Optional[Callable[[Plan], None]] = None,
    wait: float = 0.0,
) -> Optional[FixOutcome]:
    """Write the changes that were consented to and run the same checks again; None if `ask` declined.

    `show` is called with the plan once it is known that it can be carried out, `ask` with every question that `consent`
    leaves open, `on_event` with what the executor does; `wait` is the number of seconds to wait for another run to end.
    Raises UsageError for consent to something not in the plan and for what keeps the executor from running.
    """
    plan = prepared.plan
    ready, withheld = sort_changes(plan.changes, consent, is_root())
    if show is not None:
        show(plan)
    choice = _choose(plan.changes, ready, withheld, consent, ask)
    if choice is None:
        return None
    ready, withheld = choice
    result = write(prepared, ready, withheld, on_event, wait)
    try:
        return conclude(prepared, consent, ready, result)
    except KeyboardInterrupt:
        if not result.run:
            raise
        command = commandline.for_this_host(f"envtune undo {result.run}", same_user=True)
        left = Message(
            "Run {run} is finished; its checks were not run again. To undo it: {command}",
            run=result.run,
            command=command,
        )
        raise InterruptedRun(left) from None


def conclude(prepared: PreparedFix, consent: Consent, ready: Sequence[Change], result: ApplyResult) -> FixOutcome:
    """Run the checks again after the changes `ready` were written, and journal how each ended."""
    plan = prepared.plan
    judged = reconcile(prepared.findings, _check_again(prepared, ready, result), plan.changes, result)
    states = change_states(plan.changes, judged, result)
    if result.run:
        journal_states(result.run, {change: states[change] for change in result.results})
    findings = tuple(row.finding for row in judged)
    return FixOutcome(judged, result, _relevant(findings, plan, consent), states)


def _choose(
    planned: Sequence[Change], ready: Sequence[Change], withheld: Sequence[Withheld], consent: Consent, ask: Ask
) -> Optional[tuple[list[Change], list[Withheld]]]:
    """Return the changes to write and those that are withheld; None if the user declined.

    What needs confirmation is part of the one question; ending a process and a downgrade are asked separately.
    """
    running = find_running(LocalHost(), planned)
    each = ask_for_each(withheld, ask, is_root(), running)
    others = confirmable(withheld, is_root()) if consent.attended else []
    order = {change.id: number for number, change in enumerate(planned)}
    offered = sorted([*ready, *each, *others], key=lambda change: order[change.id])
    free, used = withhold_running(offered, running, consent)
    left = [*used]
    if not all(change in each for change in free):
        question = Question(free, separate=False, running=running, confirm=tuple(change.id for change in others))
        free, declined = agreed(question, ask(question))
        if not free:
            return None
        left += declined
    moved = {change.id for change in (*free, *(one.change for one in left))}
    return free, [*(one for one in withheld if one.change.id not in moved), *left]


def write(
    prepared: PreparedFix, ready: Sequence[Change], withheld: Sequence[Withheld], on_event: OnEvent, wait: float = 0.0
) -> ApplyResult:
    """Carry out changes that were consented to, as one run; no check is run. Raises UsageError."""
    if not ready:
        return ApplyResult("", {}, tuple(withheld))
    plan = prepared.plan
    noted: list[int] = []

    def listen(kind: str, record: Mapping[str, Any]) -> None:
        if kind == "end":
            noted.append(record.get("signal", 0))
        on_event(kind, record)

    about = {"host": plan.host, "target": dict(plan.target), "command": _own_command()}
    name, results = apply_changes({**about, **executable(ready)}, listen, wait)
    by_change = {result["change"]: result for result in results}
    return ApplyResult(name, by_change, tuple(withheld), noted[0] if noted else 0)


def _own_command() -> list[str]:
    """Return the command that was typed, for the journal, without secrets; empty if called as a library."""
    return ["envtune", *redact_argv(sys.argv[1:])] if commandline.is_program else []


def _check_again(prepared: PreparedFix, ready: Sequence[Change], result: ApplyResult) -> tuple[Finding, ...]:
    """Run the checks on a freshly read host; if a change says so, on the job that shows its effect."""
    if not result.run:
        return prepared.findings
    targets: dict[str, Mapping[str, Any]] = {}  # check -> the job that shows the effect
    for change in ready:
        if change.verify and result.results[change.id]["status"] == "done":
            targets.update(dict.fromkeys(fixed_checks(change), change.verify))
    here = [check for check in prepared.checks if check.id not in targets]
    findings = list(_examine_again(prepared, prepared.target, here)) if here else []
    for verify in {repr(sorted(verify.items())): verify for verify in targets.values()}.values():
        checks = [check for check in prepared.checks if targets.get(check.id) == verify]
        findings += _examine_again(prepared, _with_effect(prepared, verify), checks)
    order = {check.id: number for number, check in enumerate(prepared.checks)}
    return tuple(sorted(findings, key=lambda finding: order[finding.id]))


def _with_effect(prepared: PreparedFix, verify: Mapping[str, Any]) -> TargetOptions:
    """Return the plan's job, changed to show the effect: a running process keeps the variables it was started with.

    The Python recorded in the plan and the peers stay those of the job.
    """
    python = prepared.target.python or prepared.plan.target.get("python")
    return prepared.target._replace(pid=None, python=python)._replace(**verify)


def _examine_again(prepared: PreparedFix, target: TargetOptions, checks: Sequence[Check]) -> tuple[Finding, ...]:
    """Run checks again; unknown if the job can no longer be read: what was written has to be reported anyway."""
    try:
        return examine(LocalHost(), target, checks, prepared.expectations)[0]
    except EnvtuneError as error:
        ids = {check.id for check in checks}
        reason = Message("unknown after the change: {reason}", reason=error.message)
        before = (finding for finding in prepared.findings if finding.id in ids)
        return tuple(finding._replace(outcome=Outcome.UNKNOWN, reason=reason) for finding in before)


def _relevant(findings: tuple[Finding, ...], plan: Plan, consent: Consent) -> tuple[Finding, ...]:
    """If single changes were named, only what they were to fix decides the result."""
    if not consent.changes:
        return findings
    named = {check for change in plan.changes if change.id in consent.changes for check in fixed_checks(change)}
    return tuple(finding for finding in findings if finding.id in named)
