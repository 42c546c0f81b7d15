"""Render what a fix did: every finding it started from, and what the same check says now."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Mapping, Sequence

from envtune.audit.subjects import subject_text
from envtune.commandline import for_this_host
from envtune.fix.document import plan_data
from envtune.fix.executor_messages import result_message
from envtune.fix.outcome import END_STATES, ApplyResult, JudgedFinding
from envtune.fix.plan import Plan
from envtune.messages import Joined, Message, Text, clauses, in_context, plural
from envtune.model import Change, Finding, Outcome
from envtune.report.check_json import finding_data
from envtune.report.layout import Paint, indent, pad, printable
from envtune.report.redaction import redacted_data
from envtune.trust.characters import json_text

if TYPE_CHECKING:
    from envtune.executor.history import RecordedRun
    from envtune.fix.apply import FixOutcome

SCHEMA = "envtune.fix/1"
_OUTCOMES: Mapping[Outcome, tuple[Text, str]] = {  # where the table of end states says nothing: label, color
    Outcome.FAIL: (Message("still wrong"), "red"),
    Outcome.ERROR: (Message("error"), "red"),
    Outcome.UNKNOWN: (in_context("outcome", "unknown"), "yellow"),
}
_OF_FINDINGS = ("fixed", "fixed-until-reboot", "still-failing", "failed-restored", "failed-left", "created")
_NOTHING_LEFT = frozenset(("failed-restored", "not-begun"))


def render(
    before: Sequence[Finding], outcome: FixOutcome, plan: Plan, lang: str, width: int, colour: bool = False
) -> str:
    """Return a line per finding that was or is wrong, what was not made and why, how it ended, and how to undo it."""
    paint, result = Paint(colour), outcome.result
    failed = {finding.id for finding in before if finding.outcome is Outcome.FAIL}
    lines: list[str] = []
    for group in _like_findings(row for row in outcome.judged if _is_shown(row, failed)):
        lines += _finding_lines(group, lang, width, paint)
    for line in _incomplete(plan, outcome):
        lines += indent(printable(line.to(lang)), width, "  ", " " * 14)
    lines += ["", paint(_verdict(outcome, failed).to(lang), "bold")]
    if result.signal:
        name = signal.Signals(result.signal).name
        lines.append(Message("{signal} interrupted the run.", signal=name).to(lang))
    if result.run:
        lines.append(_way_back(plan, outcome).to(lang))
    return "\n".join(line.rstrip(" ") for line in lines)


def _way_back(plan: Plan, outcome: FixOutcome) -> Text:
    """Return how the run is undone, where there is something that can be."""
    run, results = outcome.result.run, outcome.result.results
    if outcome.states and _NOTHING_LEFT.issuperset(outcome.states.values()):
        return Message("Run {run}. There is nothing to undo.", run=run)
    written = [change for change in plan.changes if results.get(change.id, {}).get("status") == "done"]
    if written and not any(change.undoable for change in written):
        return Message("Run {run}. It cannot be undone.", run=run)
    command = for_this_host(f"envtune undo {run}", same_user=True)
    return Message("Run {run}. To undo it: {command}", run=run, command=command)


def _is_shown(row: JudgedFinding, failed: set[str]) -> bool:
    if row.finding.outcome is Outcome.UNKNOWN:
        return row.finding.id in failed
    return row.finding.outcome in _OUTCOMES or row.state == "fixed"


def _like_findings(rows: Iterable[JudgedFinding]) -> Iterable[list[JudgedFinding]]:
    """Return the findings in groups: those of a check that were fixed in the same way are one line."""
    groups: dict[object, list[JudgedFinding]] = {}
    for row in rows:
        alike = (row.finding.id, row.finding.actual) if row.state == "fixed" else id(row)
        groups.setdefault(alike, []).append(row)
    return groups.values()


def _finding_lines(group: Sequence[JudgedFinding], lang: str, width: int, paint: Paint) -> list[str]:
    finding, state = group[0]
    text, colour = END_STATES[state] if state in _OF_FINDINGS else _OUTCOMES[finding.outcome]
    label = pad(text.to(lang), 12)
    label += "" if label.endswith(" ") else "  "
    subjects = printable(subject_text(finding.subject).to(lang))
    if len(group) > 1:
        last = printable(subject_text(group[-1].finding.subject).to(lang))
        subjects = Message("{first} ... {last} ({count})", first=subjects, last=last, count=len(group)).to(lang)
    words = f"{finding.id}{f' [{subjects}]' if subjects else ''}  {printable(_statement(finding).to(lang))}"
    lines = indent(words, width, f"  {label}", " " * 14)
    return ["  " + paint(label, colour) + lines[0][2 + len(label) :], *lines[1:]]


def _statement(finding: Finding) -> Text:
    title = finding.check.title
    if finding.outcome is Outcome.FIXED:
        return title if finding.actual is None else finding.actual
    if finding.reason is None:
        return title
    return Message("{title}: {reason}", title=title, reason=finding.reason)


def _incomplete(plan: Plan, outcome: FixOutcome) -> Iterator[Text]:
    """Say of a check with several changes how many were made, and name each that was not, with its own reason."""
    by_check: dict[str, list[Change]] = {}
    for change in plan.changes:
        if change.id in outcome.result.results:
            by_check.setdefault(change.finding, []).append(change)
    for check, changes in by_check.items():
        failed = [change for change in changes if outcome.result.results[change.id]["status"] != "done"]
        if not failed or len(changes) < 2:
            continue
        count, made = len(changes), len(changes) - len(failed)
        yield Message("{check}: {made} of {count} changes made; not made:", check=check, made=made, count=count)
        for change in failed:
            yield Message(
                "{id} {target}: {state}: {reason}",
                id=change.id,
                target=change.target,
                state=END_STATES[outcome.states[change.id]].text,
                reason=result_message(outcome.result.results[change.id]),
            )


def _verdict(outcome: FixOutcome, failed: set[str]) -> Text:
    ids: dict[str, set[str]] = {"wrong": set(), "temporary": set(), "unknown": set(), "fixed": set()}
    for row in outcome.judged:
        kind = _kind(row)
        if kind and not (kind == "unknown" and row.finding.id not in failed):
            ids[kind].add(row.finding.id)
    counts = {kind: len(ids[kind].difference(*list(ids.values())[:place])) for place, kind in enumerate(ids)}
    parts: list[Text] = [Message("{count} fixed", count=counts["fixed"])]
    if counts["temporary"]:
        parts.append(Message("{count} fixed until the next boot", count=counts["temporary"]))
    if counts["wrong"]:
        parts.append(Message("{count} still wrong", count=counts["wrong"]))
    if counts["unknown"]:
        parts.append(Message("{count} unknown", count=counts["unknown"]))
    return clauses([*parts, *_withheld_counts(outcome.result)])


def _kind(row: JudgedFinding) -> str:
    """Return as what a finding is counted; a check with several counts as the worst of them."""
    if row.state == "fixed-until-reboot":
        return "temporary"
    kinds = {Outcome.FAIL: "wrong", Outcome.ERROR: "wrong", Outcome.FIXED: "fixed", Outcome.UNKNOWN: "unknown"}
    return kinds.get(row.finding.outcome, "")


def _withheld_counts(result: ApplyResult) -> Iterator[Text]:
    why = [change.why for change in result.withheld]
    if "root" in why:
        yield plural("{count} change needs root", "{count} changes need root", why.count("root"))
    if "consent" in why:
        yield plural("{count} change needs confirmation", "{count} changes need confirmation", why.count("consent"))
    if "running" in why:
        count = why.count("running")
        yield plural("{count} change waits for processes to end", "{count} changes wait for processes to end", count)


def render_json(plan: Plan, outcome: FixOutcome, lang: str) -> str:
    """Return `envtune.fix/1`: the plan, the results of its changes, the findings afterwards, all with end states."""
    result = outcome.result
    withheld = [{"change": one.change.id, "why": one.why, "reason": one.reason.to(lang)} for one in result.withheld]
    data = {
        "schema": SCHEMA,
        "run": result.run,
        "signal": result.signal,
        "plan": plan_data(plan, lang),
        "results": [
            {**redacted_data(dict(one)), "state": outcome.states[change]} for change, one in result.results.items()
        ],
        "states": dict(outcome.states),
        "held": redacted_data(withheld),
        "findings": [{**finding_data(finding, lang), "state": state or None} for finding, state in outcome.judged],
    }
    return json_text(data, 1)


def result_lines(results: Iterable[Mapping[str, Any]], lang: str, past: RecordedRun, width: int = 100) -> Iterator[str]:
    """Yield a line per change of a run that was finished, or per step of one that was undone; `past` is that run."""
    for result in results:
        label = pad(END_STATES[_result_state(result, past)].text.to(lang), 9)
        subject = subject_of(past, result)
        error: list[Text] = [result_message(result)] if result["error"] else []
        text = Joined([*([subject] if subject else []), *error], in_context("before an error", ": "))
        first = f"  {label} {pad(result['change'], 4)} "
        yield from (line.rstrip() for line in indent(printable(text.to(lang)), width, first, " " * 17))


def _result_state(result: Mapping[str, Any], past: RecordedRun) -> str:
    """Return the end state of a change, or of one step of an undo."""
    if "number" not in result:
        return past.end_state(result["change"])
    return {"undone": "undone", "stopped": "not-begun"}.get(result["status"], "cannot-be-undone")


def subject_of(past: RecordedRun, result: Mapping[str, Any]) -> str:
    """Return what a result is about: the target of its change, or one step of several."""
    targets = {change["id"]: change.get("target", "") for change in past.plan["changes"]}
    target = str(targets.get(result["change"], ""))
    operation = past.steps.get((result["change"], result.get("number", -1)), {}).get("operation")
    if operation is None:
        return target
    if operation["op"] == "run":
        return " ".join(operation["argv"])
    return str(operation["path"]) if operation["op"] == "file" else target
