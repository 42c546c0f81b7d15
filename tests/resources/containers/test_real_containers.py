"""What `check` says inside a container is what the container was started with."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any, Mapping, Sequence

import pytest
from helpers.oci import run

CPUS = len(os.sched_getaffinity(0))
MANAGEMENT = ("davinci_manager", "devmm_svm", "hisi_hdc")
ENVTUNE = (sys.executable, "-m", "envtune")
CHECK = ("check", "--select", "CTR", "--format", "json", "--fail-on", "none")


def outcomes(folder: Path, argv: Sequence[str], **given: Any) -> Mapping[str, tuple[str, str]]:
    """Run the container checks in a container: {id: (outcome, what was found)}, of the first finding of each."""
    done = run(folder, argv, **given)
    assert done.returncode == 0, done.stderr
    found: dict[str, tuple[str, str]] = {}
    for row in json.loads(done.stdout)["findings"]:
        found.setdefault(row["id"], (row["outcome"], row.get("actual") or ""))
    return found


def one_cpu() -> Mapping[str, Any]:
    return {"cpu": {"cpus": str(min(os.sched_getaffinity(0)))}}


@pytest.mark.container
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(
            {},
            {"CTR007": ("fail", "64 MB"), "CTR009": ("notapplicable", ""), "CTR010": ("notapplicable", "")},
            id="nothing set",
        ),
        pytest.param({"shm": "1g"}, {"CTR007": ("pass", "1024 MB")}, id="--shm-size"),
        pytest.param(
            {"shm": "1g", "resources": {"memory": {"limit": 512 << 20}}},
            {"CTR007": ("pass", "1024 MB"), "CTR010": ("fail", "1024 MB of 512 MB")},
            id="--shm-size above --memory",
        ),
        pytest.param(
            {"shm": "128m", "resources": {"memory": {"limit": 512 << 20}}},
            {"CTR007": ("pass", "128 MB"), "CTR010": ("pass", "128 MB of 512 MB")},
            id="--shm-size below --memory",
        ),
        pytest.param(
            {"devices": ("davinci0", "davinci1"), "resources": one_cpu()},
            {"CTR001": ("fail", "missing"), "CTR009": ("fail", "1 CPUs for 2 NPUs")},
            id="--cpuset-cpus",
        ),
        pytest.param(
            {"devices": ("davinci0", "davinci1"), "resources": {"cpu": {"quota": 100_000, "period": 100_000}}},
            {"CTR009": ("fail", "1 CPUs for 2 NPUs")},
            id="--cpus",
        ),
        pytest.param(
            {"devices": ("davinci0", *MANAGEMENT)},
            {"CTR001": ("pass", "a device node"), "CTR009": ("pass", f"{CPUS} CPUs for 1 NPUs")},
            id="--device of all that a job opens",
        ),
    ],
)
def test_limits_of_a_container(
    given: Mapping[str, Any], expected: Mapping[str, tuple[str, str]], tmp_path: Path
) -> None:
    found = outcomes(tmp_path, (*ENVTUNE, *CHECK), **given)
    assert {name: found[name] for name in expected} == expected


@pytest.mark.container
def test_a_snapshot_of_a_container_says_the_same(tmp_path: Path) -> None:
    given: Mapping[str, Any] = {"shm": "1g", "devices": ("davinci0",), "resources": {"memory": {"limit": 512 << 20}}}
    record = shlex.join((*ENVTUNE, "snapshot", "--output", "/tmp/host.tar.gz"))
    script = f"{record} >/dev/null 2>&1 && {shlex.join((*ENVTUNE, *CHECK, '/tmp/host.tar.gz'))}"
    live = outcomes(tmp_path, (*ENVTUNE, *CHECK), **given)
    assert outcomes(tmp_path, ("sh", "-c", script), **given) == live
    assert live["CTR010"] == ("fail", "1024 MB of 512 MB")


@pytest.mark.container
def test_nothing_of_a_container_stays(tmp_path: Path) -> None:
    done = run(tmp_path, ("cat", "/proc/self/cgroup"))
    own: Sequence[str] = [line.rpartition("/")[2] for line in done.stdout.splitlines()]
    name = next(part for part in own if part.startswith("envtune-test-"))
    assert not list(Path("/sys/fs/cgroup").glob(f"**/{name}"))
