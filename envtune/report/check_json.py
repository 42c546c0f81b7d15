"""Render a report as data, `envtune.report/2` or, for one more release, /1.

The schemas are published in docs/schema/report-2.json and report.json.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional, Union

from envtune.audit import summary
from envtune.audit.verdict import count_checks, verdict
from envtune.commandline import commented
from envtune.messages import Text
from envtune.model import Command, Fact, Finding, Outcome, Report, Source, Waiver
from envtune.ranges import decimal
from envtune.report.problems import fixable, impact, notes, problems
from envtune.report.redaction import redacted
from envtune.trust.characters import json_text
from envtune.version import __version__

SCHEMAS = {1: "envtune.report/1", 2: "envtune.report/2"}
NUMBERS = ("cpus", "npu_count")  # facts that are whole numbers; a version such as 7 is a text
_TRUTH = {"true": True, "false": False}


def report_data(report: Report, lang: str, schema: int = 2) -> dict[str, Any]:
    """Return the report as plain data, its sentences in `lang`, in the form of version `schema` (1 or 2)."""
    return {
        "schema": SCHEMAS[schema],
        "envtune": __version__,
        "host": report.host,
        "started": report.started,
        "seconds": round(report.seconds, 3),
        **(_body_1(report, lang) if schema == 1 else _body_2(report, lang)),
    }


def _body_1(report: Report, lang: str) -> dict[str, Any]:
    return {
        "target": _target(report.target, lang),
        "facts": {fact.name: fact.value if fact.value is not None else "unknown" for fact in report.facts},
        "findings": [finding_data(finding, lang) for finding in report.findings],
        "summary": dict(summary(report.findings)),
        "verdict": verdict(report.findings).value,
        **({"policy": dict(report.policy)} if report.policy else {}),
    }


def _body_2(report: Report, lang: str) -> dict[str, Any]:
    return {
        "verdict": verdict(report.findings, report.facts).value,
        "counts": _counts(report),
        "target": _target(report.target, lang),
        "facts": {fact.name: _typed(fact) for fact in report.facts},
        "unknown_facts": {fact.name: _to(fact.reason, lang) or "" for fact in report.facts if fact.value is None},
        "problems": _problems(report),
        "notes": [_note(finding, lang) for finding in notes(report.findings)],
        "findings": [finding_data_2(finding, lang) for finding in report.findings],
        **({"policy": dict(report.policy)} if report.policy else {}),
    }


def _counts(report: Report) -> dict[str, Any]:
    """Return how many checks say what; notes are in no other number."""
    counts = count_checks(report.findings)
    return {
        "checks": counts.checks,
        "problems": counts.problems,
        "notes": counts.notes,
        "need_root": counts.need_root,
        "waived": counts.waived,
        "outcomes": {outcome.value: count for outcome, count in counts.outcomes.items()},
        "severities": {severity.value: count for severity, count in counts.severities.items()},
    }


def _typed(fact: Fact) -> Union[str, bool, int, None]:
    if fact.value is None:
        return None
    if fact.name in NUMBERS:
        return decimal(fact.value)
    return _TRUTH.get(fact.value, fact.value)


def _problems(report: Report) -> list[dict[str, Any]]:
    """Return what is wrong, in the order in which to read it; the findings say the rest."""
    return [
        {
            "checks": list(problem.ids),
            "severity": problem.severity.value,
            "impact": impact(problem),
            "fixable": None if report.fixable is None else fixable(problem, report),
        }
        for problem in problems(report.findings)
    ]


def _note(finding: Finding, lang: str) -> dict[str, Any]:
    return {"check": finding.id, "title": finding.check.title.to(lang), "actual": _to(finding.actual, lang)}


def finding_data_2(finding: Finding, lang: str) -> dict[str, Any]:
    """Return one finding as plain data, in the form of envtune.report/2."""
    data = finding_data(finding, lang)
    check = finding.check  # its own texts quote nothing, and hold no secret
    remedy = check.remedy.to(lang) if check.remedy is not None and finding.outcome is Outcome.FAIL else None
    made = {
        "id": data["id"],
        "name": data["name"],
        "title": check.title.to(lang),
        "outcome": data["outcome"],
        "severity": data["severity"],
        "note": check.note,
        "needs_root": finding.needs_privilege,
        "subject": data["subject"],
        "actual": data["actual"],
        "expected": data["expected"],
        "reason": data["reason"],
        "evidence": data["evidence"],
        "remedy": remedy,
        "commands": [
            {"kind": row["kind"], "command": row["line"], "reason": row["reason"]} for row in data["commands"]
        ],
        "faq": data["faq"],
    }
    if "waiver" in data:
        made["waiver"] = data["waiver"]
    return made


def _target(target: Mapping[str, Source], lang: str) -> dict[str, str]:
    """Return the target; the source of its environment is an identifier and stays English, like that of evidence."""
    return {
        name: redacted(str(value) if isinstance(value, str) or name == "environment" else value.to(lang))
        for name, value in target.items()
    }


def finding_data(finding: Finding, lang: str) -> dict[str, Any]:
    """Return one finding as plain data, in the form of envtune.report/1, of plans and diagnoses."""
    return {
        "id": finding.id,
        "name": finding.check.name,
        "outcome": finding.outcome.value,
        "severity": finding.severity.value,
        "subject": redacted(finding.subject),
        "actual": _to(finding.actual, lang),
        "expected": _expected(finding, lang),
        "reason": _to(finding.reason, lang),
        "evidence": {"source": redacted(str(finding.evidence.source)), "text": redacted(finding.evidence.text)},
        "remedy": remedy_text(finding, lang),
        "commands": [_command_data(command, lang) for command in finding.commands],
        "faq": list(finding.check.faq),
        **({} if finding.waiver is None else {"waiver": waiver_data(finding, finding.waiver)}),
    }


def _expected(finding: Finding, lang: str) -> Optional[str]:
    """Return what is expected; the catalog's own words hold no secret, those about a site's value may."""
    own = finding.check.expected
    return own.to(lang) if own is not None and finding.expected is own else _to(finding.expected, lang)


def waiver_data(finding: Finding, waiver: Waiver) -> Mapping[str, Any]:
    """Return the waiver of a finding as plain data; `expired` where the finding counts all the same."""
    return {
        "reason": redacted(waiver.reason),
        "owner": redacted(waiver.owner),
        "expires": waiver.expires,
        "expired": finding.outcome is not Outcome.WAIVED,
    }


def remedy_text(finding: Finding, lang: str) -> Optional[str]:
    """Return what to do, with the lines that repair it; None where nothing is to be done."""
    if finding.outcome is not Outcome.FAIL:
        return None
    parts = [] if finding.check.remedy is None else [finding.check.remedy.to(lang)]
    repairs = [command.line for command in finding.commands if command.kind == "fix"]
    parts += [line if isinstance(line, str) else line.to(lang) for line in repairs]
    return redacted("\n".join(parts)) or None


def _command_data(command: Command, lang: str) -> dict[str, Any]:
    """Return a line to type, or the reason why none is shown."""
    if isinstance(command.line, str):
        return {"kind": command.kind, "line": redacted(commented(command.line).to(lang)), "reason": None}
    return {"kind": command.kind, "line": None, "reason": _to(command.line, lang)}


def _to(text: Optional[Text], lang: str) -> Optional[str]:
    return None if text is None else redacted(text.to(lang))


def render(report: Report, lang: str, schema: int = 2) -> str:
    """Return the report as one JSON document."""
    return json_text(report_data(report, lang, schema), 1)
