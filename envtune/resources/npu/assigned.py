"""The NPUs a job asks for: do they exist, is none named twice, and may so many work together."""

from __future__ import annotations

import posixpath
import re
from typing import Iterable, Iterator, Mapping, NamedTuple, Optional, Sequence

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, NotApplicable, Undetermined
from envtune.messages import Bilingual, Message, Text
from envtune.model import Evidence, Reading
from envtune.resources.npu.devices import NODES, device_nodes, in_container

RT_VISIBLE = "ASCEND_RT_VISIBLE_DEVICES"
VISIBLE = "ASCEND_VISIBLE_DEVICES"
SINGLE = ("ASCEND_DEVICE_ID", "DEVICE_ID")
LOCAL_SIZE = "LOCAL_WORLD_SIZE"
SIZES = ("RANK_SIZE", "WORLD_SIZE")
OPTION = "--device-list"
ALL = (RT_VISIBLE, VISIBLE, *SINGLE, LOCAL_SIZE, *SIZES, OPTION)

_IN_SCRIPT = re.compile(r"--device[-_]list[=\s]+(\"[^\"\n]*\"|'[^'\n]*'|[^\s\\;|&]+)")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


class Limits(NamedTuple):
    """What devices there are: their node numbers, and the model (None when it cannot be told)."""

    nodes: tuple[int, ...]
    model: Optional[str]
    container: bool
    ascending: bool  # CANN 8 and later take ASCEND_RT_VISIBLE_DEVICES in ascending order only


class Problem(NamedTuple):
    """One thing that is wrong; `only` names the model it is wrong on, where it is not wrong everywhere."""

    text: Text
    only: str = ""


@probe("npu.assigned", formerly="job_devices.ids")
def ids(context: Context) -> Iterable[Reading]:
    """Every variable or option with which the job names its devices.

    Sources: guide 003:40-43 (1, 2, 4 or 8 devices), 003:276 and 607 (`--device-list`); facts D7 (HCCL on one 910
    server: 1, 2, 4 or 8 ranks, up to 4 of them all in 0-3 or all in 4-7); CANN environment variables
    (ASCEND_RT_VISIBLE_DEVICES: logic ids, commas without blanks, ends at the first invalid id); Ascend Docker Runtime
    (ASCEND_VISIBLE_DEVICES: numbers of /dev/davinciN, `0-2,4`).
    """
    source = context.target.environment.source
    found: list[Reading] = []
    variables: Mapping[str, str] = {}
    try:
        variables = context.target.variables()
    except Undetermined as untold:
        found.append(
            Reading("environment", None, Evidence(source), reason=untold.reason, needs_privilege=untold.needs_privilege)
        )
    option = _option(context, variables)
    if option is not None or any(name in variables for name in ALL):
        limits = _limits(context)
        found += _readings(variables, source, limits)
        if option is not None:
            found.append(_judged(OPTION, option[0], option[1], limits, _visible(variables, limits)))
    if not found:
        names = ", ".join(ALL)
        raise NotApplicable(Message("the job names no devices ({names})", names=names), source)
    return found


def _limits(context: Context) -> Limits:
    nodes = device_nodes(context)
    if not nodes:
        known = context.facts["npu_count"]
        if known.value in (None, "0"):
            no_node = Message("there is no /dev/davinciN, so no device id can exist")
            raise Undetermined(known.reason or no_node, NODES)
        nodes = tuple(range(int(known.value or 0)))
    cann = (context.facts.value("cann") or "").partition(".")[0]
    ascending = cann.isdigit() and int(cann) >= 8
    return Limits(nodes, context.facts.value("npu"), in_container(context), ascending)


def _visible(variables: Mapping[str, str], limits: Limits) -> tuple[int, ...]:
    """Node numbers a process of the job sees, in its own numbering."""
    numbers = parse_ids(variables.get(RT_VISIBLE, ""))
    if not numbers or any(n >= len(limits.nodes) for n in numbers):
        return limits.nodes
    return tuple(limits.nodes[n] for n in numbers)


