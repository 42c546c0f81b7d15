"""The variables that a job should get on this host, for training or for debugging: only differences from what it gets.

The values come from envtune/data/variables.json (`train`, `profile_debug`), for the job's versions: what its torch_npu
does not read is not required. Sources: porting guide 003:1302-1305, 2714-2750, 2945-2952; the table's own.
"""

from __future__ import annotations

from typing import Callable, Iterable, Iterator, Mapping, NamedTuple, Optional, Sequence, Union

from envtune.context import Context
from envtune.errors import HostError, NotApplicable, Undetermined
from envtune.messages import Bilingual, Literal, Message, Text
from envtune.ranges import checked_int
from envtune.resources.environment.conflicts import HCCL_DEFAULT_EXEC, RULES
from envtune.resources.environment.reference import (
    NO_TORCH_NPU,
    TorchNpu,
    about,
    names,
    only_torch_npu,
    read_everywhere,
    reads,
    torch_npu_of,
)
from envtune.resources.environment.training_values import (
    QUEUE,
    UNSET,
    TrainingValue,
    known_names,
    training_value,
)
from envtune.resources.environment.value_formats import judge
from envtune.resources.environment.variables import WHITELIST, printable, task_queue, value_of, whitelist
from envtune.resources.network.names import job_nodes, master_addr


class Setting(NamedTuple):
    """One variable as it should be; `value` is None if it should not be set.

    `checks` are the ids of the failing checks that it is known to fix (filled in by simulate.py). `prefixes` are
    directories to prepend to a search path (`value` is then the resulting path here). `script` is a shell script that
    sets it and more, with `name` empty. `needs_consent`: the user is asked about it separately. `other_install`: it
    removes entries of another CANN from a search path. `unless` are variables with an entry each: if all contain
    theirs, the script has already been sourced. `tidied` are the search paths whose empty entries are removed
    afterwards.
    """

    name: str
    value: Optional[str]
    reason: Text
    checks: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    script: str = ""
    needs_consent: bool = False
    other_install: bool = False
    unless: tuple[tuple[str, str], ...] = ()
    tidied: tuple[str, ...] = ()


class Unchanged(NamedTuple):
    """A variable that is left alone although it differs from the profile."""

    name: str
    value: str
    reason: Text


class Advice(NamedTuple):
    """What to set, in order, and what is left alone.

    `unknown_environment` says why the job's variables are unknown, `unchecked` what of the host could not be read.
    """

    settings: tuple[Setting, ...]
    unchanged: tuple[Unchanged, ...] = ()
    unknown_environment: Optional[Text] = None
    unchecked: tuple[Text, ...] = ()


def train(context: Context) -> Advice:
    """Return the variables a training job should get."""
    unknown_environment = _unknown_environment(context)
    settings: dict[str, Setting] = {}
    unchanged: list[Unchanged] = []
    rows: list[Union[Setting, Unchanged, None]] = [_for_training(context, name) for name in known_names(context)]
    if unknown_environment is None:
        rows.append(_master(context))
    for row in rows:
        _add(row, settings, unchanged)
    if unknown_environment is None:
        for row in _conflicts(context, settings):
            _add(row, settings, unchanged)
    return Advice(tuple(settings.values()), tuple(unchanged), unknown_environment)


def _add(row: Union[Setting, Unchanged, None], settings: dict[str, Setting], unchanged: list[Unchanged]) -> None:
    if isinstance(row, Unchanged):
        unchanged.append(row)
    elif row is not None:
        settings[row.name] = row


def _unknown_environment(context: Context) -> Optional[Text]:
    environment = context.target.environment
    return environment.reason if environment.variables is None else None


def _master(context: Context) -> Optional[Setting]:
    """Return MASTER_ADDR of a job on one node: an address of this host. With several nodes the master is unknown here.

    Source: porting guide 003:3427.
    """
    try:
        wrong = any(reading.value == "wrong" for reading in master_addr(context))
        if not wrong or job_nodes(context.target.variables()).size != 1:
            return None
        interfaces = [row for row in context.host.interfaces() if row.up and row.name != "lo"]
    except (HostError, NotApplicable, Undetermined):
        return None
    addresses = (address for row in interfaces for address in row.addresses if ":" not in address)
    reason = Message("a job on one node: an address of this host")
    return Setting("MASTER_ADDR", next(addresses, "127.0.0.1"), reason)


def _for_training(context: Context, name: str) -> Union[Setting, Unchanged, None]:
    value = _current(context, name)
    read = is_read(context, name)
    if read is False:
        return _obsolete(context, name) if value not in (UNSET, None) else None
    if name == QUEUE:
        return _queue(context, value) if read is not None else None
    if name == WHITELIST:
        return _whitelist(context, value)
    wanted = training_value(context, name)
    if wanted is not None and (value is None or not wanted.accepts(value)):
        if read is None or (only_torch_npu(name) and value is None and not read_everywhere(name)):
            return None
        return _as_wanted(wanted, value)
    if value not in (UNSET, None) and about(name).get("form") and wanted is None:
        return _out_of_range(context, name, str(value))
    return None


def _current(context: Context, name: str) -> Optional[str]:
    """Return the value, `unset`, or None if unknown."""
    try:
        return value_of(context, name)
    except Undetermined:
        return None


def is_read(context: Context, name: str) -> Optional[bool]:
    """Return whether anything in the job reads the variable; None if that depends on an unknown version."""
    if not only_torch_npu(name):
        return True
    release = torch_npu_of(context)
    if not isinstance(release, TorchNpu):
        return True if read_everywhere(name) and release is not NO_TORCH_NPU else None
    return True if read_everywhere(name) else reads(release, name)


