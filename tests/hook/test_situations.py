"""What an administrator meets: untrusted places, full disks, several hooks at a time, scripts without envtune."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any, Mapping

import pytest
from helpers.examples import ROOT
from helpers.program import CLOSED, FULL, go_to, program, started
from helpers.rows import sampled
from helpers.scontrol import FakeNode
from helpers.terminals import alive, wait_until

LEFT = "the node is left as it is"


@pytest.fixture
def node(tmp_path: Path) -> FakeNode:
    return FakeNode(tmp_path / "slurm")


def words(node: FakeNode, site: Path, *more: str) -> tuple[str, ...]:
    return ("slurm-health", "--scontrol", str(node.scontrol), "--catalog", str(site), "--select", "SITE101", *more)


@pytest.fixture
def sick(tmp_path: Path) -> Path:
    (tmp_path / "sick").touch()
    return tmp_path / "sick"


def test_a_scontrol_on_path_is_not_started(tmp_path: Path, node: FakeNode, hook: Any, site: Path, sick: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "scontrol").symlink_to(node.scontrol)
    done = hook(
        "slurm-health", "--catalog", str(site), "--select", "SITE101", PATH=f"{tmp_path}/bin:{os.environ['PATH']}"
    )
    assert done.returncode == 0 and node.calls == []


def test_a_scontrol_that_others_can_change(node: FakeNode, hook: Any, site: Path, sick: Path) -> None:
    node.folder.chmod(0o777)
    done = hook(*words(node, site))
    assert (done.returncode, node.calls) == (0, [])
    assert "can be changed by others" in done.stderr and LEFT in done.stderr


@pytest.mark.root
def test_a_state_below_a_link_of_another_user(
    tmp_path: Path, node: FakeNode, hook: Any, site: Path, sick: Path
) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, 1234, 1234)
    (theirs / "scheduler").mkdir()
    (tmp_path / "state").symlink_to(theirs)
    done = hook(*words(node, site))
    assert (done.returncode, node.changes) == (0, []) and LEFT in done.stderr
    assert os.listdir(theirs / "scheduler") == []


@pytest.mark.root
def test_a_policy_of_another_user(tmp_path: Path, node: FakeNode, hook: Any, site: Path, sick: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("fail_on: info\n")
    os.chown(policy, 1234, 1234)
    done = hook(*words(node, site), ENVTUNE_POLICY=str(policy))
    assert (done.returncode, node.calls) == (0, []) and LEFT in done.stderr


def test_the_policy_has_the_threshold_and_the_waivers(
    tmp_path: Path, node: FakeNode, hook: Any, site: Path, sick: Path
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("fail_on: critical\n")
    assert "no problems" in hook(*words(node, site, "--policy", str(policy))).stdout
    assert hook("slurm-prolog", "--scontrol", str(node.scontrol)).returncode == 0
    assert "drained" in hook(*words(node, site)).stdout
    waiver = "{check: SITE101, reason: known, owner: ops, expires: 2099-01-01}"
    policy.write_text(f"waivers: [{waiver}]\n")
    assert "resumed" in hook(*words(node, site, "--policy", str(policy))).stdout


def test_a_signal_in_the_middle_ends_with_0(tmp_path: Path, hook: Any, site: Path, sick: Path) -> None:
    node = FakeNode(tmp_path / "slurm", show=f"echo $$ >{tmp_path}/pid; sleep 1000")
    argv = [sys.executable, "-m", "envtune", "hook", *words(node, site)]
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "ENVTUNE_STATE": str(tmp_path / "state")}
    with subprocess.Popen(argv, env={**environ, "HOME": str(tmp_path)}, cwd="/") as process:
        pid = tmp_path / "pid"
        while not (pid.exists() and pid.read_text().strip()):
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    wait_until(lambda: not alive(int(pid.read_text())), "scontrol is still running")


def test_several_prologs_at_a_time(
    hook: Any, site: Path, sick: Path, node: FakeNode, environ: Mapping[str, str]
) -> None:
    hook(*words(node, site)[:1], "--scontrol", "/nowhere/x", *words(node, site)[3:])
    prolog = ("hook", "slurm-prolog", "--timeout", "120", "--scontrol", str(node.scontrol))
    pids = [started(*prolog, env=environ) for _ in range(3)]
    assert [os.WEXITSTATUS(os.waitpid(pid, 0)[1]) for pid in pids] == [20] * 3
    assert len(node.changes) == 1


@pytest.mark.parametrize(
    "streams",
    sampled(
        [
            {"stdin": CLOSED, "stdout": CLOSED, "stderr": CLOSED},
            {"stdout": CLOSED},
            {"stdout": FULL, "stderr": FULL},
        ],
        3,
    ),
)
def test_nobody_reads_what_is_printed(
    streams: dict[str, str], site: Path, node: FakeNode, sick: Path, environ: Mapping[str, str]
) -> None:
    place = partial(go_to, environ, Path("/"))
    assert program("hook", *words(node, site), before=place, **streams).status == 0
    assert node.reason == "envtune: SITE101"
    prolog = ("slurm-prolog", "--scontrol", str(node.scontrol))
    assert program("hook", *prolog, before=place, **streams).status == 20


def test_no_room_for_the_record_of_a_drain(tmp_path: Path, node: FakeNode, site: Path, sick: Path) -> None:
    """Files may have no length here, as on a full disk."""
    environ = {"PYTHONPATH": str(ROOT), "ENVTUNE_STATE": str(tmp_path / "state"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-B", "-m", "envtune", "hook", *words(node, site, "--node", "node1")],
        env=environ,
        cwd="/",
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
    )
    assert done.returncode == 0 and LEFT in done.stderr
    assert node.state == "IDLE"


@pytest.mark.slow
def test_the_locale_changes_nothing(node: FakeNode, hook: Any, site: Path, sick: Path) -> None:
    assert hook(*words(node, site), LC_ALL="zh_CN.UTF-8").stdout == "envtune: drained node1: envtune: SITE101\n"


@pytest.mark.slow
def test_a_cloned_state_is_not_this_nodes(tmp_path: Path, node: FakeNode, hook: Any, site: Path, sick: Path) -> None:
    hook(*words(node, site))
    sick.unlink()
    path = tmp_path / "state" / "scheduler" / "drain.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "node": "node2"}))
    assert "leave node1" in hook(*words(node, site)).stdout
    assert node.state == "IDLE+DRAIN"


@pytest.mark.parametrize("script", ["health.sh", "prolog.sh"])
@pytest.mark.parametrize(
    "program", sampled(["missing", "exit 1", "exit 2", "exit 70", "kill -9 $$", "exit 126", "exit 20"], 2)
)
def test_the_scripts_without_a_working_envtune(script: str, program: str, tmp_path: Path) -> None:
    text = (ROOT / "docs" / "recipes" / "slurm" / script).read_text("utf-8")
    (tmp_path / "bin").mkdir()
    if program != "missing":
        (tmp_path / "bin" / "envtune").write_text(f"#!/bin/sh\n{program}\n")
        (tmp_path / "bin" / "envtune").chmod(0o755)
    for tool in ("timeout", "logger"):
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool) or "/bin/true")
    copy = tmp_path / script
    copy.write_text(text.replace("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:", f"PATH={tmp_path}/bin:"))
    done = subprocess.run(["/bin/sh", str(copy)], capture_output=True, text=True, timeout=60)
    assert done.returncode == int(program == "exit 20" and script == "prolog.sh")


@pytest.mark.parametrize("wrong", [["--timeout", "0"], ["--timeout", "x"], ["--max-agee", "5"], ["--stale", "refuse"]])
def test_a_usage_error_is_not_a_refusal(wrong: list[str], hook: Any) -> None:
    done = hook("slurm-prolog", *wrong)
    assert done.returncode == 2 and "Traceback" not in done.stderr


@pytest.mark.root
def test_a_condition_in_the_directory_of_another_user(tmp_path: Path, hook: Any, site: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, 1234, 1234)
    (theirs / "condition.json").symlink_to("/etc/passwd")
    before = Path("/etc/passwd").read_bytes()
    done = hook(
        "k8s-init", "--catalog", str(site), "--select", "SITE101", "--condition", str(theirs / "condition.json")
    )
    assert done.returncode == 0 and "was not written" in done.stderr
    assert Path("/etc/passwd").read_bytes() == before
