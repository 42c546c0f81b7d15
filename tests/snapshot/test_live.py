"""Auditing this machine and auditing the snapshot just taken of it say the same, whoever asks and wherever.

Every shipped check takes part; `actual` is left out, because free memory is another one a second later.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Iterator, Sequence

import pytest

PROGRAM = str(Path(__file__).resolve().parents[1] / "helpers" / "live_verdicts.py")
NOBODY = "65534"
LISTENER = """
import socket, sys, time
sockets = [socket.create_server(("0.0.0.0", int(port))) for port in sys.argv[1:]]
print("ready", flush=True)
time.sleep(600)
"""


def verdicts(before: Sequence[str] = (), user: str = "", **target: Any) -> dict[str, list[list[str]]]:
    argv = [*before, sys.executable, PROGRAM, user, json.dumps(target)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, list[list[str]]] = json.loads(done.stdout)
    return found


def test_as_this_user() -> None:
    found = verdicts()
    assert len(found["live"]) >= 30
    assert found["recorded"] == found["live"]


@pytest.fixture
def job(tmp_path: Path) -> Iterator[int]:
    """A process that was started with variables of its own."""
    environ = {
        "PATH": os.environ["PATH"],
        "TASK_QUEUE_ENABLE": "0",
        "HF_TOKEN": "hf_" + "x1" * 20,
        "HOME": str(tmp_path),
    }
    child = subprocess.Popen([sys.executable, "-c", "print(1, flush=True); input()"], env=environ,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
    assert child.stdout is not None and child.stdout.readline() == b"1\n"
    yield child.pid
    child.communicate(b"\n")


@pytest.mark.slow
def test_a_running_job(job: int) -> None:
    found = verdicts(pid=job)
    assert found["recorded"] == found["live"]


@pytest.mark.slow
def test_a_launch_script_and_an_env_file(tmp_path: Path) -> None:
    (tmp_path / "job.env").write_text("HCCL_CONNECT_TIMEOUT=30\nWANDB_API_KEY=0123456789abcdef\n")
    (tmp_path / "train.sh").write_text(
        "#!/bin/bash\nfor part in one two; do . ./$part.sh; done\nexport MASTER_PORT=60001\npython3 train.py\n"
    )
    (tmp_path / "one.sh").write_text("export TASK_QUEUE_ENABLE=0 HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz\n")
    (tmp_path / "two.sh").write_text("export LD_LIBRARY_PATH=/opt/none:$LD_LIBRARY_PATH\n")
    found = verdicts(script=str(tmp_path / "train.sh"), env_file=str(tmp_path / "job.env"), python=sys.executable)
    assert found["recorded"] == found["live"]


@pytest.mark.root
def test_as_an_ordinary_user() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to become somebody else")
    found = verdicts((), NOBODY)
    assert found["recorded"] == found["live"]


@pytest.fixture
def namespace() -> Iterator[str]:
    """A network namespace with two listeners in the HCCL range and a rule set that drops part of it."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    name = f"envtune{os.getpid()}"
    run("ip", "netns", "add", name)
    listener = None
    try:
        run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "-n", name, "link", "add", "eth7", "type", "veth", "peer", "name", "eth8")
        run("ip", "-n", name, "addr", "add", "10.77.0.1/24", "dev", "eth7")
        run("ip", "-n", name, "link", "set", "eth7", "up")
        run("ip", "-n", name, "link", "set", "eth8", "up")
        rules = (
            "add table inet f; add chain inet f i { type filter hook input priority 0; policy drop; }; "
            "add rule inet f i iifname lo accept; add rule inet f i tcp dport 60000-60015 accept"
        )
        run("ip", "netns", "exec", name, "nft", rules)
        argv = ["ip", "netns", "exec", name, sys.executable, "-c", LISTENER, "60000", "60005"]
        listener = subprocess.Popen(argv, stdout=subprocess.PIPE)
        assert listener.stdout is not None and listener.stdout.readline() == b"ready\n"
        yield name
    finally:
        if listener is not None:
            listener.kill()
            listener.communicate()
        time.sleep(0.1)
        run("ip", "netns", "del", name)


def run(*argv: str) -> None:
    subprocess.run(argv, check=True, timeout=30, capture_output=True)


@pytest.mark.root
@pytest.mark.firewall
@pytest.mark.parametrize("user", ["", NOBODY], ids=["root", "nobody"])
def test_in_a_network_namespace_with_listeners_and_rules(namespace: str, user: str) -> None:
    found = verdicts(["ip", "netns", "exec", namespace], user)
    assert found["recorded"] == found["live"]
