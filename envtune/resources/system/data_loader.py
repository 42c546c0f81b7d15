"""Data loader workers of the job compared with the CPUs it may use."""

from __future__ import annotations

import re
from functools import partial
from typing import Iterable, Iterator, Optional, Sequence

from envtune import expect
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import Missing, NotApplicable, Undetermined
from envtune.host import Host
from envtune.messages import Message, Text, in_context
from envtune.model import Evidence, Expectation, Reading
from envtune.ranges import cpu_numbers, whole_number
from envtune.records import NamedTuple, expression
from envtune.resources.system.platform import online_cpus

# The launch scripts of the porting guide say `--workers 40` and `--workers=160` (003:588, 003:596).
_WORKERS = expression(r"(?<![\w-])--workers(?:=|\s+)([\"']?)([^\s\"'\\;&|]+)\1")


class Limit(NamedTuple):
    """How many CPUs the job may use, and the file that shows it."""

    cpus: int
    source: str


@probe("system.data_loader_workers", formerly="data_loader.workers", unit="%")
def workers(context: Context) -> Iterable[Reading]:
    """Number of data loader workers of the job, in percent of the CPUs that the job may use.

    Source: porting guide 003:588, 003:596. The guide's script divides the number by its devices (003:362), so it is the
    number of the whole host.
    """
    workers, source, text = _workers_of_job(context)
    pid = context.target.options.pid
    limit = usable_cpus(context.host, "self" if pid is None else str(pid))
    shown = Message("{workers} workers for {cpus} CPUs", workers=workers, cpus=limit.cpus)
    percent = -(-workers * 100 // limit.cpus)
    return [Reading("workers", percent, Evidence(source, text), shown, partial(_at_most, limit))]


def _at_most(limit: Limit, expectation: Expectation) -> Text:
    """Express an expected percentage as a number of workers on this host."""
    most = expect.only(expectation, "le")
    if most is None:
        return expect.describe(expectation, expect.in_unit("%"))
    workers = int(most * limit.cpus // 100)
    if most == 100:
        return Message("at most {workers} workers ({source})", workers=workers, source=limit.source)
    return Message(
        "at most {workers} workers: {percent}% of {cpus} CPUs ({source})",
        workers=workers,
        percent=most,
        cpus=limit.cpus,
        source=limit.source,
    )


def _workers_of_job(context: Context) -> tuple[int, str, str]:
    """Return (workers, source, text) of the named job."""
    options = context.target.options
    if options.pid is not None:
        source = f"/proc/{options.pid}/cmdline"
        row = next((p for p in context.host.processes() if p.pid == options.pid), None)
        if row is None:
            raise Undetermined(in_context("data loader", "no process {pid}", pid=options.pid), source)
        text = " ".join(row.argv)
    elif options.script is not None:
        from envtune.shell.machine import script_text

        source = options.script
        text = script_text(source, context.host.read_bytes(source))
    else:
        reason = Message("no job given (--script or --pid)")
        raise NotApplicable(reason, "--script, --pid")
    found = worker_counts(text)
    if not found:
        raise NotApplicable(Message("{source} does not pass --workers", source=source), source)
    number, line = found[-1]
    if number is None:
        reason = Message("--workers is not given as a number: {line}", line=line)
        raise Undetermined(reason, source, line)
    return number, source, line


def worker_counts(text: str) -> Sequence[tuple[Optional[int], str]]:
    """Return every `--workers` outside comments: (its number, None for a variable; its line)."""
    found: list[tuple[Optional[int], str]] = []
    for line in text.splitlines():
        if line.lstrip().startswith("#"):
            continue
        for match in _WORKERS.finditer(line):
            found.append((int(match[2]) if re.fullmatch(r"\d{1,6}", match[2]) else None, line.strip()))
    return found


def usable_cpus(host: Host, process: str) -> Limit:
    """Return the minimum of CPUs online, CPUs the process may run on (affinity, cpuset), and its cgroup quota."""
    limits = [Limit(online_cpus(host), "/sys/devices/system/cpu/online")]
    status = f"/proc/{process}/status"
    allowed = allowed_cpus(_read(host, status) or "")
    if allowed:
        limits.append(Limit(allowed, status))
    limits.extend(_quotas(host, f"/proc/{process}/cgroup"))
    return min(limits, key=lambda limit: limit.cpus)


def _read(host: Host, path: str) -> Optional[str]:
    """Return the text, None if the file does not exist; an unreadable limit is not a missing one."""
    try:
        return host.read(path)
    except Missing:
        return None


def allowed_cpus(status: str) -> int:
    """Return how many CPUs `Cpus_allowed_list` of /proc/PID/status names; 0 if there is no such line."""
    for line in status.splitlines():
        if line.startswith("Cpus_allowed_list:"):
            return len(cpu_numbers(line.partition(":")[2]))
    return 0


def _quotas(host: Host, listing: str) -> Iterator[Limit]:
    """Yield the CPU quotas of the control group and its parents, rounded up to whole CPUs."""
    for group in (_read(host, listing) or "").splitlines():
        _, _, named = group.partition(":")
        controllers, _, path = named.partition(":")
        if controllers and "cpu" not in controllers.split(","):
            continue
        while True:
            limit = _quota_v1(host, path) if controllers else _quota_v2(host, path)
            if limit is not None:
                yield limit
            if path in ("", "/"):
                break
            path = path.rpartition("/")[0]


def _quota_v2(host: Host, path: str) -> Optional[Limit]:
    source = f"/sys/fs/cgroup{path.rstrip('/')}/cpu.max"
    quota, _, period = (_read(host, source) or "").strip().partition(" ")
    return _limit(quota, period, source)


def _quota_v1(host: Host, path: str) -> Optional[Limit]:
    folder = f"/sys/fs/cgroup/cpu{path.rstrip('/')}"
    source = f"{folder}/cpu.cfs_quota_us"
    return _limit(_read(host, source) or "", _read(host, f"{folder}/cpu.cfs_period_us") or "", source)


def _limit(quota: str, period: str, source: str) -> Optional[Limit]:
    allowed, interval = whole_number(quota), whole_number(period)
    if allowed is None or not interval:
        return None  # `max`, -1: no limit
    return Limit(max(1, -(-allowed // interval)), source)
