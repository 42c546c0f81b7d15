"""How changes and findings ended: one table of end states, and how they follow from results and checks. Pure."""

from __future__ import annotations

from typing import Any, Iterable, Mapping, NamedTuple, Optional, Sequence

from envtune.fix.consent import Withheld
from envtune.fix.executor_messages import result_message
from envtune.fix.plan import fixed_checks
from envtune.messages import Literal, Message, Text, enumerated
from envtune.model import Change, Finding, Outcome, Severity


class EndState(NamedTuple):
    """How a change or a finding ended, in words; `colour` as in `report.layout`."""

    text: Text
    colour: str


# The keys are in JSON (`state`), in journals and in `history`; the texts are used by reports, history and undo.
END_STATES: Mapping[str, EndState] = {
    "fixed": EndState(Message("fixed"), "green"),
    "fixed-until-reboot": EndState(Message("fixed until the next boot"), "yellow"),
    "still-failing": EndState(Message("written but still failing"), "red"),
    "written": EndState(Message("written"), "yellow"),  # unknown whether it helped
    "failed-restored": EndState(Message("failed and restored"), "red"),
    "failed-left": EndState(Message("failed, not restored"), "red"),
    "not-begun": EndState(Message("not started"), "yellow"),
    "begun": EndState(Message("started but not finished"), "yellow"),  # interrupted
    "created": EndState(Message("new since this run"), "red"),  # a finding that did not exist before
    "undone": EndState(Message("undone"), "green"),
    "partly-undone": EndState(Message("undone in part"), "yellow"),
    "cannot-be-undone": EndState(Message("cannot be undone"), "red"),
}
_FAILED = ("failed-left", "failed-restored")
_GOOD = (Outcome.PASS, Outcome.NOTAPPLICABLE)


class ApplyResult(NamedTuple):
    """What a run did: its name (empty when nothing was written), results by change id, and what was withheld."""

    run: str
    results: Mapping[str, Mapping[str, Any]]
    withheld: tuple[Withheld, ...] = ()
    signal: int = 0  # the signal that asked to end early


class JudgedFinding(NamedTuple):
    """A finding after a fix, and how it ended: a key of END_STATES, empty where the fix was not about it."""

    finding: Finding
    state: str = ""


def reconcile(
    before: Sequence[Finding], after: Sequence[Finding], changes: Sequence[Change], result: ApplyResult
) -> tuple[JudgedFinding, ...]:
    """Return the findings after a fix.

    What failed and passes now is `fixed` if the changes for it were written; what still fails although every change for
    it was applied is `error`; what still fails for another reason is `fail`, with that reason.
    """
    return tuple(_Judge(before, after, changes, result).judge(finding) for finding in after)


