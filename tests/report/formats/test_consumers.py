"""Every format as those read it for whom it is made: by its schema, by the parser of its consumer, by its rules."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from helpers.documents import CASES, TROUBLED, made, seen, seen_case
from helpers.recorded import host_names
from helpers.rows import sampled
from lxml import etree
from markdown_it import MarkdownIt
from prometheus_client.parser import text_string_to_metric_families

from envtune.audit.verdict import count_checks, exit_code
from envtune.messages import Literal
from envtune.model import Evidence, Outcome, Severity
from envtune.report.formats import junit, markdown, nagios, prometheus, sarif
from envtune.report.formats.view import Settings
from envtune.report.problems import problems

DATA = Path(__file__).resolve().parents[2] / "data"


@cache
def schema() -> Any:
    return jsonschema.Draft4Validator(json.loads((DATA / "sarif-schema-2.1.0.json").read_text("utf-8")))


@cache
def xsd() -> Any:
    return etree.XMLSchema(etree.parse(str(DATA / "junit-10.xsd")))


# ---------------------------------------------------------------------- SARIF


@pytest.mark.parametrize("name", [*CASES[:2], *sampled(CASES[2:], 5)])
def test_sarif_is_valid(name: str) -> None:
    for lang in ("en", "zh"):
        document = json.loads(sarif.render(seen_case(name, lang)))
        assert [error.message for error in schema().iter_errors(document)] == []


def test_sarif_has_every_problem_and_no_passed_check() -> None:
    (run,) = json.loads(sarif.render(seen_case(TROUBLED)))["runs"]
    failed = {f.id for f in made(TROUBLED).findings if f.outcome is Outcome.FAIL}
    assert {r["ruleId"] for r in run["results"] if r["kind"] == "fail"} == failed
    assert {r["ruleId"] for r in run["results"] if r["kind"] == "open"} == {"PROC001"}
    rules = run["tool"]["driver"]["rules"]
    assert all(rules[r["ruleIndex"]]["id"] == r["ruleId"] for r in run["results"])
    levels = {r["ruleId"]: r["level"] for r in run["results"]}
    assert (levels["CANN007"], levels["NET005"], levels["CANN003"]) == ("error", "warning", "note")
    prints = [r["partialFingerprints"]["checkAndSubject/v1"] for r in run["results"]]
    assert len(set(prints)) == len(prints)


def test_sarif_says_that_envtune_failed_and_what_is_waived() -> None:
    (run,) = json.loads(sarif.render(seen_case("defective")))["runs"]
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    (notification,) = invocation["toolExecutionNotifications"]
    assert notification["message"]["text"].endswith("envtune itself failed here")
    justified = {s["justification"] for r in run["results"] for s in r.get("suppressions", ())}
    assert justified == {"known, ticket 4711"}


def test_sarif_has_waived_subjects_of_a_check_that_fails_for_others() -> None:
    report = made(TROUBLED)
    first = next(f for f in report.findings if f.id == "CANN007" and f.outcome is Outcome.FAIL)
    waived = first._replace(outcome=Outcome.WAIVED, reason=Literal("ticket 4711"), subject="npu9")
    (run,) = json.loads(sarif.render(seen(report._replace(findings=(*report.findings, waived)))))["runs"]
    rows = [r for r in run["results"] if r["ruleId"] == "CANN007"]
    (suppressed,) = (r for r in rows if "suppressions" in r)
    assert suppressed["suppressions"][0]["justification"] == "ticket 4711" and len(rows) > 1
    assert suppressed["locations"][0]["logicalLocations"][0]["name"] == "npu9"
    assert suppressed["level"] == "error"


# ---------------------------------------------------------------------- JUnit


@pytest.mark.parametrize("name", [*CASES[:2], *sampled(CASES[2:], 5)])
def test_junit_is_valid(name: str) -> None:
    for lang in ("en", "zh"):
        xsd().assertValid(etree.fromstring(junit.render(seen_case(name, lang)).encode("utf-8")))


@pytest.mark.parametrize(("fail_on", "strict"), sampled([(s, strict) for s in Severity for strict in (False, True)], 5))
def test_junit_is_red_where_the_exit_status_is(fail_on: Severity, strict: bool) -> None:
    for name in host_names():
        root = etree.fromstring(junit.render(seen_case(name, "en", Settings(fail_on, strict))).encode("utf-8"))
        failures, errors = int(root.get("failures")), int(root.get("errors"))
        expected = exit_code(made(name).findings, fail_on, strict)
        applies = any(f.outcome is not Outcome.NOTAPPLICABLE for f in made(name).findings)
        assert (1 if failures else 3 if errors or not applies else 0) == expected, name


def test_junit_counts_what_is_in_it() -> None:
    root = etree.fromstring(junit.render(seen_case(TROUBLED)).encode("utf-8"))
    assert int(root.get("tests")) == len(root.findall(".//testcase")) == len({f.id for f in made(TROUBLED).findings})
    for suite in root.findall("testsuite"):
        for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.get(attribute)) == len(suite.findall(f"testcase/{tag}"))
    (npu,) = [c for c in root.findall(".//testcase") if c.get("name").startswith("CANN007 ")]
    assert npu.find("failure").get("type") == "critical" and "npu2-7" in npu.find("failure").text


# ---------------------------------------------------------------------- Prometheus


@pytest.mark.parametrize("name", CASES)
def test_prometheus_reads_the_metrics(name: str) -> None:
    text = prometheus.render(seen_case(name))
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert all(family.type == "gauge" and family.documentation for family in families.values())
    samples = [sample for family in families.values() for sample in family.samples]
    keys = [(sample.name, tuple(sorted(sample.labels.items()))) for sample in samples]
    assert len(set(keys)) == len(keys)  # node_exporter refuses a series that is there twice
    assert all(sample.timestamp is None and re.fullmatch("envtune_[a-z_]+", sample.name) for sample in samples)
    assert {sample.labels["host"] for sample in samples} == {seen_case(name).host}


def test_the_metrics_are_those_of_the_report() -> None:
    families = list(text_string_to_metric_families(prometheus.render(seen_case(TROUBLED, "zh"))))
    by_name: dict[str, dict[str, float]] = {}
    for family in families:
        for sample in family.samples:
            label = next((v for k, v in sample.labels.items() if k not in ("host", "severity", "version")), None)
            by_name.setdefault(sample.name, {})[label or sample.labels.get("severity", "")] = sample.value
    counts = count_checks(made(TROUBLED).findings)
    assert by_name["envtune_problems"] == {s.value: n for s, n in counts.severities.items()}
    assert by_name["envtune_checks"] == {o.value: n for o, n in counts.outcomes.items()}
    assert by_name["envtune_exit_status"] == {"": 1.0}
    assert [name for name, value in by_name["envtune_verdict"].items() if value] == ["not_ready"]
    failed = {id_ for id_, value in by_name["envtune_check_failed"].items() if value}
    assert failed == {f.id for f in made(TROUBLED).findings if f.outcome is Outcome.FAIL}
    assert by_name["envtune_check_unknown"]["PROC001"] == 1 and "PROC001" not in by_name["envtune_check_failed"]


# ---------------------------------------------------------------------- Nagios

# `SERVICE STATUS - text | 'label'=value[unit];[warning];[critical];[minimum];[maximum]`
LINE = re.compile(r"ENVTUNE (OK|WARNING|CRITICAL|UNKNOWN) - [^|\n]+\|[^|\n]+\n")
VALUE = re.compile(r"[a-z]+=[0-9.]+s?;;;0;[0-9]*|time=[0-9.]+s;;;0")


@pytest.mark.parametrize("name", CASES)
def test_nagios_is_one_line_with_performance_data(name: str) -> None:
    for lang in ("en", "zh"):
        line = nagios.render(seen_case(name, lang))
        assert LINE.fullmatch(line) and len(line.encode()) <= nagios.MAX_BYTES + 1
        values = line.rstrip("\n").partition("|")[2].split(" ")
        assert all(VALUE.fullmatch(value) for value in values), values


def test_nagios_states() -> None:
    for name in host_names():
        for fail_on in Severity:
            seen_ = seen_case(name, "en", Settings(fail_on))
            state = nagios.status(seen_)
            status = exit_code(made(name).findings, fail_on, False, made(name).facts)
            assert {0: [nagios.OK], 1: [nagios.WARNING, nagios.CRITICAL], 3: [nagios.UNKNOWN]}[status].count(state)
            assert nagios.render(seen_).startswith(f"ENVTUNE {nagios.STATES[state]} - ")


def test_a_medium_problem_is_a_warning() -> None:
    only = [
        f for f in made(TROUBLED).findings if f.severity is not Severity.CRITICAL and f.severity is not Severity.HIGH
    ]
    assert nagios.status(seen(made(TROUBLED)._replace(findings=tuple(only)))) == nagios.WARNING
    assert nagios.status(seen_case(TROUBLED)) == nagios.CRITICAL


# ---------------------------------------------------------------------- Markdown


@pytest.mark.parametrize("name", CASES)
def test_markdown_holds_nothing_but_ours(name: str) -> None:
    renderer = MarkdownIt("commonmark").enable("table")
    for lang in ("en", "zh"):
        text = markdown.render(seen_case(name, lang))
        html = renderer.render(text)
        tags = set(re.findall(r"</?([a-z0-9]+)", html))
        assert tags <= {
            "h3",
            "h4",
            "p",
            "ul",
            "li",
            "strong",
            "code",
            "pre",
            "sub",
            "table",
            "thead",
            "tbody",
            "tr",
            "th",
            "td",
        }
        assert html.count("<h4>") <= len(problems(made(name).findings)) + 3


def test_markdown_names_every_problem() -> None:
    text = markdown.render(seen_case(TROUBLED))
    for problem in problems(made(TROUBLED).findings):
        assert all(id_ in text for id_ in problem.ids)
    assert text.startswith("### NOT READY node18: 13 checks failed")


# ---------------------------------------------------------------------- all of them


@pytest.mark.parametrize("render", [junit.render, markdown.render, nagios.render, prometheus.render, sarif.render])
def test_nothing_invisible_reaches_a_document(render: Any) -> None:
    text = render(seen_case("hostile"))
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e]", text)


def test_no_secret_reaches_a_document() -> None:
    secret = "password=hunter2hunter2"
    leaky = tuple(
        f._replace(actual=Literal(f"--{secret}"), evidence=Evidence("/etc/x", secret)) for f in made(TROUBLED).findings
    )
    assert "hunter2" not in str(seen(made(TROUBLED)._replace(findings=leaky)))
