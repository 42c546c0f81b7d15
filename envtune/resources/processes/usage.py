"""Processes on the NPUs: left-over ones, memory that is not free, profilers beside a training run."""

from __future__ import annotations

from typing import Iterable, Mapping, NamedTuple, Optional, Sequence

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import Missing, NotApplicable, Undetermined
from envtune.messages import Bilingual, Literal, Message, Text
from envtune.model import Evidence, Process, Reading
from envtune.resources.npu.devices import NODES, Answer, ask, device_nodes, in_container, lacks_privilege, table
from envtune.resources.npu.health import label
from envtune.resources.npu.smi import NpuDevice, NpuTable
from envtune.resources.processes.orphans import ADOPTERS, orphan_sign

TOOLS = ("msprof", "aoe")
NONE = Message("none")


class Holder(NamedTuple):
    """A process on one device: `process` is its row in this host's table, None when it is not there; memory in MB."""

    pid: int
    name: str
    memory: Optional[int]
    process: Optional[Process]


class Holding(NamedTuple):
    """The processes on one device; `holders` is None when nobody tells them, and `reason` says why."""

    subject: str
    device: Optional[NpuDevice]
    holders: Optional[tuple[Holder, ...]]
    evidence: Evidence
    reason: Optional[Text] = None
    needs_privilege: bool = False


def holdings(context: Context) -> tuple[Holding, ...]:
    """Who is on every device: npu-smi's process table, else the open descriptors of /dev/davinciN."""
    return context.cached(_holdings)


def _holdings(context: Context) -> tuple[Holding, ...]:
    try:
        answer: Optional[Answer] = ask(context)
    except Missing:
        answer = None
    if answer is not None and answer.failure is None:
        listed = answer.table
        if listed.incomplete is not None:
            raise Undetermined(listed.incomplete, answer.source, answer.text)
        if set(listed.untold) != {device.npu for device in listed.devices}:
            return _by_table(context, listed, answer)
        if listed.cut:
            why = Message("npu-smi's output ends before its process table")
            raise Undetermined(why, answer.source, answer.text)
        return tuple(_by_descriptor(context, label(listed, d), listed.node(d), d) for d in listed.devices)
    nodes = device_nodes(context)
    if not nodes:
        if answer is not None and answer.failure is not None:
            needs_privilege = lacks_privilege(context, answer.failure)
            raise Undetermined(answer.failure.meaning, answer.source, answer.text, needs_privilege=needs_privilege)
        raise NotApplicable(Message("no NPU device node is here"), NODES)
    return tuple(_by_descriptor(context, f"npu{node}", node, None) for node in nodes)


def _by_table(context: Context, listed: NpuTable, answer: Answer) -> tuple[Holding, ...]:
    here = {process.pid: process for process in context.host.processes()}
    contained = in_container(context)
    found = []
    for device in listed.devices:
        rows = [p for p in listed.processes if (p.npu, p.chip) == (device.npu, device.chip)]
        text = "\n".join(row.raw for row in rows) or f"No running processes found in NPU {device.npu}"
        evidence = Evidence(answer.source, text)
        if device.npu in listed.untold:
            why = Message("npu-smi's process table breaks off or does not name this NPU")
            found.append(Holding(label(listed, device), device, None, Evidence(answer.source, answer.text), why))
            continue
        holders = tuple(
            Holder(row.pid, row.name, row.memory, here.get(row.inner or 0) if contained else here.get(row.pid))
            for row in rows
        )
        found.append(Holding(label(listed, device), device, holders, evidence))
    return tuple(found)


def _by_descriptor(context: Context, subject: str, node: Optional[int], device: Optional[NpuDevice]) -> Holding:
    """Who holds /dev/davinciN open. Without the right to read every process, nobody found is not nobody there."""
    path = f"/dev/davinci{node}"
    rows = context.host.processes()
    holders = tuple(Holder(p.pid, p.name, None, p) for p in rows if path in p.devices)
    evidence = Evidence("/proc/*/fd", "\n".join(f"{h.pid} {h.name}: {path}" for h in holders) or f"{path}: none")
    if not holders and any(p.opaque for p in rows):
        why = Message(
            "npu-smi prints no process table here, and the open files of other users' processes may not be read"
        )
        return Holding(subject, device, None, evidence, why, needs_privilege=True)
    return Holding(subject, device, holders, evidence)


# ---------------------------------------------------------------------------------------------------- left over


