"""`envtune check` over several recorded hosts: how they are named, and what is done where one cannot be read."""

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

SCHEMA = json.loads((ROOT / "docs/schema/comparison.json").read_text("utf-8"))
SOME = ("--select", "CPU001,SYS001", "--lang", "en")


@pytest.fixture(autouse=True)
def width(monkeypatch: pytest.MonkeyPatch) -> None:
    """The width of a report that no terminal shows, whatever the tests run in."""
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three nodes alike, of which the third has another governor and another kernel."""
    folder = tmp_path_factory.mktemp("hosts")
    made = {f"node{n}": fleet.twin("910b-openeuler2203-cann82", f"node{n}", 0, n) for n in (1, 2, 3)}
    made["node3"]["files"]["/sys/devices/system/cpu/cpufreq/policy5/scaling_governor"] = "powersave\n"
    made["node3"]["uname"]["release"] = "5.10.0-99.oe2203.aarch64"
    fleet.write(folder, made)
    return folder


def check(*words: object) -> Any:
    return run("check", *SOME, *(str(word) for word in words))


def data(*words: object) -> dict[str, Any]:
    done = check(*words, "--format", "json")
    found: dict[str, Any] = json.loads(done.stdout)
    assert conforms(found, SCHEMA) == []
    return found


def test_every_way_to_name_them(hosts: Path) -> None:
    paths = sorted(hosts.glob("*.json"))
    ways = (
        ["--snapshot", hosts],
        ["--snapshot", *paths],  # as a shell writes out a pattern
        [word for path in paths for word in ("--snapshot", path)],
        ["--snapshot", hosts, paths[0]],  # once is enough
    )
    texts = {check(*words).stdout for words in ways}
    assert len(texts) == 1 and "node[1-2]" in texts.pop()


@pytest.mark.parametrize("again", ["node1.json", "./node1.json"])
def test_a_host_named_twice_is_counted_once_and_said(hosts: Path, again: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(hosts)
    done = check("--snapshot", "node1.json", again)
    said = "this recorded host is named more than once; it is counted once"
    assert done.stderr == f"envtune: node1.json: {said}\n" and "1 host:" in done.stdout.splitlines()[0]


def test_the_heads_of_the_table_are_chinese(hosts: Path) -> None:
    assert "最严重的问题" in check("--snapshot", hosts, "--lang", "zh").stdout


def test_the_table(hosts: Path) -> None:
    done = check("--snapshot", hosts)
    lines = done.stdout.splitlines()
    assert done.exit_code == 1 and done.stderr == ""
    assert lines[:2] == [
        "NOT READY  3 hosts: 1 ready, with advice; 2 ready; 1 fact differs",
        "1 host differs from most hosts of its kind: node3",
    ]
    assert any(
        line.startswith("node3      ready, with advice     -     -    -    1  CPU001   Some CPUs") for line in lines
    )
    assert "node[1-2]  ready                  -     -    -    -" in lines
    detailed = check("--snapshot", hosts, "-v").stdout.splitlines()
    assert "  node3      ready, with advice  differs in kernel; fails, unlike most hosts: CPU001" in detailed
    assert "  medium    kernel: 2 of 3 have 5.10.0-60.18.0.50.oe2203.aarch64" in lines


def test_as_data(hosts: Path) -> None:
    found = data("--snapshot", hosts)
    assert found["verdict"] == "not_ready" and found["counts"]["ready"] == 2
    (row,) = found["groups"][0]["differences"]
    assert row["fact"] == "kernel" and row["values"][1]["hosts"] == ["node3"] and row["majority"]
    assert found["groups"][0]["same"]["driver"] == "25.0.rc1.1"
    assert [(one["id"], one["folded"], one["differs"]) for one in found["failures"]] == [("CPU001", "node3", ["node3"])]
    assert found["failures"][0]["by_severity"] == {"low": ["node3"]} and found["hosts"][2]["severities"]["low"] == 1


@pytest.mark.parametrize(("fail_on", "status"), [("medium", 1), ("high", 0)])
def test_exit_status(hosts: Path, fail_on: str, status: int) -> None:
    assert check("--snapshot", hosts, "--fail-on", fail_on).exit_code == status


def test_one_snapshot_gets_its_report_and_a_directory_with_one_a_comparison(tmp_path: Path) -> None:
    (path,) = fleet.write(tmp_path, {"vm": host_data("vm-ubuntu2204")})
    one = json.loads(check("--snapshot", path, "--format", "json").stdout)
    assert one["schema"] == "envtune.report/2" and data("--snapshot", tmp_path)["counts"]["hosts"] == 1


def test_a_snapshot_that_cannot_be_read_costs_itself(hosts: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.tar.gz"
    broken.write_bytes(b"\x1f\x8b\x08\x00 not really")
    done = check("--snapshot", hosts / "node1.json", hosts / "node2.json", broken)
    assert done.exit_code == 3 and "NOT SURE  2 hosts: 2 ready; 1 snapshot not read" in done.stdout
    assert f"  {broken}:" in done.stdout
    assert data("--snapshot", hosts / "node1.json", broken)["not_read"][0]["source"] == str(broken)
    assert check("--snapshot", broken, broken.with_name("b.json")).exit_code == 2  # nothing of that name


def test_each_host_has_its_own_reason(hosts: Path, tmp_path: Path) -> None:
    """Two hosts of which the same is unknown, for two reasons."""
    made = {f"node{n}": json.loads((hosts / f"node{n}.json").read_text("utf-8")) for n in (1, 2)}
    version = "/usr/local/Ascend/driver/version.info"
    made["node1"]["files"][version] = {"error": "EACCES", "size": 9}
    del made["node2"]["files"][version]
    fleet.write(tmp_path, made)
    done = run("check", "--snapshot", str(tmp_path), "-s", "CANN006,CANN101", "--lang", "en", "-v")
    unknown = " ".join(done.stdout.partition("Unknown\n")[2].split())
    assert f"CANN006, CANN101 node1: driver unknown: {version} cannot be read by this user" in unknown
    assert "CANN006, CANN101 node2: driver unknown: no version file; /dev/davinci_manager exists" in unknown
    assert f"driver of node1: {version} cannot be read by this user" in unknown


def test_recorded_hosts_are_named_with_or_without_the_option(hosts: Path) -> None:
    one, two = hosts / "node1.json", hosts / "node2.json"
    assert check(one, two).stdout == check("--snapshot", one, two).stdout
    assert "node1: " in check(one).stdout.splitlines()[0]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["CPU001"], "CPU001: not a recorded host (no such file); use --select for checks"),
        (["--snapshot", "nope.json", "nor.json"], "nope.json: No such file or directory"),
        (["--probe", "--snapshot", ".", "nor.json"], "--probe connects to the job's hosts"),
    ],
)
def test_usage_errors(words: list[str], error: str) -> None:
    done = check(*words)
    assert done.exit_code == 2 and done.stdout == "" and error in done.stderr


def test_names_that_are_no_names(hosts: Path, tmp_path: Path) -> None:
    """A stranger's snapshot is neither a command for the terminal nor a list of a million hosts."""
    one = json.loads((hosts / "node1.json").read_text("utf-8"))
    names = ["\x1b[2Jx", "n[1-1000000]", "token=ghp_abcdefghijklmnopqrstuvwxyz0123456789", "x" * 5000 + "7"]
    fleet.write(tmp_path, {f"h{number}": {**one, "host": name} for number, name in enumerate(names)})
    done = check("--snapshot", tmp_path)
    assert done.exit_code == 0 and "\x1b" not in done.stdout and "abcdefghijkl" not in done.stdout
    assert "n[1-1000000]" in done.stdout


def test_the_policy_in_use_is_named(hosts: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("select: [CPU001]\n")
    words = ("--snapshot", hosts, "--policy", policy)
    assert f"Policy:{policy}" in "".join(check(*words).stdout.split())
    assert data(*words)["policy"] == {"file": str(policy), "profile": ""}
