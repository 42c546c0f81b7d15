"""Render a report as SARIF 2.1.0 (OASIS), the exchange format of analysis tools.

Problems, notes, unknown checks and waived ones are results; what passed or does not apply is not. A host has no lines
of source code: a result names the subject as a logical location, and the file that was read where there is one.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, Mapping, Optional

from envtune.messages import Message
from envtune.report.formats.labels import pair
from envtune.report.formats.view import CheckView, ReportView, Row
from envtune.trust.characters import json_text

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS: Mapping[str, str] = {
    "critical": "error",
    "high": "error",
    "medium": "warning",
    "low": "note",
    "info": "note",
}
LANGUAGES = {"en": "en-US", "zh": "zh-CN"}
_RESULTS = ("fail", "note", "unknown", "waived")
_PATH = re.compile(r"/[^\s,*]+")


def render(report: ReportView) -> str:
    """Return the report as one JSON document."""
    return json_text(document(report), 1) + "\n"


def document(report: ReportView) -> dict[str, Any]:
    """Return the report as plain data."""
    shown = report.by_outcome(*_RESULTS)
    partly = [check for check in report.checks if check.waived]
    rules = sorted({*shown, *partly, *report.by_outcome("error")}, key=lambda check: check.id)
    numbers = {check.id: number for number, check in enumerate(rules)}
    driver = {"name": "envtune", "version": report.version, "rules": [rule_of(check) for check in rules]}
    results = [_result(check, row, numbers[check.id], report) for check in shown for row in check.rows]
    for check in partly:
        results += [_suppressed(check, row, numbers[check.id], report, reason) for row, reason in check.waived]
    run = {
        "tool": {"driver": driver},
        "language": LANGUAGES[report.lang],
        "automationDetails": {"id": f"envtune/{report.host}/"},
        "invocations": [_invocation(report, numbers)],
        "results": results,
        "properties": {"host": report.host, "verdict": report.verdict},
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def rule_of(check: CheckView) -> dict[str, Any]:
    """Return a check as a rule."""
    texts = {"shortDescription": check.title, "fullDescription": check.why, "help": check.remedy}
    return {
        "id": check.id,
        "name": check.name,
        **{name: {"text": text} for name, text in texts.items() if text},
        "defaultConfiguration": {"level": LEVELS[check.severity]},
        "properties": {"tags": [check.family, *check.tags]},
    }


def _result(check: CheckView, row: Row, rule: int, report: ReportView) -> dict[str, Any]:
    said = pair(report.lang, row.subject, row.found)
    head = check.outcome_word if check.outcome == "unknown" else check.title
    message = pair(report.lang, head, said) if said else head
    if row.expected:
        message = Message("{actual} (expected {expected})", actual=message, expected=row.expected).to(report.lang)
    result = {
        "ruleId": check.id,
        "ruleIndex": rule,
        **_kind(check),
        "message": {"text": message},
        "locations": [_location(check, row, report)],
        "partialFingerprints": {"checkAndSubject/v1": fingerprint(report.host, check.id, row.key)},
        "properties": {
            "severity": check.severity,
            "commands": [{"kind": one.kind, "line": one.line} for one in check.commands if one.line],
            "fixable": check.fixable,
        },
    }
    if check.outcome == "waived":
        result["suppressions"] = _suppressions(check.waiver or check.outcome_word)
    return result


def _suppressed(check: CheckView, row: Row, rule: int, report: ReportView, reason: str) -> dict[str, Any]:
    """Return what is waived of a check that says something else about other subjects."""
    level = {"kind": "fail", "level": LEVELS[check.severity]}
    made = _result(check._replace(outcome="fail"), row, rule, report)
    return {**made, **level, "suppressions": _suppressions(reason)}


def _suppressions(reason: str) -> list[dict[str, str]]:
    return [{"kind": "external", "status": "accepted", "justification": reason}]


def _kind(check: CheckView) -> dict[str, str]:
    """Return kind and level; the level of what is no failure has to be none (3.27.10)."""
    if check.outcome == "unknown":
        return {"kind": "open", "level": "none"}
    return {"kind": "fail", "level": "note" if check.outcome == "note" else LEVELS[check.severity]}


def _location(check: CheckView, row: Row, report: ReportView) -> dict[str, Any]:
    name = row.key or check.id
    logical = {"name": name, "fullyQualifiedName": f"{report.host}/{name}", "kind": "resource"}
    location: dict[str, Any] = {"logicalLocations": [logical]}
    path = _file(check)
    if path is not None:
        from urllib.parse import quote

        location["physicalLocation"] = {"artifactLocation": {"uri": "file://" + quote(path)}}
    return location


def _file(check: CheckView) -> Optional[str]:
    found = (_PATH.match(source) for source in check.sources)
    return next((match[0] for match in found if match is not None), None)


def fingerprint(*parts: str) -> str:
    """Return what tells a result apart in another run."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()


def _invocation(report: ReportView, numbers: Mapping[str, int]) -> dict[str, Any]:
    """Return how the run went; a check in which envtune failed is a notification of the tool, no result."""
    failed = report.by_outcome("error")
    return {
        "executionSuccessful": not failed,
        "exitCode": report.exit_status,
        "startTimeUtc": report.started,
        "machine": report.host,
        "toolExecutionNotifications": [
            {
                "level": "error",
                "message": {"text": pair(report.lang, check.title, row.found)},
                "associatedRule": {"id": check.id, "index": numbers[check.id]},
            }
            for check in failed
            for row in check.rows
        ],
    }
