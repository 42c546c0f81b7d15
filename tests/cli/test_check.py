"""`envtune check` where it has nothing to say, and where what it is asked for does not exist."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
from helpers.recorded import host_data
from helpers.rows import sampled
from typer.testing import CliRunner

from envtune.cli.app import app
from envtune.context.open import open_context
from envtune.errors import NotRecorded
from envtune.resources.npu.devices import accelerators
from envtune.snapshot.open import open_snapshot

SEPARATE = {"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner.__init__).parameters else {}
RUNNER = CliRunner(**SEPARATE)
PCI = "/sys/bus/pci/devices/0000:c1:00.0"


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def leave(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr("envtune.cli.options.exit_now", leave)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.chdir(tmp_path)


def run(*words: str, verb: str = "check") -> Any:
    return RUNNER.invoke(app, [verb, *words])


def recorded(path: Path, name: str, **files: Any) -> str:
    data = host_data(name)
    data["files"].update(files)
    path.write_text(json.dumps({**data, "schema": "envtune.snapshot/1"}), "utf-8")
    return str(path)


# ---------------------------------------------------------------------- nothing was checked


@pytest.mark.parametrize(
    ("select", "lang", "words"),
    [
        (
            "CPU00",
            "en",
            "NOTHING CHECKED ecs-7d3c: none of the {count} selected checks applies to this host (virtual machine)",
        ),
        ("CPU00", "zh", "未检查任何内容 ecs-7d3c：所选的 {count} 项检查均不适用于该主机（虚拟机）"),
        (
            "CPU001",
            "en",
            "the selected check does not apply to this host (this is a virtual machine)",
        ),
        ("NET003", "en", "the selected check does not apply to this host (MASTER_PORT is not set for this job)"),
    ],
)
def test_nothing_checked_is_not_ready(tmp_path: Path, select: str, lang: str, words: str) -> None:
    host = recorded(tmp_path / "vm.json", "vm-ubuntu2204")
    done = run("--snapshot", host, "--select", select, "--lang", lang)
    data = json.loads(run("--snapshot", host, "--select", select, "--format", "json").stdout)
    outcomes = data["counts"]["outcomes"]
    assert data["verdict"] == "nothing_checked" and outcomes["notapplicable"] == data["counts"]["checks"]
    assert done.exit_code == 3 and words.format(count=len(data["findings"])) in " ".join(done.stdout.split())


def test_ready_is_said_on_evidence_only(tmp_path: Path) -> None:
    host = recorded(tmp_path / "vm.json", "910b-openeuler2203-cann82")
    done = run("--snapshot", host, "--select", "CPU00")
    assert done.exit_code == 0 and done.stdout.startswith("READY  node17: 7 checks passed\n")


# ---------------------------------------------------------------------- what was mistyped

MISTYPED = [
    (("--script", "nope.sh"), "--script {path}: No such file or directory", "--script {path}：没有该文件或目录"),
    (("--env-file", "nope.sh"), "--env-file {path}: No such file or directory", "--env-file {path}：没有该文件或目录"),
    (("--pid", "4194999"), "--pid 4194999: no such process", "--pid 4194999：没有该进程"),
    (("--python", "./nope.sh"), "--python ./nope.sh: no such program", "--python ./nope.sh：没有该程序"),
    (("--python", "python9.9"), "--python python9.9: no such program", "--python python9.9：没有该程序"),
]


@pytest.mark.parametrize(("words", "en", "zh"), MISTYPED)
@pytest.mark.parametrize("verb", sampled(["check", "env", "fix", "diagnose"], 2))
def test_a_job_that_does_not_exist_is_a_usage_error(
    verb: str, words: tuple[str, ...], en: str, zh: str, tmp_path: Path
) -> None:
    (tmp_path / "train.log").write_text("RuntimeError\n")
    logs = ["train.log"] if verb == "diagnose" else []
    if (verb, words[0]) == ("fix", "--env-file"):
        return  # there it is the file to write
    for lang, text in (("en", en), ("zh", zh)):
        done = run(*logs, *words, "--lang", lang, verb=verb)
        assert done.stderr == f"envtune: {text.format(path=tmp_path / 'nope.sh')}\n"
        assert (done.exit_code, done.stdout) == (2, "")


def test_a_job_that_exists_is_taken(tmp_path: Path) -> None:
    (tmp_path / "train.sh").write_text("export A=1\n")
    done = run("--script", "train.sh", "--select", "SYS001")
    assert done.exit_code == 0 and str(tmp_path / "train.sh") in done.stdout


def test_the_job_of_a_snapshot_is_taken_although_it_is_gone_here(tmp_path: Path) -> None:
    data = host_data("910b-openeuler2203-cann82")
    data["target"] = {"script": "/job/train.sh"}
    data["files"]["/job/train.sh"] = {"text": "export A=1\n"}
    (tmp_path / "host.json").write_text(json.dumps({**data, "schema": "envtune.snapshot/1"}), "utf-8")
    done = run("--snapshot", "host.json", "--select", "SYS001")
    assert done.exit_code == 0 and "/job/train.sh" in done.stdout
    missing = run("--snapshot", "host.json", "--script", "/job/nope.sh")
    assert (missing.exit_code, missing.stderr) in (
        (2, "envtune: --script /job/nope.sh: No such file or directory\n"),
        (1, ""),  # the recorder did not look there
    )


@pytest.mark.parametrize("verb", ["env", "fix"])
def test_one_recorded_host_at_a_time(verb: str, tmp_path: Path) -> None:
    host = recorded(tmp_path / "vm.json", "vm-ubuntu2204")
    done = run("--snapshot", host, "--snapshot", host, verb=verb)
    assert done.exit_code == 2 and "--snapshot takes one recorded host, but was given 2 times" in done.stderr


# ---------------------------------------------------------------------- facts


@pytest.mark.slow
def test_a_device_that_was_recorded_without_its_id_is_no_crash(tmp_path: Path) -> None:
    host = recorded(tmp_path / "host.json", "910b-openeuler2203-cann82", **{f"{PCI}/device": {}})
    data = json.loads(run("--snapshot", host, "--format", "json").stdout)
    assert data["counts"]["outcomes"]["error"] == 0 and data["counts"]["outcomes"]["pass"] > 10
    with pytest.raises(NotRecorded, match=f"{PCI}/device"):
        accelerators(open_context(open_snapshot(host)))


def test_a_fact_that_fails_costs_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from envtune.context import registry

    def broken(context: object) -> None:
        raise UnboundLocalError("device")

    monkeypatch.setitem(registry._functions["facts"], "ascend", broken)
    host = recorded(tmp_path / "host.json", "910b-openeuler2203-cann82")
    done = run("--snapshot", host, "--select", "CANN", "-v")
    assert done.exit_code in (1, 3) and "envtune itself failed here: UnboundLocalError: device" in " ".join(
        done.stdout.split()
    )


# ---------------------------------------------------------------------- a job of this machine, a recorded host


def test_an_env_file_for_a_recorded_host_is_read_here(tmp_path: Path) -> None:
    host = recorded(tmp_path / "npu.json", "910b-openeuler2203-cann82")
    job = tmp_path / "job.env"
    job.write_text("TASK_QUEUE_ENABLE=0\n")
    done = run("--snapshot", host, "--env-file", str(job), "--select", "ENV001", "--format", "json")
    (finding,) = json.loads(done.stdout)["findings"]
    assert (finding["outcome"], finding["evidence"]["source"]) == ("fail", f"{job}:1"), done.stderr
    assert done.exit_code == 1


def test_an_env_file_that_only_the_recorded_host_has_is_not_here(tmp_path: Path) -> None:
    there = f"{tmp_path}/there.env"
    host = recorded(tmp_path / "npu.json", "910b-openeuler2203-cann82", **{there: "TASK_QUEUE_ENABLE=0\n"})
    done = run("--snapshot", host, "--env-file", there)
    assert done.exit_code == 2 and f"--env-file {there}: No such file or directory" in done.stderr


def test_the_job_that_a_host_was_recorded_for_is_read_there(tmp_path: Path) -> None:
    data = host_data("910b-openeuler2203-cann82")
    data["files"]["/home/train/job.env"] = "TASK_QUEUE_ENABLE=0\n"
    data["target"] = {"env_file": "/home/train/job.env"}
    (tmp_path / "npu.json").write_text(json.dumps({**data, "schema": "envtune.snapshot/1"}), "utf-8")
    assert run("--snapshot", str(tmp_path / "npu.json"), "--select", "ENV001").exit_code == 1


def test_a_launch_script_is_judged_on_a_machine_without_an_npu(tmp_path: Path) -> None:
    script = tmp_path / "train.sh"
    script.write_text("export TASK_QUEUE_ENABLE=0\ntorchrun train.py\n")
    done = run("--script", str(script), "--select", "ENV001")
    assert done.exit_code == 1, done.stdout


@pytest.mark.parametrize(
    ("lang", "words"),
    [
        ("en", "--probe connects to the job's hosts, which is not possible for a recorded host"),
        ("zh", "--probe 需要连接任务的各主机，已记录的主机无法连接"),
    ],
)
def test_a_recorded_host_connects_to_nobody(tmp_path: Path, lang: str, words: str) -> None:
    done = run("--snapshot", recorded(tmp_path / "vm.json", "vm-ubuntu2204"), "--probe", "--lang", lang)
    assert (done.exit_code, done.stdout) == (2, "")
    assert words in done.stderr
