"""Read from envtune's own journal which checks a run fixed, and whether that was undone.

A log does not change when its cause is repaired. Diagnosing it again must report that the problem *did* exist; the
journal of `envtune fix` is the only evidence of that which is not a guess.
"""

from __future__ import annotations

from calendar import timegm
from time import strptime
from typing import Any, Iterator, Mapping, NamedTuple, Optional, Sequence

from envtune.executor.history import RecordedRun, recorded_runs
from envtune.messages import Message, Text
from envtune.model import Finding, Outcome


class PastFix(NamedTuple):
    """The latest run that fixed a check on this host. `time` is UTC as the journal writes it."""

    run: str
    time: str
    undone: bool

    @property
    def seconds(self) -> float:
        """`time` in seconds since the epoch; 0 if the journal does not say."""
        try:
            return float(timegm(strptime(self.time, "%Y-%m-%dT%H:%M:%SZ")))
        except ValueError:
            return 0.0


def fixed_checks(state: str, host: str, python: Optional[str]) -> Mapping[str, PastFix]:
    """Return each check's latest fix on `host`, for a job that runs `python`; none if there is no journal to read.

    A change that only a job sees (view `job`) counts for the Python it was made for.
    """
    fixes: dict[str, PastFix] = {}
    try:
        runs = recorded_runs(state)
    except (OSError, ValueError):
        return fixes
    for past in runs:
        if past.plan.get("host", host) != host:  # a state directory that several hosts share
            continue
        target = past.plan.get("target") or {}
        elsewhere = python is not None and target.get("python", python) != python
        for change in past.plan["changes"]:
            if not (elsewhere and change.get("view") == "job"):
                fixes.update(_of_change(past, change))
    return fixes


def _of_change(past: RecordedRun, change: Mapping[str, Any]) -> Iterator[tuple[str, PastFix]]:
    """Yield the checks this change fixed; one that was not applied, or wrote nothing, fixed none."""
    results = {result["change"]: result["status"] for result in past.results()}
    steps = [step for (id_, _), step in past.steps.items() if id_ == change["id"]]
    if results.get(change["id"]) != "done" or not steps:
        return
    undone = all(step["state"] == "reverted" for step in steps)
    for check in (change.get("finding", ""), *change.get("cures", ())):
        yield check, PastFix(past.name, str(past.begin.get("time", "")), undone)


def mark_fixed(findings: Sequence[Finding], fixes: Mapping[str, PastFix]) -> tuple[Finding, ...]:
    """Return today's findings, with those that a run fixed as `fixed`, and with a reason if one was fixed before."""
    failing = {finding.id for finding in findings if finding.outcome is Outcome.FAIL}
    return tuple(_marked(finding, fixes.get(finding.id), finding.id in failing) for finding in findings)


def _marked(finding: Finding, fix: Optional[PastFix], failing: bool) -> Finding:
    if fix is None:
        return finding
    if finding.outcome is Outcome.FAIL:
        return finding._replace(reason=_again(fix))
    if failing or fix.undone or finding.outcome not in (Outcome.PASS, Outcome.NOTAPPLICABLE):
        return finding
    reason = Message(
        "run {run} ({time}) of envtune fix fixed it; `envtune undo {run}` undoes that", run=fix.run, time=fix.time
    )
    return finding._replace(outcome=Outcome.FIXED, reason=reason)


def _again(fix: PastFix) -> Text:
    if fix.undone:
        return Message("run {run} ({time}) of envtune fix fixed it, and was undone", run=fix.run, time=fix.time)
    return Message(
        "run {run} ({time}) of envtune fix fixed it, but the problem has returned", run=fix.run, time=fix.time
    )
