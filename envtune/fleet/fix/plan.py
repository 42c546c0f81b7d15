"""What would fix one host, from its snapshot: the checks, playbooks and planner of `envtune fix`.

All checks are run, so that the stored record of the host is complete and newly failing checks are noticed; only the
selected ones are fixed. Every function here runs in a process of `judge.py`, within its limits.
"""

from __future__ import annotations

import io
from typing import AbstractSet, Any, Iterable, Iterator, Mapping, NamedTuple, Optional, Sequence

from envtune.audit import audit, read_facts
from envtune.context import Context
from envtune.errors import EnvtuneError, NotApplicable, Verdict
from envtune.fix.consent import Consent, Withheld, sort_changes
from envtune.fix.outcome import ApplyResult, change_states, reconcile
from envtune.fix.plan import SkippedFinding, executable, make_plan
from envtune.fleet.judge import Question, Snapshot, collected_context, failed_host, report_of
from envtune.fleet.record import HostRecord, record_of
from envtune.messages import Literal, Message, Text, clauses
from envtune.model import Change, Finding, FixOptions, Playbook, Report
from envtune.resources.processes.usage import device_usage
from envtune.snapshot.open import read_snapshot
from envtune.trust.characters import visible

GROUP = (
    "npu",
    "arch",
    "os",
    "driver",
)  # facts that hosts of a group have in common: hardware, system, driver
_GOOD = ("pass", "notapplicable")
_BAD = ("fail", "error")


class Fixing(NamedTuple):
    """What is to be fixed: ids of checks, their playbooks, and what is consented to beforehand.

    `drained`: hosts are drained before they are fixed, so that jobs running now do not matter.
    """

    selected: AbstractSet[str]
    playbooks: Sequence[Playbook]
    consent: Consent
    drained: bool = False


class HostPlan(NamedTuple):
    """What would be changed on a host; without changes `reason` says why, unless there is nothing to fix.

    `group` are the values of GROUP; `withheld` needs consent, root or a person; `skipped` has no fix.
    """

    record: HostRecord
    snapshot: bytes = b""
    group: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    withheld: tuple[Withheld, ...] = ()
    skipped: tuple[SkippedFinding, ...] = ()
    reason: Optional[Text] = None

    @property
    def host(self) -> str:
        """Its name."""
        return self.record.host


class Checked(NamedTuple):
    """A host after it was fixed: how each change ended, and the checks that passed before and fail now."""

    record: HostRecord
    states: Mapping[str, str] = {}
    newly_failing: tuple[str, ...] = ()


class Written(NamedTuple):
    """The executor's answer for a host: the name of its run there, and a result for each change not applied."""

    before: Snapshot
    run: str
    results: Sequence[Mapping[str, Any]]


class _Judged(NamedTuple):
    record: HostRecord
    report: Report
    context: Context
    findings: tuple[Finding, ...]
    changes: tuple[Change, ...]
    withheld: tuple[Withheld, ...]
    skipped: tuple[SkippedFinding, ...]


def plan_host(snapshot: Snapshot, question: Question, fixing: Fixing) -> HostPlan:
    """Return what would fix a host; a host that cannot be planned counts as damaged."""
    try:
        found = _judged(snapshot, question, fixing)
    except Exception as error:
        return HostPlan(failed_host(snapshot, error))
    facts = {fact.name: fact.value for fact in found.report.facts}
    group = tuple(visible(facts.get(name) or "-") for name in GROUP)
    reason = _jobs(found.context) if found.changes and not fixing.drained else None
    changes = () if reason is not None else found.changes
    kept = snapshot.data if changes else b""
    return HostPlan(found.record, kept, group, changes, found.withheld, found.skipped, reason)


def check_again(snapshot: Snapshot, question: Question, fixing: Fixing, written: Mapping[str, Written]) -> Checked:
    """Return the results of the same checks after a fix, from the snapshots before and after it."""
    mine = written[snapshot.host]
    try:
        before, after = _judged(mine.before, question, fixing), _judged(snapshot, question, fixing)
    except Exception as error:
        return Checked(failed_host(snapshot, error))
    done = {change.id: {"change": change.id, "status": "done", "state": "written"} for change in before.changes}
    results = {**done, **{str(row["change"]): row for row in mine.results}}
    result = ApplyResult(mine.run, results, before.withheld)
    fixed = fixing.selected
    judged = reconcile(
        [finding for finding in before.findings if finding.id in fixed],
        [finding for finding in after.findings if finding.id in fixed],
        before.changes,
        result,
    )
    return Checked(
        after.record, change_states(before.changes, judged, result), newly_failing(before.record, after.record)
    )


def newly_failing(before: HostRecord, after: HostRecord) -> tuple[str, ...]:
    """Return the checks that fail now and were good before."""
    good = {name for name, check in before.checks.items() if check.outcome in _GOOD}
    return tuple(name for name, check in after.checks.items() if check.outcome in _BAD and name in good)


def executable_plan(plan: HostPlan) -> dict[str, Any]:
    """Return the plan in the form of the host's executor."""
    return {"host": plan.host, "target": {}, **executable(plan.changes)}


def _judged(snapshot: Snapshot, question: Question, fixing: Fixing) -> _Judged:
    host = read_snapshot(io.BytesIO(snapshot.data), snapshot.host)
    context = collected_context(host, snapshot.by_ssh, question.expectations)
    findings = audit(question.checks, context)
    report = report_of(host, context, read_facts(context), findings)
    record = record_of(snapshot.host, report)._replace(seconds=snapshot.seconds)
    selected = [finding for finding in findings if finding.id in fixing.selected]
    env_file = context.target.options.env_file
    made = make_plan(selected, fixing.playbooks, context, FixOptions(env_file=env_file))
    changes = [change for change in made.changes if env_file is not None or not change.verify]
    skipped = [*made.skipped, *_without_file(change for change in made.changes if change not in changes)]
    ready, withheld = sort_changes(changes, fixing.consent, host.euid == 0)
    return _Judged(record, report, context, findings, tuple(ready), tuple(withheld), tuple(skipped))


def _without_file(changes: Iterable[Change]) -> Iterator[SkippedFinding]:
    """Yield what is left out because it would go into a session file, which no job reads."""
    reason = Message("to fix variables, specify their file with --env-file")
    for change in changes:
        for finding in (change.finding, *change.fixes):
            yield SkippedFinding(finding, change.subject, reason)


def _jobs(context: Context) -> Optional[Text]:
    """Return why a host is left out because of jobs running on its NPUs; None if there are none."""
    try:
        usages = device_usage(context)
    except NotApplicable:
        return None
    except (Verdict, EnvtuneError) as error:
        return Message("whether jobs use its NPUs is unknown: {reason}", reason=error.message)
    found = {process.pid: process.name for usage in usages for process in usage.processes or ()}
    if found:
        shown = [Literal(visible(f"{pid} {name}")[:80]) for pid, name in sorted(found.items())[:4]]
        return Message("jobs use its NPUs: {processes}", processes=clauses(shown))
    unknown = next((usage.reason for usage in usages if usage.processes is None), None)
    return None if unknown is None else Message("whether jobs use its NPUs is unknown: {reason}", reason=unknown)
