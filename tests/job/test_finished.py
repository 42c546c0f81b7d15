"""What a finished job had: the variables that torch_npu's profiler notes in profiler_metadata.json."""

from __future__ import annotations

import json
from typing import Any, Mapping

import pytest
from helpers.recorded import host_data, report

from envtune.job.environment import read_environment
from envtune.job.finished import finished_environment
from envtune.job.target import TargetOptions
from envtune.model import Outcome
from envtune.snapshot.host import SnapshotHost

PATH = "/home/li/run/profiler_metadata.json"
# As torch_npu 2.x writes it for a job that sets none of them.
NOTED = dict.fromkeys(
    (
        "ASCEND_GLOBAL_LOG_LEVEL",
        "HCCL_RDMA_TC",
        "HCCL_RDMA_SL",
        "ACLNN_CACHE_LIMIT",
        "HOST_CACHE_CAPACITY",
        "ASCEND_ENHANCE_ENABLE",
        "PYTORCH_NPU_ALLOC_CONF",
        "ASCEND_LAUNCH_BLOCKING",
    ),
    "",
)


def metadata(**variables: str) -> str:
    return json.dumps({"distributed_args": {"world_size": 8}, "ENV_VARIABLES": {**NOTED, **variables}}, indent=4)


def outcomes(text: str) -> Mapping[str, set[Outcome]]:
    """Every finding of the checks about these variables, on a machine without an NPU."""
    data = host_data("plain-debian12")
    data["target"], data["files"] = {"env_file": PATH}, {**data["files"], PATH: text}
    found: dict[str, set[Outcome]] = {}
    for finding in report(data, ("ENV001", "ENV003", "ENV015", "ENV101", "ENV103")).findings:
        found.setdefault(finding.id, set()).add(finding.outcome)
    return found


def test_a_variable_that_was_set_is_judged() -> None:
    found = outcomes(metadata(ASCEND_GLOBAL_LOG_LEVEL="1", HCCL_RDMA_TC="133"))
    assert Outcome.FAIL in found["ENV003"] and Outcome.FAIL in found["ENV103"]


def test_a_variable_that_was_not_set_is_known_not_to_be_set() -> None:
    assert outcomes(metadata())["ENV003"] == {Outcome.PASS}


def test_a_variable_that_the_profiler_does_not_note_is_unknown() -> None:
    found = outcomes(metadata())
    assert found["ENV001"] == {Outcome.UNKNOWN}
    environment = finished_environment(PATH, metadata())
    assert str(environment.why_unknown("TASK_QUEUE_ENABLE")) == f"the profiler did not record it in {PATH}"
    assert environment.why_unknown("HCCL_RDMA_TC") is None


def test_this_shell_is_not_that_job() -> None:
    host = SnapshotHost({"environ": {"HCCL_BUFFSIZE": "1"}, "files": {PATH: metadata(HCCL_RDMA_SL="4")}})
    environment = read_environment(host, TargetOptions(env_file=PATH))
    assert (environment.variables, environment.place("HCCL_RDMA_SL")) == ({"HCCL_RDMA_SL": "4"}, PATH)


@pytest.mark.parametrize("text", ["{", "{}", '{"ENV_VARIABLES": []}', '{"name": "HCCL_RDMA_TC", "value": "132"}'])
def test_other_json_tells_nothing(text: Any) -> None:
    environment = finished_environment(PATH, text)
    assert environment.variables is None and "not a profiler_metadata.json" in str(environment.reason)
