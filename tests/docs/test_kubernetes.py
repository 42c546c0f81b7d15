"""The manifests of docs/recipes/kubernetes: by the schema of Kubernetes, and what they run, run here."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from helpers.examples import ROOT

from envtune.hook.kubernetes import CONDITION, PLUGIN_LENGTH, Answer, condition, condition_text

FOLDER = ROOT / "docs" / "recipes" / "kubernetes"
DURATION = {"type": "string", "pattern": r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"}
# docs/custom_plugin_monitor.md of kubernetes/node-problem-detector, and what its Validate() of
# pkg/custompluginmonitor/types/config.go requires; test_the_plugin_is_what_its_configuration_says does the rest.
MONITOR = {
    "type": "object",
    "required": ["plugin", "source", "conditions", "rules"],
    "additionalProperties": False,
    "properties": {
        "plugin": {"const": "custom"},
        "source": {"type": "string", "minLength": 1},
        "metricsReporting": {"type": "boolean"},
        "pluginConfig": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "invoke_interval": DURATION,
                "timeout": DURATION,
                "max_output_length": {"type": "integer", "minimum": 1},
                "concurrency": {"type": "integer", "minimum": 1},
                "enable_message_change_based_condition_update": {"type": "boolean"},
                "skip_initial_status": {"type": "boolean"},
            },
        },
        "conditions": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["type", "reason", "message"],
                "additionalProperties": False,
                "properties": {key: {"type": "string", "minLength": 1} for key in ("type", "reason", "message")},
            },
        },
        "rules": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["type", "reason", "path"],
                "additionalProperties": False,
                "properties": {
                    "type": {"enum": ["temporary", "permanent"]},
                    "condition": {"type": "string"},
                    "reason": {"type": "string"},
                    "path": {"type": "string"},
                    "args": {"type": "array", "items": {"type": "string"}},
                    "timeout": DURATION,
                    "invoke_interval": DURATION,
                },
            },
        },
    },
}


def documents(name: str) -> list[Any]:
    return list(yaml.safe_load_all((FOLDER / name).read_text("utf-8")))


def one(kind: str) -> Any:
    (found,) = [document for document in documents("node-problem-detector.yaml") if document["kind"] == kind]
    return found


def container(name: str) -> Any:
    (found,) = [c for c in one("DaemonSet")["spec"]["template"]["spec"]["containers"] if c["name"] == name]
    return found


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.name)
def test_manifests_keep_the_schema_of_kubernetes(path: Path) -> None:
    validate = pytest.importorskip("kubernetes_validate")
    found = documents(path.name)
    for document in found:
        validate.validate(document, validate.latest_version(), strict=True)
    with pytest.raises(validate.ValidationError):
        validate.validate({**found[-1], "spec": {"x": 1}}, validate.latest_version(), strict=True)


def test_the_configuration_of_the_monitor_has_its_form() -> None:
    monitor = json.loads(one("ConfigMap")["data"]["envtune-monitor.json"])
    jsonschema.validate(monitor, MONITOR)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**monitor, "rule": []}, MONITOR)
    (rule,) = monitor["rules"]
    assert rule["condition"] == monitor["conditions"][0]["type"] == CONDITION
    assert monitor["pluginConfig"]["max_output_length"] == PLUGIN_LENGTH
    assert int(rule["timeout"][:-1]) <= int(monitor["pluginConfig"]["timeout"][:-1])
    assert (
        f"--config.custom-plugin-monitor=/config/{'envtune-monitor.json'}"
        in container("node-problem-detector")["command"]
    )


def test_the_plugin_is_what_its_configuration_says() -> None:
    """Its path, the file it reads, and the names of what is mounted."""
    data = one("ConfigMap")["data"]
    (rule,) = json.loads(data["envtune-monitor.json"])["rules"]
    assert Path(rule["path"]).name in data
    volumes = one("DaemonSet")["spec"]["template"]["spec"]["volumes"]
    assert {volume["name"]: volume for volume in volumes}["config"]["configMap"]["defaultMode"] & 0o111
    (path,) = rule["args"]
    assert f"--condition {path} " in " ".join(container("check")["command"])
    mounts = {mount["name"]: mount["mountPath"] for mount in container("check")["volumeMounts"]}
    assert mounts["result"] == "/host" + str(Path(path).parent)
    other = {mount["name"]: mount["mountPath"] for mount in container("node-problem-detector")["volumeMounts"]}
    assert other == {"config": "/config", "result": str(Path(path).parent)}


@pytest.mark.parametrize(
    "answer, status",
    [
        (Answer("False", "no problems"), 0),
        (Answer("True", "2 failed: NET003, CPU001"), 1),
        (Answer("True", "20 failed: " + "NET003, " * 20), 1),
        (Answer("Unknown", "no Ascend NPU, driver or CANN found"), 2),
    ],
)
def test_the_plugin_reads_what_the_hook_writes(answer: Answer, status: int, tmp_path: Path) -> None:
    done = plugin(tmp_path, condition_text(condition(answer, None, 0)))
    assert (done.returncode, done.stdout) == (status, answer.message[:80] + "\n")


@pytest.mark.parametrize("text", ["", "{", '{"status": "True"}', "\x00"])
def test_what_the_plugin_cannot_read_is_unknown(text: str, tmp_path: Path) -> None:
    assert plugin(tmp_path, text).returncode == 2


def test_an_old_result_is_unknown(tmp_path: Path) -> None:
    text = condition_text(condition(Answer("False", "no problems"), None, 0))
    assert plugin(tmp_path, text, 3600).stdout == "no recent result of envtune\n"
    assert plugin(tmp_path, text, 3600).returncode == 2
    assert plugin(tmp_path, None).returncode == 2


def plugin(folder: Path, text: Any, age: float = 0) -> subprocess.CompletedProcess[str]:
    script, file = folder / "plugin.sh", folder / "condition.json"
    script.write_text(one("ConfigMap")["data"]["envtune-condition.sh"])
    if text is not None:
        file.write_text(text)
        changed = file.stat().st_mtime - age
        os.utime(file, (changed, changed))
    argv = ["/bin/sh", str(script), str(file)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)


def test_the_init_container_stops_for_problems_only() -> None:
    """The shell line of the manifest: 20 becomes 1; what else envtune, Python or the shell ends with becomes 0."""
    (job,) = documents("job.yaml")
    (init,) = job["spec"]["template"]["spec"]["initContainers"]
    *shell, line = init["command"]
    for status in (0, 1, 2, 20, 70, 126, 127, 137):
        stub = re.sub(r"python3 -I \S+envtune\.pyz", f"sh -c 'exit {status}' sh", line)
        assert stub != line
        done = subprocess.run([*shell, stub], timeout=60, check=False)
        assert done.returncode == int(status == 20)
