"""Real containers, run by runc from this machine's own files, mounted read-only; nothing is pulled.

A container has what Docker gives one by default: namespaces, a /dev/shm of 64 MB, a control group, device nodes by
name, and the file /.dockerenv. runc removes the control group when its process has ended.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Mapping, Optional, Sequence

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMESPACES = ("pid", "ipc", "uts", "mount", "network")
_names = itertools.count()


def runc() -> str:
    """Return the path of runc; skip the test where it or root is missing."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    found = shutil.which("runc", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/bin")
    if found is None:
        pytest.skip("runc is not installed")
    return found


def run(
    folder: Path,
    argv: Sequence[str],
    shm: str = "65536k",
    resources: Optional[Mapping[str, Any]] = None,
    devices: Sequence[str] = (),
) -> subprocess.CompletedProcess[str]:
    """Run a command in a container of its own, and return what it printed.

    `shm` is the size of /dev/shm, `resources` the limits as the runtime specification writes them, `devices` names of
    character devices below /dev; nothing answers behind these.
    """
    name = f"envtune-test-{os.getpid()}-{next(_names)}"
    bundle = folder / name
    (bundle / "rootfs").mkdir(parents=True)
    (bundle / "rootfs" / ".dockerenv").touch()
    (bundle / "config.json").write_text(json.dumps(_config(name, argv, shm, resources or {}, devices)), "utf-8")
    command = [runc(), "--root", str(folder / "state"), "run", "--bundle", str(bundle), name]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)


def _config(
    name: str, argv: Sequence[str], shm: str, resources: Mapping[str, Any], devices: Sequence[str]
) -> dict[str, Any]:
    variables = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/tmp",
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    nodes = [
        {"path": f"/dev/{node}", "type": "c", "major": 1, "minor": 3, "fileMode": 0o660, "uid": 0, "gid": 0}
        for node in devices
    ]
    return {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": 0, "gid": 0},
            "args": list(argv),
            "env": [f"{key}={value}" for key, value in variables.items()],
            "cwd": "/",
        },
        "root": {"path": "rootfs", "readonly": False},
        "mounts": list(_mounts(shm)),
        "linux": {
            "cgroupsPath": name,
            "resources": dict(resources),
            "devices": nodes,
            "namespaces": [{"type": kind} for kind in NAMESPACES],
        },
    }


def _mounts(shm: str) -> Sequence[dict[str, Any]]:
    plain = ["nosuid", "noexec", "nodev"]
    rows: list[dict[str, Any]] = [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs"},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=65536k"]},
        {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": [*plain, "mode=1777", f"size={shm}"]},
        {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": [*plain, "ro"]},
        {"destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup", "options": [*plain, "ro"]},
    ]
    system = ("/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc")
    places = dict.fromkeys((*system, str(ROOT), sys.prefix, sys.base_prefix))
    rows += [
        {"destination": place, "type": "bind", "source": place, "options": ["rbind", "ro"]}
        for place in places
        if os.path.exists(place)
    ]
    return rows
