"""`envtune diff`: which hosts, what it says and how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from helpers import fleet
from helpers.command_line import run
from helpers.examples import ROOT
from helpers.json_schema import conforms
from helpers.recorded import host_data

SCHEMA = json.loads((ROOT / "docs/schema/difference.json").read_text("utf-8"))
SOME = ("--select", "CPU001,SYS001,NET001", "--lang", "en")
NODE = "910b-openeuler2203-cann82"


@pytest.fixture(autouse=True)
def width(monkeypatch: pytest.MonkeyPatch) -> None:
    """The width of a report that no terminal shows, whatever the tests run in."""
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hosts")
    made = {f"node{n}": fleet.twin(NODE, f"node{n}", 0, n) for n in (2, 3, 4, 5)}
    made["node4"]["files"]["/sys/devices/system/cpu/cpufreq/policy5/scaling_governor"] = "powersave\n"
    made["node4"]["environ"]["TASK_QUEUE_ENABLE"] = "2"
    made["node5"]["files"]["/usr/local/Ascend/driver/version.info"] = {"error": "EACCES", "size": 9}
    fleet.write(folder, made)
    return folder


def diff(*words: object) -> Any:
    return run("diff", *SOME, *(str(word) for word in words))


def test_a_recorded_host_beside_another(hosts: Path) -> None:
    done = diff(hosts / "node2.json", hosts / "node4.json")
    assert done.exit_code == 1 and done.stderr == ""
    assert "  TASK_QUEUE_ENABLE      - 1\n                         + 2\n" in done.stdout
    assert "           + failed (low): cpu5: powersave\n" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("different: 1 fact, 1 check; the same: ")


def test_two_alike_but_for_names_addresses_and_times(hosts: Path) -> None:
    alike = diff(hosts / "node2.json", hosts / "node3.json", "--ignore", "NET001")
    assert alike.exit_code == 0 and "\nno differences; the same: " in alike.stdout


def test_what_is_unknown_on_one_side_is_no_difference(hosts: Path) -> None:
    done = diff(hosts / "node2.json", hosts / "node5.json", "--ignore", "NET001", "--format", "json")
    found = json.loads(done.stdout)
    assert conforms(found, SCHEMA) == [] and not found["differs"] and done.exit_code == 3
    driver = next(row for row in found["unknown"]["facts"] if row["fact"] == "driver")
    assert driver["left"] == {"value": "25.0.rc1.1", "unknown": None}
    assert driver["right"]["value"] is None and driver["right"]["unknown"]


@pytest.mark.parametrize("words", [["{}"], ["{}", "-"], ["-", "{}"]])
def test_this_host(hosts: Path, words: list[str]) -> None:
    places = [word.format(hosts / "node2.json") for word in words]
    done = diff(*places, "--format", "json")
    found = json.loads(done.stdout)
    assert conforms(found, SCHEMA) == [] and done.exit_code == 1
    here, other = ("left", "right") if words[0] == "-" else ("right", "left")
    assert found[here]["source"] == "this host" and found[other]["host"] == "node2"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["nope.json", "nope.json"], "nope.json: No such file or directory"),
        (["nope.json"], "nope.json: No such file or directory"),
        ([], "Missing"),
    ],
)
def test_usage_errors(words: list[str], error: str) -> None:
    done = diff(*words)
    assert done.exit_code == 2 and done.stdout == "" and error in done.stderr


@pytest.mark.parametrize("second", ["node2.json", "./node2.json"])
def test_the_same_recording_twice_has_no_difference(hosts: Path, second: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(hosts)
    done = diff("node2.json", second, "--lang", "en")
    assert (done.exit_code, done.stderr) == (0, "envtune: both are the same host: node2.json\n")
    assert "no differences" in done.stdout.lower() and done.stdout.splitlines()[0] == "- node2 (node2.json)"
    assert json.loads(diff("node2.json", second, "--format", "json").stdout)["facts"] == []


def test_the_policy_in_use_selects_and_is_named(hosts: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("select: [SYS001]\n")
    pair = [str(path) for path in sorted(hosts.glob("*.json"))[-2:]]
    done = run("diff", *pair, "--policy", str(policy), "--lang", "en")
    assert f"Policy:{policy}" in "".join(done.stdout.split()) and "CPU001" not in done.stdout
    found = json.loads(run("diff", *pair, "--policy", str(policy), "--format", "json").stdout)
    assert found["policy"] == {"file": str(policy), "profile": ""} and conforms(found, SCHEMA) == []


def test_packages_of_one_host_only_are_listed_with_its_name(tmp_path: Path) -> None:
    fleet.write(tmp_path, {"one": host_data(NODE), "two": host_data("910b-openeuler2203-troubled")})
    said = diff(tmp_path / "one.json", tmp_path / "two.json").stdout
    assert "  + packages only on node18: te\n" in said and "only here" not in said
