"""What envtune's own journal says of a check: that a run cured it, and whether that was taken back. Reads only.

A log stays as it is when its cause is repaired. Whoever diagnoses it again must learn that it *was* so; the journal of
`envtune fix` is the only witness of that which is not a guess.
"""

from __future__ import annotations

from calendar import timegm
from time import strptime
from typing import Any, Iterator, Mapping, NamedTuple, Optional, Sequence

from envtune.executor.history import RecordedRun, recorded_runs
from envtune.messages import Message, Text
from envtune.model import Finding, Outcome


class Cure(NamedTuple):
    """The latest run that cured a check on this host. `time` is UTC as the journal writes it."""

    run: str
    time: str
    undone: bool  # it was taken back

    @property
    def seconds(self) -> float:
        """`time` in seconds since the epoch; 0 where the journal does not say."""
        try:
            return float(timegm(strptime(self.time, "%Y-%m-%dT%H:%M:%SZ")))
        except ValueError:
            return 0.0


def cures(state: str, host: str, python: Optional[str]) -> Mapping[str, Cure]:
    """Check -> its latest cure on `host`, for a job that runs `python`; nothing where there is no journal to read.

    A change that only a job sees (view `job`) counts for the Python it was made for.
    """
    found: dict[str, Cure] = {}
    try:
        runs = recorded_runs(state)
    except (OSError, ValueError):
        return found
    for past in runs:
        if past.plan.get("host", host) != host:  # a state directory that several hosts share
            continue
        target = past.plan.get("target") or {}
        elsewhere = python is not None and target.get("python", python) != python
        for change in past.plan["changes"]:
            if not (elsewhere and change.get("view") == "job"):
                found.update(_of_change(past, change))
    return found


def _of_change(past: RecordedRun, change: Mapping[str, Any]) -> Iterator[tuple[str, Cure]]:
    """The checks this change cured; one that was not made, or wrote nothing, cured none."""
    results = {result["change"]: result["status"] for result in past.results()}
    own = [step for (id_, _), step in past.steps.items() if id_ == change["id"]]
    if results.get(change["id"]) != "done" or not own:
        return
    undone = all(step["state"] == "reverted" for step in own)
    for check in (change.get("finding", ""), *change.get("cures", ())):
        yield check, Cure(past.name, str(past.begin.get("time", "")), undone)


def with_cures(findings: Sequence[Finding], known: Mapping[str, Cure]) -> tuple[Finding, ...]:
    """The findings of today, each that a run of ours cured as `fixed`, and with a word where one was cured before."""
    failing = {finding.id for finding in findings if finding.outcome is Outcome.FAIL}
    return tuple(_with_cure(finding, known.get(finding.id), finding.id in failing) for finding in findings)


def _with_cure(finding: Finding, cure: Optional[Cure], failing: bool) -> Finding:
    if cure is None:
        return finding
    if finding.outcome is Outcome.FAIL:
        return finding._replace(reason=_again(cure))
    if failing or cure.undone or finding.outcome not in (Outcome.PASS, Outcome.NOTAPPLICABLE):
        return finding
    return finding._replace(outcome=Outcome.FIXED, reason=_fixed(cure))


def _fixed(cure: Cure) -> Text:
    return Message(
        "run {run} ({time}) of envtune fix cured it; `envtune undo {run}` takes that back", run=cure.run, time=cure.time
    )


def _again(cure: Cure) -> Text:
    if cure.undone:
        return Message("run {run} ({time}) of envtune fix had cured it, and was undone", run=cure.run, time=cure.time)
    return Message("run {run} ({time}) of envtune fix had cured it; it is so again", run=cure.run, time=cure.time)
