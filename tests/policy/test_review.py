"""Which waivers of a policy need attention."""

from __future__ import annotations

import pytest
from helpers.policies import shipped

from envtune.audit.waivers import waive
from envtune.model import Evidence, Finding, Outcome, Severity, Waiver
from envtune.policy.review import review

CHECK = next(check for check in shipped().checks if check.id == "CPU001")
FAILED = Finding(CHECK, Outcome.FAIL, Severity.MEDIUM, "cpu0", None, None, None, Evidence(""))


@pytest.mark.parametrize(
    ("waiver", "state", "used", "needs_work"),
    [
        (Waiver("CPU001", "r", "o", "2027-06-01"), "valid", True, False),
        (Waiver("CPU001", "r", "o", "2027-01-31"), "soon", True, False),
        (Waiver("CPU001", "r", "o", "2027-01-01"), "soon", True, False),
        (Waiver("CPU001", "r", "o", "2026-12-31"), "expired", True, True),
        (Waiver("CPU001", "r", "o", "2027-06-01", subject="cpu1"), "valid", False, True),
        (Waiver("CPU001", "r", "o", "2027-06-01", hosts="other*"), "valid", None, False),
    ],
)
def test_review(waiver: Waiver, state: str, used: object, needs_work: bool) -> None:
    findings = waive([FAILED], [waiver], "node1", 1798761600.0)  # 2027-01-01
    (row,) = review([waiver], findings, ["node1"], "2027-01-01", "2027-01-31")
    assert (row.state, row.used, row.needs_work) == (state, used, needs_work)
