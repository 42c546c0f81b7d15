"""What a report that fits a screen says of what the site's policy asks for."""

from __future__ import annotations

import pytest
from helpers.policies import shipped
from helpers.recorded import host_data, recorded_report

from envtune.audit import audit
from envtune.context.open import open_context
from envtune.job.target import TargetOptions
from envtune.policy.apply import apply_policy
from envtune.policy.read import read_policy
from envtune.report.check_short import SCREEN, render
from envtune.snapshot.host import SnapshotHost

TROUBLED = "910b-openeuler2203-troubled"
POLICY = b"thresholds: {SYS005: 99999999}\nfacts: {driver: 25.2.0, kernel: '6.6'}\n"


@pytest.mark.parametrize(
    ("lang", "told"),
    [
        ("en", ["1080.3 GB (expected 99999999 GB or more)", "driver 25.0.rc1.1 (expected 25.2.0)"]),
        ("zh", ["1080.3 GB（期望：99999999 GB 或以上）", "驱动 25.0.rc1.1（期望：25.2.0）"]),
    ],
)
def test_what_a_policy_expects_is_shown_where_there_is_little_room(lang: str, told: list[str]) -> None:
    policy = read_policy(POLICY, "p.yaml", shipped().checks)
    asked = [check for check in apply_policy(policy, shipped()).checks if check.by_policy]
    context = open_context(SnapshotHost(host_data(TROUBLED)), TargetOptions())
    report = recorded_report(TROUBLED)
    others = [finding for finding in report.findings if finding.id != "SYS005"]
    page = render(report._replace(findings=(*others, *audit(asked, context))), lang)
    assert len(page.splitlines()) <= SCREEN
    for text in told:
        assert "".join(text.split()) in "".join(page.split())
