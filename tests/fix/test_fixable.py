"""What `check` says about `envtune fix` is what `fix` does on the same host."""

from __future__ import annotations

import re

import pytest
from helpers.recorded import host_data, host_names, report
from helpers.rows import sampled

from envtune import catalog
from envtune.audit.remedies import names_fix
from envtune.context.open import open_context, recorded_options
from envtune.fix.plan import Plan, fixed_checks, make_plan
from envtune.model import Outcome
from envtune.report import check_short, check_text
from envtune.report.plan import text as plan_text
from envtune.snapshot.host import SnapshotHost


def plan_of(name: str) -> Plan:
    data = host_data(name)
    context = open_context(SnapshotHost(data), recorded_options(data.get("target") or {}))
    failed = [finding for finding in report(data).findings if finding.outcome is Outcome.FAIL]
    return make_plan([finding for finding in failed if not finding.check.note], catalog.load().playbooks, context)


@pytest.mark.parametrize("name", sampled(host_names(), 3))
def test_a_line_that_runs_fix_is_one_that_fix_carries_out(name: str) -> None:
    plan = plan_of(name)
    fixed = {check for change in plan.changes for check in fixed_checks(change)}
    on_the_host = {skipped.finding for skipped in plan.skipped if skipped.elsewhere}
    named = {f.id for f in report(host_data(name)).findings if f.outcome is Outcome.FAIL and names_fix(f)}
    pip_first = {skipped.finding for skipped in plan.skipped if "has no pip; first: " in skipped.reason.en}
    assert named <= fixed | on_the_host | pip_first


def test_what_a_recording_lacks_is_planned_on_the_host() -> None:
    data = host_data("910a-centos76-nnae202")
    text = check_short.render(report(data, ("CANN003",)), "en", width=60)
    line = "fix: sudo envtune fix CANN003 --python /usr/local/python3.7.5/bin/python3 --apply"
    assert line in " ".join(text.replace("\\\n", " ").split())
    brief = plan_text.render(plan_of("910a-centos76-nnae202"), "en", width=60)
    assert re.search(r"CPU004 run fix on the host itself: .*\(also CANN003\b", " ".join(brief.split()))
    assert "Details: -v" in brief


def test_what_fix_refuses_here_is_said_with_its_reason_and_what_to_do_instead() -> None:
    made = report(host_data("plain-debian12"), ("CPU004",))
    text = check_short.render(made, "en")
    assert "do: Install linux-tools (Ubuntu), linux-cpupower (Debian) or" in text and "cannot do it" not in text
    long = check_text.render(made, "en")
    reason = "/var/lib/dpkg/status does not exist (the list of installed packages)"
    assert f"envtune fix cannot do it: {reason}" in " ".join(long.split())
    assert "envtune fix CPU004" not in text + long