class _Judge:
    """The findings before, and what was written, for judging those afterwards."""

    def __init__(
        self, before: Sequence[Finding], after: Sequence[Finding], changes: Sequence[Change], result: ApplyResult
    ) -> None:
        self._changes, self._result = changes, result
        self._before = {(finding.id, finding.subject): finding.outcome for finding in before}
        self._failed = {key for key, outcome in self._before.items() if outcome is Outcome.FAIL}
        vanished = self._failed - {(finding.id, finding.subject) for finding in after}
        self._vanished = {check for check, _ in vanished}  # checks with a failing subject that no longer exists

    def judge(self, finding: Finding) -> JudgedFinding:
        key = (finding.id, finding.subject)
        if finding.outcome is Outcome.FAIL and self._result.run and self._is_new(key):
            reason = Message("new since this run; it passed before")
            return JudgedFinding(finding._replace(reason=reason), "created")
        was_wrong = key in self._failed or (key not in self._before and finding.id in self._vanished)
        if not was_wrong:
            return JudgedFinding(finding)
        if finding.outcome is Outcome.PASS:
            return self._passed(finding)
        if finding.outcome is Outcome.FAIL:
            return self._still_failing(finding)
        if finding.outcome is Outcome.NOTAPPLICABLE:
            reason = Message("the check does not apply any more: {reason}", reason=finding.reason or Literal("?"))
            finding = finding._replace(outcome=Outcome.UNKNOWN, reason=reason)
        written = any(state_of(self._result, change) == "written" for change in self._concerned(finding))
        return JudgedFinding(finding, "written" if written else "")

    def _is_new(self, key: tuple[str, str]) -> bool:
        """Return whether a failing finding was good before, or belongs to a check without any failure before."""
        known = self._before.get(key)
        return known in _GOOD or (known is None and key[0] not in {check for check, _ in self._failed})

    def _concerned(self, finding: Finding) -> list[Change]:
        """Return the changes for a finding: those about its subject, else all for its check."""
        changes = [change for change in self._changes if finding.id in fixed_checks(change)]
        return [change for change in changes if change.subject == finding.subject] or changes

    def _passed(self, finding: Finding) -> JudgedFinding:
        concerned = self._concerned(finding)
        states = {change.id: state_of(self._result, change) for change in concerned}
        written = [change for change in concerned if states[change.id] == "written"]
        failed = [change for change in concerned if states[change.id] in _FAILED]
        if written and all(change.scope == "live" for change in written):
            reason = self._not_permanent(written, [change for change in concerned if change.scope == "boot"])
            if reason is not None:
                words = Message("fixed until the next boot; {reason}", reason=reason)
                return JudgedFinding(finding._replace(outcome=Outcome.FAIL, reason=words), "fixed-until-reboot")
        if failed:
            reason = Message("it passes now, but {reason}", reason=self._not_written(failed[0]))
            return JudgedFinding(finding._replace(outcome=Outcome.ERROR, reason=reason), states[failed[0].id])
        if not written:
            return JudgedFinding(finding)  # it is good now, but not because of this run
        return JudgedFinding(finding._replace(outcome=Outcome.FIXED), "fixed")

    def _not_permanent(self, written: Sequence[Change], boot: Sequence[Change]) -> Optional[Text]:
        """Return why what was written lasts only until the next boot."""
        if boot:
            return Message("the file was not written: {reason}", reason=self._not_written(boot[0]))
        return next((change.until_reboot for change in written if change.until_reboot is not None), None)

    def _still_failing(self, finding: Finding) -> JudgedFinding:
        concerned = self._concerned(finding)
        missing = [change for change in concerned if state_of(self._result, change) != "written"]
        if missing:
            reason = self._not_written(missing[0])
            return JudgedFinding(finding._replace(reason=reason), state_of(self._result, missing[0]))
        if not concerned or not self._result.run:
            return JudgedFinding(finding)
        reason = Message(
            "{made} was made and the check still fails; `envtune undo {run}` undoes it",
            made=enumerated(change.id for change in concerned),
            run=self._result.run,
        )
        return JudgedFinding(finding._replace(outcome=Outcome.ERROR, reason=reason), "still-failing")

    def _not_written(self, change: Change) -> Text:
        """Return why this particular change was not written."""
        own = self._result.results.get(change.id)
        if own is not None:
            return Message("{id} was not made: {why}", id=change.id, why=result_message(own))
        reason = next((one.reason for one in self._result.withheld if one.change.id == change.id), None)
        return Message("{id}: {reason}", id=change.id, reason=reason or Message("not started"))


def state_of(result: ApplyResult, change: Change) -> str:
    """Return how the executor left a change, before any check: written, failed-restored, failed-left or not-begun."""
    return str(result.results.get(change.id, {}).get("state", "not-begun"))


def change_states(changes: Sequence[Change], judged: Sequence[JudgedFinding], result: ApplyResult) -> dict[str, str]:
    """Return how every change of a plan ended, by its id, after the checks have run again."""
    return {change.id: _change_state(change, judged, state_of(result, change)) for change in changes}


def _change_state(change: Change, judged: Sequence[JudgedFinding], state: str) -> str:
    if state != "written":
        return state
    rows = [row for row in judged if row.state and row.finding.id in fixed_checks(change)]
    states = {row.state for row in rows if row.finding.subject == change.subject} or {row.state for row in rows}
    order = ("still-failing", "fixed-until-reboot", "fixed")
    return next((one for one in order if one in states), "written")


def exit_status(findings: Iterable[Finding], results: Iterable[Mapping[str, Any]], floor: Optional[Severity]) -> int:
    """Return 0 if all is good, 1 if something is still wrong or a change was not applied, 3 if that is unknown.

    Findings below `floor` do not count; none count if it is None.
    """
    if any(result["status"] != "done" for result in results):
        return 1
    serious = [f for f in findings if floor is not None and f.severity.rank >= floor.rank]
    if any(f.outcome in (Outcome.FAIL, Outcome.ERROR) for f in serious):
        return 1
    return 3 if any(f.outcome is Outcome.UNKNOWN and not f.needs_privilege for f in serious) else 0
