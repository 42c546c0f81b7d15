"""The nodes of a real slurmctld, audited."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator, Sequence

import pytest
from helpers.examples import ROOT
from helpers.sshd_farm import Target, farm

pytestmark = [pytest.mark.sshd, pytest.mark.root]
CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldPort={port}
SlurmctldLogFile={folder}/slurmctld.log
MailProg=/bin/true
NodeName=node[1-3],login1 NodeAddr=127.0.0.1 CPUs=1 State=UNKNOWN
PartitionName=train Nodes=node[1-2] State=UP
PartitionName=all Nodes=ALL Default=YES State=UP
"""


@contextmanager
def slurm(folder: Path) -> Iterator[dict[str, str]]:
    """Run munged and slurmctld; yields the variables with which its commands find them."""
    programs = [shutil.which(name, path="/usr/sbin:/usr/bin") for name in ("munged", "slurmctld", "sinfo")]
    if None in programs:
        pytest.skip("no Slurm here")
    (folder / "state").mkdir(parents=True)
    for above in (folder, folder.parent):
        above.chmod(0o711)  # munged wants its socket to be reached by all
    (folder / "munge.key").write_bytes(os.urandom(1024))
    (folder / "munge.key").chmod(0o600)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    conf = folder / "slurm.conf"
    conf.write_text(CONFIGURATION.format(host=socket.gethostname().split(".")[0], folder=folder, port=port))
    environ = {**os.environ, "SLURM_CONF": str(conf)}
    places = {
        "key": "munge.key",
        "socket": "munge.socket",
        "pid": "munge.pid",
        "log": "munge.log",
        "seed": "munge.seed",
    }
    words = [
        f"--{'log' if name == 'log' else name}-file={folder / file}"
        for name, file in places.items()
        if name != "socket"
    ]
    munge = [str(programs[0]), "--force", "--foreground", f"--socket={folder / 'munge.socket'}", *words]
    servers = [subprocess.Popen(munge)]
    try:
        _wait(lambda: (folder / "munge.socket").exists(), "munged")
        servers.append(subprocess.Popen([str(programs[1]), "-D"], env=environ, stderr=subprocess.DEVNULL))
        _wait(
            lambda: not subprocess.run([str(programs[2]), "-h"], env=environ, capture_output=True).returncode,
            "slurmctld",
        )
        yield environ
    finally:
        for server in reversed(servers):
            server.terminate()
            server.wait(20)


def _wait(is_there: Any, what: str) -> None:
    until = time.monotonic() + 60
    while not is_there():
        assert time.monotonic() < until, f"{what} does not answer"
        time.sleep(0.2)


def envtune(words: Sequence[str], environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "envtune", "fleet", *words]
    environ = {**environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environ)


def test_the_nodes_of_a_partition_are_audited(tmp_path: Path) -> None:
    with slurm(tmp_path / "slurm") as environ, farm(tmp_path, [Target(f"node{n}") for n in (1, 2, 3)]) as servers:
        words = ["audit", "--slurm", "--partition", "train", "--store", str(tmp_path / "fleet.db"), "--format", "json"]
        done = envtune([*words, "--ssh-options", servers.ssh_options], environ)
        assert done.stderr == ""
        assert {row["host"]: row["collection"] for row in json.loads(done.stdout)["hosts"]} == {
            "node1": "ok",
            "node2": "ok",
        }
        words[words.index("train")] = "no-such-partition"
        done = envtune([*words, "--ssh-options", servers.ssh_options], environ)
        assert done.returncode == 2 and "Traceback" not in done.stderr
        del words[2:4]
        done = envtune([*words, "--ssh-options", servers.ssh_options], environ)
    found = {row["host"]: row["collection"] for row in json.loads(done.stdout)["hosts"]}
    assert found == {"node1": "ok", "node2": "ok", "node3": "ok", "login1": "dns"}


def test_without_a_slurmctld(tmp_path: Path) -> None:
    if shutil.which("sinfo") is None:
        pytest.skip("no Slurm here")
    environ = {**os.environ, "SLURM_CONF": str(tmp_path / "none.conf")}
    done = envtune(["audit", "--slurm", "--store", str(tmp_path / "fleet.db")], environ)
    assert done.returncode == 2 and "sinfo" in done.stderr and "Traceback" not in done.stderr
