"""firewalld and ufw as they run: the verdict is the kernel's, and the commands of a finding mend it, undone they unmend it.

Each runs in a network namespace with a mount namespace of its own, so that the machine's own settings stay untouched.
"""

# ruff: noqa: E501  (command lines)

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path
from typing import Callable, Iterator, Sequence

import pytest
from namespaces import PEERS, Pair, agree, needs, told, verdicts

from envtune.audit import examine
from envtune.catalog import load
from envtune.model import Finding, Outcome
from envtune.scene import open_scene
from envtune.snapshot import SnapshotHost

pytestmark = [pytest.mark.firewall, pytest.mark.root, pytest.mark.slow]

Run = Callable[[str], "subprocess.CompletedProcess[str]"]

INSIDE = """
set -e
mount --make-rprivate /
mount --bind "$1/run" /run && mkdir -p /run/dbus
mount --bind "$1/etc" /etc/firewalld
mount -t proc proc /proc
dbus-daemon --system --fork --nopidfile --print-address >/run/dbus/address
firewalld --nofork --nopid >"$1/log" 2>&1 &
for i in $(seq 150); do firewall-cmd --state >/dev/null 2>&1 && break; sleep 0.1; done
touch "$1/ready"
while [ ! -e "$1/stop" ]; do sleep 0.05; done
"""


@pytest.fixture
def pair() -> Iterator[Pair]:
    needs("nft", "iptables", "unshare", "nsenter")
    with Pair() as both:
        yield both


@pytest.fixture(params=["nftables", "iptables"])
def firewalld(pair: Pair, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Run]:
    """A running firewalld with everything from eth0 in the zone `drop`; runs a shell line beside it."""
    needs("firewalld", "firewall-cmd", "dbus-daemon")
    shutil.copytree("/etc/firewalld", tmp_path / "etc")
    (tmp_path / "run").mkdir()
    settings = tmp_path / "etc" / "firewalld.conf"
    lines = [
        line for line in settings.read_text().splitlines() if not line.startswith(("CleanupOnExit", "FirewallBackend"))
    ]
    settings.write_text("\n".join([*lines, "CleanupOnExit=yes", f"FirewallBackend={request.param}"]) + "\n")
    (tmp_path / "inside.sh").write_text(INSIDE)
    space = ["ip", "netns", "exec", f"{pair.name}b"]
    holder = subprocess.Popen([*space, "unshare", "-m", "-p", "-f", "--kill-child", "bash", str(tmp_path / "inside.sh"), str(tmp_path)])  # fmt: skip
    try:
        wait_for(tmp_path / "ready")
        init = Path(f"/proc/{holder.pid}/task/{holder.pid}/children").read_text().split()[0]

        def run(line: str) -> subprocess.CompletedProcess[str]:
            argv = ["nsenter", "-t", init, "-n", "-m", "-p", "bash", "-c", line]
            return subprocess.run(argv, capture_output=True, text=True, check=True)

        run("firewall-cmd --permanent --zone=drop --add-interface=eth0 && firewall-cmd --reload")
        yield run
    finally:
        (tmp_path / "stop").touch()
        holder.wait(20)


def wait_for(path: Path) -> None:
    end = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < end, f"{path.name} did not come"
        time.sleep(0.05)


@pytest.fixture
def ufw(pair: Pair, tmp_path: Path) -> Iterator[Run]:
    """An enabled ufw that denies what comes in; runs a shell line with its own settings."""
    needs("ufw")
    shutil.copytree("/etc/ufw", tmp_path / "etc")
    shutil.copy("/etc/default/ufw", tmp_path / "default")
    binds = f"mount --bind {tmp_path}/etc /etc/ufw && mount --bind {tmp_path}/default /etc/default/ufw"

    def run(line: str) -> subprocess.CompletedProcess[str]:
        whole = f"mount --make-rprivate / && {binds} && {line}"
        return pair.run(["unshare", "-m", "bash", "-c", whole])

    run("ufw --force enable && ufw default deny incoming")
    yield run
    run("ufw --force disable")


def findings(pair: Pair) -> tuple[Finding, ...]:
    host = SnapshotHost({**pair.recorded().data, "environ": {"MASTER_PORT": "29688"}})
    return examine(next(check for check in load().checks if check.id == "NET004"), open_scene(host))


def mend(pair: Pair, run: Run, owner: str) -> list[str]:
    """Closed, then open for the peer after typing what the findings say; the lines typed."""
    assert agree(verdicts(told(pair).tables), pair.reach()) == ""
    assert not any(pair.reach().values())
    found = findings(pair)
    assert [(one.outcome, one.subject) for one in found] == [
        (Outcome.FAIL, "MASTER_PORT 29688"),
        (Outcome.FAIL, "HCCL 60000-60031"),
    ]
    assert all(one.expected is not None and owner in one.expected.en for one in found)
    lines = [line.replace("sudo ", "").replace("<peer>", PEERS[0]) for one in found for line in one.commands]
    for line in lines:
        run(line)
    reached = pair.reach()
    assert {key for key, open_ in reached.items() if open_} == {
        (PEERS[0], port) for port in (29688, 60000, 60015, 60031)
    }
    assert agree(verdicts(told(pair).tables), reached) == ""
    return lines


def undo(pair: Pair, run: Run, lines: Sequence[str]) -> None:
    for line in lines:
        run(line.replace("--add-rich-rule", "--remove-rich-rule").replace("ufw allow", "ufw delete allow"))
    assert not any(pair.reach().values())


def test_firewalld(pair: Pair, firewalld: Run) -> None:
    lines = mend(pair, firewalld, "firewalld")
    assert len(lines) == 4, "two rules, each to runtime and to permanent"
    assert all(line.startswith("firewall-cmd") and "--zone=drop" in line and "--reload" not in line for line in lines)
    permanent = firewalld("firewall-cmd --permanent --zone=drop --list-rich-rules").stdout
    assert 'port="60000-60031"' in permanent and 'port="29688"' in permanent
    undo(pair, firewalld, lines)


def test_ufw(pair: Pair, ufw: Run) -> None:
    lines = mend(pair, ufw, "ufw")
    assert len(lines) == 2
    undo(pair, ufw, lines)
