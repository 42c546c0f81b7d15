"""Every example of every check, named by id: `test_examples[CPU001]`."""

from __future__ import annotations

from typing import Any, Mapping

import pytest
from helpers.checks import check_files
from helpers.examples import example_context
from helpers.rows import sampled
from helpers.shipped import ASK_OTHER_HOSTS

from envtune.audit import examine
from envtune.catalog import check_from
from envtune.model import Outcome

OUTCOMES = ("pass", "fail", "notapplicable", "unknown")


CHECKS = [pytest.param(data, id=data["id"]) for data in check_files()]


@pytest.mark.parametrize("data", sampled(CHECKS, 2))
def test_examples(data: Mapping[str, Any]) -> None:
    for outcome, examples in data["examples"].items():
        for number, example in enumerate(examples):
            judge(data, outcome, number, example)


def judge(data: Mapping[str, Any], outcome: str, number: int, example: Mapping[str, Any]) -> None:
    """The case is named in every message."""
    findings = examine(check_from(data), example_context(example))
    rows = [
        (f.outcome.value, f.subject, f.actual and f.actual.en, f.reason and f.reason.en, f.evidence) for f in findings
    ]
    told = f"{data['id']}-{outcome}-{number}", rows
    if outcome in ("pass", "notapplicable"):
        assert {f.outcome for f in findings} == {Outcome(outcome)}, told
    chosen = [f for f in findings if f.outcome is Outcome(outcome)]
    assert chosen, told
    for finding in chosen:
        assert finding.evidence.source, told
        assert finding.outcome in (Outcome.PASS, Outcome.FAIL) or finding.reason is not None, told
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
        assert any(all(str(w) in str(row[k]) for k, w in wanted.items()) for row in seen), (told, seen)


def test_examples_of_each_outcome() -> None:
    for data in check_files():
        wanted = {"notapplicable"} if data["id"] in ASK_OTHER_HOSTS else {"pass", "fail", "notapplicable"}
        assert wanted <= set(data["examples"]) <= set(OUTCOMES), data["id"]
        assert all(data["examples"].values()), data["id"]
