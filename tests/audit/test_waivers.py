"""What a waiver makes of a finding."""

from __future__ import annotations

import pytest
from helpers.policies import shipped

from envtune.audit.verdict import Verdict, exit_code, verdict
from envtune.audit.waivers import waive
from envtune.model import Command, Evidence, Finding, Outcome, Severity, Waiver

NOW = 1798761600.0  # 2027-01-01
CHECK = next(check for check in shipped().checks if check.id == "CANN007")
WAIVER = Waiver("CANN007", "with the vendor", "ops", "2027-01-01")
EXPIRED = WAIVER._replace(expires="2026-12-31")


def finding(subject: str, outcome: Outcome = Outcome.FAIL) -> Finding:
    commands = (Command("look", "npu-smi info"),)
    return Finding(CHECK, outcome, Severity.CRITICAL, subject, None, None, None, Evidence("here"), commands=commands)


@pytest.mark.parametrize(
    ("subject", "waivers", "expected"),
    [
        ("npu3", [WAIVER], [("npu3", "waived")]),
        ("", [WAIVER], [("", "waived")]),
        ("npu3", [WAIVER._replace(subject="npu[0-2]")], [("npu3", "fail")]),
        ("npu2-7", [WAIVER._replace(subject="npu[2-4]")], [("npu2-4", "waived"), ("npu5-7", "fail")]),
        ("npu2-7, te", [WAIVER._replace(subject="te,npu3")], [("npu2, npu4-7", "fail"), ("npu3, te", "waived")]),
        ("npu3", [WAIVER._replace(hosts="node[1-9]")], [("npu3", "waived")]),
        ("npu3", [WAIVER._replace(hosts="node[1-4]")], [("npu3", "fail")]),
        ("npu3", [EXPIRED], [("npu3", "fail")]),
        ("npu3", [EXPIRED, WAIVER], [("npu3", "waived")]),
        ("npu0-99999", [WAIVER], [("npu0-99999", "waived")]),
    ],
)
def test_fails(subject: str, waivers: list[Waiver], expected: list[tuple[str, str]]) -> None:
    found = waive([finding(subject)], waivers, "node5.cluster", NOW)
    assert [(one.subject, one.outcome.value) for one in found] == expected


@pytest.mark.parametrize("outcome", [Outcome.PASS, Outcome.NOTAPPLICABLE, Outcome.ERROR, Outcome.UNKNOWN])
def test_only_what_failed_is_waived(outcome: Outcome) -> None:
    assert waive([finding("npu3", outcome)], [WAIVER], "node5", NOW) == (finding("npu3", outcome),)


def test_what_could_not_be_checked_is_waived_where_the_waiver_says_so() -> None:
    (found,) = waive([finding("npu3", Outcome.UNKNOWN)], [WAIVER._replace(unknown=True)], "node5", NOW)
    assert found.outcome is Outcome.WAIVED


def test_a_waived_finding_says_why_and_offers_no_command() -> None:
    (found,) = waive([finding("npu3")], [WAIVER], "node5", NOW)
    assert (str(found.reason), found.commands) == ("waived until 2027-01-01 by ops: with the vendor", ())


def test_an_expired_waiver_is_named() -> None:
    (found,) = waive([finding("npu3")], [EXPIRED], "node5", NOW)
    assert str(found.reason) == "the waiver expired on 2026-12-31 (owner: ops; reason: with the vendor)"
    assert (found.waiver, found.commands) == (EXPIRED, (Command("look", "npu-smi info"),))


def test_it_plays_no_part_in_the_verdict() -> None:
    rest = finding("npu0", Outcome.PASS)
    waived = [*waive([finding("npu3")], [WAIVER], "node5", NOW), rest]
    assert (verdict(waived), exit_code(waived, Severity.LOW)) == (Verdict.READY, 0)
    expired = [*waive([finding("npu3")], [EXPIRED], "node5", NOW), rest]
    assert (verdict(expired), exit_code(expired, Severity.LOW)) == (Verdict.NOT_READY, 1)
