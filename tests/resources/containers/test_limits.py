"""What a container's limits mean, and which runtime started it, on texts of real containers; a real tmpfs as root."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any, Mapping, Optional

import pytest
from helpers.checks import check_files
from helpers.examples import example_context

from envtune.audit import examine
from envtune.catalog import check_from
from envtune.errors import is_not_recorded
from envtune.host import LocalHost
from envtune.resources.containers.devices import parse_list, parse_user
from envtune.resources.containers.limits import size_of
from envtune.resources.system.mounts import Mount, mount_at

DOCKER = "700 690 0:60 / /dev/shm rw,nosuid,nodev,noexec,relatime - tmpfs shm rw,size=65536k\n"

OVERLAY = "1 0 0:1 / / rw - overlay overlay rw,upperdir="


@pytest.mark.parametrize(
    ("options", "size"),
    [
        (("rw", "size=65536k"), 64 << 20),
        (("rw", "size=8g"), 8 << 30),
        (("rw", "size=1048576"), 1 << 20),
        (("rw", "seclabel"), None),
        (("rw", "size=50%"), None),
        (("size=9999999999999999999999k",), None),
    ],
)
def test_the_size_of_a_tmpfs(options: tuple[str, ...], size: Optional[int]) -> None:
    assert size_of(Mount("/dev/shm", "tmpfs", options, "")) == size


@pytest.mark.root
def test_the_size_of_a_real_tmpfs(tmp_path: Path) -> None:
    """In a mount namespace of its own, so that nothing of the machine changes."""
    place = tmp_path / "shm"
    place.mkdir()
    script = f"mount -t tmpfs -o size=3m none {place} && cat /proc/self/mountinfo"
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(done.stderr.strip())
    mount = mount_at(done.stdout, str(place))
    assert mount is not None and size_of(mount) == 3 << 20


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("0", {0}),
        ("0-2,4", {0, 1, 2, 4}),
        ("Ascend910-0,Ascend910-3", {0, 3}),
        ("Ascend910B-7", {7}),
        ("all", None),
        ("3-1", None),
        ("", None),
        ("0,,1", None),
    ],
)
def test_what_ascend_visible_devices_lists(text: str, numbers: Optional[set[int]]) -> None:
    assert parse_list(text) == numbers


def test_the_user_of_this_process() -> None:
    user = parse_user(LocalHost().read("/proc/self/status"), "/proc/self/status")
    assert user is not None and user.uid == LocalHost().euid
    assert parse_user("Uid:\tx\n", "") is None and parse_user("", "") is None


@pytest.mark.parametrize(
    ("host", "runtime"),
    [
        ({}, "none"),
        ({"files": {"/.dockerenv": ""}}, "docker"),
        ({"files": {"/run/.containerenv": ""}}, "podman"),
        (
            {"files": {"/proc/self/cgroup": "0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-1.scope\n"}},
            "kubernetes",
        ),
        ({"files": {"/.dockerenv": ""}, "environ": {"KUBERNETES_SERVICE_HOST": "10.96.0.1"}}, "kubernetes"),
        ({"files": {"/proc/self/cgroup": "0::/system.slice/docker-0a1b.scope\n"}}, "docker"),
        ({"files": {"/proc/self/cgroup": "0::/system.slice/crio-0a1b.scope\n"}}, "crio"),
        (
            {
                "files": {
                    "/proc/self/mountinfo": "1 0 0:1 / / rw - overlay overlay rw,upperdir=/var/lib/containerd/x/fs\n"
                }
            },
            "containerd",
        ),
        (
            {"files": {"/proc/self/mountinfo": OVERLAY + "/var/lib/containers/storage/x\n"}},
            "podman",
        ),
        ({"files": {"/run/systemd/container": "oci\n"}}, None),
    ],
)
def test_which_runtime_started_the_container(host: Mapping[str, Any], runtime: Optional[str]) -> None:
    assert example_context(host).facts.value("container_runtime") == runtime


CHECKS = {data["id"]: check_from(data) for data in check_files() if re.match("CTR|NET1[12]|PY1(0[2-9]|1)", data["id"])}
# What a collector before these checks recorded: the places of that time, and nothing of theirs.
OLDER = [
    "/dev/davinci*",
    "/dev/devmm_svm",
    "/dev/hisi_hdc",
    "/.dockerenv",
    "/proc/**",
    "/usr/local/python3.10.13/**",
    "/usr/local/Ascend/ascend-toolkit/**",
    "/sys/devices/**",
]


@pytest.mark.parametrize("marker", ["/.dockerenv", "/etc/nothing"])
def test_what_an_older_snapshot_lacks_is_unknown_for_no_other_reason(marker: str) -> None:
    site = "/usr/local/python3.10.13/lib/python3.10/site-packages"
    host = {
        "like": "cann-mid",
        "files": {
            marker: "",
            f"{site}/torch/lib/libc10.so": {"size": 900000},
            "/proc/self/mountinfo": DOCKER,
            "/sys/devices/system/cpu/online": "0-7\n",
        },
        "covered": OLDER,
    }
    context = example_context(host)
    found = [finding for check in CHECKS.values() for finding in examine(check, context)]
    unknown = [finding.reason for finding in found if finding.outcome == "unknown"]
    assert all(reason is not None and is_not_recorded(reason) for reason in unknown)
