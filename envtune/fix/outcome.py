"""What became of the findings: the same checks again, read together with what was written. Pure."""

from __future__ import annotations

from typing import Any, Iterable, Mapping, NamedTuple, Optional, Sequence

from envtune.fix.consent import Withheld
from envtune.fix.executor_messages import result_message
from envtune.fix.plan import fixed_checks
from envtune.messages import Message, Text
from envtune.model import Change, Finding, Outcome, Severity


class ApplyResult(NamedTuple):
    """What a run did: its name (empty when nothing was written), results by change id, and what was withheld."""

    run: str
    results: Mapping[str, Mapping[str, Any]]
    withheld: tuple[Withheld, ...] = ()


_GOOD = (Outcome.PASS, Outcome.NOTAPPLICABLE)


def reconcile(
    before: Sequence[Finding], after: Sequence[Finding], changes: Sequence[Change], result: ApplyResult
) -> tuple[Finding, ...]:
    """Return the findings after a fix.

    What failed and passes now is `fixed`; what still fails although every change for it was made is `error`; what
    still fails for another reason is `fail`, with that reason.
    """
    failed = {finding.id for finding in before if finding.outcome is Outcome.FAIL}
    good = {(finding.id, finding.subject) for finding in before if finding.outcome in _GOOD}
    return tuple(
        _reconciled(finding, changes, result)
        if finding.id in failed and not (finding.outcome in _GOOD and (finding.id, finding.subject) in good)
        else finding
        for finding in after
    )


def _reconciled(finding: Finding, changes: Sequence[Change], result: ApplyResult) -> Finding:
    if finding.outcome in _GOOD:
        return finding._replace(outcome=Outcome.FIXED)
    if finding.outcome is not Outcome.FAIL:
        return finding
    concerned = [change for change in changes if finding.id in fixed_checks(change)]
    reason = _not_written(finding.id, concerned, result)
    if reason is not None or not concerned:
        return finding._replace(reason=reason or finding.reason)
    made = ", ".join(change.id for change in concerned)
    return finding._replace(
        outcome=Outcome.ERROR,
        reason=Message(
            "{made} was made and the check still fails; `envtune undo {run}` takes it back", made=made, run=result.run
        ),
    )


def _not_written(check: str, changes: Sequence[Change], result: ApplyResult) -> Optional[Text]:
    """Return why a change that would fix the check was not written; None when all of them were."""
    for change in changes:
        own = result.results.get(change.id)
        if own is not None and own["status"] != "done":
            return Message("{id} was not made: {why}", id=change.id, why=result_message(own))
    for withheld in result.withheld:
        if check in fixed_checks(withheld.change):
            return Message("{id}: {reason}", id=withheld.change.id, reason=withheld.reason)
    return None


def exit_status(findings: Iterable[Finding], results: Iterable[Mapping[str, Any]], floor: Severity) -> int:
    """Return 0 when all is good, 1 when something is still wrong or a change was not made, 3 when it is unknown."""
    if any(result["status"] != "done" for result in results):
        return 1
    serious = [f for f in findings if f.severity.rank >= floor.rank]
    if any(f.outcome in (Outcome.FAIL, Outcome.ERROR) for f in serious):
        return 1
    return 3 if any(f.outcome is Outcome.UNKNOWN and not f.needs_privilege for f in serious) else 0
