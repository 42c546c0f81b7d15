"""The variables of a training job: what their readers document, which release reads them, what a check says of them."""

from __future__ import annotations

from typing import Any, Mapping, Optional

import pytest
from helpers.examples import ROOT, example_context
from helpers.search import examples as search
from helpers.shipped import parsed
from hypothesis import given
from hypothesis import strategies as st

from envtune.audit import examine
from envtune.catalog import check_from
from envtune.job.target import JobEnvironment
from envtune.model import Finding, Outcome
from envtune.resources.cann.compatibility import matrix
from envtune.resources.environment.reference import (
    TASK_QUEUE_2,
    TASK_QUEUE_ON,
    TorchNpu,
    about,
    behaves,
    branches_around,
    names,
    only_torch_npu,
    position,
    reads,
    release_at_least,
    table,
)
from envtune.resources.environment.running_jobs import differences, violations
from envtune.resources.environment.search_paths import path_defects
from envtune.resources.environment.training_values import train_expectation, value_words
from envtune.resources.environment.value_formats import alloc_options, judge
from envtune.snapshot.host import SnapshotHost

RELEASED = {row.package_version: row.branch_or_tag for row in matrix() if row.package == "torch_npu"}


def torch_npu(version: str) -> TorchNpu:
    found = branches_around(version, RELEASED)
    assert found is not None
    return TorchNpu(version, *found, "")


# ------------------------------------------------------------------ values


def good(name: str, value: str, npu: Optional[str] = None, **others: str) -> Optional[bool]:
    return judge(about(name)["form"], value, npu, {name: value, **others}).good


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("HCCL_CONNECT_TIMEOUT", "120 600 7200", "119 7201 0 -1 120s 1e3"),
        ("HCCL_EVENT_TIMEOUT", "0 1868 2147483647", "-1 2147483648 x"),
        ("HCCL_BUFFSIZE", "1 200 4096", "0 -200 200M"),
        ("HCCL_RDMA_TC", "0 4 132 252", "255 133 256 -4"),
        ("HCCL_RDMA_SL", "0 4 7", "8 -1"),
        ("HCCL_RDMA_RETRY_CNT", "1 7", "0 8"),
        ("HCCL_RDMA_QPS_PER_CONNECTION", "1 32", "0 33"),
        ("HCCL_MULTI_QP_THRESHOLD", "1 8192", "0 8193"),
        ("HCCL_WHITELIST_DISABLE", "0 1", "2 true"),
        ("HCCL_OP_EXPANSION_MODE", "AIV AI_CPU AICPU_TS AICPU_CacheDisable HOST HOST_TS CCU_MS", "aiv CCU_ GPU"),
        ("HCCL_DETERMINISTIC", "true false strict TRUE", "1 0 yes"),
        ("HCCL_OP_RETRY_ENABLE", "L1:0,L2:0 L0:0,L1:1,L2:1 L1:1", "1 L3:0 L1=0 L1:2"),
        (
            "HCCL_OP_RETRY_PARAMS",
            "MaxCnt:3,HoldTime:5000,IntervalTime:1000 MaxCnt:1",
            "MaxCnt:0 MaxCnt:11 HoldTime:60001 3",
        ),
        ("HCCL_SOCKET_FAMILY", "AF_INET AF_INET6", "4 inet"),
        ("HCCL_SOCKET_IFNAME", "eth ^eth =eth0 ^=eth0,enp0 eth0,enp67s0f5", "eth0,=eth1 /dev/eth0 ^ ^= =^eth0"),
        (
            "HCCL_ALGO",
            "level0:NA;level1:ring level0:NA;level1:H-D_R;level2:NB alltoall=level0:NA;level1:pipeline",
            "ring level1=ring level0:",
        ),
        ("TASK_QUEUE_ENABLE", "0 1 2", "3 true on"),
        ("NPU_ASD_ENABLE", "0 1 2 3", "4 true"),
        ("STREAMS_PER_DEVICE", "8 32", "16 0"),
        ("COMBINED_ENABLE", "0 1", "2 yes"),
        ("MULTI_STREAM_MEMORY_REUSE", "0 1 2 3", "4 -1"),
        ("ACL_OP_COMPILER_CACHE_MODE", "enable disable force", "on 1"),
        ("ACL_DEVICE_SYNC_TIMEOUT", "1 2147483", "0 2147484 -2147480"),
        ("ASCEND_GLOBAL_LOG_LEVEL", "0 1 2 3 4", "5 error"),
        ("ASCEND_MODULE_LOG_LEVEL", "HCCL=1 FE=0:GE=3", "HCCL=5 HCCL FE=0;GE=3"),
        (
            "CPU_AFFINITY_CONF",
            "0 1 2 1,npu0:0-1,npu1:2-5 2,force:1,npu0:0-3 1,npu_affine:1 1,lazy_bind:0",
            "3 npu0:0-1 1,npu0:5-2 1,npu0:1 1,force:2",
        ),
        (
            "PYTORCH_NPU_ALLOC_CONF",
            "max_split_size_mb:32,garbage_collection_threshold:0.6 expandable_segments:True,base_addr_aligned_kb:16 "
            "page_size:1g roundup_power2_divisions:4 roundup_power2_divisions:[256:1,512:2,1024:4,>:8] "
            "expandable_segments:True,segment_size_mb:40",
            "max_split_size_mb:20 max_split_size_mb:x garbage_collection_threshold:1.0 garbage_collection_threshold:0 "
            "expandable_segments:true expandable_segments:1 base_addr_aligned_kb:17 page_size:2g segment_size_mb:600 "
            "expandable_segments expandable_segments=True roundup_power2_divisions:[256]",
        ),
    ],
)  # fmt: skip
def test_values(name: str, right: str, wrong: str) -> None:
    for value in right.split():
        assert good(name, value) is True, f"{name}={value}"
    for value in wrong.split():
        assert good(name, value) is False, f"{name}={value}"
    assert good(name, "") is False
    assert good(name, "1\r") is False