def _as_wanted(wanted: TrainingValue, current: Optional[str]) -> Union[Setting, Unchanged]:
    preferred = wanted.preferred
    if preferred is None:
        reason = Message("its check expects {expected}; no known value meets this", expected=wanted.text)
        return Unchanged(wanted.name, current or UNSET, reason)
    value = None if preferred == UNSET else preferred
    return Setting(wanted.name, value, _reason(current, about(wanted.name).get("debug", ())))


def _reason(current: Optional[str], debug: Sequence[str]) -> Text:
    if current is None:
        return Message("the value for training; the job's value is unknown")
    if current == UNSET:
        return Message("unset; training needs it")
    if current in debug or "*" in debug:
        return Message("{now} is for debugging and slows every step", now=printable(current))
    return Message("{now} is not the value for training", now=printable(current))


def _queue(context: Context, value: Optional[str]) -> Union[Setting, Unchanged, None]:
    wanted = training_value(context, QUEUE)
    try:
        (reading,) = task_queue(context)
    except NotApplicable:
        return None
    except Undetermined:
        reading = None  # unset, and the release decides: mention it
    if wanted is None or (reading is not None and (reading.reason is not None or wanted.accepts(str(reading.value)))):
        return None
    return _as_wanted(wanted, value)


def _whitelist(context: Context, value: Optional[str]) -> Union[Setting, Unchanged, None]:
    """Leave 0 with a whitelist alone, as it is deliberate; ask about 0 without one, which admits no node."""
    try:
        (reading,) = whitelist(context)
    except Undetermined:
        return None  # unknown: never disable a whitelist blindly
    if reading.value == "off":
        return None
    shown = reading.shown or Literal("0")
    if reading.value == "listed" or reading.reason is not None:
        return Unchanged(WHITELIST, str(value), Message("left unchanged: {words}", words=reading.reason or shown))
    if value == "0":
        reason = Message(
            "{shown}: every node is rejected; if you need the whitelist, set HCCL_WHITELIST_FILE to its file instead",
            shown=shown,
        )
        return Setting(WHITELIST, "1", reason, needs_consent=True)
    return Setting(WHITELIST, "1", _reason(value, ()))


def _obsolete(context: Context, name: str) -> Setting:
    release = torch_npu_of(context)
    words = release.words if isinstance(release, TorchNpu) else "torch_npu"
    return Setting(name, None, Message("{words} does not read it", words=words))


def _out_of_range(context: Context, name: str, value: str) -> Optional[Setting]:
    form = about(name)["form"]
    npu = context.facts.value("npu") if "by" in form else None
    judgement = judge(form, value, npu, dict(context.target.environment.variables or {}))
    if judgement.good is not False:
        return None
    reason: Text = Message("{value} is not {expected}", value=printable(value), expected=judgement.wanted)
    default = about(name).get("default")
    if default:
        reason = Message("{reason}; the default is {default}", reason=reason, default=default)
    return Setting(name, None, reason)


# ---------------------------------------------------------------------- pairs


def _conflicts(context: Context, settings: Mapping[str, Setting]) -> Iterator[Union[Setting, Unchanged]]:
    """Yield a setting that resolves each conflicting pair; if only a person can choose, what is left alone."""
    known = dict(context.target.environment.variables or {})
    for name, setting in settings.items():
        known.pop(name, None)
        if setting.value is not None:
            known[name] = setting.value
    for pair, rule, wanted in RULES:
        try:
            conflict = rule(context, known) if any(name in known for name in pair) else None
        except Undetermined:
            continue
        if conflict is None or not conflict.found:
            continue
        reason = Message("{words}; expected: {wanted}", words=conflict.words, wanted=wanted)
        resolve = _RESOLUTIONS.get(pair)
        if resolve is None:
            yield Unchanged(pair[-1], known[pair[-1]], reason)
            continue
        for name, value in resolve(known):
            yield Setting(name, value, reason)


def _later_event(known: Mapping[str, str]) -> Iterator[tuple[str, Optional[str]]]:
    """Yield a wait that exceeds HCCL_EXEC_TIMEOUT by as much as the defaults do (1868 and 1836 s); 0 if endless."""
    runs = checked_int(known.get("HCCL_EXEC_TIMEOUT", str(HCCL_DEFAULT_EXEC)))
    yield "HCCL_EVENT_TIMEOUT", str(runs + 1868 - HCCL_DEFAULT_EXEC) if runs else "0"


_Resolution = Callable[[Mapping[str, str]], Iterable[tuple[str, Optional[str]]]]
_RESOLUTIONS: Mapping[tuple[str, ...], _Resolution] = {
    ("HCCL_EVENT_TIMEOUT", "HCCL_EXEC_TIMEOUT"): _later_event,
    ("HCCL_INTRA_PCIE_ENABLE", "HCCL_INTRA_ROCE_ENABLE"): lambda known: [
        (name, None) for name in ("HCCL_INTRA_PCIE_ENABLE", "HCCL_INTRA_ROCE_ENABLE") if name in known
    ],
    ("PER_STREAM_QUEUE", "TASK_QUEUE_ENABLE"): lambda known: [("TASK_QUEUE_ENABLE", "1")],
}


# ---------------------------------------------------------------------- debugging


def debug(context: Context) -> Advice:
    """Return the variables for a run that shows where and why it fails."""
    settings: list[Setting] = []
    for name in names():
        value = about(name).get("profile_debug")
        if value and is_read(context, name) and _current(context, name) != value:
            settings.append(Setting(name, value, Bilingual(*about(name)["debug_words"])))
    return Advice(tuple(settings), (), _unknown_environment(context))
