"""Jobs whose bottleneck is known are observed from outside (helpers/jobs.py)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Iterator

import pytest
from helpers.json_schema import conforms

from envtune.observe.judge import Judgement, judge
from envtune.observe.sampling import observe
from envtune.report.profile.observed import OBSERVATION, sparkline
from envtune.schema import json_schema

JOBS = Path(__file__).parents[1] / "helpers" / "jobs.py"
ROOT = JOBS.parents[2]
SECONDS, COST = 3.0, 0.01
GROUPS = Path("/sys/fs/cgroup/cpu")  # version 1


def started(kind: str, directory: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "JOB_DIRECTORY": str(directory)}
    return subprocess.Popen([sys.executable, str(JOBS), kind, str(SECONDS + 6)], env=environment)


def observed(job: subprocess.Popen[bytes]) -> Judgement:
    time.sleep(1.5)  # interpreters start
    found = observe(job.pid, SECONDS)
    assert found.cost < COST
    return judge(found)


@pytest.fixture
def group() -> Iterator[Path]:
    path = GROUPS / f"envtune-test-{os.getpid()}"
    try:
        path.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made: {error}")
    yield path
    for pid in (path / "cgroup.procs").read_text().split():
        os.kill(int(pid), signal.SIGKILL)
    for _ in range(50):
        try:
            path.rmdir()
            return
        except OSError:
            time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "bound", "cause"),
    [
        ("healthy", "balanced", None),
        ("main_thread", "host", "main-thread"),
        ("starved_loader", "data", "workers"),
        ("loader_thread", "data", "loader-thread"),
        ("squeezed", "host", "affinity"),
    ],
)
def test_a_job_is_judged_by_what_it_waits_for(tmp_path: Path, kind: str, bound: str, cause: str) -> None:
    if kind == "squeezed" and len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one CPU")
    job = started(kind, tmp_path)
    try:
        found = observed(job)
    finally:
        job.terminate()
        job.wait()
    assert found.bound.value == bound
    assert cause is None or cause in [one.name for one in found.causes]


@pytest.mark.slow
@pytest.mark.root
def test_a_control_group_that_throttles_is_named(tmp_path: Path, group: Path) -> None:
    (group / "cpu.cfs_quota_us").write_text("20000")
    job = started("main_thread", tmp_path)
    (group / "cgroup.procs").write_text(str(job.pid))
    try:
        found = observed(job)
    finally:
        job.kill()
        job.wait()
    assert [one.name for one in found.causes] == ["throttled"]


@pytest.mark.slow
def test_a_command_is_observed_until_it_ends_and_keeps_its_status(tmp_path: Path) -> None:
    line = f"{sys.executable} {JOBS} main_thread 5; echo done; exit 5"
    words = [sys.executable, "-m", "envtune", "observe", "--no-check", "--format", "json", "--", "bash", "-c", line]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"}
    ended = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert (ended.returncode, ended.stdout) == (5, "done\n")
    data = json.loads(ended.stderr)
    assert conforms(data, json_schema.document("envtune.observation/1", OBSERVATION)) == []
    assert data["verdict"] == "host" and data["cost"] < COST
    assert [one["is_main"] for one in data["processes"]].count(True) == 1


def test_a_job_that_ends_meanwhile_ends_the_observation() -> None:
    with subprocess.Popen([sys.executable, "-S", "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as job:

        def end_it() -> dict[str, float]:  # called after the first sample
            assert job.stdin is not None
            job.stdin.close()
            return {}

        found = observe(job.pid, 60.0, npu=end_it)
    assert found.ended and found.seconds < 45


def test_a_sparkline_has_a_bar_for_each_share() -> None:
    assert sparkline((0.0, 0.5, 1.0)) == "\u2581\u2585\u2588"


@pytest.mark.slow
def test_run_says_what_the_job_waited_for_and_keeps_its_status(tmp_path: Path) -> None:
    line = f"{sys.executable} {JOBS} main_thread 5; exit 5"
    words = [sys.executable, "-m", "envtune", "run", "--observe", "--no-preflight", "--profile", "none", "--"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"}
    ended = subprocess.run(
        [*words, "bash", "-c", line], capture_output=True, text=True, env=environment, cwd=tmp_path, check=False
    )
    assert ended.returncode == 5 and "envtune: likely host-bound" in ended.stderr
