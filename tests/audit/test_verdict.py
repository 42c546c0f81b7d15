"""Ready is said on evidence only, and with the same meaning in text, in JSON and as exit status."""

from __future__ import annotations

from typing import Optional

import pytest

from envtune.audit.verdict import Verdict, exit_code, verdict
from envtune.catalog import load
from envtune.messages import Literal
from envtune.model import Evidence, Finding, Outcome, Report, Severity
from envtune.report import check_json, check_text

OUTCOMES = {
    "pass": Outcome.PASS,
    "fail": Outcome.FAIL,
    "unknown": Outcome.UNKNOWN,
    "root": Outcome.UNKNOWN,  # unknown for want of a right
    "na": Outcome.NOTAPPLICABLE,
    "error": Outcome.ERROR,
    "waived": Outcome.WAIVED,
}
WORDS = {
    Verdict.READY: "READY: ",
    Verdict.ADVICE: "READY, with advice: ",
    Verdict.NOT_READY: "NOT READY: ",
    Verdict.NOT_SURE: "NOT SURE: ",
    Verdict.NOTHING_CHECKED: "NOTHING CHECKED: ",
}
# findings, what they amount to, exit status with `--fail-on medium`
ROWS = [
    ("pass:high", "ready", 0),
    ("pass:info na:high", "ready", 0),
    ("pass:high unknown:low", "ready", 0),
    ("pass:high fail:low", "ready_with_advice", 0),
    ("pass:high fail:medium", "not_ready", 1),
    ("fail:critical", "not_ready", 1),
    ("fail:medium unknown:high", "not_ready", 1),
    ("pass:high unknown:medium", "not_sure", 3),
    ("pass:high error:high", "not_sure", 3),
    ("pass:high root:high", "not_sure", 0),
    ("unknown:low", "not_sure", 3),
    ("unknown:info na:high", "not_sure", 3),
    ("root:low", "not_sure", 3),
    ("waived:high", "not_sure", 3),
    ("fail:low", "not_sure", 0),
    ("na:high", "nothing_checked", 3),
    ("na:high na:low", "nothing_checked", 3),
]


def finding(word: str) -> Finding:
    outcome, _, severity = word.partition(":")
    check = load().checks[0]
    reason: Optional[Literal] = Literal("so")
    return Finding(
        check,
        OUTCOMES[outcome],
        Severity(severity),
        "",
        None,
        Literal("good"),
        reason,
        Evidence("/proc/x"),
        needs_privilege=outcome == "root",
    )


@pytest.mark.parametrize(("words", "expected", "status"), ROWS)
def test_verdict(words: str, expected: str, status: int) -> None:
    findings = tuple(finding(word) for word in words.split())
    report = Report("node1", "2026-01-01T00:00:00Z", 0.0, {}, (), findings)
    assert verdict(findings).value == expected
    assert check_json.report_data(report, "en")["verdict"] == expected
    assert check_text.render(report, "en").splitlines()[-1].startswith(WORDS[Verdict(expected)])
    assert exit_code(findings, Severity.MEDIUM) == status


def test_what_only_a_right_hides_counts_with_strict() -> None:
    findings = (finding("pass:high"), finding("root:high"))
    assert exit_code(findings, Severity.MEDIUM, strict=True) == 3
