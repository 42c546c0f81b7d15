"""Render what a fix did: every finding it started from, and what the same check says now."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Mapping, Sequence

from envtune.fix.document import plan_data
from envtune.fix.executor_messages import result_message
from envtune.fix.outcome import ApplyResult
from envtune.fix.plan import Plan
from envtune.messages import Joined, Message, Text, clauses, in_context, plural
from envtune.model import Finding, Outcome
from envtune.report.check_json import finding_data
from envtune.report.layout import Paint, indent, pad, printable
from envtune.report.redaction import redacted_data

if TYPE_CHECKING:
    from envtune.executor.history import RecordedRun

SCHEMA = "envtune.fix/1"
_OUTCOMES: Mapping[Outcome, Text] = {
    Outcome.FIXED: Message("fixed"),
    Outcome.FAIL: Message("still wrong"),
    Outcome.ERROR: Message("error"),
    Outcome.UNKNOWN: in_context("outcome", "unknown"),
}
_COLOURS = {Outcome.FIXED: "green", Outcome.FAIL: "red", Outcome.ERROR: "red", Outcome.UNKNOWN: "yellow"}
_RESULTS: Mapping[str, Text] = {
    "done": Message("done"),
    "undone": Message("undone"),
    "failed": in_context("fix text", "failed"),
    "refused": Message("refused"),
    "stopped": Message("stopped"),
}


def render(
    before: Sequence[Finding],
    after: Sequence[Finding],
    result: ApplyResult,
    lang: str,
    width: int,
    colour: bool = False,
) -> str:
    """Return a line per finding that was or is wrong, then how it ended and how to undo it."""
    paint = Paint(colour)
    failed = {finding.id for finding in before if finding.outcome is Outcome.FAIL}
    lines = []
    for finding in after:
        if finding.outcome in _OUTCOMES and (finding.outcome is not Outcome.UNKNOWN or finding.id in failed):
            lines += _finding_lines(finding, lang, width, paint)
    lines += ["", paint(_verdict(after, failed, result).to(lang), "bold")]
    if result.run:
        lines.append(Message("Run {run}. To take it back: envtune undo {run}", run=result.run).to(lang))
    return "\n".join(line.rstrip(" ") for line in lines)


def _finding_lines(finding: Finding, lang: str, width: int, paint: Paint) -> list[str]:
    label = pad(_OUTCOMES[finding.outcome].to(lang), 12)
    subject = f" [{printable(finding.subject)}]" if finding.subject else ""
    text = f"{finding.id}{subject}  {printable(_statement(finding).to(lang))}"
    lines = indent(text, width, f"  {label}", " " * 14)
    return ["  " + paint(label, _COLOURS[finding.outcome]) + lines[0][2 + len(label) :], *lines[1:]]


def _statement(finding: Finding) -> Text:
    title = finding.check.title
    if finding.outcome is Outcome.FIXED:
        return title if finding.actual is None else finding.actual
    if finding.reason is None:
        return title
    return Message("{title}: {reason}", title=title, reason=finding.reason)


def _verdict(after: Iterable[Finding], failed: set[str], result: ApplyResult) -> Text:
    by_outcome: dict[Outcome, set[str]] = {}
    for finding in after:
        by_outcome.setdefault(finding.outcome, set()).add(finding.id)
    wrong = by_outcome.get(Outcome.FAIL, set()) | by_outcome.get(Outcome.ERROR, set())
    fixed = by_outcome.get(Outcome.FIXED, set()) - wrong
    unknown = (by_outcome.get(Outcome.UNKNOWN, set()) & failed) - wrong
    parts = [Message("{count} fixed", count=len(fixed))]
    if wrong:
        parts.append(Message("{count} still wrong", count=len(wrong)))
    if unknown:
        parts.append(Message("{count} could not be told", count=len(unknown)))
    needs_root, awaits_consent = (
        sum(1 for change in result.withheld if change.why == why) for why in ("root", "consent")
    )
    if needs_root:
        parts.append(plural("{count} change needs root", "{count} changes need root", needs_root))
    if awaits_consent:
        parts.append(plural("{count} change awaits consent", "{count} changes await consent", awaits_consent))
    return clauses(parts)


def render_json(plan: Plan, findings: Sequence[Finding], result: ApplyResult, lang: str) -> str:
    """Return `envtune.fix/1`: the plan, the result of every change, the findings afterwards."""
    withheld = [{"change": one.change.id, "why": one.why, "reason": one.reason.to(lang)} for one in result.withheld]
    data = {
        "schema": SCHEMA,
        "run": result.run,
        "plan": plan_data(plan, lang),
        "results": [redacted_data(dict(one)) for one in result.results.values()],
        "held": redacted_data(withheld),
        "findings": [finding_data(finding, lang) for finding in findings],
    }
    return json.dumps(data, ensure_ascii=False, indent=1)


def result_lines(results: Iterable[Mapping[str, Any]], lang: str, past: RecordedRun, width: int = 100) -> Iterator[str]:
    """Yield a line per change of a run that was finished, or per step of one that was undone; `past` is that run."""
    targets = {change["id"]: change.get("target", "") for change in past.plan["changes"]}
    for result in results:
        label = pad(_RESULTS[result["status"]].to(lang), 9)
        step = past.steps.get((result["change"], result.get("number", -1)), {}).get("operation")
        target = targets.get(result["change"], "")
        subject = _subject(step, target) if step else target
        error = [result_message(result)] if result["error"] else []
        text = Joined([part for part in (subject, *error) if part], in_context("before an error", ": "))
        first = f"  {label} {pad(result['change'], 4)} "
        yield from (line.rstrip() for line in indent(printable(text.to(lang)), width, first, " " * 17))


def _subject(operation: Mapping[str, Any], target: str) -> str:
    """Return what an operation is about: one of several of a change that is about `target`."""
    if operation["op"] == "run":
        return " ".join(operation["argv"])
    return str(operation["path"]) if operation["op"] == "file" else target
