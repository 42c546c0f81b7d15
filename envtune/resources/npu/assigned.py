"""The NPUs a job asks for: whether they exist, whether each is named once, whether that many can work together."""

from __future__ import annotations

import posixpath
from collections import Counter
from typing import Iterable, Iterator, Mapping, Optional, Sequence

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, NotApplicable, Undetermined
from envtune.messages import Message, Text, clauses, enumerated
from envtune.model import Evidence, Reading, Source
from envtune.ranges import decimal
from envtune.records import NamedTuple, expression
from envtune.resources.npu.devices import ELSEWHERE, NODES, device_nodes, in_container, runs_elsewhere

RT_VISIBLE = "ASCEND_RT_VISIBLE_DEVICES"
VISIBLE = "ASCEND_VISIBLE_DEVICES"
SINGLE = ("ASCEND_DEVICE_ID", "DEVICE_ID")
LOCAL_SIZE = "LOCAL_WORLD_SIZE"
SIZES = ("RANK_SIZE", "WORLD_SIZE")
OPTION = "--device-list"
# Of a rank, as torchrun, HCCL, Open MPI, MPICH and Slurm, and msrun name them.
RANKS = ("RANK", "LOCAL_RANK", "RANK_ID", "RANK_TABLE_FILE", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "MS_WORKER_NUM")
IDS_LIMIT = 65536  # characters of a list, and ids in its ranges; a server has 16 devices
ALL = (RT_VISIBLE, VISIBLE, *SINGLE, LOCAL_SIZE, *SIZES, OPTION)

_IN_SCRIPT = expression(r"--device[-_]list[=\s]+(\"[^\"\n]*\"|'[^'\n]*'|[^\s\\;|&]+)")
# Options of torchrun, msrun, deepspeed and accelerate.
_RANKS_STARTED = expression(
    r"(?<!\S)(--nproc[-_]per[-_]node|--(?:local_)?worker_num|--num_gpus|--num_processes)[=\s]+[\"']?([\w${}]+)"
)
_VARIABLE = expression(r"\$(?:\{(\w+)\}|(\w+))")
_CHIP_NAME = expression(r"(?:^|(?<=,))\s*Ascend\w*-(?=\d)")  # Ascend910-0,Ascend910-1


class Limits(NamedTuple):
    """The existing devices: their node numbers, and the model (None if unknown)."""

    nodes: tuple[int, ...]
    model: Optional[str]
    container: bool
    ascending: bool  # CANN 8 and later accept ASCEND_RT_VISIBLE_DEVICES only in ascending order
    here: bool = True  # whether the job runs on this host, so that its devices are those of the job


class Problem(NamedTuple):
    """One fault; `model` is the only model on which it is wrong, empty if it is wrong on all."""

    text: Text
    model: str = ""


@probe("npu.assigned", formerly="job_devices.ids")
def ids(context: Context) -> Iterable[Reading]:
    """Problems of each variable or option that lists the job's NPUs; empty if the list is valid.

    Sources: guide 003:40-43 (1, 2, 4 or 8 devices), 003:276 and 607 (`--device-list`); HCCL user guide (on one 910
    server: 1, 2, 4 or 8 ranks, up to 4 of them all in 0-3 or all in 4-7); CANN environment variables
    (ASCEND_RT_VISIBLE_DEVICES: logic ids, commas without blanks, ends at the first invalid id); Ascend Docker Runtime
    (ASCEND_VISIBLE_DEVICES: numbers of /dev/davinciN, `0-2,4`, or names, `Ascend910-0`).
    """
    source = context.target.environment.source
    readings: list[Reading] = []
    variables: Mapping[str, str] = {}
    try:
        variables = context.target.variables()
    except Undetermined as verdict:
        reason, privilege = verdict.reason, verdict.needs_privilege
        readings.append(Reading("environment", None, Evidence(source), reason=reason, needs_privilege=privilege))
    option = _device_list_option(context, variables)
    if option is not None or any(name in variables for name in ALL):
        limits = _limits(context)
        readings += _variable_readings(variables, source, limits)
        if option is not None:
            value, place = option
            readings.append(_list_reading(OPTION, value, place, limits, _visible_nodes(variables, limits)))
    if not readings:
        raise NotApplicable(Message("the job specifies no devices ({names})", names=enumerated(ALL)), source)
    return readings