@pytest.mark.parametrize(
    ("name", "value", "on_910a", "on_910b", "unknown"),
    [
        ("HCCL_EXEC_TIMEOUT", "1836", True, True, True),
        ("HCCL_EXEC_TIMEOUT", "17340", True, True, True),
        ("HCCL_EXEC_TIMEOUT", "17341", False, True, None),
        ("HCCL_EXEC_TIMEOUT", "0", False, True, None),
        ("HCCL_EXEC_TIMEOUT", "-1", False, False, False),
        ("HCCL_RDMA_TIMEOUT", "24", True, False, None),
        ("HCCL_RDMA_TIMEOUT", "20", True, True, True),
        ("HCCL_RDMA_TIMEOUT", "4", False, False, False),
    ],
)
def test_values_by_product(
    name: str, value: str, on_910a: Optional[bool], on_910b: Optional[bool], unknown: Optional[bool]
) -> None:
    assert good(name, value, "910A") is on_910a
    assert good(name, value, "910B") is on_910b
    assert good(name, value, "A3") is on_910b
    assert good(name, value, None) is unknown
    assert good(name, value, "310P") is unknown


def test_timeout_of_vector_core_collectives() -> None:
    assert good("HCCL_EXEC_TIMEOUT", "1836", "910B", HCCL_OP_EXPANSION_MODE="AIV") is False
    assert good("HCCL_EXEC_TIMEOUT", "1091", "910B", HCCL_OP_EXPANSION_MODE="AIV") is True
    assert good("HCCL_EXEC_TIMEOUT", "1836", "910A", HCCL_OP_EXPANSION_MODE="AIV") is True


@pytest.mark.parametrize(
    ("value", "wanted"),
    [("0.05", True), ("0.5", True), ("0.050", True), ("1091.00", True), ("0.005", False), ("1091.01", False)],
)
def test_timeout_of_vector_core_collectives_in_steps_of_ten_milliseconds(value: str, wanted: bool) -> None:
    assert good("HCCL_EXEC_TIMEOUT", value, "A3", HCCL_OP_EXPANSION_MODE="AIV") is wanted
    assert good("HCCL_EXEC_TIMEOUT", value, "910B") is False  # whole seconds only


