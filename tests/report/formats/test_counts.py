"""Every format of a report says the same numbers: checks, each once, by the worst of its findings."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Mapping

import pytest
from helpers.documents import made
from helpers.recorded import host_names, kept_names, kept_report
from helpers.rows import sampled
from lxml import etree
from prometheus_client.parser import text_string_to_metric_families

from envtune.audit.verdict import Counts, count_checks
from envtune.audit.waivers import waive
from envtune.model import Outcome, Report, Severity, Waiver
from envtune.report import check_json, check_short, check_text
from envtune.report.formats import junit, markdown, nagios, prometheus, sarif
from envtune.report.formats.view import Settings, view

STRICTEST = Settings(Severity.INFO, strict=True)  # with which each failure is one in every format


@cache
def report_of(name: str, waived: bool) -> Report:
    """A recorded host; with a waiver for the check that fails first, and for one subject of the next."""
    report = kept_report(name) if name in kept_names() else made(name)
    failed = list(dict.fromkeys(f.id for f in report.findings if f.outcome is Outcome.FAIL and not f.check.note))
    if not waived or not failed:
        return report
    findings = []
    for finding in report.findings:
        which = failed.index(finding.id) if finding.id in failed[:2] else None
        subject = "*" if which == 0 else finding.subject.split(", ")[0].split("-")[0] or "*"
        waiver = Waiver(finding.id, "known", "ops", "2099-01-01", subject)
        findings += [finding] if which is None else waive((finding,), (waiver,), report.host, 0.0)
    return report._replace(findings=tuple(findings), policy={"file": "policy.yaml", "profile": ""})


CASES = [(name, waived) for name in (*host_names(), *kept_names()) for waived in (False, True)]


@pytest.mark.parametrize(("name", "waived"), sampled(CASES, 7))
def test_every_format_counts_the_same(name: str, waived: bool) -> None:
    report = report_of(name, waived)
    counts = count_checks(report.findings)
    document = view(report, "en", STRICTEST)
    failed = {s.value: n for s, n in counts.severities.items()}
    outcomes = {o.value: n for o, n in counts.outcomes.items()}
    assert (
        check_json.report_data(report, "en")["counts"]["waived"]
        == counts.waived
        == len({f.id for f in report.findings if f.outcome is Outcome.WAIVED})
    )
    assert "envtune_waived{host=" in prometheus.render(document)
    assert of_json(report) == (counts.problems, failed, outcomes)
    assert of_prometheus(prometheus.render(document)) == (failed, outcomes)
    assert of_nagios(nagios.render(document)) == {"problems": counts.problems, "unknown": outcomes["unknown"], **failed}
    for page in (
        check_short.render(report, "en", width=120),
        check_text.render(report, "en", width=120),
        markdown.render(document),
        nagios.render(document),
    ):
        is_brief = document.verdict == "no_npu" and not page.startswith("NO NPU")  # the line of the verdict only
        assert is_brief or of_text(page) == {word: number for word, number in failed.items() if number}
    assert of_tail(check_short.render(report, "en", width=80)) == shown(counts)
    assert len(etree.fromstring(junit.render(document).encode()).findall(".//failure")) == outcomes["fail"]
    assert outcomes_in_sarif(sarif.render(document)) == outcomes["fail"]


def of_json(report: Report) -> tuple[int, Mapping[str, int], Mapping[str, int]]:
    counts = check_json.report_data(report, "en")["counts"]
    return counts["problems"], counts["severities"], counts["outcomes"]


def of_prometheus(text: str) -> tuple[Mapping[str, float], Mapping[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            label = sample.labels.get("outcome") or sample.labels.get("severity", "")
            found.setdefault(sample.name, {})[label] = sample.value
    return found["envtune_problems"], found["envtune_checks"]


def of_nagios(line: str) -> Mapping[str, int]:
    values = re.findall(r"(\w+)=(\d+);;;0;\d+", line.partition("|")[2])
    return {name: int(value) for name, value in values}


def of_text(page: str) -> Mapping[str, int]:
    found = re.search(r"checks? failed \(([^)]*)\)", page)
    return {} if found is None else {word: int(number) for number, word in re.findall(r"(\d+) (\w+)", found[1])}


def of_tail(page: str) -> Mapping[str, int]:
    tail = " ".join(page.split("\n\n")[-1].split()).partition("; details")[0]
    words = ("passed", "unknown", "waived", "fixed", "not applicable")
    return {word: int(number) for number, word in re.findall(rf"(\d+) ({'|'.join(words)})", tail)}


def shown(counts: Counts) -> Mapping[str, int]:
    words = {"pass": "passed", "notapplicable": "not applicable"}
    return {
        words.get(outcome.value, outcome.value): count
        for outcome, count in {**counts.outcomes, Outcome.WAIVED: counts.waived}.items()
        if count and outcome not in (Outcome.FAIL, Outcome.ERROR)
    }


def outcomes_in_sarif(text: str) -> int:
    """How many checks have a result that says they failed and is not suppressed; notes have the level `note`."""
    (run,) = json.loads(text)["runs"]
    rules = {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}
    failed = {r["ruleId"] for r in run["results"] if r["kind"] == "fail" and "suppressions" not in r}
    return len({id_ for id_ in failed if rules[id_]["id"] not in NOTES})


NOTES = frozenset(("SYS002", "SYS007", "SYS008", "CTR010", "PY107", "PY112"))
