"""firewalld and ufw as they run, on the server of a pair of namespaces, with settings of their own."""

from __future__ import annotations

import shutil
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, Protocol

from helpers.namespaces import Pair, needs

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

ZONE = '<?xml version="1.0" encoding="utf-8"?>\n<zone target="DROP"><interface name="eth0"/></zone>\n'


class Run(Protocol):
    """Runs a shell line where the front end is."""

    def __call__(self, line: str, check: bool = True) -> subprocess.CompletedProcess[str]: ...


@contextmanager
def running_firewalld(pair: Pair, folder: Path, backend: str) -> Iterator[Run]:
    """A firewalld with everything from eth0 in the zone `drop`."""
    needs("firewalld", "firewall-cmd", "dbus-daemon")
    shutil.copytree("/etc/firewalld", folder / "etc")
    (folder / "run").mkdir()
    (folder / "etc" / "zones").mkdir(exist_ok=True)
    (folder / "etc" / "zones" / "drop.xml").write_text(ZONE)
    settings = folder / "etc" / "firewalld.conf"
    lines = [
        line for line in settings.read_text().splitlines() if not line.startswith(("CleanupOnExit", "FirewallBackend"))
    ]
    settings.write_text("\n".join([*lines, "CleanupOnExit=yes", f"FirewallBackend={backend}"]) + "\n")
    (folder / "inside.sh").write_text(INSIDE)
    space = ["ip", "netns", "exec", f"{pair.name}b"]
    inside = ["unshare", "-m", "-p", "-f", "--kill-child", "bash", str(folder / "inside.sh"), str(folder)]
    holder = subprocess.Popen([*space, *inside])
    try:
        wait_for(folder / "ready")
        init = Path(f"/proc/{holder.pid}/task/{holder.pid}/children").read_text().split()[0]

        def run(line: str, check: bool = True) -> subprocess.CompletedProcess[str]:
            argv = ["nsenter", "-t", init, "-n", "-m", "-p", "bash", "-c", line]
            return subprocess.run(argv, capture_output=True, text=True, check=check)

        yield run
    finally:
        (folder / "stop").touch()
        holder.wait(20)


def beside_firewalld(pair: Pair, folder: Path) -> Run:
    """Runs a line on the server with that firewalld's bus and settings, among the machine's own processes."""

    def run(line: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        binds = f"mount --bind {folder}/run /run && mount --bind {folder}/etc /etc/firewalld"
        whole = f"mount --make-rprivate / && {binds} && {line}"
        return pair.run(["unshare", "-m", "bash", "-c", whole], check=check)

    return run


def wait_for(path: Path) -> None:
    end = time.monotonic() + 120
    while not path.exists():
        assert time.monotonic() < end, f"{path.name} did not come"
        time.sleep(0.05)


@contextmanager
def enabled_ufw(pair: Pair, folder: Path) -> Iterator[Run]:
    """An enabled ufw that denies what comes in."""
    needs("ufw")
    shutil.copytree("/etc/ufw", folder / "etc")
    shutil.copy("/etc/default/ufw", folder / "default")
    binds = f"mount --bind {folder}/etc /etc/ufw && mount --bind {folder}/default /etc/default/ufw"

    def run(line: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        whole = f"mount --make-rprivate / && {binds} && {line}"
        return pair.run(["unshare", "-m", "bash", "-c", whole], check=check)

    run("ufw --force enable && ufw default deny incoming")
    yield run
    run("ufw --force disable")