@probe("processes.residual", formerly="process.residual")
def residual(context: Context) -> Iterable[Reading]:
    """Processes on a device whose job is gone: parent ended, zombie, or stopped. Never the named job's own.

    Source: guide 003:3299-3311. Its `pkill -9 python` would end every Python of every user, so only pids are named.
    """
    own = job_pids(context)
    return [_residual_reading(context, holding, own) for holding in holdings(context)]


def _residual_reading(context: Context, holding: Holding, own: frozenset[int]) -> Reading:
    if holding.holders is None:
        return Reading(
            holding.subject, None, holding.evidence, reason=holding.reason, needs_privilege=holding.needs_privilege
        )
    rows, doubts = _judged(context, holding, own)
    left = [_describe(context, holder, process, sign) for holder, process, sign in rows]
    if left:
        wanted = Message("no process whose job has ended")
        look = f"ps -o pid,ppid,user,lstart,etime,stat,args -p {','.join(str(process.pid) for _, process, _ in rows)}"
        words = tuple(t.en for t in left)
        return Reading(holding.subject, words, holding.evidence, _join(left), wanted, commands=(look,))
    if doubts:
        return Reading(holding.subject, None, holding.evidence, reason=_join(doubts))
    return Reading(holding.subject, (), holding.evidence, NONE)


def left_over(context: Context) -> tuple[tuple[str, Process, Text], ...]:
    """(device, process, what shows it) of every process that is certain to be left over, once per process."""
    own = job_pids(context)
    found: dict[int, tuple[str, Process, Text]] = {}
    for holding in holdings(context):
        for _, process, sign in _judged(context, holding, own)[0]:
            found.setdefault(process.pid, (holding.subject, process, sign))
    return tuple(found.values())


def _judged(
    context: Context, holding: Holding, own: frozenset[int]
) -> tuple[list[tuple[Holder, Process, Text]], list[Text]]:
    """The holders that are left over, and the doubts about others."""
    left: list[tuple[Holder, Process, Text]] = []
    doubts: list[Text] = []
    for holder in holding.holders or ():
        if holder.process is None:
            doubts.append(_stranger(context, holder))
        elif holder.process.pid not in own:
            sign, certain = orphan_sign(context, holder.process)
            if sign is not None and certain:
                left.append((holder, holder.process, sign))
            elif sign is not None:
                doubts.append(_describe(context, holder, holder.process, sign))
    return left, doubts


def _stranger(context: Context, holder: Holder) -> Text:
    if in_container(context):
        return Message(
            "pid {pid} is the host's number of a process; this container cannot say whose it is", pid=holder.pid
        )
    return Message(
        "npu-smi lists pid {pid}, which is not in the process table (ended meanwhile, or hidden)", pid=holder.pid
    )


def _describe(context: Context, holder: Holder, process: Process, sign: Text) -> Text:
    en, zh = age(context.host.now - process.started)
    argv = " ".join(process.argv[:2])[:80] or process.name  # no further: arguments may hold secrets
    memory = "" if holder.memory is None else f", {holder.memory} MB"
    return Bilingual(
        f"pid {process.pid} of {process.user}, {en} old{memory}: {sign.en} ({argv})",
        f"pid {process.pid}，用户 {process.user}，已存在 {zh}{memory.replace(', ', '，')}：{sign.zh}（{argv}）",
    )


def age(seconds: float) -> tuple[str, str]:
    """A duration in its largest whole unit, in both languages."""
    for size, en, zh in ((86400, "d", "天"), (3600, "h", "小时"), (60, "min", "分钟")):
        if seconds >= size:
            return f"{int(seconds // size)} {en}", f"{int(seconds // size)} {zh}"
    return f"{max(0, int(seconds))} s", f"{max(0, int(seconds))} 秒"


def _join(texts: Sequence[Text]) -> Text:
    return Bilingual("; ".join(t.en for t in texts), "；".join(t.zh for t in texts))


def job_pids(context: Context) -> frozenset[int]:
    """The pids of the job named by --pid: it, what it started, and its siblings under the same launcher."""
    return context.cached(_job_pids)