def test_an_allocator_option_nobody_told_us_of() -> None:
    assert good("PYTORCH_NPU_ALLOC_CONF", "expandable_segments:True,from_the_future:1") is None
    assert good("PYTORCH_NPU_ALLOC_CONF", "expandable_segments:1,from_the_future:1") is False


@search(200)
@given(st.sampled_from([name for name in names() if about(name).get("form")]), st.text(max_size=60))
def test_any_value_ends_in_an_answer(name: str, value: str) -> None:
    for npu in ("910A", "910B", None):
        assert judge(about(name)["form"], value, npu, {name: value}).wanted.zh
    alloc_options(value)


# ------------------------------------------------------------------ releases


def test_order_of_releases() -> None:
    line = ["2.0.4.tr5", "v1.5.0-3.0.rc1", "v1.5.0-3.0.rc2", "v1.5.0-3.0.0"]
    assert [position(b) for b in line] == sorted(filter(None, map(position, line)))
    assert position("v1.11.0-5.0.rc2.2") > position("v1.11.0-5.0.rc2")  # type: ignore[operator]
    assert position("some-branch") is None
    assert all(position(branch) for branch in table()["branches"])


@pytest.mark.parametrize(
    ("version", "variable", "wanted"),
    [
        ("1.5.0.post2", "PTCOPY_ENABLE", True),
        ("1.5.0.post5", "PTCOPY_ENABLE", False),
        ("2.1.0.post10", "PTCOPY_ENABLE", False),
        ("1.5.0.post5", "DYNAMIC_OP", True),
        ("1.5.0.post6", "DYNAMIC_OP", False),
        ("1.5.0.post7", "DYNAMIC_OP", False),  # v1.5.0-3.0.rc3: both neighbors agree
        ("2.1.0.post10", "TASK_QUEUE_ENABLE", True),
        ("2.1.0.post8", "CPU_AFFINITY_CONF", None),  # v2.1.0-6.0.rc3: 5.0.0 does not, 6.0.0 does
        ("2.1.0.post10+gitabc", "CPU_AFFINITY_CONF", True),
        ("2.7.1.post4", "PER_STREAM_QUEUE", True),
        ("2.10.0", "HCCL_BLOCKING_WAIT", True),  # in a list of names
        ("2.9.0.post6", "TORCH_HCCL_DESYNC_DEBUG", False),
        ("2.1.0.post3", "PYTORCH_NPU_ALLOC_CONF", True),  # not in the matrix itself, between two that are
        ("2.10.0", "A_NAME_NOBODY_SCANNED", None),
    ],
)
def test_which_release_reads_what(version: str, variable: str, wanted: Optional[bool]) -> None:
    assert reads(torch_npu(version), variable) is wanted


@pytest.mark.parametrize("version", ["2.3.0", "1.5.0", "3.0.0", "nightly", "", "2.1"])
def test_a_version_without_a_place(version: str) -> None:
    assert branches_around(version, RELEASED) is None


@pytest.mark.parametrize(
    ("version", "on", "level_2"),
    [
        ("1.5.0.post3", False, False),
        ("1.8.1.post2", False, False),
        ("1.11.0", None, False),
        ("1.11.0.post8", True, False),
        ("1.11.0.post14", True, None),
        ("2.1.0", True, False),
        ("2.1.0.post8", True, None),
        ("2.1.0.post10", True, True),
        ("2.9.0.post99", True, True),
    ],
)
def test_task_queue_by_release(version: str, on: Optional[bool], level_2: Optional[bool]) -> None:
    assert behaves(torch_npu(version), TASK_QUEUE_ON) is on
    assert behaves(torch_npu(version), TASK_QUEUE_2) is level_2


def test_one_allocator_variable_for_all_devices() -> None:
    assert release_at_least(torch_npu("2.10.0"), "26.2.0", "2.10.0") is False
    assert release_at_least(torch_npu("2.9.0.post99"), "26.2.0", "2.10.0") is False
    assert release_at_least(torch_npu("2.12.0.post9"), "26.2.0", "2.10.0") is None


