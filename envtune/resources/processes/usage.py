"""Processes on the NPUs: leftover ones, memory that is not free, profilers running during training."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Iterable, Mapping, Optional, Sequence

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Missing, NotApplicable, Undetermined
from envtune.host import Host, descendants
from envtune.job.environment import process_environment
from envtune.messages import N_, Literal, Message, Text, clauses, enumerated, in_context, listed
from envtune.model import Command, Evidence, Process, Reading
from envtune.records import NamedTuple, expression
from envtune.resources.npu.devices import (
    NODES,
    SmiOutput,
    complete_table,
    device_nodes,
    in_container,
    smi_output,
    smi_undetermined,
)
from envtune.resources.npu.health import device_label

if TYPE_CHECKING:
    from envtune.resources.npu.smi import NpuDevice, NpuProcess

TOOLS = ("msprof", "aoe")
NONE = Message("none")
# What adopts the children of a process that has ended; in a container pid 1 may also be a program that only waits.
ADOPTERS = ("systemd", "init", "tini", "dumb-init", "docker-init", "catatonit", "s6-svscan", "runit", "sleep", "tail")
# Services of the driver and of MindCluster (mounts of Ascend Docker Runtime, component names): systemd's own children.
SERVICES = ("slogd", "dmp_daemon", "log-daemon", "npu-exporter", "device-plugin", "noded")
# Units under which logins and cron jobs run without systemd-logind: not services of their own.
LOGIN_UNITS = ("sshd.service", "ssh.service", "crond.service", "cron.service", "atd.service", "docker.service")
MOUNTS = "/proc/self/mountinfo"
_HIDING = r"hidepid=(?!0$|off$).+"
INITIAL_PID_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO of the kernel's proc_ns.h: every process is in its /proc
# What starts the ranks of a job, by name or argv[0] (the interpreter of a script that renames itself);
# torch renames its main thread and its agent.
LAUNCHERS = expression(
    r"python[\d.]*|pt_main_thread|pt_elastic|torchrun|msrun|mpirun|mpiexec|orterun|deepspeed|accelerate|(?:ba|da|k|z)?sh"
)
INIT_SECONDS = 2  # within which the init of a container starts what it was told to run
RANK_MARK = "TORCHELASTIC_RUN_ID"  # torchrun sets it for its workers, which it may start in separate sessions


class DeviceProcess(NamedTuple):
    """A process on one device: `process` is its row in this host's table, None if it does not exist; memory in MB."""

    pid: int
    name: str
    memory: Optional[int]
    process: Optional[Process]


class DeviceUsage(NamedTuple):
    """The processes on one device; None if unknown. `reason` says why, or why there may be more."""

    subject: str
    processes: Optional[tuple[DeviceProcess, ...]]
    evidence: Evidence
    reason: Optional[Text] = None
    needs_privilege: bool = False


def device_usage(context: Context) -> tuple[DeviceUsage, ...]:
    """Return the processes on every device: npu-smi's process table, else the open descriptors of /dev/davinciN."""
    return context.cached(_device_usage)


def _device_usage(context: Context) -> tuple[DeviceUsage, ...]:
    try:
        output: Optional[SmiOutput] = smi_output(context)
    except Missing:
        output = None
    if output is not None and output.failure is None:
        table = output.table
        if table.incomplete is not None:
            raise Undetermined(table.incomplete, output.source, output.text)
        if set(table.without_processes) != {device.npu for device in table.devices}:
            return tuple(_usage_by_table(context, output))
        if table.truncated:
            why = Message("npu-smi's output ends before its process table")
            raise Undetermined(why, output.source, output.text)
        return tuple(_usage_by_descriptor(context, device_label(table, d), table.node(d)) for d in table.devices)
    nodes = device_nodes(context)
    if not nodes and output is not None:
        raise smi_undetermined(context, output)
    if not nodes:
        raise NotApplicable(Message("no NPU device node"), NODES)
    return tuple(_usage_by_descriptor(context, f"npu{node}", node) for node in nodes)


