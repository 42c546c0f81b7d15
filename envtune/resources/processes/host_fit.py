"""Variables of the job that have to fit this host: its CPUs and its libraries.

Sources: Ascend/pytorch, docs/zh/environment_variable_reference/CPU_AFFINITY_CONF.md; torchrun
(torch/distributed/run.py sets OMP_NUM_THREADS to 1 so that a host is not overloaded); ld.so(8), LD_PRELOAD.
"""

from __future__ import annotations

import re
from typing import Iterable, Mapping, Sequence

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Missing, NotApplicable, Undetermined, host_error_text
from envtune.messages import Literal, Message, Text, clauses
from envtune.model import Evidence, Reading
from envtune.ranges import cpu_numbers, whole_number
from envtune.resources.cpu.topology import allowed_cpus, cpu_text
from envtune.resources.environment.variables import set_variables
from envtune.resources.files.kernel import kernel_text
from envtune.resources.npu.assigned import LOCAL_SIZE, RT_VISIBLE, parse_ids
from envtune.resources.npu.devices import ELSEWHERE, runs_elsewhere
from envtune.resources.system.data_loader import Limit, usable_cpus
from envtune.resources.system.limits import soft

ONLINE = "/sys/devices/system/cpu/online"
AFFINITY = "CPU_AFFINITY_CONF"
THREADS = "OMP_NUM_THREADS"
PRELOAD = "LD_PRELOAD"
# The local rank, as set by torchrun, Open MPI, MPICH and srun for each rank.
LOCAL_RANKS = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")
ALLOCATED = "SLURM_CPUS_ON_NODE"
_RANGE = re.compile(r"npu(\d{1,4}):(\d{1,6})-(\d{1,6})")
# e_machine of an ELF file, elf.h
_MACHINES: Mapping[str, bytes] = {"x86_64": b"\x3e\x00", "aarch64": b"\xb7\x00"}


@probe("job.cpu_ranges")
def cpu_ranges(context: Context) -> Iterable[Reading]:
    """Problems of each NPU's CPU range in CPU_AFFINITY_CONF; empty if the range is valid."""
    value, gaps = _value(context, AFFINITY)
    if gaps:
        return gaps
    ranges = {int(npu): range(int(first), int(last) + 1) for npu, first, last in _RANGE.findall(value)}
    if value[:1] not in ("1", "2") or not ranges:
        raise NotApplicable(Message("{name} gives no NPU a range of CPUs", name=AFFINITY), AFFINITY)
    if runs_elsewhere(context):
        raise Undetermined(ELSEWHERE, AFFINITY)
    usable = _usable(context)
    evidence = Evidence(context.target.environment.place(AFFINITY), f"{AFFINITY}={value}")
    expected = Message("CPUs that the job may use ({cpus}), each for one NPU", cpus=cpu_text(usable))
    found = []
    for npu, cpus in ranges.items():
        problems = _range_problems(npu, ranges, usable)
        shown = clauses([Literal(f"{cpus[0]}-{cpus[-1]}"), *problems]) if cpus else Literal("-")
        found.append(Reading(f"{AFFINITY} npu{npu}", tuple(p.en for p in problems), evidence, shown, expected))
    return found


def _range_problems(npu: int, ranges: Mapping[int, range], usable: Sequence[int]) -> list[Text]:
    cpus = ranges[npu]
    problems: list[Text] = []
    if not cpus:
        return [Message("the range is empty")]
    outside = sorted(set(cpus) - set(usable))
    if outside:
        problems.append(Message("the job may not use {cpus}", cpus=cpu_text(outside)))
    shared = [other for other, others in ranges.items() if other != npu and set(cpus) & set(others)]
    if shared:
        problems.append(Message("overlaps {names}", names=", ".join(f"npu{other}" for other in shared)))
    return problems


def _usable(context: Context) -> tuple[int, ...]:
    """Return the CPUs that are online and that the job may use."""
    host, pid = context.host, context.target.options.pid
    online = cpu_numbers(host.read(ONLINE))
    source = f"/proc/{'self' if pid is None else pid}/status"
    try:
        allowed = allowed_cpus(host.read(source)) if pid is None else online  # of --pid: already bound
    except Missing:
        allowed = online
    return tuple(cpu for cpu in online if cpu in set(allowed or online))


