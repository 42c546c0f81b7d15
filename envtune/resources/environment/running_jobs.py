"""What running training processes really got, compared with the launch script or training values.

A process shows what it was started with (/proc/<pid>/environ): a value that a profile or a wrapper changed in between
is visible only here. Source: porting guide 003:1118, 2854 (set the variables in the training script).
"""

from __future__ import annotations

from typing import Iterable, Mapping, Optional

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, NotApplicable
from envtune.host import exists
from envtune.job.environment import declared_environment, process_environment
from envtune.job.target import JobEnvironment
from envtune.messages import Message, Text, clauses
from envtune.model import Evidence, Reading
from envtune.resources.environment.reference import names
from envtune.resources.environment.training_values import UNSET, known_names, training_value
from envtune.resources.environment.variables import printable

LIMIT = 32  # processes examined; a host has at most 16 devices, and some jobs two processes per device


@probe("environment.running_jobs", formerly="training_environment.processes")
def processes(context: Context) -> Iterable[Reading]:
    """Number of variables of each training process that differ from the launch script, or from the training values.

    The process named by --pid; else every process that has an NPU device open.
    """
    script = _script(context)
    for pid in training_pids(context):
        environment = _of_process(context, pid)
        evidence = Evidence(f"/proc/{pid}/environ")
        subject = f"process {pid}"
        if environment.variables is None:
            yield Reading(
                subject, None, evidence, reason=environment.reason, needs_privilege=environment.needs_privilege
            )
            continue
        if script is not None:
            found, unknown = differences(environment.variables, script)
            wanted = Message("as {source} sets them", source=script.source)
        else:
            found, unknown = violations(context, environment.variables), None
            wanted = Message("the values for training")
        if not found and unknown is not None:
            yield Reading(subject, None, evidence, expected=wanted, reason=unknown)
            continue
        shown = clauses(found) if found else Message("no difference")
        yield Reading(subject, len(found), evidence, shown, wanted)


def _of_process(context: Context, pid: int) -> JobEnvironment:
    """Read its environment. A listed process without environ has ended, or was not recorded."""
    found = process_environment(context.host, pid)
    try:
        listed = any(row.pid == pid for row in context.host.processes())
    except HostError:
        listed = False
    if (
        found.variables is not None
        or found.needs_privilege
        or not listed
        or exists(context.host, f"/proc/{pid}/environ")
    ):
        return found
    if context.host.live:
        return found._replace(reason=Message("process {pid} has just ended", pid=pid))
    reason = Message("the environment of process {pid} was not recorded", pid=pid)
    return found._replace(reason=reason)


def training_pids(context: Context) -> tuple[int, ...]:
    """Return the processes to examine; not applicable if none is running."""
    if context.target.options.pid is not None:
        return (context.target.options.pid,)
    found = tuple(row.pid for row in context.host.processes() if row.devices)[:LIMIT]
    if not found:
        raise NotApplicable(
            Message("no visible process has an NPU device open"),
            "/proc/*/fd",
        )
    return found


def _script(context: Context) -> Optional[JobEnvironment]:
    options = context.target.options
    named = options.script is not None or options.env_file is not None
    return declared_environment(context.host, options) if named else None


def differences(process: Mapping[str, str], script: JobEnvironment) -> tuple[tuple[Text, ...], Optional[Text]]:
    """Return the described variables that differ between script and process, and why some are unknown."""
    found: list[Text] = []
    unknown: Optional[Text] = script.reason
    for name in names():
        if name in script.unknown:
            unknown = unknown or script.unknown[name]
        if script.variables is None or name not in script.places or name not in script.variables:
            continue
        have, want = process.get(name, UNSET), script.variables[name]
        if have != want:
            found.append(Message("{name} is {have}, not {want}", name=name, have=printable(have), want=want))
    return tuple(found), unknown


def violations(context: Context, process: Mapping[str, str]) -> tuple[Text, ...]:
    """Return one sentence for each variable whose value does not suit training."""
    found: list[Text] = []
    for name in known_names(context):
        wanted, value = training_value(context, name), process.get(name, UNSET)
        if wanted is not None and value != UNSET and not wanted.accepts(value):
            words = wanted.text
            found.append(Message("{name} is {value}, not {words}", name=name, value=printable(value), words=words))
    return tuple(found)
