"""Carries a plan out: consent, the executor, the same checks again."""

from __future__ import annotations

import os
from typing import Any, Callable, Mapping, NamedTuple, Optional, Sequence

from envtune.fix.consent import Ask, Consent, Question, Withheld, ask_separately, sort_changes
from envtune.fix.outcome import ApplyResult, exit_status, reconcile
from envtune.fix.plan import Plan, executable, fixed_checks
from envtune.fix.prepare import PreparedFix, examine
from envtune.fix.runs import OnEvent, apply_changes
from envtune.host import LocalHost
from envtune.job.target import TargetOptions
from envtune.model import Change, Finding, Severity


class FixOutcome(NamedTuple):
    """What an applied fix came to: the findings afterwards, and what was written or withheld."""

    findings: tuple[Finding, ...]
    result: ApplyResult
    relevant: tuple[Finding, ...]  # the findings that decide how it ended

    def exit_code(self, floor: Severity) -> int:
        """Return 0 when everything relevant is good, 1 when something is wrong, 3 when something is unknown."""
        return exit_status(self.relevant, self.result.results.values(), floor)


def is_root() -> bool:
    """Return whether what needs root may be tried."""
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
    """Write the changes that are consented to and run the same checks again; None when `ask` declined.

    `show` gets the plan once it is known that it can be carried out, `ask` every question that `consent` leaves open,
    `on_event` what the executor does; `wait` is how many seconds to wait for another run to end. Raises UsageError for
    a consent to what the plan does not hold and for what keeps the executor from running.
    """
    plan = prepared.plan
    ready, withheld = sort_changes(plan.changes, consent, is_root())
    if show is not None:
        show(plan)
    ready, withheld = ask_separately(plan.changes, ready, withheld, ask, is_root())
    if ready and not ask(Question(ready, separate=False)):
        return None
    result = _write(prepared, ready, withheld, on_event, wait)
    findings = reconcile(prepared.findings, _check_again(prepared, ready, result), plan.changes, result)
    return FixOutcome(findings, result, _relevant(findings, plan, consent))


def _write(
    prepared: PreparedFix, ready: Sequence[Change], withheld: Sequence[Withheld], on_event: OnEvent, wait: float
) -> ApplyResult:
    if not ready:
        return ApplyResult("", {}, tuple(withheld))
    plan = prepared.plan
    name, results = apply_changes({"host": plan.host, "target": dict(plan.target), **executable(ready)}, on_event, wait)
    return ApplyResult(name, {result["change"]: result for result in results}, tuple(withheld))


def _check_again(prepared: PreparedFix, ready: Sequence[Change], result: ApplyResult) -> tuple[Finding, ...]:
    """Run the checks on a host that is read anew; where a change says so, on the job that shows its effect."""
    if not result.run:
        return prepared.findings
    targets: dict[str, Mapping[str, Any]] = {}  # check -> the job that shows the effect
    for change in ready:
        if change.verify and result.results[change.id]["status"] == "done":
            targets.update(dict.fromkeys(fixed_checks(change), change.verify))
    here = [check for check in prepared.checks if check.id not in targets]
    findings = list(examine(LocalHost(), prepared.target, here, prepared.expectations)[0]) if here else []
    for verify in {repr(sorted(verify.items())): verify for verify in targets.values()}.values():
        checks = [check for check in prepared.checks if targets.get(check.id) == verify]
        findings += examine(LocalHost(), TargetOptions(**verify), checks, prepared.expectations)[0]
    order = {check.id: number for number, check in enumerate(prepared.checks)}
    return tuple(sorted(findings, key=lambda finding: order[finding.id]))


def _relevant(findings: tuple[Finding, ...], plan: Plan, consent: Consent) -> tuple[Finding, ...]:
    """Where single changes were named, only what they were to fix decides how it ended."""
    if not consent.changes:
        return findings
    named = {check for change in plan.changes if change.id in consent.changes for check in fixed_checks(change)}
    return tuple(finding for finding in findings if finding.id in named)
