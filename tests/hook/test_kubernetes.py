"""k8s-init: the termination message, the condition of a node, the protocol of a custom plugin."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from helpers.scontrol import verdict_outcomes

from envtune.hook.kubernetes import Answer, answer, condition, condition_text
from envtune.hook.records import Verdict

ANSWERS: Any = [
    ({"NET003": "pass"}, {}, "False", 0, "no problems"),
    ({"NET003": "pass", "CPU001": "unknown", "CPU002": "error"}, {}, "False", 0, "no problems; 2 checks unknown"),
    ({"NET003": "fail"}, {}, "True", 1, "1 failed: NET003"),
    ({"NET003": "fail", "CPU001": "fail/critical"}, {}, "True", 1, "2 failed: CPU001, NET003"),
    ({"NET003": "fail/medium"}, {}, "False", 0, "no problems"),
    ({"NET003": "fail"}, {"complete": False}, "True", 1, "1 failed: NET003"),
    ({"NET003": "pass"}, {"complete": False}, "Unknown", 2, "unknown: no answer within 9 s"),
    ({"NET003": "unknown"}, {}, "Unknown", 2, "unknown: no check applies here"),
    ({"NET003": "pass"}, {"npu": False}, "Unknown", 2, "no Ascend NPU, driver or CANN found"),
    ({"NET003": "fail"}, {"npu": False}, "True", 1, "1 failed: NET003"),
    (None, {}, "Unknown", 2, "unknown: no answer within 9 s"),
]


@pytest.mark.parametrize("outcomes, fields, status, plugin, message", ANSWERS)
def test_answers(outcomes: Any, fields: Any, status: str, plugin: int, message: str) -> None:
    verdict = None if outcomes is None else Verdict(verdict_outcomes(outcomes), True)._replace(**fields)
    found = answer(verdict, "", "no answer within 9 s")
    assert (found, found.plugin_status) == (Answer(status, message), plugin)


def test_a_plugin_prints_80_characters() -> None:
    line = Answer("True", "20 failed: " + ", ".join(f"NET{n:03}" for n in range(20))).plugin_line
    assert len(line) == 80 and line.endswith("...")


def test_a_condition_keeps_the_schema_of_kubernetes_and_the_time_it_changed() -> None:
    validate = pytest.importorskip("kubernetes_validate")
    first = condition(Answer("False", "no problems"), None, 0)
    same = condition(Answer("False", "no problems"), dict(first), 60)
    other = condition(Answer("True", "1 failed: NET003"), dict(same), 120)
    assert [one["lastTransitionTime"] for one in (first, same, other)] == [
        "1970-01-01T00:00:00Z",
        "1970-01-01T00:00:00Z",
        "1970-01-01T00:02:00Z",
    ]
    assert same["lastHeartbeatTime"] == "1970-01-01T00:01:00Z"
    for damaged in (None, [], {"status": "True", "lastTransitionTime": 5}, "x"):
        assert condition(Answer("True", "x"), damaged, 0)["lastTransitionTime"] == "1970-01-01T00:00:00Z"
    for made in (first, other):
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"conditions": [dict(made)]}}
        validate.validate(node, validate.latest_version(), strict=True)
    assert json.loads(condition_text(other)) == other


def test_an_init_container(tmp_path: Path, hook: Any, site: Path) -> None:
    log = tmp_path / "termination-log"
    log.write_text("what was there before, and is longer")
    words = ("k8s-init", "--catalog", str(site), "--select", "SITE101", "--termination-log", str(log))
    done = hook(*words)
    assert (done.returncode, done.stdout, log.read_text()) == (0, "envtune: no problems\n", "no problems")
    (tmp_path / "sick").touch()
    done = hook(*words)
    assert (done.returncode, done.stdout) == (20, "envtune: 1 failed: SITE101\n")
    assert log.read_text() == "1 failed: SITE101"
    assert hook(*words, "--fail-on", "critical").returncode == 0
    assert hook(*words, "--dry-run").returncode == 0
    assert log.read_text() == "no problems"
    assert hook(*words, "--policy", "/nowhere.yaml").returncode == 0
    assert log.read_text().startswith("unknown: ")


@pytest.mark.slow
def test_a_missing_termination_log_is_none(tmp_path: Path, hook: Any, site: Path) -> None:
    words = ("k8s-init", "--catalog", str(site), "--select", "SITE101")
    assert hook(*words, "--termination-log", str(tmp_path / "no" / "log")).stderr == ""
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").touch()
    done = hook(*words, "--termination-log", str(tmp_path / "link"))
    assert done.returncode == 0 and "was not written" in done.stderr
    assert (tmp_path / "elsewhere").read_text() == ""


@pytest.mark.slow
def test_a_condition_is_written(tmp_path: Path, hook: Any, site: Path) -> None:
    path = tmp_path / "condition.json"
    words = ("k8s-init", "--catalog", str(site), "--select", "SITE101", "--condition", str(path))
    assert hook(*words).returncode == 0
    first = json.loads(path.read_text())
    assert (first["type"], first["status"]) == ("AscendTrainingProblem", "False")
    (tmp_path / "sick").touch()
    assert hook(*words, "--dry-run").returncode == 0
    assert json.loads(path.read_text()) == first
    assert hook(*words).returncode == 20
    second = json.loads(path.read_text())
    assert (second["status"], second["reason"], second["message"]) == (
        "True",
        "EnvtuneCheckFailed",
        "1 failed: SITE101",
    )


@pytest.mark.slow
def test_a_custom_plugin(tmp_path: Path, hook: Any, site: Path) -> None:
    words = ("k8s-init", "--plugin", "--catalog", str(site), "--select", "SITE101")
    done = hook(*words)
    assert (done.returncode, done.stdout, done.stderr) == (0, "no problems\n", "")
    (tmp_path / "sick").touch()
    done = hook(*words)
    assert (done.returncode, done.stdout) == (1, "1 failed: SITE101\n")
    done = hook(*words, "--policy", "/nowhere.yaml")
    assert done.returncode == 2 and done.stdout.startswith("unknown: ") and len(done.stdout) <= 81
    assert hook(*words, "--termination-log", "/dev/null").returncode == 2