# ------------------------------------------------------------------ the table and the checks agree


def test_every_variable_has_its_readers_and_its_source() -> None:
    for name in names():
        assert about(name)["readers"], name
        assert about(name)["source"], name
        if only_torch_npu(name):
            assert name in table()["reads"], f"{name}: which branch reads it?"
    width = len(table()["branches"])
    assert {len(bits) for bits in table()["reads"].values()} == {width}
    assert {len(row["branches"]) for row in table()["behaviour"].values()} == {width}


def test_what_training_wants_is_of_the_documented_form() -> None:
    for name in names():
        row = about(name)
        for value in row.get("train", ()):
            if value != "unset" and "form" in row:
                assert good(name, value, "910B") is True, f"{name}={value}"
        assert not set(row.get("train", ())) & set(row.get("debug", ())), name
        if "default" in row and "form" in row:
            assert good(name, row["default"], "910B") is True, name


def checks() -> dict[str, Mapping[str, Any]]:
    return {path.name[:6]: parsed(path) for path in (ROOT / "checks" / "environment").glob("*.yaml")}


def test_words_for_a_person() -> None:
    profiles = {name: train_expectation(name) for name in names()}
    words = {name: value_words(name, expected) for name, expected in profiles.items() if expected}
    assert words["DUMP_GE_GRAPH"] is not None
    assert words["DUMP_GE_GRAPH"].zh == "不设置"
    assert words["ASCEND_GLOBAL_LOG_LEVEL"] is not None
    assert words["ASCEND_GLOBAL_LOG_LEVEL"].en == "3, or unset (the default is 3)"


# ------------------------------------------------------------------ whole checks


def findings(check: str, **example: Any) -> tuple[Finding, ...]:
    return examine(check_from(checks()[check]), example_context(example))


def outcomes(check: str, **example: Any) -> dict[str, str]:
    return {found.subject: found.outcome.value for found in findings(check, **example)}


NPU = ["npu-910b-8", "torch210"]


def test_the_evidence_names_the_line_of_the_script() -> None:
    script = {"/job/train.sh": "#!/bin/bash\nset -e\nexport TASK_QUEUE_ENABLE=0\npython3 train.py\n"}
    (found,) = findings("ENV001", like=NPU, files=script, target={"script": "/job/train.sh"})
    assert found.outcome is Outcome.FAIL
    assert (str(found.evidence.source), found.evidence.text) == ("/job/train.sh:3", "TASK_QUEUE_ENABLE=0")
    assert found.expected is not None
    assert found.expected.en == "1"


def test_the_evidence_of_a_variable_that_is_not_set() -> None:
    (found,) = findings("ENV004", like=NPU)
    assert found.outcome is Outcome.PASS
    assert (str(found.evidence.source), found.evidence.text) == (
        "environment of this shell",
        "DUMP_GE_GRAPH is not set",
    )
    assert found.actual is not None
    assert found.actual.zh == "未设置"


def test_one_unknown_variable_costs_only_its_own_check() -> None:
    script = {"/job/train.sh": "export ASCEND_GLOBAL_LOG_LEVEL=$1 TASK_QUEUE_ENABLE=1\npython3 train.py\n"}
    job = {"like": NPU, "files": script, "target": {"script": "/job/train.sh"}}
    assert outcomes("ENV001", **job) == {"TASK_QUEUE_ENABLE": "pass"}
    assert outcomes("ENV003", **job) == {"": "unknown"}
    assert outcomes("ENV015", **job) == {"ASCEND_GLOBAL_LOG_LEVEL": "unknown"}


def test_debug_settings_are_listed_one_by_one() -> None:
    found = findings("ENV015", like=NPU, environ={"TASK_QUEUE_ENABLE": "0", "DUMP_GE_GRAPH": "2", "ACL_DUMP_DATA": "0"})
    assert {f.subject: f.outcome for f in found} == {
        "TASK_QUEUE_ENABLE": Outcome.FAIL,
        "DUMP_GE_GRAPH": Outcome.FAIL,
    }


