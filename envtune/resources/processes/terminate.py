"""Ending left-over processes, one by one: by number and start time, never by name.

The porting guide's `pkill -9 python` (003:3311) ends the Pythons of every user, firewalld and this tool with them.
"""

from __future__ import annotations

from typing import Iterable, Optional, Sequence

from envtune.context import Context
from envtune.context.registry import action
from envtune.errors import HostError, Skipped, host_error_text
from envtune.messages import Bilingual, Message, Text
from envtune.model import Change, Finding, FixOptions, Process
from envtune.resources.processes.usage import age, left_over

USER_HZ = 100  # clock ticks per second in /proc/<pid>/stat on x86_64 and aarch64


@action("processes.terminate", formerly="process.terminate")
def terminate(
    context: Context, findings: Sequence[Finding], *, grace: int = 10, options: FixOptions
) -> Iterable[Change]:
    """TERM, after `grace` seconds KILL, for every left-over process that this user may end; one change per process.

    Another user's process is ended only as root, when its number and its owner were named.
    """
    wanted = options.pid if options.owner is not None else None
    changes: list[Change] = []
    left: list[Text] = []
    for device, process, sign in left_over(context):
        if wanted is not None and process.pid != wanted:
            continue
        why = _hands_off(context, process, options)
        if why is None:
            try:
                changes.append(_change(context, findings, device, process, sign, grace))
                continue
            except HostError as error:
                why = host_error_text(error)
            except Skipped as error:
                why = error.reason
        left.append(Message("pid {pid} ({user}): {why}", pid=process.pid, user=process.user, why=why))
    note = (
        Bilingual("left alone: " + "; ".join(t.en for t in left), "不处理：" + "；".join(t.zh for t in left))
        if left
        else None
    )
    if not changes:
        raise Skipped(note or Message("no left-over process is there any more"))
    return [change._replace(note=note) for change in changes]


def _hands_off(context: Context, process: Process, options: FixOptions) -> Optional[Text]:
    """Why this process is not ended; None when it may be."""
    if not context.host.live and not _there(context, process):
        return Message(
            "a recording does not hold what names a process for good; run envtune fix PROC001 on the host itself"
        )
    if process.state == "Z":
        return Message(
            "a zombie cannot be ended; it goes when its parent {ppid} collects it or ends", ppid=process.ppid
        )
    if process.pid in _ancestors(context):
        return Message("it is envtune itself or started it")
    uid = context.host.stat(f"/proc/{process.pid}").uid if _there(context, process) else None
    if uid is None:
        return Message("it has ended")
    if options.owner is not None and options.owner != process.user:
        return Message("it is not {owner}'s", owner=options.owner)
    if uid == context.host.euid or (
        context.host.euid == 0 and options.owner == process.user and options.pid == process.pid
    ):
        return None
    named = f"--pid {process.pid} --owner {process.user}"
    return Message("another user's: ask them; root can end it with {named}", named=named)


def _there(context: Context, process: Process) -> bool:
    try:
        context.host.stat(f"/proc/{process.pid}/stat")
    except HostError:
        return False
    return True


def _ancestors(context: Context) -> frozenset[int]:
    """Envtune's own process and what started it."""
    try:
        own = int(context.host.read("/proc/self/stat").split()[0])
    except (HostError, ValueError, IndexError):
        return frozenset()
    parents = {process.pid: process.ppid for process in context.host.processes()}
    found = {own}
    while parents.get(own, 0) > 0 and parents[own] not in found:
        own = parents[own]
        found.add(own)
    return frozenset(found)


def _change(
    context: Context, findings: Sequence[Finding], device: str, process: Process, sign: Text, grace: int
) -> Change:
    ids = tuple(dict.fromkeys(finding.id for finding in findings))
    en, _ = age(context.host.now - process.started)
    parent = next((p.name for p in context.host.processes() if p.pid == process.ppid), "gone")
    line = " ".join(process.argv[:2])[:120] or process.name  # no further: arguments may hold secrets
    uid = context.host.stat(f"/proc/{process.pid}").uid
    started = _started(context, process)
    signal = {"op": "signal", "pid": process.pid, "started": started, "uid": uid, "grace": grace, "kill": True}
    return Change(
        finding=ids[0],
        subject=device,
        playbook="",
        action="processes.terminate",
        target=f"process {process.pid}",
        before=f"pid {process.pid} of {process.user}, {en} old, parent {process.ppid} ({parent}), {sign.en}: {line}",
        after=f"ended: TERM, and KILL if it is still there after {grace} s",
        view="live",
        operations=(signal,),
        safety="confirm",
        disruption="job",
        root=uid != context.host.euid,
        undoable=False,
        cures=ids[1:],
    )


def _started(context: Context, process: Process) -> int:
    """The start of the process in clock ticks since boot: with its number, what names it for good."""
    fields = context.host.read(f"/proc/{process.pid}/stat").rpartition(")")[2].split()
    boot = next(line for line in context.host.read("/proc/stat").splitlines() if line.startswith("btime "))
    ticks = int(fields[19])
    if abs(int(boot.split()[1]) + ticks / USER_HZ - process.started) > 1:
        words = f"pid {process.pid} is another process by now"
        raise Skipped(Bilingual(words, f"pid {process.pid} 现已是另一个进程"))
    return ticks
