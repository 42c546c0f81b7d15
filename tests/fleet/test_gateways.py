"""Audits through gateways: ones that work, one that hangs, one without ClusterShell, one that prints anything."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Iterator

import pytest
from helpers.examples import ROOT
from helpers.sshd_farm import UID, Target, farm

pytestmark = [pytest.mark.sshd, pytest.mark.root]
HOSTS = 4
TIME, CONNECT = 8, 4
# The gateway's own Python has ClusterShell; what runs a program from standard input is the recorder, and has none.
WITH = 'case "$1" in -m) export PYTHONPATH=/media/lib; echo "$@" >>/media/asked;; esac\nexec /usr/bin/python3 "$@"'
HANGS = 'case "$1" in -m) echo "$@" >>/media/asked; exec sleep 30;; esac\nexec /usr/bin/python3 "$@"'
PRINTS = (
    'case "$1" in -m) echo "$@" >>/media/asked; echo "<channel>&"; sleep 1; exit;; esac\nexec /usr/bin/python3 "$@"'
)
WITHOUT = 'case "$1" in -m) echo "$@" >>/media/asked;; esac\nexec /usr/bin/python3 -S "$@"'


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that another user can look into: a gateway reads the configuration of ssh there."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


@pytest.mark.parametrize(
    ("gateways", "gone"),
    [
        ({"gw1": WITH, "gw2": WITH}, ""),
        ({"gw1": WITHOUT, "gw2": WITHOUT}, ""),
        ({"gw1": PRINTS}, ""),
        ({"gw1": WITH, "gw2": WITH}, "gw1"),
        pytest.param({"gw1": WITH, "gw2": HANGS}, "", marks=pytest.mark.slow),
    ],
    ids=["both work", "without ClusterShell", "prints anything", "one is refused", "one hangs"],
)
def test_every_host_is_collected_once(shared: Path, gateways: dict[str, str], gone: str) -> None:
    import ClusterShell

    library = Path(ClusterShell.__file__).parent
    shutil.copytree(library, shared / "lib" / "ClusterShell", ignore=shutil.ignore_patterns("__pycache__"))
    targets = [Target(name, python, fault="refused" if name == gone else "") for name, python in gateways.items()]
    targets += [Target(f"h{n}") for n in range(1, HOSTS)] + [Target("bad", "echo >>/media/tried; echo hello")]
    hosts = ",".join([f"h[1-{HOSTS - 1}],bad", *(name for name in gateways if name != gone)])
    with farm(shared, targets) as servers:
        os.chown(shared / "id", UID, -1)  # the gateway logs in with it
        for name in ("asked", "tried"):
            (shared / name).touch()
            (shared / name).chmod(0o666)
        began = time.monotonic()
        report, errors = audit(servers.ssh_options, hosts, ",".join(gateways), shared / "fleet.db")
        seconds = time.monotonic() - began
        assert servers.processes(25) == []
    assert errors == ""
    found = {row["host"]: row["collection"] for row in report["hosts"]}
    assert found == {
        **{f"h{n}": "ok" for n in range(1, HOSTS)},
        "bad": "garbage",
        **{name: "ok" for name in gateways if name != gone},
    }
    assert "ClusterShell.Gateway" in (shared / "asked").read_text("utf-8")
    if gateways == {"gw1": WITH, "gw2": WITH} and not gone:
        assert (shared / "tried").read_text("utf-8") == "\n" * 2  # through a gateway, and once more directly
    assert seconds < 4 * (TIME + CONNECT + 20)
    assert not any((shared / "home").iterdir())


def audit(ssh_options: str, hosts: str, gateways: str, store: Path) -> tuple[Any, str]:
    words = ["fleet", "audit", "-w", hosts, "--gateways", gateways, "--store", str(store), "--format", "json"]
    words += ["--ssh-options", ssh_options, "--timeout", str(TIME), "--connect-timeout", str(CONNECT)]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "envtune", *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environ)
    return json.loads(done.stdout) if done.stdout else None, done.stderr
