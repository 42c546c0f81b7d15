"""A Slurm cluster of one node on the loopback interface, below one directory: munged, slurmctld, slurmd."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Callable, Iterator, Mapping

import pytest

SLURM = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={socket}
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldPort={port}
SlurmdPort={second}
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ReturnToService=1
MailProg=/bin/true
{settings}
NodeName={host} NodeAddr=127.0.0.1 CPUs=1 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def wait(until: Callable[[], bool], what: Callable[[], str], seconds: float = 60.0) -> None:
    for _ in range(int(seconds / 0.2)):
        if until():
            return
        time.sleep(0.2)
    pytest.fail(what())


class Cluster:
    """The node of a running cluster; `environ` is what the commands of Slurm need."""

    server: subprocess.Popen[bytes]  # slurmctld

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self.folder = folder
        self.environ = environ
        self.node = socket.gethostname().split(".")[0]

    def command(self, *argv: str, seconds: float = 60) -> subprocess.CompletedProcess[str]:
        return subprocess.run(argv, env=self.environ, capture_output=True, text=True, timeout=seconds, check=False)

    def state(self) -> str:
        """State of the node and reason of its drain."""
        return self.command("sinfo", "-h", "-N", "-o", "%T %E").stdout.strip()

    def wait_for(self, word: str) -> None:
        wait(lambda: self.state().startswith(word), self.logs)

    def logs(self) -> str:
        files = [self.folder / "slurmctld.log", self.folder / "slurmd.log"]
        return "\n".join([self.state(), *(file.read_text()[-2000:] for file in files if file.exists())])


@contextmanager
def cluster(folder: Path, settings: str, environ: Mapping[str, str]) -> Iterator[Cluster]:
    """Run a cluster with these lines in slurm.conf; what was started ends with it."""
    for name in ("state", "spool", "munge", "home"):
        (folder / name).mkdir()
    (folder / "munge").chmod(0o711)
    (folder / "munge" / "key").write_bytes(os.urandom(1024))
    (folder / "munge" / "key").chmod(0o600)
    host = socket.gethostname().split(".")[0]
    short = Path(tempfile.mkdtemp(prefix="munge", dir="/tmp"))  # a socket's path is at most 107 bytes
    short.chmod(0o711)
    ports = {"port": str(20000 + os.getpid() % 10000), "second": str(30000 + os.getpid() % 10000)}
    lines = SLURM.format(host=host, folder=folder, socket=short / "socket", settings=settings, **ports)
    (folder / "slurm.conf").write_text(lines)
    place = folder / "munge"
    munge = ["--key-file", f"{place}/key", "--socket", f"{short}/socket", "--pid-file", f"{place}/pid"]
    munge += ["--log-file", f"{place}/log", "--seed-file", f"{place}/seed"]
    started = [subprocess.Popen(["munged", "--force", "--foreground", *munge], stderr=subprocess.DEVNULL)]
    try:
        wait((short / "socket").exists, lambda: "munged did not start")
        made = Cluster(folder, {**environ, "SLURM_CONF": str(folder / "slurm.conf")})
        for program in ("slurmctld", "slurmd"):
            started.append(subprocess.Popen([program, "-D"], env=made.environ, stderr=subprocess.DEVNULL))
        made.server = started[1]
        made.wait_for("idle")
        yield made
    finally:
        with suppress(OSError, subprocess.TimeoutExpired):  # slurmd waits for the steps of its jobs
            cancel = ["scancel", "--full", "--signal=KILL", "--user", "root"]
            subprocess.run(cancel, env={**environ, "SLURM_CONF": str(folder / "slurm.conf")}, timeout=20, check=False)
        for process in reversed(started):
            process.send_signal(signal.SIGTERM)
        for process in started:
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(short)
