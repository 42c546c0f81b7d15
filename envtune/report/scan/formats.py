"""What was found in launch files as SARIF and JUnit, by way of the documents of a host's report."""

from __future__ import annotations

import time
from typing import Any, Iterator, Mapping
from xml.etree.ElementTree import Element, SubElement

from envtune.messages import Message
from envtune.model import Check, Evidence, Finding, Outcome, Report
from envtune.report.formats import junit, sarif
from envtune.report.formats.labels import pair
from envtune.report.formats.view import CheckView, Settings, view
from envtune.report.layout import printable, shown
from envtune.report.scan.text import place_of
from envtune.scan.model import FileResult, Found, Problem, ScanReport
from envtune.trust.characters import json_text
from envtune.version import __version__

_KINDS: Mapping[Outcome, str] = {Outcome.UNKNOWN: "open", Outcome.ERROR: "open"}


def render_sarif(report: ScanReport, lang: str, settings: Settings, status: int) -> str:
    """Return the report as a SARIF document, whose results have file and line."""
    rules: dict[str, CheckView] = {}
    for file in report.files:
        for check in view(_report(file, report), lang, settings).checks:
            rules.setdefault(check.id, check)
    shown_ids = sorted({one.finding.id for one in report.found})
    numbers = {id_: number for number, id_ in enumerate(shown_ids)}
    driver = {"name": "envtune", "version": __version__, "rules": [sarif.rule_of(rules[id_]) for id_ in shown_ids]}
    run = {
        "tool": {"driver": driver},
        "language": sarif.LANGUAGES[lang],
        "automationDetails": {"id": "envtune/scan/"},
        "invocations": [
            {
                "executionSuccessful": not report.all_problems,
                "exitCode": status,
                "toolExecutionNotifications": [_notification(one, lang) for one in report.all_problems],
            }
        ],
        "results": [_result(one, numbers[one.finding.id], lang) for one in report.found],
    }
    return json_text({"$schema": sarif.SCHEMA, "version": "2.1.0", "runs": [run]}, 1) + "\n"


def _notification(problem: Problem, lang: str) -> dict[str, Any]:
    return {
        "level": "error",
        "message": {"text": shown(problem.reason, lang)},
        "locations": [_location(problem.path, problem.line)],
    }


def _location(path: str, line: int) -> dict[str, Any]:
    from urllib.parse import quote

    uri = ("file://" if path.startswith("/") else "") + quote(path.encode("utf-8", "surrogateescape"))
    place: dict[str, Any] = {"artifactLocation": {"uri": uri}}
    if line:
        place["region"] = {"startLine": line}
    return {"physicalLocation": place}


def _result(found: Found, rule: int, lang: str) -> dict[str, Any]:
    finding = found.finding
    is_open = finding.outcome in _KINDS
    level = {"kind": "open", "level": "none"} if is_open else {"kind": "fail", "level": _level(finding)}
    said = finding.reason if is_open else finding.actual
    text = printable("" if said is None else said.to(lang))
    name = printable(finding.subject)
    result: dict[str, Any] = {
        "ruleId": finding.id,
        "ruleIndex": rule,
        **level,
        "message": {"text": pair(lang, printable(finding.check.title.to(lang)), pair(lang, name, text))},
        "locations": [_location(found.path, found.line)],
        "partialFingerprints": {"checkAndSubject/v1": sarif.fingerprint(found.path, found.job, finding.id, name)},
        "properties": {"severity": finding.severity.value},
    }
    if found.suppression is not None:
        result["suppressions"] = [
            {"kind": "inSource", "status": "accepted", "justification": printable(found.suppression.reason)}
        ]
    elif finding.outcome is Outcome.WAIVED:
        reason = "" if finding.reason is None else shown(finding.reason, lang)
        result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": reason}]
    return result


def _level(finding: Finding) -> str:
    return sarif.LEVELS[finding.severity.value]


def render_junit(report: ScanReport, lang: str, settings: Settings) -> str:
    """Return the report as a JUnit document: a test suite for each file, a test case for each check."""
    suites = [suite for file in report.files for suite in _suites(file, report, lang, settings)]
    if report.problems:
        suites.append(_errors("envtune", "envtune", report.problems, lang))
    return junit.document(suites, 0.0)


def _suites(file: FileResult, report: ScanReport, lang: str, settings: Settings) -> Iterator[Element]:
    made = view(_report(file, report), lang, settings)
    for family in made.families:
        suite = junit.suite_of(family, made)
        suite.set("name", printable(file.path))
        suite.attrib.pop("hostname")
        for case in suite.iter("testcase"):
            case.set("classname", printable(file.path))
        for one in list(suite.iter("properties")):
            suite.remove(one)
        yield suite
    if file.problems:
        yield _errors(file.path, file.path, file.problems, lang)


def _errors(name: str, group: str, problems: tuple[Problem, ...], lang: str) -> Element:
    suite = Element("testsuite", name=printable(name), tests=str(len(problems)), failures="0", skipped="0")
    suite.set("errors", str(len(problems)))
    for one in problems:
        case = SubElement(suite, "testcase", classname=printable(group), name=place_of(one.path, one.line))
        SubElement(case, "error", type="error", message=shown(one.reason, lang))
    return suite


def _report(file: FileResult, report: ScanReport) -> Report:
    """Return a file as if it were a host: what its checks say, ignored findings as waived ones."""
    checks = {check.id: check for check in report.checks}
    passed = [_passed(checks[id_]) for id_ in file.passed if id_ in checks]
    found = [_accepted(one) for one in file.found]
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return Report(file.path, started, 0.0, {}, (), (*passed, *found))


def _passed(check: Check) -> Finding:
    return Finding(check, Outcome.PASS, check.severity, "", None, None, None, Evidence(""))


def _accepted(found: Found) -> Finding:
    place = place_of(found.path, found.line)
    finding = found.finding._replace(evidence=found.finding.evidence._replace(source=place))
    if found.suppression is None:
        return finding
    reason = Message("ignored in the file: {reason}", reason=found.suppression.reason)
    return finding._replace(outcome=Outcome.WAIVED, reason=reason)