def _usage_by_table(context: Context, output: SmiOutput) -> Iterable[DeviceUsage]:
    by_pid = context.cached(processes_by_pid)
    by_chip: dict[tuple[int, int], list[NpuProcess]] = {}
    for listed_process in output.table.processes:
        by_chip.setdefault((listed_process.npu, listed_process.chip), []).append(listed_process)
    contained = in_container(context)
    for device in output.table.devices:
        subject = device_label(output.table, device)
        if device.npu in output.table.without_processes:
            why = Message("npu-smi's process table is incomplete or does not list this NPU")
            yield DeviceUsage(subject, None, Evidence(output.source, output.text), why)
            continue
        rows = by_chip.get((device.npu, device.chip), [])
        text = "\n".join(row.raw for row in rows) or f"No running processes found in NPU {device.npu}"
        processes = tuple(
            DeviceProcess(row.pid, row.name, row.memory, by_pid.get((row.inner or 0) if contained else row.pid))
            for row in rows
        )
        yield DeviceUsage(subject, processes, Evidence(output.source, text))


def _usage_by_descriptor(context: Context, subject: str, node: Optional[int]) -> DeviceUsage:
    """Return who has /dev/davinciN open; unknown if nobody is found but some processes could not be read."""
    path = f"/dev/davinci{node}"
    rows = context.host.processes()
    processes = tuple(DeviceProcess(p.pid, p.name, None, p) for p in rows if path in p.devices)
    evidence = Evidence("/proc/*/fd", "\n".join(f"{p.pid} {p.name}: {path}" for p in processes) or f"{path}: none")
    why = hidden_processes(context)
    if why is None and any(p.opaque for p in rows):
        why = Message(
            "npu-smi prints no process table here, and the open files of other users' processes cannot be read"
        )
    if not processes and _sees_one_container(context):
        return DeviceUsage(subject, None, evidence, _ONE_CONTAINER)
    return DeviceUsage(subject, processes or None if why else processes, evidence, why, needs_privilege=why is not None)


_ONE_CONTAINER = Message(
    "no process in this container has it open; processes of the host and of other containers are not "
    "visible here: check on the host"
)


def _sees_one_container(context: Context) -> bool:
    """Return whether /proc shows only the processes of one container, not those of the host (`--pid=host`)."""
    if not in_container(context):
        return False
    try:
        return context.host.readlink("/proc/self/ns/pid") != INITIAL_PID_NAMESPACE
    except HostError:
        return True


def hidden_processes(context: Context) -> Optional[Text]:
    """Return why the table may lack other users' processes, so that finding none proves nothing; else None.

    /proc mounted with `hidepid` shows users only their own, unless they are in the group named by `gid`: then process
    1, which exists in every namespace and belongs to another user, is visible. Source: proc(5).
    """
    if context.host.euid == 0:
        return None
    rows = context.host.processes()
    option = next((option for option in _proc_options(context.host) if re.fullmatch(_HIDING, option)), None)
    if option is None or (any(p.pid == 1 for p in rows) and len({p.user for p in rows}) > 1):
        return None
    return Message("/proc is mounted with {option}: other users' processes cannot be seen", option=option)


def _proc_options(host: Host) -> list[str]:
    """Return the options of the file system at /proc, the one mounted last."""
    try:
        rows = [row.partition(" - ") for row in host.read(MOUNTS).splitlines()]
    except HostError:
        return []
    found = [after.split() for before, _, after in rows if before.split()[4:5] == ["/proc"]]
    return found[-1][-1].split(",") if found and found[-1] else []


# ---------------------------------------------------------------------------------------------------- left over


@probe("processes.residual", formerly="process.residual")
def residual(context: Context) -> Iterable[Reading]:
    """Leftover processes on each NPU, whose job has ended; empty if none is found.

    Source: guide 003:3299-3311. Its `pkill -9 python` would end every Python of every user, so only pids are named.
    """
    job = job_pids(context)
    return [_residual_reading(context, usage, job) for usage in device_usage(context)]


