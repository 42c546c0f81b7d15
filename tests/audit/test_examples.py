"""Every example of every check, named by id: `test_example[CPU001-fail-0]`."""

from __future__ import annotations

from typing import Any, Mapping

import pytest
from helpers.checks import all_examples, check_files
from helpers.examples import example_context

from envtune.audit import examine
from envtune.catalog import check_from
from envtune.model import Outcome

OUTCOMES = ("pass", "fail", "notapplicable", "unknown")


@pytest.mark.parametrize(("data", "outcome", "example"), list(all_examples()))
def test_example(data: Mapping[str, Any], outcome: str, example: Mapping[str, Any]) -> None:
    findings = examine(check_from(data), example_context(example))
    told = [
        (f.outcome.value, f.subject, f.actual and f.actual.en, f.reason and f.reason.en, f.evidence) for f in findings
    ]
    if outcome in ("pass", "notapplicable"):
        assert {f.outcome for f in findings} == {Outcome(outcome)}, told
    chosen = [f for f in findings if f.outcome is Outcome(outcome)]
    assert chosen, told
    for finding in chosen:
        assert finding.evidence.source, "every finding names its source"
        assert finding.outcome in (Outcome.PASS, Outcome.FAIL) or finding.reason is not None
    wanted = example.get("expect")
    if wanted:
        seen = [
            {
                "subject": f.subject,
                "actual": f.actual and f.actual.en,
                "severity": f.severity.value,
                "reason": f.reason and f.reason.en,
            }
            for f in chosen
        ]
        assert any(all(str(w) in str(row[k]) for k, w in wanted.items()) for row in seen), seen


@pytest.mark.parametrize("data", [pytest.param(d, id=d["id"]) for d in check_files()])
def test_examples_of_each_outcome(data: Mapping[str, Any]) -> None:
    assert {"pass", "fail", "notapplicable"} <= set(data["examples"])
    assert set(data["examples"]) <= set(OUTCOMES)
    assert all(data["examples"].values())
