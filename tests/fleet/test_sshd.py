"""Audits of real SSH servers, good ones and ones with every fault at once."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from helpers.examples import ROOT
from helpers.sshd_farm import USER, Farm, Target, farm, pyenv

pytestmark = [pytest.mark.sshd, pytest.mark.root]
TIME = 6  # seconds for the recorder
CONNECT = 4
HANGS = "trap '' TERM\nwhile :; do kill -STOP $$; done"
CUT = '/usr/bin/python3 "$@" | head -c 3000'
DAMAGED = "/usr/bin/python3 \"$@\" | sed '3s/^..../0000/'"
NOISY = 'echo "*** Welcome ***"\n/usr/bin/python3 "$@"\necho bye'
FLOOD = "exec head -c 5000000000 /dev/zero"
GIANT = "printf '@@ENVTUNE/1 999999999 0123456789abcdef\\n'\nexec head -c 5000000000 /dev/zero"
EVIL = "printf '\\033]0;x\\007<script>alert(1)</script>\\r\\n' >&2\nexit 1"
VERSIONS = ("3.6", "3.7", "3.13")

FAULTS = {
    "ok1": (Target("ok1"), "ok"),
    "hangs": (Target("hangs", HANGS), "timeout"),
    "sshdstopped": (Target("sshdstopped", fault="stopped"), "timeout"),
    "refused": (Target("refused", fault="refused"), "refused"),
    "blackhole": (Target("blackhole", fault="blackhole"), "timeout"),
    "otherkey": (Target("otherkey", known=False), "hostkey"),
    "garbage": (Target("garbage", "echo hello; exit 0"), "garbage"),
    "cut": (Target("cut", CUT), "truncated"),
    "damaged": (Target("damaged", DAMAGED), "corrupt"),
    "nopython": (Target("nopython", ""), "no_python"),
    "flood": (Target("flood", FLOOD), "garbage"),
    "giant": (Target("giant", GIANT), "corrupt"),
    "evil": (Target("evil", EVIL), "garbage"),
    "noisy": (Target("noisy", NOISY, options=["-o", "Banner=/media/banner"]), "ok"),
    "denied": (Target("denied", options=["-o", "PubkeyAuthentication=no"]), "auth"),
    "fulltmp": (
        Target(
            "fulltmp",
            mounts="mount -t tmpfs -o size=4096,mode=1777 none /tmp\nhead -c 9999 /dev/zero >/tmp/full || true\n",
        ),
        "ok",
    ),
    "noexec": (Target("noexec", mounts="mount -t tmpfs -o noexec,mode=1777 none /tmp\n"), "ok"),
    "readonly": (
        Target("readonly", mounts="mount --bind -o ro /media/home /media/home\nmount -o remount,bind,ro /media/home\n"),
        "ok",
    ),
    **{f"py{v.replace('.', '')}": (Target(f"py{v.replace('.', '')}", versions=pyenv(v) or ""), "ok") for v in VERSIONS},
}


def audit(farm: Farm, nodes: str, store: Path, *more: str) -> tuple[int, Any, str]:
    words = [
        "fleet",
        "audit",
        "-w",
        nodes,
        "--store",
        str(store),
        "--ssh-options",
        farm.ssh_options,
        "--format",
        "json",
    ]
    words += ["--timeout", str(TIME), "--connect-timeout", str(CONNECT), *more]
    done = subprocess.run(
        [sys.executable, "-m", "envtune", *words],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr


def test_every_fault_is_named_and_harms_no_other_host(tmp_path: Path) -> None:
    targets = [target for target, _ in FAULTS.values()]
    missing = [v for v in VERSIONS if pyenv(v) is None]
    if missing:
        pytest.skip(f"no Python {missing[0]} here")
    with farm(tmp_path, targets) as servers:
        began = time.monotonic()
        status, report, errors = audit(servers, ",".join([*FAULTS, "nosuchhost.invalid"]), tmp_path / "fleet.db")
        seconds = time.monotonic() - began
        left = servers.processes()
    assert errors == ""
    found = {row["host"]: row["collection"] for row in report["hosts"]}
    assert found == {**{name: verdict for name, (_, verdict) in FAULTS.items()}, "nosuchhost.invalid": "dns"}
    assert left == []
    assert status in (1, 3)
    assert seconds < 3 * (CONNECT + TIME + 15)
    detail = {row["host"]: row["detail"] for row in report["hosts"]}
    assert "python3" in detail["nopython"] and "refused" in detail["refused"].lower()
    assert detail["evil"] == r"\x1b]0;x\x07<script>alert(1)</script>"
    assert not any((tmp_path / "home").iterdir())


def test_many_hosts_of_which_one_differs(tmp_path: Path) -> None:
    number = 8
    targets = [Target(f"h{n:03d}") for n in range(1, number + 1)]
    with farm(tmp_path, targets) as servers:
        _, first, errors = audit(servers, f"h[001-{number:03d}]", tmp_path / "fleet.db")
        assert errors == ""
        _, report, errors = audit(servers, f"h[001-{number:03d}]", tmp_path / "fleet.db", "--job", "no-such-job")
    assert report["collected"] == first["collected"] == number
    assert Counter(row["collection"] for row in report["hosts"]) == {"ok": number}
    reasons = {found["text"] for check in first["checks"] if check["outcome"] == "unknown" for found in check["found"]}
    assert any("--python, --env-file or --job" in str(text) for text in reasons)
    reasons = {found["text"] for check in report["checks"] if check["outcome"] == "unknown" for found in check["found"]}
    assert any("no process named no-such-job" in str(text) for text in reasons)


def test_an_audit_that_is_interrupted_leaves_nothing_behind(tmp_path: Path) -> None:
    targets = [Target("good"), Target("hangs", "sleep 60")]
    with farm(tmp_path, targets) as servers:
        words = ["fleet", "audit", "-w", "good,hangs", "--store", str(tmp_path / "fleet.db")]
        words += ["--ssh-options", servers.ssh_options, "--timeout", "20"]
        running = subprocess.Popen(
            [sys.executable, "-m", "envtune", *words],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        until = time.monotonic() + 20
        while not servers.running() and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(1)
        os.killpg(running.pid, signal.SIGINT)
        _, errors = running.communicate(timeout=30)
        assert running.returncode == 130 and b"Traceback" not in errors
        assert servers.processes(25) == []  # the time of the host itself is the last resort


def test_as_root_by_sudo(tmp_path: Path) -> None:
    if shutil.which("sudo") is None:
        pytest.skip("no sudo here")
    allowed = (
        f"echo '{USER} ALL=(root) NOPASSWD: ALL' >/run/sudoers\n"
        "chmod 440 /run/sudoers\n"
        "mount --bind /run/sudoers /etc/sudoers\n"
    )
    targets = [Target("allowed", mounts=allowed), Target("refused")]
    with farm(tmp_path, targets) as servers:
        _, report, errors = audit(servers, "allowed,refused", tmp_path / "fleet.db", "--become")
    assert errors == ""
    assert {row["host"]: row["collection"] for row in report["hosts"]} == {"allowed": "ok", "refused": "auth"}
    page = subprocess.run(
        [
            sys.executable,
            "-m",
            "envtune",
            "fleet",
            "host",
            "allowed",
            "--store",
            str(tmp_path / "fleet.db"),
            "-f",
            "json",
        ],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert json.loads(page.stdout)["facts"]["user"] == "root"
