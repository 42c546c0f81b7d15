"""Hosts that `envtune fleet fix` can fix: SSH servers on loopback, each with a kernel parameter, an /etc/sysctl.d and a
/var/lib of its own, and a site's check and playbook about that parameter. Nothing of the machine is written.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Mapping, Sequence

from helpers.examples import ROOT
from helpers.sshd_farm import USER, Farm, Target

KEY = "/proc/sys/net/ipv4/ip_local_reserved_ports"
BEFORE, WANTED = "8080\n", "60000-60031"
CHECK = """\
id: SITE901
name: ports-not-reserved
title: the job's ports are not reserved
severity: high
rationale: The kernel gives them away.
probe: {sysctl.value: {key: net.ipv4.ip_local_reserved_ports}}
expect: {eq: "60000-60031"}
remedy: Reserve them.
examples:
  pass:
    - files: {/proc/sys/net/ipv4/ip_local_reserved_ports: "60000-60031\\n"}
  fail:
    - files: {/proc/sys/net/ipv4/ip_local_reserved_ports: "8080\\n"}
"""
PLAYBOOK = """\
id: reserve-ports
title: Reserve the job's ports
fixes: [SITE901]
safety: safe
disruption: none
requires: {root: true}
steps:
  - sysctl.set: {key: net.ipv4.ip_local_reserved_ports, value: "60000-60031"}
"""
VARIABLE_CHECK = """\
id: SITE902
name: job-debug-variable
title: the job does not log errors only
severity: high
rationale: The log fills the disk.
probe: {environment.variable: {name: ASCEND_GLOBAL_LOG_LEVEL}}
expect: {eq: "3"}
remedy: Set it.
examples:
  pass:
    - environ: {ASCEND_GLOBAL_LOG_LEVEL: "3"}
  fail:
    - environ: {ASCEND_GLOBAL_LOG_LEVEL: "0"}
"""
VARIABLE_PLAYBOOK = """\
id: site-variables
title: Write the variables
fixes: [SITE902]
safety: safe
disruption: none
requires: {root: false}
steps:
  - environment.export: {}
"""
_MOUNTS = """\
mount --bind /media/{name}/sysctl.d /etc/sysctl.d
mount --bind /media/{name}/lib /var/lib
mount --bind /media/{name}/ports {key}
echo '{user} ALL=(root) NOPASSWD: ALL' >/run/sudoers
chmod 440 /run/sudoers
mount --bind /run/sudoers /etc/sudoers
{more}
"""


def catalogue(folder: Path) -> Path:
    """A site's catalog with the one check and its playbook."""
    for place, text in (
        ("checks/site/SITE901-ports-not-reserved.yaml", CHECK),
        ("playbooks/site/reserve-ports.yaml", PLAYBOOK),
        ("checks/site/SITE902-job-debug-variable.yaml", VARIABLE_CHECK),
        ("playbooks/site/site-variables.yaml", VARIABLE_PLAYBOOK),
    ):
        path = folder / "site" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder / "site"


def host(folder: Path, name: str, refuses: bool = False, more: str = "", python: str = "") -> Target:
    """A host. One that refuses has a /var/lib that others can write: the executor keeps no journal there."""
    place = folder / name
    (place / "sysctl.d").mkdir(parents=True)
    (place / "lib").mkdir()
    (place / "lib").chmod(0o777 if refuses else 0o755)
    (place / "sysctl.d" / "10-site.conf").write_text("# the site's own\n")
    (place / "ports").write_text(BEFORE)
    mounts = _MOUNTS.format(name=name, key=KEY, user=USER, more=more)
    return Target(name, mounts=mounts, **({"python": python} if python else {}))


def state(folder: Path, names: Sequence[str]) -> dict[str, Any]:
    """Every byte and mode of what a fix may write, by host."""
    found = {}
    for name in names:
        paths = [folder / name / "ports", *sorted((folder / name / "sysctl.d").rglob("*"))]
        found[name] = [(path.name, path.read_bytes(), path.stat().st_mode, path.stat().st_uid) for path in paths]
    return found


def fixed(folder: Path, names: Sequence[str]) -> list[str]:
    """The hosts on which the parameter is as it should be."""
    return [name for name in names if (folder / name / "ports").read_text().strip() == WANTED]


SLOW = 'sleep 2; exec /usr/bin/python3 "$@"'  # time enough to kill a controller


def words(farm: Farm, verb: str, store: Path, *more: str) -> list[str]:
    """The command line of a verb of `envtune fleet`."""
    own = ["--store", str(store), "--ssh-options", farm.ssh_options] if verb == "fix" else ["--store", str(store)]
    return [sys.executable, "-m", "envtune", "fleet", verb, *own, *more]


def environment() -> Mapping[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"}


def run(farm: Farm, verb: str, store: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Run a verb to its end."""
    line = words(farm, verb, store, *more)
    return subprocess.run(line, capture_output=True, text=True, cwd=ROOT, env=environment(), timeout=300)


def run_json(farm: Farm, verb: str, store: Path, *more: str) -> tuple[int, Any]:
    """Run a verb, and read its JSON."""
    done = run(farm, verb, store, *more, "--format", "json")
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def killed(farm: Farm, folder: Path, store: Path, host: str, *more: str, ansible: bool = False) -> None:
    """Begin a run and end its controller, with `ansible` Ansible as well, while it waits for a host."""
    running = subprocess.Popen(
        words(farm, "fix", store, *more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, env=environment()
    )
    until = time.monotonic() + 120
    while not list(store.parent.glob(f"fleet-fix/*/begun/{host}")):
        assert running.poll() is None and time.monotonic() < until, running.communicate()
        time.sleep(0.05)
    children = _children(running.pid)
    os.kill(running.pid, signal.SIGKILL)
    running.communicate()
    for child in children if ansible else ():
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]
