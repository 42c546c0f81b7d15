"""Render a report as JUnit XML: a test suite for each family, a test case for each check.

The form is that of Jenkins' xUnit plugin (junit-10.xsd), which Jenkins, GitLab and most other readers take. It agrees
with the exit status of `check`: what makes it 1 is a failure, what makes it 3 is an error. Everything else that did not
pass (below --fail-on, not applicable, waived, unknown for want of root) is skipped, with the reason, so that a job is
red exactly where the exit status is not 0.
"""

from __future__ import annotations

from typing import Iterator, Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from envtune.messages import enumerated
from envtune.report.formats.labels import pair
from envtune.report.formats.view import CheckView, FamilyView, ReportView

_PASSED = ("pass", "fixed")


def render(report: ReportView) -> str:
    """Return the report as an XML document."""
    return document([suite_of(family, report) for family in report.families], report.seconds)


def document(suites: Sequence[Element], seconds: float) -> str:
    """Return test suites as an XML document."""
    root = Element("testsuites", name="envtune", time=f"{seconds:.3f}")
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in suites)))
    root.extend(suites)
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def suite_of(family: FamilyView, report: ReportView) -> Element:
    """Return the checks of a family as a test suite."""
    suite = Element("testsuite", name=f"{family.name} {family.title}".rstrip(), hostname=report.host)
    suite.set("timestamp", report.started.rstrip("Z"))  # ISO 8601 without a zone, in UTC
    cases = [_case(check, report) for check in family.checks]
    suite.set("tests", str(len(cases)))
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(sum(1 for case in cases if case.find(tag) is not None)))
    properties = SubElement(suite, "properties")
    for name, value in (("envtune", report.version), ("host", report.host), ("verdict", report.verdict)):
        SubElement(properties, "property", name=name, value=value)
    suite.extend(cases)
    return suite


def _case(check: CheckView, report: ReportView) -> Element:
    case = Element("testcase", classname=f"envtune.{check.family}", name=f"{check.id} {check.name}")
    if check.outcome in _PASSED:
        return case
    tag = {1: "failure", 3: "error"}.get(check.status, "skipped")
    kind, message = check.outcome, pair(report.lang, check.outcome_word, first_words(check, report.lang))
    if check.outcome == "fail":
        kind, message = check.severity, pair(report.lang, check.severity_word, check.title)
    element = SubElement(case, tag, type=kind, message=message)
    element.text = "\n".join(_lines(check, report))
    return case


def first_words(check: CheckView, lang: str) -> str:
    """Return why a check said nothing about the host, else what is wrong: the title says what would be."""
    said = check.waiver or next((pair(lang, row.subject, row.found) for row in check.rows), "")
    return said or check.title


def _lines(check: CheckView, report: ReportView) -> Iterator[str]:
    """Yield what a person reads about it."""
    label = report.labels
    if check.waiver:
        yield check.waiver
    for row in check.rows:
        yield pair(report.lang, row.subject, row.found)
        if row.expected:
            yield "  " + pair(report.lang, label["expected"], row.expected)
    if check.sources:
        yield pair(report.lang, label["where"], enumerated(check.sources).to(report.lang))
    if check.remedy:
        yield pair(report.lang, label["do"], check.remedy)
    for command in check.commands:
        name = label[command.kind if command.line else "do"]
        yield pair(report.lang, name, command.line or command.reason)