def _residual_reading(context: Context, usage: DeviceUsage, job: frozenset[int]) -> Reading:
    if usage.processes is None:
        privilege = usage.needs_privilege
        return Reading(usage.subject, None, usage.evidence, reason=usage.reason, needs_privilege=privilege)
    certain, uncertain = _orphans(context, usage, job)
    if certain:
        pids = ",".join(str(process.pid) for _, process, _ in certain)
        texts = [_describe(context, *orphan) for orphan in certain]
        return Reading(
            usage.subject,
            tuple(text.en for text in texts),
            usage.evidence,
            clauses(texts),
            Message("no process whose job has ended"),
            fields={"pids": pids},
        )
    if uncertain:
        return Reading(usage.subject, None, usage.evidence, reason=clauses(uncertain))
    if usage.reason is not None:
        return Reading(usage.subject, None, usage.evidence, reason=usage.reason, needs_privilege=usage.needs_privilege)
    return Reading(usage.subject, (), usage.evidence, NONE)


def left_over(context: Context) -> tuple[tuple[str, Process, Text], ...]:
    """Return (device, process, sign) of every process that is certainly left over, once per process."""
    job = job_pids(context)
    orphans: dict[int, tuple[str, Process, Text]] = {}
    for usage in device_usage(context):
        for _, process, sign in _orphans(context, usage, job)[0]:
            orphans.setdefault(process.pid, (usage.subject, process, sign))
    return tuple(orphans.values())


def _orphans(
    context: Context, usage: DeviceUsage, job: frozenset[int]
) -> tuple[list[tuple[DeviceProcess, Process, Text]], list[Text]]:
    """Return the leftover processes, each with its sign, and why others may be."""
    certain: list[tuple[DeviceProcess, Process, Text]] = []
    uncertain: list[Text] = []
    for entry in usage.processes or ():
        if entry.process is None:
            uncertain.append(_not_in_table(context, entry))
        elif entry.process.pid not in job:
            sign, is_certain = orphan_sign(context, entry.process)
            if sign is not None and is_certain:
                certain.append((entry, entry.process, sign))
            elif sign is not None:
                uncertain.append(_describe(context, entry, entry.process, sign))
    return certain, uncertain


def _not_in_table(context: Context, entry: DeviceProcess) -> Text:
    if in_container(context):
        return Message("pid {pid} is a process id of the host; its owner is unknown in this container", pid=entry.pid)
    return Message(
        "npu-smi lists pid {pid}, which is not in the process table (ended in the meantime, or hidden)", pid=entry.pid
    )


def _describe(context: Context, entry: DeviceProcess, process: Process, sign: Text) -> Text:
    fields = {
        "pid": process.pid,
        "user": process.user,
        "age": process_age(context, process),
        "sign": sign,
        "command": " ".join(process.argv[:2])[:80] or process.name,  # no more: arguments may contain secrets
    }
    if entry.memory is None:
        return Message("pid {pid}: {sign} ({user}, {age} old, {command})", **fields)
    return Message("pid {pid}: {sign} ({user}, {age} old, {memory} MB, {command})", memory=entry.memory, **fields)


_UNITS = ((86400, N_("{count} d")), (3600, N_("{count} h")), (60, N_("{count} min")), (1, N_("{count} s")))


