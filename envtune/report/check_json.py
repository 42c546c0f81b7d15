"""Render a report as data, `envtune.report/1`. The schema is published in docs/schema/report.json."""

from __future__ import annotations

from typing import Any, Mapping, Optional

from envtune.audit import summary
from envtune.audit.verdict import verdict
from envtune.messages import Text
from envtune.model import Command, Finding, Outcome, Report, Source, Waiver
from envtune.report.redaction import redacted
from envtune.trust.characters import json_text
from envtune.version import __version__

SCHEMA = "envtune.report/1"


def report_data(report: Report, lang: str) -> dict[str, Any]:
    """Return the report as plain data, its sentences in `lang`."""
    return {
        "schema": SCHEMA,
        "envtune": __version__,
        "host": report.host,
        "started": report.started,
        "seconds": round(report.seconds, 3),
        "target": _target(report.target, lang),
        "facts": {fact.name: fact.value if fact.value is not None else "unknown" for fact in report.facts},
        "findings": [finding_data(finding, lang) for finding in report.findings],
        "summary": dict(summary(report.findings)),
        "verdict": verdict(report.findings).value,
        **({"policy": dict(report.policy)} if report.policy else {}),
    }


def _target(target: Mapping[str, Source], lang: str) -> dict[str, str]:
    """Return the target; the source of its environment is an identifier and stays English, like that of evidence."""
    return {
        name: redacted(str(value) if isinstance(value, str) or name == "environment" else value.to(lang))
        for name, value in target.items()
    }


def finding_data(finding: Finding, lang: str) -> dict[str, Any]:
    """Return one finding as plain data."""
    return {
        "id": finding.id,
        "name": finding.check.name,
        "outcome": finding.outcome.value,
        "severity": finding.severity.value,
        "subject": redacted(finding.subject),
        "actual": _to(finding.actual, lang),
        "expected": _to(finding.expected, lang),
        "reason": _to(finding.reason, lang),
        "evidence": {"source": redacted(str(finding.evidence.source)), "text": redacted(finding.evidence.text)},
        "remedy": remedy_text(finding, lang),
        "commands": [_command_data(command, lang) for command in finding.commands],
        "faq": list(finding.check.faq),
        **({} if finding.waiver is None else {"waiver": waiver_data(finding, finding.waiver)}),
    }


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
        return {"kind": command.kind, "line": redacted(command.line), "reason": None}
    return {"kind": command.kind, "line": None, "reason": _to(command.line, lang)}


def _to(text: Optional[Text], lang: str) -> Optional[str]:
    return None if text is None else redacted(text.to(lang))


def render(report: Report, lang: str) -> str:
    """Return the report as one JSON document."""
    return json_text(report_data(report, lang), 1)
