"""The variables that a job should get on this host, for training or for debugging: only what differs from what it gets.

The values come from envtune/data/variables.json (`train`, `profile_debug`), for the job's versions: what its torch_npu
does not read is not asked for. Sources: porting guide 003:1302-1305, 2714-2750, 2945-2952; the table's own.
"""

from __future__ import annotations

from typing import Callable, Iterable, Iterator, Mapping, NamedTuple, Optional, Union

from envtune.context import Context
from envtune.errors import HostError, NotApplicable, Undetermined
from envtune.messages import Bilingual, Literal, Message, Text
from envtune.resources.environment.conflicts import HCCL_DEFAULT_EXEC, RULES
from envtune.resources.environment.reference import (
    TorchNpu,
    about,
    names,
    only_torch_npu,
    read_everywhere,
    reads,
    torch_npu_of,
)
from envtune.resources.environment.value_formats import judge
from envtune.resources.environment.variables import UNSET, printable, task_queue, value_of, whitelist
from envtune.resources.network.names import job_nodes, master_addr

WHITELIST = "HCCL_WHITELIST_DISABLE"
QUEUE = "TASK_QUEUE_ENABLE"
# variable -> the check about it alone
CHECKS: Mapping[str, str] = {
    QUEUE: "ENV001",
    "ASCEND_SLOG_PRINT_TO_STDOUT": "ENV002",
    "ASCEND_GLOBAL_LOG_LEVEL": "ENV003",
    "DUMP_GE_GRAPH": "ENV004",
    "DUMP_GRAPH_LEVEL": "ENV005",
    "ASCEND_GLOBAL_EVENT_ENABLE": "ENV006",
    "PTCOPY_ENABLE": "ENV007",
    "COMBINED_ENABLE": "ENV008",
    "DYNAMIC_OP": "ENV009",
    WHITELIST: "ENV010",
    "ACL_DUMP_DATA": "ENV013",
    "ASCEND_LAUNCH_BLOCKING": "ENV101",
    "PROFILING_MODE": "PROC003",
}


class Setting(NamedTuple):
    """One variable as it should be; `value` is None where it should not be set.

    `prefixes` are directories to put before what a search path holds (`value` is then the whole path as it would be
    here). `script` is a shell script that sets it and more, with `name` empty. `grave`: it needs consent of its own.
    """

    name: str
    value: Optional[str]
    reason: Text
    checks: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    script: str = ""
    grave: bool = False


class Left(NamedTuple):
    """A variable that is not touched though it is not as the profile says."""

    name: str
    value: str
    reason: Text


class Advice(NamedTuple):
    """What to set, in order, and what is left. `blind` says why the job's variables are not known."""

    settings: tuple[Setting, ...]
    left: tuple[Left, ...]
    blind: Optional[Text] = None


def train(context: Context) -> Advice:
    """The variables a training job should get."""
    blind = context.target.environment.reason if context.target.environment.variables is None else None
    settings: dict[str, Setting] = {}
    left: list[Left] = []
    for name in names():
        setting = _for_training(context, name)
        if isinstance(setting, Left):
            left.append(setting)
        elif setting is not None:
            settings[name] = setting
    if blind is None:
        master = _master(context)
        if master is not None:
            settings[master.name] = master
        for found in _conflicts(context, settings):
            if isinstance(found, Left):
                left.append(found)
            else:
                settings[found.name] = found
    return Advice(tuple(settings.values()), tuple(left), blind)


def _master(context: Context) -> Optional[Setting]:
    """MASTER_ADDR of a job on one node: an address of this host. Which node is the master of several is not told here.

    Source: porting guide 003:3427.
    """
    try:
        wrong = any(reading.value == "wrong" for reading in master_addr(context))
        if not wrong or job_nodes(context.target.variables()).size != 1:
            return None
        own = [a for one in context.host.interfaces() if one.up and one.name != "lo" for a in one.addresses]
    except (HostError, NotApplicable, Undetermined):
        return None
    address = next((a for a in own if ":" not in a), "127.0.0.1")
    words = Message("a job on one node: an address of this host")
    return Setting("MASTER_ADDR", address, words, ("NET001",))


def _for_training(context: Context, name: str) -> Union[Setting, Left, None]:
    value = _now(context, name)
    read = is_read(context, name)
    if read is False:
        return _obsolete(context, name, value) if value not in (UNSET, None) else None
    if name == QUEUE:
        return _queue(context, value) if read is not None else None
    if name == WHITELIST:
        return _whitelist(context, value)
    wanted = about(name).get("train")
    if wanted and (value is None or value not in wanted):
        if read is None or (only_torch_npu(name) and value is None and not read_everywhere(name)):
            return None
        return _setting(name, _preferred(wanted), value)
    if value not in (UNSET, None) and about(name).get("form"):
        return _out_of_range(context, name, str(value))
    return None


def _now(context: Context, name: str) -> Optional[str]:
    """The value, `unset`, or None when it cannot be told."""
    try:
        return value_of(context, name)
    except Undetermined:
        return None


def is_read(context: Context, name: str) -> Optional[bool]:
    """Whether anything of the job reads the variable; None when that depends on a version that is not known."""
    if not only_torch_npu(name):
        return True
    found = torch_npu_of(context)
    if not isinstance(found, TorchNpu):
        return True if read_everywhere(name) and context.facts.value("torch_npu") != "none" else None
    return True if read_everywhere(name) else reads(found, name)


def _preferred(wanted: list[str]) -> Optional[str]:
    """A value where training accepts one: a form that cannot unset can still say that."""
    return next((value for value in wanted if value != UNSET), None)