def process_age(context: Context, process: Process) -> Text:
    """Return how long a process has been running, in its largest whole unit."""
    seconds = max(0, int(context.host.now - process.started))
    size, template = next((unit for unit in _UNITS if seconds >= unit[0]), _UNITS[-1])
    return Message(template, count=seconds // size)


# ---------------------------------------------------------------------------------------------------- orphans


def orphan_sign(context: Context, process: Process) -> tuple[Optional[Text], bool]:
    """Return why this process looks left over, and whether that is certain; (None, True) for one of a live job."""
    if process.state == "Z":
        return Message("a zombie"), True
    if process.state in ("T", "t"):
        return in_context("orphans", "stopped"), True
    if process.pid == 1 or process.ppid == 0 or process.name in SERVICES:
        return None, True  # process 1, or one started in this container by `docker exec`
    parent = context.cached(processes_by_pid).get(process.ppid)
    if parent is None:
        return Message("its parent has ended"), True
    if parent.name in ADOPTERS:
        return _adoption_sign(context, process, parent)
    if parent.pid == 1:
        return Message("pid 1 ({name}) started or adopted it", name=parent.name), False
    launcher = _adopted_launcher(context, parent)
    if launcher is not None:
        return Message(_LAUNCHER_LEFT, pid=launcher.pid, name=launcher.name), False
    return None, True


MAX_LAUNCHERS = 16  # levels of parents that are followed
_LAUNCHER_LEFT = N_(
    "its launcher (pid {pid}, {name}) is running, but the launcher's parent has ended, as with nohup: it "
    "may be a job that is still computing; ask its owner"
)


def _adopted_launcher(context: Context, process: Process) -> Optional[Process]:
    """Return the launcher of a rank if init adopted the launcher and it is not a service itself; None otherwise."""
    by_pid = context.cached(processes_by_pid)
    for _ in range(MAX_LAUNCHERS):
        parent = by_pid.get(process.ppid)
        if parent is None or not _is_launcher(process):
            return None
        if parent.name in ADOPTERS:
            return None if _is_main_program(process, parent) or _is_service(context, process) else process
        process = parent
    return None


def _is_main_program(process: Process, parent: Process) -> bool:
    """Return whether it is the command of a container's init (tini, dumb-init), and not adopted by it."""
    is_early = parent.started > 0 and process.started - parent.started <= INIT_SECONDS
    return is_early and parent.pid == 1 and parent.name not in ("systemd", "init")


def _is_launcher(process: Process) -> bool:
    names = (process.name, *(argument.rpartition("/")[2] for argument in process.argv[:1]))
    return any(LAUNCHERS.fullmatch(name) for name in names)


def processes_by_pid(context: Context) -> Mapping[int, Process]:
    """Return the process table by pid; the first of duplicates."""
    return {process.pid: process for process in reversed(context.host.processes())}


_DETACHED = Message(
    "its parent has ended, but it leads its own process group, as with nohup or setsid: it may be a job "
    "that is still computing; ask its owner"
)


def _adoption_sign(context: Context, process: Process, parent: Process) -> tuple[Optional[Text], bool]:
    if _is_service(context, process):
        return None, True
    if _is_detached(context, process):
        return _DETACHED, False
    return Message("its parent has ended"), True


def _is_service(context: Context, process: Process) -> bool:
    """Return whether systemd runs it as a separate unit: then systemd is its parent and did not adopt it."""
    try:
        groups = context.host.read(f"/proc/{process.pid}/cgroup")
    except HostError:
        return False
    parts = [part for line in groups.splitlines() for part in line.split("/")]
    return any(part.endswith(".service") and part not in LOGIN_UNITS and "@" not in part for part in parts)


def _is_detached(context: Context, process: Process) -> bool:
    """Return whether nohup in a login shell or setsid started it: it leads its process group and is no torchrun rank.

    A worker that a launcher forked stays in the launcher's group (proc_pid_stat(5), field 5).
    """
    try:
        fields = context.host.read(f"/proc/{process.pid}/stat").rpartition(")")[2].split()
    except HostError:
        return False
    if fields[2:3] != [str(process.pid)]:
        return False
    return RANK_MARK not in (process_environment(context.host, process.pid).variables or {})


def job_pids(context: Context) -> frozenset[int]:
    """Return the pids of the job named by --pid: it, what it started, and its siblings under the same launcher."""
    return context.cached(_job_pids)


def _job_pids(context: Context) -> frozenset[int]:
    root = context.target.options.pid
    if root is None:
        return frozenset()
    rows = context.host.processes()
    parents: Mapping[int, int] = {p.pid: p.ppid for p in rows}
    names: Mapping[int, str] = {p.pid: p.name for p in rows}
    launcher = parents.get(root, 0)
    started = launcher > 1 and names.get(launcher, "systemd") not in ADOPTERS
    return descendants(rows, launcher if started else root) | {root}


# ---------------------------------------------------------------------------------------------------- memory


@probe("processes.free_memory", formerly="process.free_memory")
def free_memory(
    context: Context,
    *,
    idle_percent: Annotated[int, N_("Memory that the driver uses on an idle NPU, in percent of its HBM.")],
    idle_percent_910a: Annotated[int, N_("Memory that the driver uses on an idle Ascend 910A, in percent of its HBM.")],
) -> Iterable[Reading]:
    """Whether the memory of each NPU is free for the job: `free` or `taken`.

    Source: guide 003:3208-3218. The vendor documents no baseline; public listings of idle devices show 2.7-4.8 GB used
    (at most 8.8 % of the HBM, on 910B4) from 910B on, and at most 18 MB of 32 GB on 910A.
    """
    table = complete_table(context)
    limit = idle_percent_910a if context.facts.value("npu") == "910A" else idle_percent
    job = job_pids(context)
    by_subject = {usage.subject: usage for usage in device_usage(context)}
    return [_memory_reading(device, by_subject[device_label(table, device)], job, limit) for device in table.devices]


def _memory_reading(device: NpuDevice, usage: DeviceUsage, job: frozenset[int], limit: int) -> Reading:
    evidence = Evidence("npu-smi info", device.raw)
    if device.hbm is None or device.hbm.total == 0:
        reason = Message("npu-smi prints no HBM usage for it")
        return Reading(usage.subject, None, evidence, reason=reason)
    used, total = device.hbm
    processes = usage.processes or ()
    others = [p for p in processes if p.process is None or p.process.pid not in job]
    expected = Message("no process, at most {limit}% used", limit=limit)
    if processes and not others and usage.reason is not None:
        return Reading(usage.subject, None, evidence, reason=usage.reason, needs_privilege=usage.needs_privilege)
    if not others and len(processes) > 0:
        return Reading(usage.subject, "free", evidence, Message("only the given job uses it"), expected)
    if not others and used * 100 <= total * limit:
        return Reading(usage.subject, "free", evidence, Message("only the idle usage"), expected)
    if others:
        names = enumerated(f"{p.pid} {p.name}".rstrip() for p in others)
        shown = Message("{used} of {total} MB used; processes: {names}", used=used, total=total, names=names)
    elif usage.processes is None:
        shown = Message("{used} of {total} MB used; the process is unknown", used=used, total=total)
    else:
        shown = Message("{used} of {total} MB used, but no process is listed: not freed", used=used, total=total)
    return Reading(usage.subject, "taken", evidence, shown, expected)


# ---------------------------------------------------------------------------------------------------- profilers


@probe("processes.profilers", formerly="process.profilers")
def profilers(context: Context) -> Iterable[Reading]:
    """Profiling or AOE tuning that is running or turned on for the job; empty if none is.

    Source: guide 003:1582-1583.
    """
    hidden = hidden_processes(context)
    readings = [_tool_reading(name, context.host.processes(), hidden) for name in TOOLS]
    try:
        variables = context.target.variables()
    except Undetermined as verdict:
        return [*readings, Reading("PROFILING_MODE", None, Evidence(verdict.source), reason=verdict.reason)]
    value = variables.get("PROFILING_MODE", "")
    on = value.strip().lower() not in ("", "false", "0")
    text = f"PROFILING_MODE={value}" if value else "PROFILING_MODE is not set"
    evidence = Evidence(context.target.environment.source, text)
    unset = (Command("fix", "unset PROFILING_MODE"),)
    shown = Literal(value) if on else NONE
    return [*readings, Reading("PROFILING_MODE", (value,) if on else (), evidence, shown, commands=unset)]


def _tool_reading(name: str, rows: Sequence[Process], hidden: Optional[Text]) -> Reading:
    running = [p for p in rows if _runs(name, p)]
    text = "\n".join(f"{p.pid} {' '.join(p.argv[:2]) or p.name}" for p in running) or f"no process named {name}"
    if not running and hidden is not None:
        return Reading(name, None, Evidence("/proc", text), reason=hidden, needs_privilege=True)
    texts = [Message("pid {pid} of {user}", pid=p.pid, user=p.user) for p in running]
    return Reading(name, tuple(t.en for t in texts), Evidence("/proc", text), listed(texts) if texts else NONE)


def _runs(name: str, process: Process) -> bool:
    """Return whether the process is this tool, started directly, through its .bin, or as a Python script."""
    words = (process.name, *process.argv[:2])
    return any(word.rpartition("/")[2] in (name, f"{name}.bin", f"{name}.py") for word in words)