@probe("job.threads", unit="%")
def threads(context: Context) -> Iterable[Reading]:
    """Number of OpenMP threads of the job on this host, in percent of the CPUs that the job may use."""
    value, gaps = _value(context, THREADS)
    if gaps:
        return gaps
    count = whole_number(value.partition(",")[0])
    if not count:
        raise Undetermined(Message("{value!r} is not a number", value=value), THREADS)
    if runs_elsewhere(context):
        raise Undetermined(ELSEWHERE, THREADS)
    processes = _processes(context)
    limit = _job_cpus(context, count * processes)
    shown = Message(
        "{threads} threads x {processes} processes for {cpus} CPUs",
        threads=count,
        processes=processes,
        cpus=limit.cpus,
    )
    expected = Message("at most {cpus} threads in total ({source})", cpus=limit.cpus, source=limit.source)
    evidence = Evidence(context.target.environment.place(THREADS), f"{THREADS}={value}")
    fields = {"threads": str(max(1, limit.cpus // processes))}
    percent = -(-count * processes * 100 // limit.cpus)
    return [Reading(THREADS, percent, evidence, shown, expected, fields=fields)]


@probe("job.thread_limit", unit="%")
def thread_limit(context: Context) -> Iterable[Reading]:
    """Number of OpenMP threads of the job on this host, in percent of the user's thread limit (ulimit -u).

    Without OMP_NUM_THREADS each process has one for every CPU that it may use. The kernel does not enforce the limit
    for root. Sources: getrlimit(2), RLIMIT_NPROC; GNU libgomp, OMP_NUM_THREADS.
    """
    if runs_elsewhere(context):
        raise Undetermined(ELSEWHERE, THREADS)
    (limit,) = soft(context, name="nproc")
    if _is_of_root(context):
        raise NotApplicable(Message("the kernel does not limit the threads of root"), limit.evidence.source)
    if limit.value == "unlimited":
        raise NotApplicable(Message("the number of threads has no limit"), limit.evidence.source, limit.evidence.text)
    most = whole_number(str(limit.value))
    if not most:
        raise Undetermined(Message("{value!r} is not a number", value=str(limit.value)), limit.evidence.source)
    pid = context.target.options.pid
    set_threads = (context.target.environment.variables or {}).get(THREADS, "").partition(",")[0]
    threads = whole_number(set_threads) or usable_cpus(context.host, "self" if pid is None else str(pid)).cpus
    processes = _processes(context)
    shown = Message(
        "{threads} threads x {processes} processes, limit {limit}", threads=threads, processes=processes, limit=most
    )
    expected = Message("fewer threads than the limit")
    return [Reading("nproc", -(-threads * processes * 100 // most), limit.evidence, shown, expected)]


def _is_of_root(context: Context) -> bool:
    pid = context.target.options.pid
    if pid is None:
        return context.host.euid == 0
    return any(row.pid == pid and row.user == "root" for row in context.host.processes())


@probe("job.cpu_share", unit="%")
def cpu_share(context: Context) -> Iterable[Reading]:
    """Number of job processes on this host, in percent of the CPUs that the job may use."""
    if runs_elsewhere(context):
        raise Undetermined(ELSEWHERE, RT_VISIBLE)
    kernel_text(context.host, ONLINE)  # if it is missing, the check does not apply
    processes = _processes(context)
    limit = _job_cpus(context, processes)
    shown = Message("processes: {processes}, CPUs of the job: {cpus}", processes=processes, cpus=limit.cpus)
    expected = Message("a CPU for each process ({source})", source=limit.source)
    return [Reading("job", -(-processes * 100 // limit.cpus), Evidence(limit.source), shown, expected)]


def _job_cpus(context: Context, needed: int) -> Limit:
    """Return the CPUs of the whole job on this host; raises Undetermined if only those of one bound rank are known.

    srun and mpirun bind each rank to its own CPUs, and torch_npu binds the process it is loaded in.
    Sources: srun(1), --cpu-bind and SLURM_CPUS_ON_NODE; mpirun(1) of Open MPI, --bind-to.
    """
    pid, variables = context.target.options.pid, context.target.environment.variables or {}
    process = "self" if pid is None else str(pid)
    limit = usable_cpus(context.host, process)
    if limit.source != f"/proc/{process}/status" or not any(name in variables for name in LOCAL_RANKS):
        return limit
    allocated = whole_number(variables.get(ALLOCATED, ""))
    if allocated:
        return Limit(allocated, ALLOCATED) if allocated > limit.cpus else limit
    if needed > limit.cpus:
        reason = Message("only the CPUs of this rank are known ({count}), not those of the whole job", count=limit.cpus)
        raise Undetermined(reason, limit.source)
    return limit


def _processes(context: Context) -> int:
    """Return how many processes of the job run here: as it states, else one for each NPU that it may use."""
    variables = context.target.environment.variables or {}
    said = whole_number(variables.get(LOCAL_SIZE, "")) or len(parse_ids(variables.get(RT_VISIBLE, "")) or ())
    if said:
        return said
    fact = context.facts["npu_count"]
    count = whole_number(fact.value or "")
    if not count:
        raise Undetermined(fact.reason or Message("the number of NPUs is unknown"), str(fact.source))
    return count


@probe("job.preload")
def preload(context: Context) -> Iterable[Reading]:
    """State of each library in LD_PRELOAD: `usable`, `missing` or `foreign` (built for another architecture)."""
    value, gaps = _value(context, PRELOAD)
    if gaps:
        return gaps
    if runs_elsewhere(context):
        raise Undetermined(ELSEWHERE, PRELOAD)
    evidence = Evidence(context.target.environment.place(PRELOAD), f"{PRELOAD}={value}")
    return [_library(context, entry, evidence) for entry in dict.fromkeys(re.split(r"[:\s]+", value)) if entry]


def _library(context: Context, entry: str, evidence: Evidence) -> Reading:
    subject = f"{PRELOAD} {entry}"
    expected = Message("a library for {machine} that exists", machine=context.host.uname["machine"])
    if "/" not in entry:
        reason = Message("{name} has no directory: the loader searches for it", name=entry)
        return Reading(subject, None, evidence, expected=expected, reason=reason)
    try:
        head = context.host.head(entry)
    except Missing:
        return Reading(subject, "missing", evidence, Message("{path} does not exist", path=entry), expected)
    except HostError as error:
        return Reading(subject, None, evidence, expected=expected, reason=host_error_text(error))
    wanted = _MACHINES.get(context.host.uname["machine"])
    if head[:4] != b"\x7fELF" or (wanted is not None and head[18:20] != wanted):
        shown = Message("{path} is not a library for this machine", path=entry)
        return Reading(subject, "foreign", evidence, shown, expected)
    return Reading(subject, "usable", evidence, Message("{path} exists", path=entry), expected)


def _value(context: Context, name: str) -> tuple[str, list[Reading]]:
    """Return the value of a variable, or the readings that say why it is unknown; not applicable if it is not set."""
    present, gaps = set_variables(context, (name,))
    if not present.get(name, "").strip() and not gaps:
        raise NotApplicable(Message("{name} is not set", name=name), context.target.environment.description)
    return present.get(name, "").strip(), [] if name in present else gaps
