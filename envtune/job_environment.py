"""The environment the job gets: this shell's, a running process's, a launch script's or an env file's."""

from __future__ import annotations

from envtune.host import Host
from envtune.target import JobEnvironment, TargetOptions


def read_environment(host: Host, options: TargetOptions) -> JobEnvironment:
    """The job's variables, or the reason why they cannot be told."""
    return JobEnvironment(dict(host.environ), "this shell")
