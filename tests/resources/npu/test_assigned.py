"""The devices a job names: they exist, each is named once, and so many work together on the model."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.checks import check_files
from helpers.examples import example_context

from envtune.audit import examine
from envtune.catalog import check_from
from envtune.model import Finding, Outcome
from envtune.resources.npu.assigned import parse_ids

(CHECK,) = [check_from(data) for data in check_files() if data["id"] == "NET006"]


def judge(**example: Any) -> tuple[Finding, ...]:
    return examine(CHECK, example_context(example))


def failed(findings: tuple[Finding, ...]) -> list[str]:
    return [f.subject for f in findings if f.outcome is Outcome.FAIL]


@pytest.mark.parametrize(
    ("text", "ranges", "numbers"),
    [
        ("0,1,2", False, (0, 1, 2)),
        ("7", False, (7,)),
        ("0-2,4", True, (0, 1, 2, 4)),
        ("0-2", False, None),
        ("", False, None),
        ("0, 1", False, None),
        ("-1", True, None),
        ("3-1", True, None),
        ("a", False, None),
        ("9" * 500, False, None),
    ],
)
def test_lists_of_ids(text: str, ranges: bool, numbers: Any) -> None:
    assert parse_ids(text, ranges) == numbers


@pytest.mark.parametrize(
    ("variables", "outcome"),
    [
        ({"ASCEND_RT_VISIBLE_DEVICES": "0,1,2,3,4,5,6,7"}, "pass"),
        ({"ASCEND_RT_VISIBLE_DEVICES": "0,1", "ASCEND_DEVICE_ID": "1"}, "pass"),
        ({"ASCEND_RT_VISIBLE_DEVICES": "0,1", "ASCEND_DEVICE_ID": "2"}, "fail"),
        ({"ASCEND_VISIBLE_DEVICES": "0-3"}, "pass"),
        ({"ASCEND_VISIBLE_DEVICES": "0-2,9"}, "fail"),
        ({"ASCEND_VISIBLE_DEVICES": "void"}, "notapplicable"),
        ({"ASCEND_VISIBLE_DEVICES": "100", "ASCEND_RUNTIME_OPTIONS": "VIRTUAL"}, "notapplicable"),
        ({"LOCAL_WORLD_SIZE": "8"}, "pass"),
        ({"LOCAL_WORLD_SIZE": "9"}, "fail"),
        ({"LOCAL_WORLD_SIZE": "six"}, "unknown"),
        ({"WORLD_SIZE": "64"}, "notapplicable"),
        ({"ASCEND_RT_VISIBLE_DEVICES": ""}, "unknown"),
        ({}, "notapplicable"),
    ],
)
def test_devices_of_a_job(variables: dict[str, str], outcome: str) -> None:
    findings = judge(like="npu-910b-8", environ=variables)
    assert {f.outcome.value for f in findings} >= {outcome}
    assert outcome == "fail" or "fail" not in {f.outcome.value for f in findings}


@pytest.mark.parametrize("numbers", ["0,1,2", "0,1,2,3,4", "3,4", "0,1,4,5"])
def test_groups_that_only_910a_refuses(numbers: str) -> None:
    variables = {"ASCEND_RT_VISIBLE_DEVICES": numbers}
    assert failed(judge(like="npu-910a-8", environ=variables)) == ["ASCEND_RT_VISIBLE_DEVICES"]
    assert failed(judge(like="npu-910b-8", environ=variables)) == []
    assert failed(judge(like="npu-a3-16", environ=variables)) == []


def test_numbers_inside_a_container_are_its_own() -> None:
    """Cards 4-7 of a 910A server, inside: 0-3; and what the runtime was told still speaks of the host."""
    files = {"/.dockerenv": "", **{f"/dev/davinci{n}": None for n in range(4)}}
    variables = {"ASCEND_VISIBLE_DEVICES": "4,5,6,7", "ASCEND_RT_VISIBLE_DEVICES": "0,1,2,3"}
    assert {f.outcome for f in judge(like="npu-910a-8", files=files, environ=variables)} == {Outcome.PASS}


def test_device_list_of_a_running_job() -> None:
    argv = ["python3", "main.py", "--device-list", "0,1,1"]
    init = {"pid": 1, "ppid": 0, "user": "root", "name": "systemd", "started": 1699000000}
    job = {"pid": 500, "ppid": 1, "user": "li", "name": "python3", "started": 1699999000, "argv": argv}
    findings = judge(like="npu-910b-8", processes=[init, job], target={"pid": 500})
    assert failed(findings) == ["--device-list"]
