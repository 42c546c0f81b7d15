"""What would fix a host, by its snapshot, and what the same checks say after it."""

from __future__ import annotations

import copy
from functools import cache, partial
from typing import Any

from helpers import fleet

from envtune.catalog import load
from envtune.collector.snapshot import pack
from envtune.fix.consent import Consent
from envtune.fleet.collected import Collection
from envtune.fleet.fix.plan import Fixing, HostPlan, Written, check_again, executable_plan, newly_failing, plan_host
from envtune.fleet.judge import Question, Snapshot, judge_all
from envtune.fleet.record import CheckRecord, HostRecord

GOVERNOR = "/sys/devices/system/cpu/cpufreq/policy5/scaling_governor"
FIXING = Fixing(frozenset({"CPU001"}), (), Consent(("CPU001",)))


@cache
def question() -> Question:
    catalogue = load()
    checks = tuple(check for check in catalogue.checks if check.family in ("CPU", "SYS"))
    return Question(checks, catalogue.expectations)


def fixing(**more: Any) -> Fixing:
    return FIXING._replace(playbooks=load().playbooks, **more)


def snapshot(name: str, **files: str) -> Snapshot:
    data = copy.deepcopy(fleet.deviating()[name])
    data["files"].update(files)
    return Snapshot(name, pack({"schema": "envtune.snapshot/1", **data}), True)


def test_a_plan_is_that_of_one_host() -> None:
    plan = plan_host(snapshot("pod3-node9"), question(), fixing())
    assert [change.target for change in plan.changes] == [GOVERNOR] and plan.reason is None
    assert plan.group == ("A3", "aarch64", "openEuler", "25.3.rc1")
    assert executable_plan(plan)["changes"][0]["operations"][0]["path"] == GOVERNOR
    assert plan.record.checks["CPU001"].outcome == "fail" and len(plan.record.checks) > 1


def test_what_needs_confirmation_is_withheld_until_it_is_named() -> None:
    plan = plan_host(snapshot("pod3-node9"), question(), fixing(consent=Consent()))
    assert plan.changes == () and {one.change.finding for one in plan.withheld} == {"CPU001"}


def test_a_host_with_jobs_on_its_npus_is_left_out_unless_it_is_drained() -> None:
    plan = plan_host(snapshot("gpu-lab1"), question(), fixing())
    assert plan.changes == () and plan.reason is not None
    assert plan.reason.en == "jobs use its NPUs: 6035 python3"
    assert plan_host(snapshot("gpu-lab1"), question(), fixing(drained=True)).changes


VARIABLES = "/etc/job.env"


def with_job(**target: str) -> Snapshot:
    """A host whose job has a file of variables, one of which is wrong."""
    data = copy.deepcopy(fleet.deviating()["node7"])
    data["target"] = target
    data["files"][VARIABLES] = "export TASK_QUEUE_ENABLE=0\n"
    return Snapshot("node7", pack({"schema": "envtune.snapshot/1", **data}), True)


def variables_question() -> tuple[Question, Fixing]:
    catalogue = load()
    checks = tuple(check for check in catalogue.checks if check.id == "ENV001")
    wanted = Fixing(frozenset({"ENV001"}), catalogue.playbooks, Consent(("ENV001",)), drained=True)
    return Question(checks, catalogue.expectations), wanted


def test_variables_are_fixed_in_the_file_that_is_named_and_in_no_other() -> None:
    asked, wanted = variables_question()
    named = plan_host(with_job(env_file=VARIABLES), asked, wanted)
    assert [change.target for change in named.changes] == [VARIABLES]
    plain = plan_host(with_job(), asked, wanted)
    assert plain.changes == () and plain.record.checks["ENV001"].outcome == "unknown"


def test_variables_of_a_running_job_are_left_out_without_a_file() -> None:
    asked, wanted = variables_question()
    data = copy.deepcopy(fleet.deviating()["node7"])
    pid = next(row["pid"] for row in data["processes"] if row["pid"] > 1)
    data["target"] = {"pid": pid, "job": "train"}
    data["files"][f"/proc/{pid}/environ"] = "PATH=/usr/bin\0TASK_QUEUE_ENABLE=0\0"
    snapshot = Snapshot("node7", pack({"schema": "envtune.snapshot/1", **data}), True)
    plan = plan_host(snapshot, asked, wanted)
    assert plan.record.checks["ENV001"].outcome == "fail" and plan.changes == ()
    assert [(one.finding, "--env-file" in one.reason.en) for one in plan.skipped] == [("ENV001", True)]


def test_a_snapshot_that_is_none_costs_its_host_only() -> None:
    work = partial(lambda one, asked, fixing: plan_host(one, asked, fixing), fixing=fixing())
    hosts = [Snapshot("bad", b"no snapshot", True), snapshot("pod3-node9")]
    found: list[Any] = list(judge_all(hosts, question()._replace(work=work), 1))
    plans = {plan.host: plan for plan in found if isinstance(plan, HostPlan)}
    assert plans["bad"].record.collection is Collection.CORRUPT and not plans["bad"].changes
    assert plans["pod3-node9"].changes


def again(after: Snapshot, *results: Any) -> Any:
    before = snapshot("pod3-node9")
    return check_again(after, question(), fixing(), {"pod3-node9": Written(before, "20260102-030405", results)})


def test_the_same_checks_afterwards() -> None:
    good = again(snapshot("pod3-node9", **{GOVERNOR: "performance\n"}))
    assert set(good.states.values()) <= {"fixed", "fixed-until-reboot"} and good.newly_failing == ()
    assert set(again(snapshot("pod3-node9")).states.values()) == {"still-failing"}
    failed = {"change": "C01", "status": "failed", "state": "failed-restored", "error": "no", "problems": []}
    assert again(snapshot("pod3-node9"), failed).states == {"C01": "failed-restored"}


def record(**outcomes: str) -> HostRecord:
    checks = {name: CheckRecord(outcome, "high") for name, outcome in outcomes.items()}
    return HostRecord("h", Collection.OK, checks=checks)


def test_checks_that_fail_newly() -> None:
    before = record(A="pass", B="fail", C="unknown", D="notapplicable", E="pass", F="pass", G="waived")
    after = record(A="pass", B="fail", C="fail", D="fail", E="error", F="note", G="fail", H="fail")
    assert newly_failing(before, after) == ("D", "E")
