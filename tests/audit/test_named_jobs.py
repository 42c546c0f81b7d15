"""A job that is named is judged wherever it stands: on a login node, in CI, on a laptop."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.recorded import host_data, report

from envtune.context.open import open_context, recorded_options
from envtune.model import Finding, Outcome
from envtune.resources.environment.profile import train
from envtune.snapshot.host import SnapshotHost

LAPTOP = "plain-debian12"
SCRIPT, ENV_FILE = "/home/li/train.sh", "/home/li/job.env"
# what the launch script holds, and the checks that it fails by that alone
LINES = [
    ("export TASK_QUEUE_ENABLE=0", "ENV001 ENV015"),
    ("export ASCEND_SLOG_PRINT_TO_STDOUT=1", "ENV002 ENV015"),
    ("export ASCEND_GLOBAL_LOG_LEVEL=1", "ENV003 ENV015"),
    ("export DUMP_GE_GRAPH=2", "ENV004 ENV015"),
    ("export DUMP_GRAPH_LEVEL=2", "ENV005 ENV015"),
    ("export ASCEND_GLOBAL_EVENT_ENABLE=1", "ENV006 ENV015"),
    ("export HCCL_WHITELIST_DISABLE=0", "ENV010 ENV104"),
    ("export ACL_DUMP_DATA=1", "ENV013 ENV015"),
    ("export HCCL_CONNECT_TIMEOUT=60", "ENV103"),
    ("export HCCL_EXEC_TIMEOUT=100 HCCL_EVENT_TIMEOUT=90", "ENV104"),
    ("export ASCEND_RT_VISIBLE_DEVICES=0,1,1", "NET006"),
]
ABOUT_VARIABLES = tuple({check for _, checks in LINES for check in checks.split()})


def findings(line: str, target: dict[str, Any]) -> tuple[Finding, ...]:
    data = host_data(LAPTOP)
    data["target"] = target
    script = f"export COMBINED_ENABLE=1\n{line}\ntorchrun train.py\n"
    data["files"] = {**data["files"], SCRIPT: script, ENV_FILE: f"COMBINED_ENABLE=1\n{line}\n"}
    return report(data, ABOUT_VARIABLES).findings


def failed(line: str, target: dict[str, Any]) -> set[str]:
    return {finding.id for finding in findings(line, target) if finding.outcome is Outcome.FAIL}


@pytest.mark.parametrize(("line", "ids"), LINES)
def test_a_script_is_judged_where_no_npu_is(line: str, ids: str) -> None:
    assert failed(line, {"script": SCRIPT}) == set(ids.split())


def test_what_is_wrong_there_has_a_fix_there() -> None:
    data = host_data(LAPTOP)
    data["files"] = {**data["files"], SCRIPT: "export TASK_QUEUE_ENABLE=0\ntorchrun train.py\n"}
    data["target"] = {"script": SCRIPT}
    advice = train(open_context(SnapshotHost(data), recorded_options(data["target"])))
    assert {row.name: row.value for row in advice.settings} == {"TASK_QUEUE_ENABLE": "1"}


def test_a_finished_job_gets_no_lines_for_its_file() -> None:
    noted = '{"ENV_VARIABLES": {"TASK_QUEUE_ENABLE": "0", "ASCEND_GLOBAL_LOG_LEVEL": "1"}}'
    data = host_data(LAPTOP)
    data["files"] = {**data["files"], ENV_FILE: noted}
    data["target"] = {"env_file": ENV_FILE}
    wrong = [f for f in report(data, ("ENV001", "ENV003")).findings if f.outcome is Outcome.FAIL]
    assert [(f.id, [c for c in f.commands if c.kind == "fix"]) for f in wrong] == [("ENV001", []), ("ENV003", [])]


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("TASK_QUEUE_ENABLE=0\n", f"in {ENV_FILE}: TASK_QUEUE_ENABLE=1"),  # docker takes no `export`
        ("export TASK_QUEUE_ENABLE=0\n", f"in {ENV_FILE}: export TASK_QUEUE_ENABLE=1"),
        ("DUMP_GE_GRAPH=2\n", f"remove DUMP_GE_GRAPH from {ENV_FILE}"),
    ],
)
def test_a_fix_is_in_the_form_of_its_env_file(text: str, fix: str) -> None:
    data = host_data(LAPTOP)
    data["files"] = {**data["files"], ENV_FILE: text}
    data["target"] = {"env_file": ENV_FILE}
    wrong = [f for f in report(data, ("ENV001", "ENV004")).findings if f.outcome is Outcome.FAIL]
    assert [getattr(c.line, "en", c.line) for f in wrong for c in f.commands if c.kind == "fix"] == [fix]


def test_an_env_file_is_judged_where_no_npu_is() -> None:
    assert failed("TASK_QUEUE_ENABLE=0", {"env_file": ENV_FILE}) == {"ENV001", "ENV015"}


def test_without_a_named_job_nothing_is_judged_there() -> None:
    assert {finding.outcome for finding in findings("export TASK_QUEUE_ENABLE=0", {})} == {Outcome.NOTAPPLICABLE}


@pytest.mark.parametrize(
    "line",
    [
        "HCCL_IF_IP=10.0.0.9",
        "HCCL_SOCKET_IFNAME=eth7",
        "GLOO_SOCKET_IFNAME=eth7",
        "RANK_TABLE_FILE=/job/table.json",
        "MASTER_PORT=29500",
        "MASTER_ADDR=10.1.2.3 NNODES=2 NODE_RANK=0",
        "MASTER_ADDR=10.1.2.3 NNODES=1",
        "MASTER_ADDR=node17",
        "TUNE_BANK_PATH=/data/bank",
    ],
)
def test_what_only_the_host_of_the_job_has_is_unknown_elsewhere(line: str) -> None:
    data = host_data(LAPTOP)
    data["files"] = {**data["files"], SCRIPT: f"export {line}\ntorchrun train.py\n"}
    data["target"] = {"script": SCRIPT}
    found = [
        f
        for f in report(data, ("NET001", "NET101", "NET003", "ENV105")).findings
        if f.subject == line.partition("=")[0]
    ]
    assert [(f.outcome, f.reason.en if f.reason else "") for f in found] == [
        (Outcome.UNKNOWN, "this host has no Ascend component, and the job's host was not read")
    ]


def test_a_setting_that_is_wrong_on_every_host_is_wrong_elsewhere() -> None:
    data = host_data(LAPTOP)
    data["files"] = {
        **data["files"],
        SCRIPT: "export HCCL_IF_IP=eth0 MASTER_PORT=80 MASTER_ADDR=127.0.0.1 NNODES=2\ntorchrun train.py\n",
    }
    data["target"] = {"script": SCRIPT}
    ids = ("NET001", "NET003", "NET101")
    assert tuple(f.id for f in report(data, ids).findings if f.outcome is Outcome.FAIL) == ids


def test_what_the_packages_of_another_host_decide_is_unknown() -> None:
    (finding,) = [f for f in findings("export HCCL_BUFFSIZE=200", {"script": SCRIPT}) if f.id == "ENV001"]
    assert finding.outcome is Outcome.UNKNOWN
    assert "the job's host was not read" in (finding.reason.en if finding.reason else "")