def test_an_unreadable_source_leaves_no_pass_behind() -> None:
    """Whatever a sourced file may have set is not known: no check passes on the strength of silence."""
    files = {"/job/train.sh": "source ./hidden.sh\npython3 train.py\n", "/job/hidden.sh": {"error": "EACCES"}}
    for check in checks():
        if check not in ("ENV011", "ENV012", "ENV016"):
            found = outcomes(check, like=NPU, files=files, target={"script": "/job/train.sh"})
            assert "pass" not in found.values(), (check, found)
            assert "error" not in found.values(), (check, found)


def test_sudo_makes_every_check_of_the_environment_unknown() -> None:
    for check in checks():
        found = outcomes(check, like=NPU, environ={"SUDO_USER": "li"})
        # no hdf5 and no process here; a torch_npu that does not read the variable, whatever it holds
        elsewhere = check in ("ENV007", "ENV009", "ENV012", "ENV016", "ENV017")
        assert set(found.values()) == {"notapplicable" if elsewhere else "unknown"}, check


def test_allocator_variables_that_exclude_each_other_only_from_26_2_on() -> None:
    both = {"PYTORCH_ALLOC_CONF": "max_split_size_mb:64", "PYTORCH_NPU_ALLOC_CONF": "max_split_size_mb:64"}
    assert set(outcomes("ENV104", like=NPU, environ=both).values()) == {"pass"}


# ------------------------------------------------------------------ search paths


def defects(value: str, files: bool = False) -> list[str]:
    host = SnapshotHost(
        {
            "files": {
                "/a/x": "",
                "/b": {"dir": []},
                "/egg": "zip",
                "/closed": {"error": "EACCES"},
                "/link": {"link": "/b"},
            }
        }
    )
    found, silent = path_defects(host, value, files)
    return [text.en for text in found] + ([f"? {silent.path}"] if silent else [])


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("/a:/b", []),
        ("/a:/link", []),
        ("/a:", ["an empty entry (the current directory)"]),
        (":/a", ["an empty entry (the current directory)"]),
        ("/a::/b", ["an empty entry (the current directory)"]),
        ("/a:/b:/a", ["/a more than once"]),
        ("/a:/a/", ["/a more than once"]),
        ("/a:/gone", ["/gone does not exist"]),
        ("/a:lib", ["lib is relative"]),
        ("/a/x", ["/a/x is not a directory"]),
        ("/egg", ["/egg is not a directory"]),
        ("/closed/d", ["? /closed/d"]),
        ("/closed/d:/gone", ["/gone does not exist", "? /closed/d"]),
    ],
)
def test_search_path(value: str, wanted: list[str]) -> None:
    assert defects(value) == wanted


def test_archives_on_the_python_path() -> None:
    assert defects("/egg:/a", files=True) == []


# ------------------------------------------------------------------ running processes


def test_process_against_the_script() -> None:
    script = JobEnvironment(
        {"TASK_QUEUE_ENABLE": "2", "PATH": "/x", "HCCL_CONNECT_TIMEOUT": "1200"},
        "train.sh",
        places={"TASK_QUEUE_ENABLE": "train.sh:1", "PATH": "train.sh:2"},
    )
    found, untold = differences({"TASK_QUEUE_ENABLE": "1", "PATH": "/y"}, script)
    assert [text.en for text in found] == ["TASK_QUEUE_ENABLE is 1, not 2"]  # PATH is no setting, the timeout inherited
    assert untold is None


def test_process_against_what_training_wants() -> None:
    bare = example_context({"like": NPU})
    assert violations(bare, {"TASK_QUEUE_ENABLE": "1", "PATH": "/usr/bin"}) == ()
    found = violations(bare, {"TASK_QUEUE_ENABLE": "0", "ASCEND_GLOBAL_LOG_LEVEL": "1"})
    assert [text.en.split()[0] for text in found] == ["TASK_QUEUE_ENABLE", "ASCEND_GLOBAL_LOG_LEVEL"]
