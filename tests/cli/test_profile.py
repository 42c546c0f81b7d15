"""`envtune profile` as a user meets it: a slow job, its profile, the host it ran on, and the fix."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from helpers.command_line import RUNNER
from helpers.json_schema import conforms
from helpers.profiles import step_row, write_rank
from helpers.recorded import host_data

from envtune.cli.app import app
from envtune.profile.explain import EXPLAINS
from envtune.report.profile.schema import PROFILE
from envtune.schema import json_schema as published

HOST = "910b-openeuler2203-cann82"
DEBUG = {"TASK_QUEUE_ENABLE": "0", "ASCEND_GLOBAL_LOG_LEVEL": "0"}


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def leave(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr("envtune.cli.options.exit_now", leave)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.chdir(tmp_path)


def run(*words: str, verb: str = "profile") -> Any:
    return RUNNER.invoke(app, [verb, *words])


def document(*words: str) -> Any:
    ended = run(*words, "--format", "json")
    assert ended.stderr == ""
    data = json.loads(ended.stdout)
    assert conforms(data, published.document("envtune.profile/1", PROFILE)) == []
    return data


def recorded(path: Path, data: dict[str, Any]) -> str:
    path.write_text(json.dumps({**data, "schema": "envtune.snapshot/1"}), "utf-8")
    return str(path)


def slow_host() -> dict[str, Any]:
    """A host with a wrong governor, and debugging settings left in the environment of its jobs."""
    data = host_data(HOST)
    for path in data["files"]:
        if path.endswith("/scaling_governor"):
            data["files"][path] = "powersave\n"
    data["environ"].update(DEBUG)
    return data


def fixed(data: dict[str, Any], plan: dict[str, Any]) -> dict[str, Any]:
    """The host after the plan: its files are written, and jobs read the file with their variables."""
    for change in plan["changes"]:
        for operation in change["operations"]:
            text = base64.b64decode(operation["content"]).decode()
            data["files"][operation["path"]] = text
            data["environ"].update(re.findall(r"^export (\w+)=(\S+)$", text, re.M))
    return data


def test_a_host_bound_job_is_explained_fixed_and_checked_again(tmp_path: Path) -> None:
    profile = str(write_rank(tmp_path / "prof", 0, [step_row(20, 10, 70)]).parent)
    snapshot = recorded(tmp_path / "before.json", slow_host())
    found = document(profile, "--snapshot", snapshot)
    assert found["verdict"] == "host"
    whole = json.loads(run("--snapshot", snapshot, "--format", "json", verb="check").stdout)
    failed = {one["id"] for one in whole["findings"] if one["outcome"] in ("fail", "error")}
    assert failed == {id_ for checks in found["host"]["explains"] for id_ in checks}  # all that is wrong, and no more
    assert [checks[0] for checks in found["host"]["explains"]] == ["ENV015", "CPU001"]
    assert found["host"]["does_not_explain"] == []
    assert found["host"]["fix"].endswith("envtune fix ENV015 CPU001 --apply")
    ids = found["host"]["fix"].split()[2:-1]
    plan = json.loads(run(*ids, "--snapshot", snapshot, "--format", "json", verb="fix").stdout)
    after_fix = recorded(tmp_path / "after.json", fixed(slow_host(), plan))
    after = document(profile, "--snapshot", after_fix)
    assert after["host"]["explains"] == [] and after["host"]["fix"] is None
    named = ",".join(id_ for checks in found["host"]["explains"] for id_ in checks)
    checked = json.loads(run("--select", named, "--snapshot", after_fix, "--format", "json", verb="check").stdout)
    assert {one["outcome"] for one in checked["findings"]} == {"pass"}
    assert {one["id"] for one in checked["findings"]} == {*named.split(",")} == {"ENV015", "ENV001", "ENV003", "CPU001"}


def test_a_failing_check_of_something_else_does_not_explain_it(tmp_path: Path) -> None:
    profile = str(write_rank(tmp_path, 0, [step_row(20, 10, 70)]))
    data = slow_host()
    data["environ"]["MASTER_ADDR"] = "127.0.0.1"
    found = document(profile, "--snapshot", recorded(tmp_path / "host.json", data))
    assert [checks[0] for checks in found["host"]["explains"]] == ["ENV015", "CPU001"]
    assert "NET001" in found["host"]["does_not_explain"]


def test_what_the_profiler_noted_goes_before_what_this_host_sets(tmp_path: Path) -> None:
    data = slow_host()
    data["environ"]["TASK_QUEUE_ENABLE"] = "1"
    snapshot = recorded(tmp_path / "host.json", data)
    steps = [step_row(20, 10, 70)]
    unset = write_rank(tmp_path / "unset", 0, steps, variables={"ASCEND_GLOBAL_LOG_LEVEL": ""})
    found = document(str(unset), "--snapshot", snapshot)
    assert [checks[0] for checks in found["host"]["explains"]] == ["CPU001"]
    logging = write_rank(tmp_path / "info", 0, steps, variables={"ASCEND_GLOBAL_LOG_LEVEL": "1"})
    found = document(str(logging), "--snapshot", snapshot)
    assert any("ENV003" in checks for checks in found["host"]["explains"])
    assert found["host"]["variables"].endswith("metadata.json")


@pytest.mark.parametrize(
    ("parts", "status", "checked"),
    [((80, 15, 5), 0, True), ((20, 10, 70), 1, True), ((20, 60, 20), 1, True), ((42, 5, 45), 0, False)],
)
def test_the_exit_status_says_what_limits_the_step(
    tmp_path: Path, parts: tuple[float, float, float], status: int, checked: bool
) -> None:
    profile = str(write_rank(tmp_path, 0, [step_row(*parts)]))
    snapshot = recorded(tmp_path / "host.json", slow_host())
    ended = run(profile, "--snapshot", snapshot)
    assert ended.exit_code == status and ("node17" in ended.stdout) is checked
    assert run(profile, "--no-check").exit_code == status


def test_a_compute_bound_job_is_not_blamed_on_its_governor(tmp_path: Path) -> None:
    profile = str(write_rank(tmp_path, 0, [step_row(80, 15, 5)]))
    found = document(profile, "--snapshot", recorded(tmp_path / "host.json", slow_host()))
    assert found["host"]["explains"] == [] and "CPU001" in found["host"]["does_not_explain"]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_both_languages_say_all_of_it(tmp_path: Path, lang: str) -> None:
    for rank, (communication, free) in enumerate([(60, 30), (62, 28), (5, 85)]):
        write_rank(tmp_path, rank, [step_row(10, communication, free)])
    (tmp_path / "x.csv").write_text("a,b\n", "utf-8")
    ended = run(str(tmp_path), "--lang", lang, "--snapshot", recorded(tmp_path.parent / f"{lang}.json", slow_host()))
    words = {
        "en": ("host-bound", "Slow rank: 2", "wait for it", "1 file was not read"),
        "zh": ("主机瓶颈", "慢卡", "未读取"),
    }
    for word in words[lang]:
        assert word in ended.stdout, ended.stdout


def test_nothing_to_read_and_a_missing_directory(tmp_path: Path) -> None:
    assert run(str(tmp_path)).exit_code == 3
    missing = run(str(tmp_path / "missing"))
    assert missing.exit_code == 2 and "No such file" in missing.stderr


def test_every_check_that_explains_exists() -> None:
    from envtune import catalog

    known = {check.id for check in catalog.load().checks}
    assert {id_ for ids in EXPLAINS.values() for id_ in ids} <= known
