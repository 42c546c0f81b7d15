"""Ready is said on evidence only, and with the same meaning in text, in JSON and as exit status."""

from __future__ import annotations

from typing import Optional

import pytest

from envtune.audit.verdict import Verdict, count_checks, exit_code, verdict
from envtune.catalog import load
from envtune.messages import Literal
from envtune.model import Check, Evidence, Fact, Finding, Outcome, Report, Severity
from envtune.report import check_json, check_short, check_text

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
    Verdict.READY: "READY  node1: ",
    Verdict.ADVICE: "READY, with advice  node1: ",
    Verdict.NOT_READY: "NOT READY  node1: ",
    Verdict.NOT_SURE: "NOT SURE  node1: ",
    Verdict.NOTHING_CHECKED: "NOTHING CHECKED  node1: ",
    Verdict.NO_NPU: "NO NPU  node1: ",
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
    ("waived:high", "ready", 0),
    ("waived:high unknown:high", "not_sure", 3),
    ("fail:low", "ready_with_advice", 0),
    ("fail:low unknown:low", "ready_with_advice", 0),
    ("error:low", "not_sure", 3),
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
    assert check_text.render(report, "en").startswith(WORDS[Verdict(expected)])
    assert check_short.render(report, "en").startswith(WORDS[Verdict(expected)])
    assert exit_code(findings, Severity.MEDIUM) == status


# one check each, and the first line of the report
REASONS = [
    ("pass:high pass:high", "READY  node1: 2 checks passed"),
    ("pass:high waived:high", "READY  node1: 1 check passed"),
    ("waived:high", "READY  node1: 1 check waived"),
    ("fail:low", "READY, with advice  node1: 1 check failed (1 low)"),
    ("unknown:low", "NOT SURE  node1: no problems, 1 check unknown"),
    ("pass:high error:high", "NOT SURE  node1: 1 check failed (1 high), 1 of them with an error in envtune"),
    ("fail:low unknown:high", "NOT SURE  node1: 1 check failed (1 low), 1 check unknown"),
    ("waived:high unknown:high", "NOT SURE  node1: no problems, 1 check unknown"),
    ("note:low", "READY  node1: no problems"),
    ("note:low unknown:high", "NOT SURE  node1: no problems, 1 check unknown"),
    ("note:low na:high", "READY  node1: no problems"),
]


@pytest.mark.parametrize(("words", "line"), REASONS)
def test_the_first_line_gives_the_reason(words: str, line: str) -> None:
    ids = iter(("CPU001", "CPU002"))
    findings = tuple(
        of("SYS008", Outcome.FAIL, "low") if word == "note:low" else finding(word)._replace(check=check_of(next(ids)))
        for word in words.split()
    )
    report = Report("node1", "2026-01-01T00:00:00Z", 0.0, {}, (), findings)
    assert check_short.render(report, "en").splitlines()[0] == line
    assert exit_code(findings, Severity.MEDIUM) == (3 if line.startswith("NOT SURE") else 0)


def test_what_only_a_right_hides_counts_with_strict() -> None:
    findings = (finding("pass:high"), finding("root:high"))
    assert exit_code(findings, Severity.MEDIUM, strict=True) == 3


# ---------------------------------------------------------------------- notes, and hosts that cannot train


def check_of(id_: str) -> Check:
    return next(check for check in load().checks if check.id == id_)


def of(id_: str, outcome: Outcome, severity: str, subject: str = "") -> Finding:
    return finding("pass:low")._replace(
        check=check_of(id_), outcome=outcome, severity=Severity(severity), subject=subject
    )


def test_a_note_is_no_problem() -> None:
    findings = (finding("pass:high"), of("SYS008", Outcome.FAIL, "low"))
    assert verdict(findings) is Verdict.READY
    assert [exit_code(findings, Severity(word)) for word in ("info", "low", "medium")] == [0, 0, 0]
    counts = count_checks(findings)
    assert (counts.problems, counts.notes, counts.checks) == (0, 1, 2)


@pytest.mark.parametrize(
    ("ascend", "job", "id_", "expected", "status"),
    [
        ("false", "false", "ENV001", "no_npu", 3),
        ("true", "true", "ENV001", "ready", 0),
        ("false", "true", "ENV001", "ready", 0),  # a job that runs elsewhere is checked here
        (None, None, "ENV001", "ready", 0),
        ("false", "false", "SYS001", "ready", 0),  # nobody asked about training
    ],
)
def test_a_host_without_anything_of_ascend_is_not_ready(
    ascend: Optional[str], job: Optional[str], id_: str, expected: str, status: int
) -> None:
    facts = (Fact("ascend", ascend, "/dev"), Fact("ascend_job", job, "/dev"))
    findings = (of("SYS002", Outcome.PASS, "medium"), of(id_, Outcome.NOTAPPLICABLE, "medium"))
    assert verdict(findings, facts).value == expected
    assert exit_code(findings, Severity.MEDIUM, facts=facts) == status
    assert verdict((*findings, of("SYS009", Outcome.FAIL, "medium")), facts).value in (expected, "not_ready")
    assert exit_code((*findings, of("SYS009", Outcome.FAIL, "medium")), Severity.MEDIUM, facts=facts) == 1


def test_a_check_counts_once_by_the_worst_of_its_findings() -> None:
    findings = (
        *(of("CANN007", Outcome.FAIL, "critical", f"npu{number}") for number in range(6)),
        *(of("CANN003", outcome, "low", outcome.value) for outcome in (Outcome.PASS, Outcome.UNKNOWN)),
        of("SYS009", Outcome.PASS, "medium"),
    )
    counts = count_checks(findings)
    assert (counts.severities[Severity.CRITICAL], counts.problems, counts.checks) == (1, 1, 3)
    assert (counts.outcomes[Outcome.UNKNOWN], counts.outcomes[Outcome.PASS]) == (1, 1)
