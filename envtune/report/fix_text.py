"""What a fix did: every finding it started from, and what the same check says now."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Mapping, Sequence

from envtune.fix.document import plan_data
from envtune.fix.executor_messages import result_message
from envtune.fix.outcome import Written
from envtune.fix.plan import Plan
from envtune.messages import Bilingual, Message, Text, in_context
from envtune.model import Finding, Outcome
from envtune.report.check_json import finding_data
from envtune.report.layout import Paint, indent, pad, printable

if TYPE_CHECKING:
    from envtune.executor.history import RecordedRun

SCHEMA = "envtune.fix/1"
_HELD = (
    ("root", "change needs root", "changes need root", "需要 root"),
    ("consent", "change awaits consent", "changes await consent", "待确认"),
)
_WORDS: Mapping[Outcome, Text] = {
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
    before: Sequence[Finding], after: Sequence[Finding], written: Written, lang: str, width: int, colour: bool = False
) -> str:
    """A line per finding that was wrong or is, then how it ended and how to take it back."""
    paint = Paint(colour)
    was = {finding.id for finding in before if finding.outcome is Outcome.FAIL}
    lines = []
    for finding in after:
        if finding.outcome not in _WORDS or (finding.outcome is Outcome.UNKNOWN and finding.id not in was):
            continue
        words = _WORDS[finding.outcome].to(lang)
        subject = f" [{printable(finding.subject)}]" if finding.subject else ""
        text = f"{finding.id}{subject}  {printable(_told(finding).to(lang))}"
        painted = indent(text, width, f"  {pad(words, 12)}", " " * 14)
        painted[0] = "  " + paint(pad(words, 12), _COLOURS[finding.outcome]) + painted[0][2 + len(pad(words, 12)) :]
        lines += painted
    lines += ["", paint(_verdict(after, was, written).to(lang), "bold")]
    if written.run:
        lines.append(_way_back(written, lang))
    return "\n".join(line.rstrip(" ") for line in lines)


def _told(finding: Finding) -> Text:
    title = finding.check.title
    if finding.outcome is Outcome.FIXED:
        return title if finding.actual is None else finding.actual
    if finding.reason is None:
        return title
    return Message("{title}: {reason}", title=title, reason=finding.reason)


def _verdict(after: Iterable[Finding], was: set[str], written: Written) -> Text:
    by: dict[Outcome, set[str]] = {}
    for finding in after:
        by.setdefault(finding.outcome, set()).add(finding.id)
    wrong = by.get(Outcome.FAIL, set()) | by.get(Outcome.ERROR, set())
    fixed = by.get(Outcome.FIXED, set()) - wrong
    untold = (by.get(Outcome.UNKNOWN, set()) & was) - wrong
    en, zh = [f"{len(fixed)} fixed"], [f"{len(fixed)} 项已修复"]
    if wrong:
        en.append(f"{len(wrong)} still wrong")
        zh.append(f"{len(wrong)} 项仍有问题")
    if untold:
        en.append(f"{len(untold)} could not be told")
        zh.append(f"{len(untold)} 项无法判断")
    for why, one, more, chinese in _HELD:
        number = sum(1 for held in written.held if held.why == why)
        if number:
            en.append(f"{number} {one if number == 1 else more}")
            zh.append(f"{number} 项改动{chinese}")
    return Bilingual("; ".join(en), "；".join(zh))


def _way_back(written: Written, lang: str) -> str:
    if lang == "zh":
        return f"运行 {written.run}。撤销：envtune undo {written.run}"
    return f"Run {written.run}. To take it back: envtune undo {written.run}"


def render_json(plan: Plan, findings: Sequence[Finding], written: Written, lang: str) -> str:
    """`envtune.fix/1`: the plan, the result of every change, the findings afterwards."""
    held = [{"change": one.change.id, "why": one.why, "reason": one.reason.to(lang)} for one in written.held]
    data = {
        "schema": SCHEMA,
        "run": written.run,
        "plan": plan_data(plan, lang),
        "results": [dict(result) for result in written.results.values()],
        "held": held,
        "findings": [finding_data(finding, lang) for finding in findings],
    }
    return json.dumps(data, ensure_ascii=False, indent=1)


def result_lines(results: Iterable[Mapping[str, Any]], lang: str, past: RecordedRun, width: int = 100) -> Iterator[str]:
    """A line per change of a run that was finished, or per step of one that was undone; `past` is that run."""
    targets = {change["id"]: change.get("target", "") for change in past.plan["changes"]}
    for result in results:
        words = pad(_RESULTS[result["status"]].to(lang), 9)
        step = past.steps.get((result["change"], result.get("number", -1)), {}).get("operation")
        target = targets.get(result["change"], "")
        thing = printable(_thing(step, target) if step else target)
        error = printable(result_message(result).to(lang)) if result["error"] else ""
        colon = "：" if lang == "zh" else ": "
        text = colon.join(word for word in (thing, error) if word)
        yield from (line.rstrip() for line in indent(text, width, f"  {words} {pad(result['change'], 4)} ", " " * 17))


def _thing(operation: Mapping[str, Any], target: str) -> str:
    """What an operation is about: one of several of a change that is about `target`."""
    if operation["op"] == "run":
        return " ".join(operation["argv"])
    return str(operation["path"]) if operation["op"] == "file" else target
