"""envtune.report/2: what programs read. The numbers are those of the text, facts have types, commands are a list."""

from __future__ import annotations

import json

import pytest
from helpers.json_schema import conforms
from helpers.recorded import ROOT, host_names
from helpers.recorded import recorded_report as made
from helpers.rows import sampled

from envtune.ranges import decimal
from envtune.report.check_json import NUMBERS, render, report_data
from envtune.report.problems import problems

SCHEMA = json.loads((ROOT / "docs" / "schema" / "report-2.json").read_text("utf-8"))
VERSIONS = ("os_version",)  # facts that may read like a number and are none


@pytest.mark.parametrize("name", sampled(host_names(), 3))
def test_it_keeps_the_published_schema(name: str) -> None:
    for lang in ("en", "zh"):
        assert conforms(json.loads(render(made(name), lang)), SCHEMA) == []


@pytest.mark.parametrize("name", host_names())
def test_the_counts_are_those_of_the_findings(name: str) -> None:
    data = report_data(made(name), "en")
    counts = data["counts"]
    assert counts["checks"] == len({finding["id"] for finding in data["findings"]})
    assert counts["checks"] == sum(counts["outcomes"].values()) + counts["notes"]
    assert counts["problems"] == sum(counts["severities"].values()) == sum(len(p["checks"]) for p in data["problems"])
    assert counts["problems"] == counts["outcomes"]["fail"] + counts["outcomes"]["error"]


def test_facts_have_types() -> None:
    facts = report_data(made("910b-openeuler2203-troubled"), "en")["facts"]
    assert (facts["npu_count"], facts["container"], facts["ascend"]) == (8, False, True)
    assert (facts["npu"], facts["os_version"]) == ("910B", "22.03")
    container = report_data(made("container-without-driver"), "en")
    assert container["facts"]["driver"] is None
    assert "version.info" in container["unknown_facts"]["driver"]


def test_every_fact_that_is_a_number_is_one() -> None:
    read = {fact.name for name in host_names() for fact in made(name).facts if decimal(fact.value or "") is not None}
    assert read - set(VERSIONS) == set(NUMBERS)


def test_the_commands_are_a_list_and_not_a_part_of_the_remedy() -> None:
    data = report_data(made("910b-openeuler2203-troubled"), "en")
    (port,) = [finding for finding in data["findings"] if finding["id"] == "NET003"]
    assert {"kind": "fix", "command": "export MASTER_PORT=29500", "reason": None} in port["commands"]
    assert "export" not in port["remedy"] and port["title"]
    (te,) = [finding for finding in data["findings"] if finding["id"] == "CANN003" and finding["commands"]]
    assert "-m ensurepip && sudo envtune fix CANN003 " in te["commands"][0]["command"]


def test_problems_are_those_of_the_text() -> None:
    found = made("910b-openeuler2203-troubled")
    data = report_data(found, "en")["problems"]
    assert [tuple(row["checks"]) for row in data] == [problem.ids for problem in problems(found.findings)]
    assert {row["checks"][0]: row["fixable"] for row in data}["NET005"] is True
    asked = report_data(found._replace(fixable=None), "en")["problems"]
    assert {row["fixable"] for row in asked} == {None}


def test_a_container_is_a_note() -> None:
    data = report_data(made("container-without-driver"), "en")
    assert [note["check"] for note in data["notes"]] == ["SYS002", "SYS008"]
    assert not {"SYS002", "SYS008"} & {check for problem in data["problems"] for check in problem["checks"]}


def test_a_host_without_npu_has_a_verdict_of_its_own_and_none_in_the_former_version() -> None:
    found = made("plain-debian12")
    assert report_data(found, "en")["verdict"] == "no_npu"
    assert report_data(found, "en", 1)["verdict"] == "not_ready"
