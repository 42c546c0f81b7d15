"""What shows that the job of a process is over: its parent has ended, or the process itself is a zombie or stopped."""

from __future__ import annotations

from typing import Optional

from envtune.context import Context
from envtune.errors import HostError
from envtune.job.environment import process_environment
from envtune.messages import Message, Text, in_context
from envtune.model import Process

# What adopts the children of a process that ended; in a container pid 1 may also be a program that only waits.
ADOPTERS = ("systemd", "init", "tini", "dumb-init", "docker-init", "catatonit", "s6-svscan", "runit", "sleep", "tail")
# Services of the driver and of MindCluster (mounts of Ascend Docker Runtime, component names): systemd's own children.
SERVICES = ("slogd", "dmp_daemon", "log-daemon", "npu-exporter", "device-plugin", "noded")
# Units under which logins and cron jobs run when systemd-logind is not used: no service of their own.
LOGIN_UNITS = ("sshd.service", "ssh.service", "crond.service", "cron.service", "atd.service", "docker.service")
RANK_MARK = "TORCHELASTIC_RUN_ID"  # torchrun sets it for its workers, which it may start in sessions of their own
_ALONE = Message(
    "its parent has ended, but it leads a process group of its own, as what nohup or setsid started does: it may "
    "be a job that still computes; ask its owner"
)


def orphan_sign(context: Context, process: Process) -> tuple[Optional[Text], bool]:
    """Why this process looks left over, and whether that is certain; (None, True) for a process of a live job."""
    if process.state == "Z":
        return Message("a zombie"), True
    if process.state in ("T", "t"):
        return in_context("orphans", "stopped"), True
    if process.pid == 1 or process.ppid == 0 or process.name in SERVICES:
        return None, True  # the first process, or one that `docker exec` put into this container
    parent = next((p for p in context.host.processes() if p.pid == process.ppid), None)
    if parent is None:
        return Message("its parent has ended"), True
    if parent.name in ADOPTERS:
        return _adopted(context, process, parent)
    if parent.pid == 1:
        return Message("pid 1 ({name}) started or adopted it", name=parent.name), False
    return None, True


def _adopted(context: Context, process: Process, parent: Process) -> tuple[Optional[Text], bool]:
    if _is_service(context, process):
        return None, True
    if _started_alone(context, process):
        return _ALONE, False
    return Message("its parent has ended, {name} adopted it", name=parent.name), True


def _is_service(context: Context, process: Process) -> bool:
    """Whether systemd runs it as a unit of its own: then systemd is its parent, not its adopter."""
    try:
        groups = context.host.read(f"/proc/{process.pid}/cgroup")
    except HostError:
        return False
    parts = [part for line in groups.splitlines() for part in line.split("/")]
    return any(part.endswith(".service") and part not in LOGIN_UNITS and "@" not in part for part in parts)


def _started_alone(context: Context, process: Process) -> bool:
    """Whether nohup in a login shell or setsid started it: it leads its process group, and is no rank of torchrun.

    A worker that a launcher forked stays in the launcher's group (proc_pid_stat(5), field 5).
    """
    try:
        words = context.host.read(f"/proc/{process.pid}/stat").rpartition(")")[2].split()
    except HostError:
        return False
    if words[2:3] != [str(process.pid)]:
        return False
    return RANK_MARK not in (process_environment(context.host, process.pid).variables or {})
