"""Real SSH servers on loopback addresses, each in a mount namespace of its own: own key, own user, own faults.

Nothing of the machine is changed: the user exists in the namespaces only, and every server is ended by its number.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, NamedTuple, Optional, Sequence

import pytest

PORT = 10_000 + os.getpid() % 20_000  # another test run may have servers, too
UID = 64123  # of the user that exists in the namespaces
USER = "envtune-farm"
SSHD = "/usr/sbin/sshd"


class Target(NamedTuple):
    """A host: what `python3` is there, what is mounted, options of its server, and what is wrong with it."""

    name: str
    python: str = 'exec /usr/bin/python3 "$@"'  # a shell script; empty: there is none
    mounts: str = ""  # lines of a shell script, before the server starts
    options: Sequence[str] = ()
    known: bool = True  # whether its key is the one in known_hosts
    fault: str = ""  # stopped | refused | blackhole
    versions: str = ""  # a Python of pyenv at /mnt


class Farm(NamedTuple):
    """The servers that run."""

    folder: Path
    servers: tuple[subprocess.Popen[bytes], ...]

    @property
    def ssh_options(self) -> str:
        return f"-F {self.folder}/ssh_config"

    def running(self) -> list[str]:
        """What the user of the farm runs now, servers aside."""
        return _running()

    def processes(self, seconds: float = 2) -> list[str]:
        """What the user of the farm runs, servers aside; what is about to end gets so many seconds."""
        until = time.monotonic() + seconds
        while (found := _running()) and time.monotonic() < until:
            time.sleep(0.1)
        return found


def _running() -> list[str]:
    found = []
    for number in filter(str.isdecimal, os.listdir("/proc")):
        try:
            own = os.stat(f"/proc/{number}").st_uid == UID
            status = Path(f"/proc/{number}/stat").read_text("utf-8", errors="replace")
        except OSError:
            continue
        if own and status.rpartition(")")[2].split()[0] != "Z" and "(sshd" not in status:
            found.append(status)
    return found


@contextmanager
def farm(folder: Path, targets: Sequence[Target]) -> Iterator[Farm]:
    """Run a server for each target; skips where that is not possible here."""
    if os.geteuid() or not os.path.exists(SSHD) or shutil.which("unshare") is None:
        pytest.skip("no SSH server that can be started here")
    folder.chmod(0o755)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "id"], check=True)
    _write_shared(folder)
    servers: list[subprocess.Popen[bytes]] = []
    sockets: list[socket.socket] = []
    known, hosts = [], []
    try:
        for number, target in enumerate(targets, 1):
            address = f"127.0.{10 + number // 250}.{number % 250 + 1}"
            key = _make_key(folder, target.name)
            other = key if target.known else _make_key(folder, f"{target.name}-before")
            known.append(f"[{address}]:{PORT} {' '.join(other.split()[:2])}")
            hosts.append(f"Host {target.name}\n  HostName {address}\n")
            if target.fault == "blackhole":
                sockets += _black_hole(address)
            elif target.fault != "refused":
                servers.append(_serve(folder, target, address))
        (folder / "known_hosts").write_text("\n".join(known) + "\n")
        (folder / "ssh_config").write_text("".join(hosts) + _config(folder))
        _wait_for(targets)
        for target, server in zip([t for t in targets if t.fault not in ("refused", "blackhole")], servers):
            if target.fault == "stopped":
                os.kill(server.pid, signal.SIGSTOP)
        yield Farm(folder, tuple(servers))
    finally:
        _end(servers, sockets)


def _end(servers: Sequence[subprocess.Popen[bytes]], sockets: Sequence[socket.socket]) -> None:
    for server in servers:
        server.send_signal(signal.SIGCONT)
        server.terminate()
    for server in servers:
        server.wait(10)
    for one in sockets:
        one.close()


def _write_shared(folder: Path) -> None:
    (folder / "home").mkdir()
    os.chown(folder / "home", UID, 65534)
    passwd = Path("/etc/passwd").read_text() + f"{USER}:x:{UID}:65534::/media/home:/bin/sh\n"
    (folder / "passwd").write_text(passwd)
    (folder / "shadow").write_text(f"root:*:1::::::\n{USER}:*:1::::::\n")
    (folder / "keys").write_text((folder / "id.pub").read_text())
    (folder / "banner").write_text("*** Authorised users only ***\n")


def _make_key(folder: Path, name: str) -> str:
    path = folder / f"key-{name}"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    return path.with_name(path.name + ".pub").read_text()


def _config(folder: Path) -> str:
    return f"""Host *
  User {USER}
  Port {PORT}
  IdentityFile {folder}/id
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
  GlobalKnownHostsFile none
  KexAlgorithms curve25519-sha256
"""


def _serve(folder: Path, target: Target, address: str) -> subprocess.Popen[bytes]:
    programs = folder / f"bin-{target.name}"
    programs.mkdir()
    (programs / "timeout").symlink_to("/usr/bin/timeout")
    path = f"/media/{programs.name}"
    if target.python:
        (programs / "python3").write_text(f"#!/bin/sh\n{target.python}\n")
        (programs / "python3").chmod(0o755)
        path += ":/usr/bin:/bin"
    mounts = target.mounts
    if target.versions:
        mounts += f"mount --bind {target.versions} /mnt\n"
        # it is not where it was installed
        (programs / "python3").write_text('#!/bin/sh\nLD_LIBRARY_PATH=/mnt/lib exec /mnt/bin/python3 "$@"\n')
    script = f"""set -e
mount --bind {folder} /media
mount --bind {folder}/passwd /etc/passwd
mount --bind {folder}/shadow /etc/shadow
mount -t tmpfs none /run
mkdir /run/sshd
{mounts}
exec {SSHD} -D -f /dev/null -h /media/key-{target.name} -o ListenAddress={address}:{PORT} -o PidFile=none \\
  -o UsePAM=no -o PasswordAuthentication=no -o AuthorizedKeysFile=/media/keys -o StrictModes=no \\
  -o MaxStartups=200 -o LogLevel=ERROR -o SetEnv=PATH={path} {" ".join(target.options)}
"""
    return subprocess.Popen(["unshare", "-m", "--propagation", "private", "sh", "-c", script])


def _black_hole(address: str) -> list[socket.socket]:
    """A port whose queue is full: further connections are not answered."""
    listening = socket.socket()
    try:
        # A server of an earlier farm may have had the address: its closed connections are remembered for a minute.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((address, PORT))
        listening.listen(0)
    except OSError:
        listening.close()
        raise
    waiting = []
    for _ in range(4):
        one = socket.socket()
        one.setblocking(False)
        one.connect_ex((address, PORT))
        waiting.append(one)
    return [listening, *waiting]


def _wait_for(targets: Sequence[Target]) -> None:
    for number, target in enumerate(targets, 1):
        if target.fault:
            continue
        until = time.monotonic() + 20
        while True:
            with socket.socket() as one:
                if one.connect_ex((f"127.0.{10 + number // 250}.{number % 250 + 1}", PORT)) == 0:
                    break
            assert time.monotonic() < until, f"{target.name} does not listen"
            time.sleep(0.05)


def pyenv(version: str) -> Optional[str]:
    """The folder of a Python of pyenv, e.g. 3.6."""
    root = Path(os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv")))
    found = sorted(root.glob(f"versions/{version}.*/bin/python3"))
    return str(found[0].parent.parent) if found else None
