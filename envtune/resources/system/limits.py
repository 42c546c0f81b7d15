"""Resource limits of the job's processes.

Source: proc(5), /proc/<pid>/limits; setrlimit(2).
"""

from __future__ import annotations

import re
from typing import Annotated, Iterable, Literal, Mapping

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import Undetermined
from envtune.messages import N_, Message
from envtune.model import Evidence, Reading
from envtune.resources.files.kernel import kernel_text
from envtune.resources.files.value import reading

CORE_PATTERN = "/proc/sys/kernel/core_pattern"
Name = Literal[
    "as", "core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice", "nofile", "nproc", "rss", "rtprio",
    "sigpending", "stack",
]  # fmt: skip
# name in limits.conf(5) -> name in the kernel
_ROWS: Mapping[str, str] = {
    "as": "Max address space",
    "core": "Max core file size",
    "cpu": "Max cpu time",
    "data": "Max data size",
    "fsize": "Max file size",
    "locks": "Max file locks",
    "memlock": "Max locked memory",
    "msgqueue": "Max msgqueue size",
    "nice": "Max nice priority",
    "nofile": "Max open files",
    "nproc": "Max processes",
    "rss": "Max resident set",
    "rtprio": "Max realtime priority",
    "sigpending": "Max pending signals",
    "stack": "Max stack size",
}


@probe("limit.soft")
def soft(
    context: Context, *, name: Annotated[Name, N_("Limit, named as in limits.conf; memory in bytes.")]
) -> Iterable[Reading]:
    """Soft limit of a resource for the job (the process given with --pid, or this shell); may be `unlimited`."""
    return [_limit(context, name, 0)]


@probe("limit.hard")
def hard(
    context: Context, *, name: Annotated[Name, N_("Limit, named as in limits.conf; memory in bytes.")]
) -> Iterable[Reading]:
    """Hard limit of a resource for the job (the process given with --pid, or this shell); may be `unlimited`."""
    return [_limit(context, name, 1)]


@probe("system.core_dumps")
def core_dumps(context: Context) -> Iterable[Reading]:
    """Destination of core dumps of the job: `nowhere`, `program` (passed to a program) or `files`.

    Source: core(5): a core_pattern that begins with `|` names a program, for which the limit does not hold.
    """
    row = _limit(context, "core", 0)
    pattern = kernel_text(context.host, CORE_PATTERN).strip()
    value = "program" if pattern.startswith("|") else "nowhere" if row.value == "0" or not pattern else "files"
    shown = {
        "program": Message("handed to {program}", program=pattern[1:].partition(" ")[0]),
        "nowhere": Message("no core dumps"),
        "files": Message("files named {pattern}, up to {limit} bytes", pattern=pattern, limit=str(row.value)),
    }[value]
    expected = Message("no core dumps, or handed to a program")
    evidence = Evidence(row.evidence.source, f"{row.evidence.text}\n{CORE_PATTERN}: {pattern}")
    return [Reading("core", value, evidence, shown, expected)]


def _limit(context: Context, name: str, column: int) -> Reading:
    target = context.target.options
    if target.script is not None and re.search(r"\bulimit\b", context.host.read(target.script)):
        reason = Message("{script} calls ulimit: start it and use --pid", script=target.script)
        raise Undetermined(reason, target.script)
    path = f"/proc/{'self' if target.pid is None else target.pid}/limits"
    text = context.host.read(path)  # every Linux has it: if it is missing, it was not recorded or is hidden
    row = re.search(rf"(?m)^{re.escape(_ROWS[name])}\s+(\S+)\s+(\S+)", text)
    if row is None:
        raise Undetermined(Message("{path} has no line for {name}", path=path, name=name), path, text)
    return reading(name, row[column + 1], path, row[0])
