"""Run a program on many hosts by ssh, with ClusterShell: the site's own ssh, in limited numbers, with timeouts.

A host's output is kept up to a limit: one that prints more is disconnected, and its answer is what arrived until then.
ClusterShell starts ssh; `clients.py` gives it a client that reads bytes instead of lines.
"""

from __future__ import annotations

import shlex
from typing import Any, Callable, Optional, Sequence

from envtune.errors import UsageError
from envtune.fleet.collected import Answer
from envtune.messages import Message
from envtune.records import NamedTuple

CHUNK = 1000  # hosts of one ClusterShell task: larger ones cost more per host
GRACE = 10  # seconds beyond the program's timeout, for transfers
# After the user's options: the first value of an option counts.
HOST_KEY_OPTIONS = ("-oStrictHostKeyChecking=yes", "-oPermitLocalCommand=no", "-oClearAllForwardings=yes")
OnAnswer = Callable[[str, Answer], None]


class Ssh(NamedTuple):
    """How hosts are reached: ssh options, number of hosts at a time, timeouts for connecting and for the program."""

    options: str = ""
    user: Optional[str] = None
    fanout: int = 64
    connect_timeout: int = 10
    timeout: int = 60
    path: str = "ssh"

    @property
    def longest(self) -> float:
        """Seconds after which a host is abandoned."""
        return self.connect_timeout + self.timeout + GRACE


def require_options(text: str) -> None:
    """Raise UsageError for ssh options that accept a changed host key, or that cannot be parsed."""
    try:
        words = " ".join(shlex.split(text)).lower().replace(" ", "").replace("=", "")
    except ValueError as error:
        raise UsageError(Message("--ssh-options: {reason}", reason=str(error))) from None
    if any(f"stricthostkeychecking{value}" in words for value in ("no", "off")):
        raise UsageError(
            Message("--ssh-options: a changed host key is never accepted; use StrictHostKeyChecking=accept-new")
        )


def run_everywhere(hosts: Sequence[str], command: str, program: bytes, ssh: Ssh, on_answer: OnAnswer) -> None:
    """Run the command on these hosts with the program on its standard input; `on_answer` is called for each answer.

    Split more than CHUNK hosts into several calls.
    """
    from envtune.fleet.clients import Worker

    task = _task(ssh)
    _start(task, Worker(hosts, command, ssh.longest, on_answer), program)
    task.resume()


def run_through_gateways(
    hosts: Sequence[str], gateways: Sequence[str], command: str, program: bytes, ssh: Ssh, on_answer: OnAnswer
) -> None:
    """Do the same through gateways; some hosts may have no answer, or an incomplete one."""
    from envtune.fleet.gateways import GatewayWorker, add_gateways, longest

    failures: list[Exception] = []

    def answered(*answer: Any) -> None:
        try:
            on_answer(*answer)
        except Exception as error:
            failures.append(error)
            raise

    task = _task(ssh)
    add_gateways(task, hosts, gateways)
    try:
        _start(task, GatewayWorker(hosts, command, ssh.longest, answered), program)
        task.resume(longest(len(hosts), len(gateways), ssh.fanout, ssh.longest + GRACE))
    except Exception:  # a gateway's output is not what ClusterShell expects, or it no longer responds
        task.abort()
        if failures:  # an error of ours: the disk of the store is full, for example
            raise failures[0] from None
    finally:
        task.topology = task.router = None


def _task(ssh: Ssh) -> Any:
    """Return ClusterShell's task of this thread, configured to reach hosts this way."""
    import logging

    from ClusterShell.Task import task_self

    logging.getLogger("ClusterShell").setLevel(logging.CRITICAL)  # a host that ends early is reported by its verdict
    task = task_self()
    options = " ".join((ssh.options, *HOST_KEY_OPTIONS)).strip()
    named = (("ssh_path", ssh.path), ("ssh_options", options), ("ssh_user", ssh.user))
    for name, value in named:
        if value:
            task.set_info(name, value)
    task.set_info("fanout", ssh.fanout)
    task.set_info("connect_timeout", ssh.connect_timeout)
    return task


def _start(task: Any, worker: Any, program: bytes) -> None:
    worker.write(program)
    worker.set_write_eof()
    task.schedule(worker)
