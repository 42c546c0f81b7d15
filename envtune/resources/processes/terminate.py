"""End leftover processes one by one: by pid and start time, never by name.

The porting guide's `pkill -9 python` (003:3311) ends the Pythons of every user, firewalld and this tool included.
"""

from __future__ import annotations

from typing import Annotated, Iterable, Sequence

from envtune.context import Context
from envtune.context.registry import action
from envtune.errors import HostError, Skipped, host_error_text
from envtune.messages import N_, Message, Text, clauses
from envtune.model import Change, Finding, FixOptions, Process
from envtune.ranges import decimal
from envtune.resources.processes.usage import left_over, process_age, processes_by_pid

USER_HZ = 100  # clock ticks per second in /proc/<pid>/stat on x86_64 and aarch64


@action("processes.terminate", formerly="process.terminate")
def terminate(
    context: Context,
    findings: Sequence[Finding],
    *,
    grace: Annotated[int, N_("Seconds between the TERM and KILL signals.")] = 10,
    options: FixOptions,
) -> Iterable[Change]:
    """Propose TERM, after `grace` seconds KILL, for every leftover process that this user may end, one change each.

    Another user's process is ended only as root, if its pid and its owner were named.
    """
    named_pid = options.pid if options.owner is not None else None
    changes: list[Change] = []
    skipped: list[Text] = []
    for device, process, sign in left_over(context):
        if named_pid is not None and process.pid != named_pid:
            continue
        try:
            _refuse_forbidden(context, process, options, findings)
            changes.append(_change(context, findings, device, process, sign, grace))
        except (HostError, Skipped) as error:
            why = host_error_text(error) if isinstance(error, HostError) else error.reason
            skipped.append(Message("pid {pid} ({user}): {why}", pid=process.pid, user=process.user, why=why))
    note = Message("skipped: {processes}", processes=clauses(skipped)) if skipped else None
    if not changes:
        raise Skipped(note or Message("no leftover processes any more"))
    return [change._replace(note=note) for change in changes]


def _refuse_forbidden(context: Context, process: Process, options: FixOptions, findings: Sequence[Finding]) -> None:
    """Raise Skipped for a process that is not ended, with the reason."""
    host = context.host
    exists = _exists(context, process)
    if not host.live and not exists:
        raise Skipped(
            Message(
                "a recording does not contain what identifies a process uniquely; run envtune fix {check} "
                "on the host itself",
                check=findings[0].id,
            )
        )
    if process.state == "Z":
        raise Skipped(
            Message(
                "a zombie cannot be ended; it disappears when its parent {ppid} reaps it or ends", ppid=process.ppid
            )
        )
    if process.pid in _ancestors(context):
        raise Skipped(Message("it is envtune itself or one of its parent processes"))
    if not exists:
        raise Skipped(Message("it has ended"))
    uid = host.stat(f"/proc/{process.pid}").uid
    if options.owner is not None and options.owner != process.user:
        raise Skipped(Message("it is not {owner}'s", owner=options.owner))
    is_named = options.owner == process.user and options.pid == process.pid
    if uid != host.euid and not (host.euid == 0 and is_named):
        flags = f"--pid {process.pid} --owner {process.user}"
        raise Skipped(Message("belongs to another user: ask them; root can end it with {flags}", flags=flags))


def _exists(context: Context, process: Process) -> bool:
    try:
        context.host.stat(f"/proc/{process.pid}/stat")
    except HostError:
        return False
    return True


def _ancestors(context: Context) -> frozenset[int]:
    """Return the pids of envtune's own process and its ancestors."""
    try:
        pid = int(context.host.read("/proc/self/stat").split()[0])
    except (HostError, ValueError, IndexError):
        return frozenset()
    parents = {process.pid: process.ppid for process in context.host.processes()}
    pids = {pid}
    while parents.get(pid, 0) > 0 and parents[pid] not in pids:
        pid = parents[pid]
        pids.add(pid)
    return frozenset(pids)


def _change(
    context: Context, findings: Sequence[Finding], device: str, process: Process, sign: Text, grace: int
) -> Change:
    ids = tuple(dict.fromkeys(finding.id for finding in findings))
    owner, age = f"pid {process.pid} of {process.user}", process_age(context, process).en
    table = context.cached(processes_by_pid)
    parent = table[process.ppid].name if process.ppid in table else "gone"
    command = " ".join(process.argv[:2])[:120] or process.name  # no more: arguments may contain secrets
    uid = context.host.stat(f"/proc/{process.pid}").uid
    started = _start_ticks(context, process)
    signal = {"op": "signal", "pid": process.pid, "started": started, "uid": uid, "grace": grace, "kill": True}
    return Change(
        finding=ids[0],
        subject=device,
        playbook="",
        action="processes.terminate",
        target=f"process {process.pid}",
        before=f"{owner}, {age} old, parent {process.ppid} ({parent}), {sign.en}: {command}",
        after=f"ended: TERM, and KILL if it is still there after {grace} s",
        scope="live",
        operations=(signal,),
        safety="confirm",
        disruption="job",
        root=uid != context.host.euid,
        undoable=False,
        fixes=ids[1:],
    )


def _start_ticks(context: Context, process: Process) -> int:
    """Return the start of the process in clock ticks since boot, which with its pid identifies it uniquely."""
    fields = context.host.read(f"/proc/{process.pid}/stat").rpartition(")")[2].split()
    rows = (line.partition(" ") for line in context.host.read("/proc/stat").splitlines())
    boot = next((decimal(value.strip()) for name, _, value in rows if name == "btime"), None)
    ticks = decimal(fields[19]) if len(fields) > 19 else None
    if boot is None or ticks is None:
        raise Skipped(Message("its start time cannot be read from /proc"))
    if abs(boot + ticks / USER_HZ - process.started) > 1:
        raise Skipped(Message("pid {pid} is now another process", pid=process.pid))
    return ticks