def _job_pids(context: Context) -> frozenset[int]:
    if context.target.options.pid is None:
        return frozenset()
    rows = context.host.processes()
    parents: Mapping[int, int] = {p.pid: p.ppid for p in rows}
    names: Mapping[int, str] = {p.pid: p.name for p in rows}
    root = context.target.options.pid
    launcher = parents.get(root, 0)
    own = {root}
    if launcher > 1 and names.get(launcher, "systemd") not in ADOPTERS:
        own.add(launcher)
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in own} - own
        grown = bool(more)
        own |= more
    return frozenset(own)


# ---------------------------------------------------------------------------------------------------- memory


@probe("processes.free_memory", formerly="process.free_memory")
def free_memory(context: Context, *, idle_percent: int, idle_percent_910a: int) -> Iterable[Reading]:
    """Whether only the driver's own share of each device's memory is used; limits in percent of its HBM.

    Source: guide 003:3208-3218. The vendor documents no baseline; public listings of idle devices show 2.7-4.8 GB used
    (at most 8.8 % of the HBM, on 910B4) from 910B on, and at most 18 MB of 32 GB on 910A.
    """
    listed = table(context)
    limit = idle_percent_910a if context.facts.value("npu") == "910A" else idle_percent
    own = job_pids(context)
    by_subject = {holding.subject: holding for holding in holdings(context)}
    return [_memory(device, by_subject[label(listed, device)], own, limit) for device in listed.devices]


def _memory(device: NpuDevice, holding: Holding, own: frozenset[int], limit: int) -> Reading:
    evidence = Evidence("npu-smi info", device.raw)
    usage = device.hbm
    if usage is None or usage.total == 0:
        reason = Message("npu-smi prints no HBM usage for it")
        return Reading(holding.subject, None, evidence, reason=reason)
    holders = holding.holders or ()
    others = [h for h in holders if h.process is None or h.process.pid not in own]
    wanted = Message("no process, at most {limit} % used", limit=limit)
    mine = len(others) < len(holders)
    if not others and (mine or usage.used * 100 <= usage.total * limit):
        return Reading(holding.subject, "free", evidence, _free_words(mine), wanted)
    text, zh = f"{usage.used} of {usage.total} MB used", f"已使用 {usage.used} / {usage.total} MB"
    if others:
        names = ", ".join(f"{h.pid} {h.name}".rstrip() for h in others)
        shown = Bilingual(f"{text}; processes: {names}", f"{zh}；进程：{names}")
    elif holding.holders is None:
        shown = Bilingual(f"{text}; by whom is not told", f"{zh}；无法得知占用者")
    else:
        shown = Bilingual(f"{text}, but no process is listed: not given back", f"{zh}，但未列出任何进程：内存未被释放")
    return Reading(holding.subject, "taken", evidence, shown, wanted)


def _free_words(mine: bool) -> Text:
    if mine:
        return Message("only the named job is on it")
    return Message("only the idle share is used")


# ---------------------------------------------------------------------------------------------------- profilers


@probe("processes.profilers", formerly="process.profilers")
def profilers(context: Context) -> Iterable[Reading]:
    """Profiling or AOE tuning that is running or switched on for the job. Source: guide 003:1582-1583."""
    found = [_tool(name, context.host.processes()) for name in TOOLS]
    try:
        variables = context.target.variables()
    except Undetermined as untold:
        found.append(Reading("PROFILING_MODE", None, Evidence(untold.source), reason=untold.reason))
        return found
    value = variables.get("PROFILING_MODE", "")
    on = value.strip().lower() not in ("", "false", "0")
    evidence = Evidence(
        context.target.environment.source, f"PROFILING_MODE={value}" if value else "PROFILING_MODE is not set"
    )
    found.append(Reading("PROFILING_MODE", (value,) if on else (), evidence, Literal(value) if on else NONE))
    return found


def _tool(name: str, rows: Sequence[Process]) -> Reading:
    running = [p for p in rows if _runs(name, p)]
    lines = tuple(f"pid {p.pid} of {p.user}" for p in running)
    text = "\n".join(f"{p.pid} {' '.join(p.argv[:2]) or p.name}" for p in running) or f"no process named {name}"
    shown = Bilingual(", ".join(lines), "，".join(f"pid {p.pid}（{p.user}）" for p in running)) if running else NONE
    return Reading(name, lines, Evidence("/proc", text), shown)


def _runs(name: str, process: Process) -> bool:
    """Whether the process is this tool, started directly, through its .bin, or as a Python script."""
    words = (process.name, *process.argv[:2])
    return any(word.rpartition("/")[2] in (name, f"{name}.bin", f"{name}.py") for word in words)
