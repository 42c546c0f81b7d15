"""What a host answers to a fleet: plans carried out once, taken back, and asked about after a connection was lost."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.assembled import assembled
from helpers.killed_runs import change, write

import envtune.executor.fleet.requests as requests
from envtune.executor.fleet.requests import answer_request
from envtune.fleet.fix.program import executor_program, packed_request, read_answer

RUN = "fleet-20260102-030405"


def request(path: Path, action: str = "apply", **more: Any) -> dict[str, Any]:
    """A request to write `new` into the file."""
    plan = {"changes": [change("C01", write(path, b"old\n", b"new\n"))]}
    return {"action": action, "run": RUN, "plan": plan, **more}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_text("old\n")
    return path


def test_a_plan_is_carried_out_and_taken_back(path: Path, state: str) -> None:
    answer = answer_request(request(path), state)
    assert (answer["state"], answer["written"], answer["results"]) == ("changed", 1, [])
    assert path.read_text() == "new\n"
    assert answer_request(request(path, "state"), state)["state"] == "changed"
    assert answer_request(request(path, "undo"), state)["state"] == "undone"
    assert path.read_text() == "old\n"
    assert answer_request(request(path, "undo"), state)["state"] == "undone"


def test_a_plan_that_arrives_twice_is_carried_out_once(path: Path, state: str) -> None:
    assert answer_request(request(path), state)["state"] == "changed"
    path.write_text("old\n")
    answer = answer_request(request(path), state)
    assert answer["state"] == "changed" and len(answer["runs"]) == 1
    assert path.read_text() == "old\n"


def test_what_was_answered_stays_true(path: Path, state: str) -> None:
    """The plan may still be on its way when the next controller asks."""
    assert answer_request(request(path, "state"), state)["state"] == "unchanged"
    assert answer_request(request(path), state)["state"] == "unchanged"
    assert path.read_text() == "old\n"


def test_a_run_that_is_under_way(path: Path, state: str) -> None:
    assert answer_request(request(path), state)["state"] == "changed"
    with open(os.path.join(state, "fleet", RUN), "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert answer_request(request(path, "state"), state)["state"] == "running"


def test_what_others_changed_is_left_unless_forced(path: Path, state: str) -> None:
    answer_request(request(path), state)
    path.write_text("theirs\n")
    answer = answer_request(request(path, "undo"), state)
    assert answer["state"] == "partly-undone" and "changed since" in answer["results"][0]["error"]
    assert path.read_text() == "theirs\n"
    assert answer_request(request(path, "undo", force=True), state)["state"] == "undone"
    assert path.read_text() == "old\n"


def test_a_plan_that_does_not_fit_any_more(path: Path, state: str) -> None:
    path.write_text("other\n")
    answer = answer_request(request(path), state)
    assert answer["state"] == "failed" and answer["written"] == 0
    assert "not what the plan expected" in answer["results"][0]["error"]
    assert path.read_text() == "other\n"


def test_a_host_that_refuses(path: Path, state: str) -> None:
    os.makedirs(state, 0o777)
    os.chmod(state, 0o777)
    answer = answer_request(request(path), state)
    assert answer["state"] == "refused" and "can be written by users other than root" in answer["error"]
    assert answer_request({"action": "apply", "run": "../x", "plan": {"changes": []}}, state)["state"] == "refused"
    assert answer_request({"action": "apply"}, state)["state"] == "refused"
    assert path.read_text() == "old\n"


@pytest.mark.parametrize("found", [({77: "/dev/davinci0"}, True), ({}, False)])
def test_a_host_whose_npus_are_in_use(path: Path, state: str, found: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "_npu_processes", lambda: found)
    answer = answer_request(request(path), state)
    assert answer["state"] == "busy" and "NPUs open" in answer["error"]
    assert path.read_text() == "old\n"


def test_as_one_program_from_standard_input(path: Path, state: str) -> None:
    program = executor_program().replace(b"@REQUEST@", packed_request(request(path)))
    done = subprocess.run(
        [sys.executable, "-I", "-"], input=program, capture_output=True, env={"ENVTUNE_STATE": state}, timeout=60
    )
    answer = read_answer(b"welcome\n" + done.stdout + b"bye\n")
    assert answer is not None and answer["state"] == "changed", done.stderr
    assert path.read_text() == "new\n"
    half = subprocess.run(
        [sys.executable, "-I", "-"], input=program[:-40], capture_output=True, env={"ENVTUNE_STATE": state}, timeout=60
    )
    assert read_answer(half.stdout) is None
    assert (
        json.loads(
            subprocess.run(
                [sys.executable, "-I", "-", "pending"],
                input=assembled("executor").encode(),
                capture_output=True,
                env={"ENVTUNE_STATE": state},
            ).stdout
        )
        == []
    )


@pytest.mark.parametrize("output", [b"", b"hello", b"@@ENVTUNE/1 4 0000000000000000\nAAAA\n@@END\n"])
def test_no_answer(output: bytes) -> None:
    assert read_answer(output) is None