def parse_ids(text: str, ranges: bool = False) -> Optional[tuple[int, ...]]:
    """`0,1,2` (and `0-2,4` where ranges are allowed) as numbers; None when it is anything else."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or len(first) > 4 or (dash and not (ranges and last.isdecimal() and len(last) < 5)):
            return None
        if dash and int(last) < int(first):
            return None
        found.extend(range(int(first), int(last or first) + 1))
    return tuple(found)


def _readings(variables: Mapping[str, str], source: str, limits: Limits) -> Iterator[Reading]:
    seen = _visible(variables, limits)
    if RT_VISIBLE in variables:
        yield _judged(RT_VISIBLE, variables[RT_VISIBLE], source, limits, limits.nodes)
    virtual = "VIRTUAL" in variables.get("ASCEND_RUNTIME_OPTIONS", "")  # then the numbers are those of vNPUs
    if VISIBLE in variables and variables[VISIBLE].strip() != "void" and not virtual:
        yield _judged(VISIBLE, variables[VISIBLE], source, limits, None)
    for name in SINGLE:
        if name in variables:
            yield _judged(name, variables[name], source, limits, seen, single=True)
    for name in (LOCAL_SIZE, *SIZES):
        reading = _size(name, variables, source, limits, len(seen)) if name in variables else None
        if reading is not None:
            yield reading


def _judged(
    name: str, value: str, source: str, limits: Limits, seen: Optional[Sequence[int]], single: bool = False
) -> Reading:
    """The reading of a list of ids: indices into the nodes `seen`, or numbers of /dev/davinciN when that is None."""
    evidence = Evidence(source, f"{name}={value}")
    numbers = parse_ids(value, ranges=seen is None)
    if numbers is None:
        if name == RT_VISIBLE and value.strip("0123456789,"):
            text = Message("everything from the first blank or other character on is ignored")
            return _reading(name, value, evidence, [Problem(text)], limits)
        reason = Message("{value!r} is not a list of device ids", value=value)
        return Reading(name, None, evidence, reason=reason)
    problems = list(_list_problems(numbers, limits, seen, name))
    if not problems and not single:
        problems += _group_problems(numbers if seen is None else [seen[n] for n in numbers])
    return _reading(name, value, evidence, problems, limits)


def _list_problems(
    numbers: Sequence[int], limits: Limits, seen: Optional[Sequence[int]], name: str
) -> Iterator[Problem]:
    twice = sorted({n for n in numbers if numbers.count(n) > 1})
    if twice:
        names = ", ".join(map(str, twice))
        yield Problem(Message("names {names} twice", names=names))
    there = set(limits.nodes) if seen is None else set(range(len(seen)))
    strange = [] if seen is None and limits.container else sorted(set(numbers) - there)
    if strange:
        names = ", ".join(map(str, strange))
        yield Problem(Message("{names} does not exist ({count} devices)", names=names, count=len(there)))
    if name == RT_VISIBLE and limits.ascending and list(numbers) != sorted(numbers):
        yield Problem(Message("not in ascending order, the only one CANN supports"))


def _group_problems(nodes: Sequence[int]) -> Iterator[Problem]:
    if len(nodes) not in (1, 2, 4, 8):
        text = f"{len(nodes)} devices; HCCL on 910A works with 1, 2, 4 or 8"
        yield Problem(Bilingual(text, f"共 {len(nodes)} 个设备；910A 上 HCCL 只支持 1、2、4、8 个"), "910A")
    elif len(nodes) in (2, 4) and len({node // 4 for node in nodes}) > 1:
        yield Problem(Message("on 910A they must lie all in 0-3 or all in 4-7"), "910A")


def _size(name: str, variables: Mapping[str, str], source: str, limits: Limits, seen: int) -> Optional[Reading]:
    """The reading of a number of ranks; None where it says nothing about this server."""
    value = variables[name]
    evidence = Evidence(source, f"{name}={value}")
    if not value.isdecimal() or not 0 < len(value) < 6:
        return Reading(name, None, evidence, reason=Message("{value!r} is not a number", value=value))
    count = int(value)
    if name == LOCAL_SIZE:
        text = Message("{count} processes for {seen} devices", count=count, seen=seen)
        problems = [Problem(text)] if count > seen else []
        return _reading(name, value, evidence, problems or list(_group_problems(range(count))), limits)
    if limits.model != "910A" or LOCAL_SIZE in variables or count > seen:
        return None  # counts the ranks of all servers; how many run here is not told by it
    if count not in (1, 2, 4, 8):
        reason = Message(
            "{count} ranks work on 910A only when they are spread over several servers, which this host cannot tell",
            count=count,
        )
        return Reading(name, None, evidence, reason=reason)
    return _reading(name, value, evidence, [], limits)


def _reading(name: str, value: str, evidence: Evidence, problems: Sequence[Problem], limits: Limits) -> Reading:
    wrong = [p for p in problems if not p.only or p.only == limits.model]
    open_ = [p for p in problems if p.only and limits.model is None]
    if open_ and not wrong:
        why = Message("the NPU model is not known: {text}", text=open_[0].text)
        return Reading(name, None, evidence, reason=why)
    shown = Bilingual("; ".join([value, *(p.text.en for p in wrong)]), "；".join([value, *(p.text.zh for p in wrong)]))
    count = len(limits.nodes)
    wanted = Message("existing devices ({count} here), each once", count=count)
    return Reading(name, tuple(p.text.en for p in wrong), evidence, shown, wanted)


def _option(context: Context, variables: Mapping[str, str]) -> Optional[tuple[str, str]]:
    """(value, source) of `--device-list` in the named process or script, variables of the job filled in."""
    options = context.target.options
    value, source = None, ""
    if options.pid is not None:
        source = f"/proc/{options.pid}/cmdline"
        argv = next((p.argv for p in context.host.processes() if p.pid == options.pid), ())
        value = _argument(argv)
    elif options.script is not None:
        source = posixpath.join(context.host.cwd, options.script)
        try:
            lines = context.host.read(source).splitlines()
        except HostError:
            return None  # the checks of the environment say that the script cannot be read
        hits = [m for line in lines if not line.lstrip().startswith("#") for m in _IN_SCRIPT.findall(line)]
        value = hits[-1].strip("\"'") if hits else None
    if value is None:
        return None
    return _VARIABLE.sub(lambda m: variables.get(m[1] or m[2], m[0]), value), source


def _argument(argv: Sequence[str]) -> Optional[str]:
    for number, word in enumerate(argv):
        name, mark, value = word.partition("=")
        if name in (OPTION, "--device_list"):
            return value if mark else (argv[number + 1] if number + 1 < len(argv) else None)
    return None