def _setting(name: str, value: Optional[str], now: Optional[str], grave: bool = False) -> Setting:
    debug = about(name).get("debug", ())
    checks = [CHECKS[name]] if name in CHECKS else []
    if debug:
        checks.append("ENV015")
    return Setting(name, value, _reason(now, debug), tuple(checks), grave=grave)


def _reason(now: Optional[str], debug: list[str]) -> Text:
    if now is None:
        return Message("what training wants; the job's value is not known")
    if now == UNSET:
        return Message("unset; training wants it")
    if now in debug or "*" in debug:
        return Message("{now} is for debugging and slows every step", now=printable(now))
    return Message("{now} is not what training wants", now=printable(now))


def _queue(context: Context, value: Optional[str]) -> Optional[Setting]:
    try:
        (reading,) = task_queue(context)
    except NotApplicable:
        return None
    except Undetermined:
        reading = None  # unset, and the release decides: say it
    if reading is not None and (reading.reason is not None or reading.value in (1, 2)):
        return None
    return _setting(QUEUE, "1", value)


def _whitelist(context: Context, value: Optional[str]) -> Union[Setting, Left, None]:
    """0 with a whitelist is somebody's decision. 0 without one lets nobody in, and is still asked about."""
    try:
        (reading,) = whitelist(context)
    except Undetermined:
        return None  # not known: never switch a whitelist off blindly
    if reading.value == "off":
        return None
    if reading.value == "listed" or reading.reason is not None:
        words = reading.reason or reading.shown or Literal("0")
        return Left(WHITELIST, str(value), Message("left as it is: {words}", words=words))
    if value == "0":
        shown = reading.shown or Literal("0")
        reason = Message(
            "{shown}: no node is let in; if the whitelist is wanted, name its file in HCCL_WHITELIST_FILE instead",
            shown=shown,
        )
        return Setting(WHITELIST, "1", reason, ("ENV010",), grave=True)
    return _setting(WHITELIST, "1", value)


def _obsolete(context: Context, name: str, value: Optional[str]) -> Setting:
    found = torch_npu_of(context)
    words = found.words if isinstance(found, TorchNpu) else "torch_npu"
    checks = ["ENV102", *([CHECKS[name]] if name in CHECKS else [])]
    if value is not None and about(name).get("debug"):
        checks.append("ENV015")
    if about(name).get("form"):
        checks.append("ENV103")
    return Setting(name, None, Message("{words} does not read it", words=words), tuple(checks))


def _out_of_range(context: Context, name: str, value: str) -> Optional[Setting]:
    form = about(name)["form"]
    npu = context.facts.value("npu") if "by" in form else None
    found = judge(form, value, npu, dict(context.target.environment.variables or {}))
    if found.good is not False:
        return None
    default = about(name).get("default")
    more = (f"; the default is {default}", f"；默认值为 {default}") if default else ("", "")
    en = f"{printable(value)} is not {found.wanted.en}{more[0]}"
    return Setting(name, None, Bilingual(en, f"{printable(value)} 不符合：{found.wanted.zh}{more[1]}"), ("ENV103",))


# ---------------------------------------------------------------------- pairs


def _conflicts(context: Context, settings: Mapping[str, Setting]) -> Iterator[Union[Setting, Left]]:
    """For every pair that contradicts itself a setting that ends it; where only a person can choose, what is left."""
    known = dict(context.target.environment.variables or {})
    for name, setting in settings.items():
        known.pop(name, None)
        if setting.value is not None:
            known[name] = setting.value
    for pair, rule, wanted in RULES:
        try:
            answer = rule(context, known) if any(name in known for name in pair) else None
        except Undetermined:
            continue
        if answer is None or not answer.conflict:
            continue
        words = Message("{words}; wanted: {wanted}", words=answer.words, wanted=wanted)
        cure = _CURES.get(pair)
        if cure is None:
            yield Left(pair[-1], known[pair[-1]], words)
            continue
        for name, value in cure(known):
            yield Setting(name, value, words, ("ENV104",))


def _later_event(known: Mapping[str, str]) -> Iterator[tuple[str, Optional[str]]]:
    """As much behind HCCL_EXEC_TIMEOUT as the defaults are apart (1868 and 1836 s); 0 where that waits for ever."""
    runs = int(known.get("HCCL_EXEC_TIMEOUT", HCCL_DEFAULT_EXEC))
    yield "HCCL_EVENT_TIMEOUT", str(runs + 1868 - HCCL_DEFAULT_EXEC) if runs else "0"


_Cure = Callable[[Mapping[str, str]], Iterable[tuple[str, Optional[str]]]]
_CURES: Mapping[tuple[str, ...], _Cure] = {
    ("HCCL_EVENT_TIMEOUT", "HCCL_EXEC_TIMEOUT"): _later_event,
    ("HCCL_INTRA_PCIE_ENABLE", "HCCL_INTRA_ROCE_ENABLE"): lambda known: [
        (name, None) for name in ("HCCL_INTRA_PCIE_ENABLE", "HCCL_INTRA_ROCE_ENABLE") if name in known
    ],
    ("PER_STREAM_QUEUE", "TASK_QUEUE_ENABLE"): lambda known: [("TASK_QUEUE_ENABLE", "1")],
}


# ---------------------------------------------------------------------- debugging


def debug(context: Context) -> Advice:
    """The variables of a run that is to show where and why it fails."""
    blind = context.target.environment.reason if context.target.environment.variables is None else None
    found: list[Setting] = []
    for name in names():
        wanted = about(name).get("profile_debug")
        if not wanted or not is_read(context, name):
            continue
        now = _now(context, name)
        if now != wanted:
            said = Bilingual(*about(name)["debug_words"])
            found.append(Setting(name, wanted, said))
    return Advice(tuple(found), (), blind)
