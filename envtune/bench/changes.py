"""The changes of a fix, applied and undone by the executor: each time a run with its own journal."""

from __future__ import annotations

from envtune.errors import UsageError
from envtune.fix.apply import FixOutcome, conclude, write
from envtune.fix.consent import Consent
from envtune.fix.outcome import ApplyResult, state_of
from envtune.fix.prepare import PreparedFix
from envtune.fix.runs import OnEvent, undo_run
from envtune.messages import Message
from envtune.model import Change


def written(prepared: PreparedFix, result: ApplyResult) -> tuple[Change, ...]:
    """Return the changes that a run has written."""
    return tuple(change for change in prepared.plan.changes if state_of(result, change) == "written")


def refuse_unmeasurable(prepared: PreparedFix) -> None:
    """Raise UsageError for changes that cannot be applied and undone repeatedly."""
    for change in prepared.plan.changes:
        if not change.undoable:
            raise UsageError(Message("{id} {target} cannot be undone", id=change.id, target=change.target))
        if change.disruption in ("service", "reboot"):
            words = Message("{id} {target} interrupts services or needs a reboot", id=change.id, target=change.target)
            raise UsageError(words)


class FixedChanges:
    """The changes of a fix, as `compare` applies and undoes them. `result` is that of the last run applying them."""

    def __init__(self, prepared: PreparedFix, result: ApplyResult, on_event: OnEvent, wait: float = 0.0) -> None:
        self.result, self.are_made = result, True
        self._prepared, self._changes = prepared, written(prepared, result)
        self._on_event, self._wait = on_event, wait

    def make(self) -> None:
        """Write the same changes again; raises UsageError if one could not be written."""
        if self.are_made:
            return
        self.result = write(self._prepared, self._changes, self.result.withheld, self._on_event, self._wait)
        self.are_made = bool(self.result.run)
        failed = [change for change in self._changes if state_of(self.result, change) != "written"]
        if failed or self.result.signal:
            raise UsageError(
                Message("{change} could not be made again; see envtune history", change=(failed or self._changes)[0].id)
            )

    def undo(self) -> None:
        """Undo them; raises UsageError if one could not be undone, for example after a change by others."""
        if not self.are_made:
            return
        results = undo_run(self.result.run, None, False, self._on_event, self._wait)
        failed = [row for row in results if row["status"] != "undone"]
        if failed:
            raise UsageError(
                Message(
                    "{change} could not be undone completely: envtune undo {run}",
                    change=failed[0]["change"],
                    run=self.result.run,
                )
            )
        self.are_made = False

    def conclude(self, consent: Consent) -> FixOutcome:
        """Return the result of the fix now that the changes are applied: the same checks are run again."""
        return conclude(self._prepared, consent, self._changes, self.result)