def named_ranks(context: Context) -> Optional[str]:
    """Return the setting that shows that ranks of the job run on NPUs here, None if there is none."""
    variables = context.target.environment.variables or {}
    for name in (*ALL, *RANKS):
        if variables.get(name, "").strip() not in ("", "void"):
            return f"{name}={variables[name]}"
    started = _RANKS_STARTED.search(_command_text(context))
    if started is not None:
        return f"{started[1]}={started[2]}"
    option = _device_list_option(context, variables)
    return None if option is None else f"{OPTION}={option[0]}"


def _command_text(context: Context) -> str:
    """Return the command line of the named process, or the lines of the named script that are not comments."""
    options = context.target.options
    if options.pid is not None:
        return " ".join(next((p.argv for p in context.host.processes() if p.pid == options.pid), ()))
    if options.script is None:
        return ""
    try:
        lines = context.host.read(posixpath.join(context.host.cwd, options.script)).splitlines()
    except HostError:
        return ""  # the environment checks report that the script cannot be read
    return "\n".join(line for line in lines if not line.lstrip().startswith("#"))


def _limits(context: Context) -> Limits:
    nodes = device_nodes(context)
    if runs_elsewhere(context):
        return Limits(tuple(range(IDS_LIMIT)), None, False, False, here=False)
    if not nodes:
        count = context.facts["npu_count"]
        if count.value in (None, "0"):
            no_node = Message("no /dev/davinciN, so no device id exists")
            raise Undetermined(count.reason or no_node, NODES)
        nodes = tuple(range(int(count.value or 0)))
    cann = (context.facts.value("cann") or "").partition(".")[0]
    ascending = (decimal(cann) or 0) >= 8
    return Limits(nodes, context.facts.value("npu"), in_container(context), ascending)


def _visible_nodes(variables: Mapping[str, str], limits: Limits) -> tuple[int, ...]:
    """Return the node numbers a process of the job sees, in its own numbering."""
    numbers = parse_ids(variables.get(RT_VISIBLE, ""))
    if not numbers or any(n >= len(limits.nodes) for n in numbers):
        return limits.nodes
    return tuple(limits.nodes[n] for n in numbers)


def parse_ids(text: str, ranges: bool = False) -> Optional[tuple[int, ...]]:
    """Return `0,1,2` (and `0-2,4` where ranges are allowed) as numbers; None for anything else."""
    numbers: list[int] = []
    if len(text) > IDS_LIMIT:
        return None
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or len(first) > 4 or (dash and not (ranges and last.isdecimal() and len(last) < 5)):
            return None
        if dash and int(last) < int(first):
            return None
        if len(numbers) > IDS_LIMIT:
            return None
        numbers.extend(range(int(first), int(last or first) + 1))
    return tuple(numbers)


def _variable_readings(variables: Mapping[str, str], source: Source, limits: Limits) -> Iterator[Reading]:
    visible = _visible_nodes(variables, limits)
    if RT_VISIBLE in variables:
        yield _list_reading(RT_VISIBLE, variables[RT_VISIBLE], source, limits, limits.nodes)
    virtual = "VIRTUAL" in variables.get("ASCEND_RUNTIME_OPTIONS", "")  # then the numbers are those of vNPUs
    if VISIBLE in variables and variables[VISIBLE].strip() != "void" and not virtual:
        yield _list_reading(VISIBLE, variables[VISIBLE], source, limits, None)
    for name in SINGLE:
        if name in variables:
            yield _list_reading(name, variables[name], source, limits, visible, single=True)
    for name in (LOCAL_SIZE, *SIZES):
        reading = _size_reading(name, variables, source, limits, len(visible)) if name in variables else None
        if reading is not None:
            yield reading


def _list_reading(
    name: str, value: str, source: Source, limits: Limits, visible: Optional[Sequence[int]], single: bool = False
) -> Reading:
    """Return the reading of a list of ids: indices into `visible`, or numbers of /dev/davinciN if that is None."""
    evidence = Evidence(source, f"{name}={value}")
    listed = _CHIP_NAME.sub("", value) if visible is None else value
    numbers = parse_ids(listed, ranges=visible is None)
    if numbers is None:
        if name == RT_VISIBLE and value.strip("0123456789,"):
            text = Message("everything from the first blank or other character on is ignored")
            return _reading(name, value, evidence, [Problem(text)], limits)
        reason = Message("{value!r} is not a list of device ids", value=value)
        return Reading(name, None, evidence, reason=reason)
    problems = list(_list_problems(numbers, limits, visible, name))
    if not problems and not single:
        problems += _group_problems(numbers if visible is None else [visible[n] for n in numbers])
    return _reading(name, value, evidence, problems, limits)


