"""What became of the findings: the same checks again, read together with what was written. Pure."""

from __future__ import annotations

from typing import Any, Iterable, Mapping, NamedTuple, Sequence

from envtune.fix.consent import Held
from envtune.fix.executor_messages import result_message
from envtune.fix.plan import cured
from envtune.messages import Message, Text
from envtune.model import Change, Finding, Outcome, Severity


class Written(NamedTuple):
    """What a run did: its name (empty when nothing was written), results by change id, and what was held back."""

    run: str
    results: Mapping[str, Mapping[str, Any]]
    held: tuple[Held, ...] = ()


_GOOD = (Outcome.PASS, Outcome.NOTAPPLICABLE)


def settle(
    before: Sequence[Finding], after: Sequence[Finding], changes: Sequence[Change], written: Written
) -> tuple[Finding, ...]:
    """The findings after a fix. What failed and passes now is `fixed`; what still fails although every change for it
    was made is `error`; what still fails for another reason is `fail`, with that reason."""
    failed = {finding.id for finding in before if finding.outcome is Outcome.FAIL}
    good = {(finding.id, finding.subject) for finding in before if finding.outcome in _GOOD}
    return tuple(
        _settled(finding, changes, written)
        if finding.id in failed and not (finding.outcome in _GOOD and (finding.id, finding.subject) in good)
        else finding
        for finding in after
    )


def _settled(finding: Finding, changes: Sequence[Change], written: Written) -> Finding:
    if finding.outcome in _GOOD:
        return finding._replace(outcome=Outcome.FIXED)
    if finding.outcome is not Outcome.FAIL:
        return finding
    own = [change for change in changes if finding.id in cured(change)]
    for change in own:
        result = written.results.get(change.id)
        if result is not None and result["status"] != "done":
            return finding._replace(reason=_not_made(change, result))
    for held in written.held:
        if finding.id in cured(held.change):
            reason = held.reason
            return finding._replace(reason=Message("{id}: {reason}", id=held.change.id, reason=reason))
    if not own:
        return finding
    made = ", ".join(change.id for change in own)
    return finding._replace(
        outcome=Outcome.ERROR,
        reason=Message(
            "{made} was made and the check still fails; `envtune undo {run}` takes it back", made=made, run=written.run
        ),
    )


def _not_made(change: Change, result: Mapping[str, Any]) -> Text:
    return Message("{id} was not made: {why}", id=change.id, why=result_message(result))


def exit_status(findings: Iterable[Finding], results: Iterable[Mapping[str, Any]], floor: Severity) -> int:
    """0 all is right; 1 something is still wrong or a change was not made; 3 it could not be told."""
    if any(result["status"] != "done" for result in results):
        return 1
    told = [f for f in findings if f.severity.rank >= floor.rank]
    if any(f.outcome in (Outcome.FAIL, Outcome.ERROR) for f in told):
        return 1
    return 3 if any(f.outcome is Outcome.UNKNOWN and not f.needs_privilege for f in told) else 0
