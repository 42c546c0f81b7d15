"""Staged fixes as text: what would be changed on which hosts, who is left out, and how every host ended."""

from __future__ import annotations

from typing import Iterable, Iterator, Mapping, Sequence

from envtune.fleet.collected import WORDS as COLLECTION
from envtune.fleet.collected import Collection
from envtune.fleet.fix.plan import HostPlan
from envtune.fleet.fix.stages import (
    BEGUN,
    BUSY,
    CHANGED,
    PLANNED,
    RUNNING,
    UNCHANGED,
    UNDONE,
    UNREACHABLE,
    HostOutcome,
    Stage,
)
from envtune.fleet.store.fixes import FixHost, FixRun
from envtune.messages import Bilingual, Literal, Message, Text, clauses, enumerated, in_context, plural
from envtune.model import Change
from envtune.report.fleet.text import Settings, short
from envtune.report.plan.text import diff, table

STATES: Mapping[str, Text] = {
    CHANGED: in_context("fleet fix", "changed"),
    "partly": Message("changed in part"),
    "left": Message("failed, not restored"),
    "failed": Message("failed and restored"),
    "refused": Message("refused by the host"),
    "interrupted": Message("interrupted on the host"),
    RUNNING: Message("still running on the host"),
    BEGUN: Message("started, no answer: may be changed"),
    "unknown": Message("unknown: its journal is not readable"),
    UNREACHABLE: Message("not reached, not changed"),
    BUSY: Message("jobs use its NPUs, not changed"),
    UNCHANGED: in_context("fleet fix", "not changed"),
    PLANNED: Message("not started"),
    UNDONE: Message("undone"),
    "partly-undone": Message("undone in part"),
}


def state_text(state: str) -> Text:
    """Return a state of a host in words."""
    return STATES.get(state, Literal(state))


def plan_lines(plans: Sequence[HostPlan], stages: Sequence[Stage], settings: Settings, diffs: bool) -> Iterator[str]:
    """Yield what would be changed, hosts with the same changes together, who is left out, and the stages."""
    planned = [plan for plan in plans if plan.changes]
    if not planned:
        yield settings.heading(Message("Nothing to change."))
    else:
        yield settings.heading(Message("What would be changed"))
    for names, plan in _alike(planned, diffs):
        yield from settings.lines(_hosts_text(names, settings), "  ", "    ")
        yield from _change_lines(plan.changes, settings, diffs)
    yield from _left_out(plans, settings)
    if stages:
        sizes = [plural("{count} host", "{count} hosts", len(stage.hosts)) for stage in stages]
        text = Message(
            "Stages: {sizes}; the first one has a host of each group of hardware, system and driver",
            sizes=clauses(sizes),
        )
        yield ""
        yield from settings.lines(text)


def _hosts_text(names: Sequence[str], settings: Settings) -> Text:
    return plural("{hosts} ({count} host)", "{hosts} ({count} hosts)", len(names), hosts=short(names, settings))


def _alike(plans: Sequence[HostPlan], diffs: bool) -> list[tuple[list[str], HostPlan]]:
    found: dict[object, tuple[list[str], HostPlan]] = {}
    for plan in plans:
        key = tuple(
            (change.finding, change.action, change.target, change.after, change.scope, change.before if diffs else "")
            for change in plan.changes
        )
        found.setdefault(key, ([], plan))[0].append(plan.host)
    return list(found.values())


def _change_lines(changes: Sequence[Change], settings: Settings, diffs: bool) -> Iterator[str]:
    if not diffs:
        yield from ("  " + line for line in table(changes, settings.lang, settings.width - 2))
        return
    for change in changes:
        yield from ("  " + line for line in table([change], settings.lang, settings.width - 2))
        for line in diff(change.before, change.after):
            style = {"-": "red", "+": "green"}.get(line[:1], "dim")
            yield "        " + settings.paint(line, style)


def _left_out(plans: Sequence[HostPlan], settings: Settings) -> Iterator[str]:
    """Yield the hosts on which nothing, or not all, would be changed, by the reason."""
    found: dict[str, list[str]] = {}
    for plan in plans:
        for reason in _reasons(plan):
            found.setdefault(settings.to(reason), []).append(plan.host)
    if found:
        yield ""
        yield settings.heading(Message("Left out"))
    for words, names in found.items():
        yield from settings.lines(_hosts_text(list(dict.fromkeys(names)), settings), "  ", "    ")
        yield from settings.lines(Literal(words), "    ", "    ")


def _reasons(plan: HostPlan) -> Iterator[Text]:
    if plan.record.collection is not Collection.OK:
        detail = f": {plan.record.detail}" if plan.record.detail else ""
        yield Message("{verdict}{detail}", verdict=COLLECTION[plan.record.collection], detail=detail)
    if plan.reason is not None:
        yield plan.reason
    for one in plan.withheld:
        yield Message("{finding}: {reason}", finding=one.change.finding, reason=one.reason)
    for skipped in plan.skipped:
        yield Message("{finding}: {reason}", finding=skipped.finding, reason=skipped.reason)


def stage_text(number: int, count: int, outcomes: Mapping[str, HostOutcome]) -> Text:
    """Return how a stage ended."""
    failed = sum(outcome.failed for outcome in outcomes.values())
    changed = sum(outcome.state == CHANGED and not outcome.failed for outcome in outcomes.values())
    return Message(
        "stage {number} of {count}: {changed} fixed, {failed} failed, {other} left alone",
        number=number + 1,
        count=count,
        changed=changed,
        failed=failed,
        other=len(outcomes) - changed - failed,
    )


def outcome_lines(outcomes: Mapping[str, HostOutcome], settings: Settings) -> Iterator[str]:
    """Yield what the checks say against hosts of a stage."""
    found: dict[str, list[str]] = {}
    for host, outcome in outcomes.items():
        for reason in _faults(outcome):
            found.setdefault(settings.to(reason), []).append(host)
    for words, names in found.items():
        yield from settings.lines(
            Message("{hosts}: {reason}", hosts=short(names, settings), reason=words), "  ", "    "
        )


def _faults(outcome: HostOutcome) -> Iterator[Text]:
    if outcome.newly_failing:
        yield Message("fails now, passed before: {checks}", checks=enumerated(outcome.newly_failing))
    if outcome.still_failing:
        yield Message("written but still failing: {changes}", changes=enumerated(outcome.still_failing))
    if not outcome.collected:
        yield Message("changed; the result is unknown")


def run_lines(run: FixRun, hosts: Iterable[FixHost], settings: Settings) -> Iterator[str]:
    """Yield how every host of a run is now, hosts of one state together."""
    found: dict[tuple[str, str], list[str]] = {}
    for host in hosts:
        found.setdefault((host.state, host.detail if host.state not in (CHANGED, UNDONE) else ""), []).append(host.host)
    yield settings.heading(Message("Run {run}:", run=run.name))
    if run.stopped is not None:
        yield from settings.lines(Message("stopped: {reason}", reason=Bilingual(*run.stopped)), "  ", "    ")
    for (state, detail), names in found.items():
        text = Message("{state}: {hosts}", state=state_text(state), hosts=_hosts_text(names, settings))
        yield from settings.lines(text, "  ", "    ")
        if detail:
            yield from settings.lines(Literal(detail), "    ", "    ")