def _list_problems(
    numbers: Sequence[int], limits: Limits, visible: Optional[Sequence[int]], name: str
) -> Iterator[Problem]:
    repeated = sorted(n for n, count in Counter(numbers).items() if count > 1)
    if repeated:
        yield Problem(Message("lists {ids} twice", ids=enumerated(map(str, repeated))))
    existing = set(limits.nodes) if visible is None else set(range(len(visible)))
    missing = [] if visible is None and limits.container else sorted(set(numbers) - existing)
    if missing:
        ids = enumerated(map(str, missing))
        yield Problem(Message("{ids} does not exist ({count} devices)", ids=ids, count=len(existing)))
    if name == RT_VISIBLE and limits.ascending and list(numbers) != sorted(numbers):
        yield Problem(Message("not in ascending order, the only one CANN supports"))


def _group_problems(nodes: Sequence[int]) -> Iterator[Problem]:
    if len(nodes) not in (1, 2, 4, 8):
        text = Message("{count} devices; HCCL on 910A works with 1, 2, 4 or 8", count=len(nodes))
        yield Problem(text, "910A")
    elif len(nodes) in (2, 4) and len({node // 4 for node in nodes}) > 1:
        yield Problem(Message("on 910A they must all be in 0-3 or all in 4-7"), "910A")


def _size_reading(
    name: str, variables: Mapping[str, str], source: Source, limits: Limits, visible: int
) -> Optional[Reading]:
    """Return the reading of a number of ranks; None if it says nothing about this server."""
    value = variables[name]
    evidence = Evidence(source, f"{name}={value}")
    if not value.isdecimal() or not 0 < len(value) < 6:
        return Reading(name, None, evidence, reason=Message("{value!r} is not a number", value=value))
    count = int(value)
    if name == LOCAL_SIZE:
        text = Message("{count} processes for {devices} devices", count=count, devices=visible)
        problems = [Problem(text)] if count > visible else []
        return _reading(name, value, evidence, problems or list(_group_problems(range(count))), limits)
    if limits.model != "910A" or LOCAL_SIZE in variables or count > visible:
        return None  # counts the ranks of all servers; how many of them run here is unknown
    if count not in (1, 2, 4, 8):
        reason = Message(
            "on 910A, {count} ranks work only across several servers; whether they do is unknown on this host",
            count=count,
        )
        return Reading(name, None, evidence, reason=reason)
    return _reading(name, value, evidence, [], limits)


def _reading(name: str, value: str, evidence: Evidence, problems: Sequence[Problem], limits: Limits) -> Reading:
    certain = [problem.text for problem in problems if problem.model in ("", limits.model)]
    uncertain = [problem.text for problem in problems if problem.model and limits.model is None]
    if uncertain and not certain:
        reason = Message("the NPU model is unknown: {problem}", problem=uncertain[0])
        return Reading(name, None, evidence, reason=reason)
    if not limits.here and not certain:
        return Reading(name, None, evidence, reason=ELSEWHERE)
    expected = Message("existing devices ({count} here), each once", count=len(limits.nodes))
    expected = expected if limits.here else Message("existing devices, each once")
    return Reading(name, tuple(text.en for text in certain), evidence, clauses([value, *certain]), expected)


def _device_list_option(context: Context, variables: Mapping[str, str]) -> Optional[tuple[str, str]]:
    """Return (value, source) of `--device-list` in the named process or script, with the job's variables expanded."""
    options = context.target.options
    value, source = None, ""
    if options.pid is not None:
        source = f"/proc/{options.pid}/cmdline"
        argv = next((p.argv for p in context.host.processes() if p.pid == options.pid), ())
        value = _option_value(argv)
    elif options.script is not None:
        source = posixpath.join(context.host.cwd, options.script)
        try:
            lines = context.host.read(source).splitlines()
        except HostError:
            return None  # the environment checks report that the script cannot be read
        values = [m for line in lines if not line.lstrip().startswith("#") for m in _IN_SCRIPT.findall(line)]
        value = values[-1].strip("\"'") if values else None
    if value is None:
        return None
    return _VARIABLE.sub(lambda m: variables.get(m[1] or m[2], m[0]), value), source


def _option_value(argv: Sequence[str]) -> Optional[str]:
    for number, word in enumerate(argv):
        name, mark, value = word.partition("=")
        if name in (OPTION, "--device_list"):
            return value if mark else (argv[number + 1] if number + 1 < len(argv) else None)
    return None
