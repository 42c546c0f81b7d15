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
from typing import Iterator, Sequence

import pytest

PROGRAM = str(Path(__file__).with_name("live_verdicts.py"))
NOBODY = 65534
LISTENER = """
import socket, sys, time
sockets = [socket.create_server(("0.0.0.0", int(port))) for port in sys.argv[1:]]
print("ready", flush=True)
time.sleep(600)
"""


def verdicts(before: Sequence[str] = (), *arguments: str) -> dict[str, list[list[str]]]:
    argv = [*before, sys.executable, PROGRAM, *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, list[list[str]]] = json.loads(done.stdout)
    return found


def test_as_this_user() -> None:
    found = verdicts()
    assert len(found["live"]) >= 30
    assert found["recorded"] == found["live"]


@pytest.mark.root
def test_as_an_ordinary_user() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to become somebody else")
    found = verdicts((), str(NOBODY))
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
@pytest.mark.parametrize("user", [(), (str(NOBODY),)], ids=["root", "nobody"])
def test_in_a_network_namespace_with_listeners_and_rules(namespace: str, user: tuple[str, ...]) -> None:
    found = verdicts(["ip", "netns", "exec", namespace], *user)
    assert found["recorded"] == found["live"]
