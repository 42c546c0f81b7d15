"""The environment variables of the training job compared with what training expects (envtune/data/variables.json).

The environment is the job's: a process's, a launch script's, an env file's, or this shell's (job_environment.py).
Source of the profile: porting guide 003:2714-2750; what each torch_npu reads comes from the table, which overrides it.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Iterable, Mapping, Optional, Union

from envtune import expect
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, NotApplicable, Undetermined, host_error_text
from envtune.host.json import parse_json
from envtune.messages import N_, Literal, Message, Text, enumerated
from envtune.model import Command, Evidence, Expectation, Reading, Wording
from envtune.resources.environment.reference import (
    NO_TORCH_NPU,
    TASK_QUEUE_2,
    TASK_QUEUE_ON,
    TorchNpu,
    about,
    behaves,
    is_advised,
    names,
    only_torch_npu,
    read_everywhere,
    reads,
    torch_npu_of,
)
from envtune.resources.environment.training_values import QUEUE, UNSET, train_expectation, training_value, value_words
from envtune.resources.environment.value_formats import judge
from envtune.resources.npu.devices import runs_elsewhere

WHITELIST = "HCCL_WHITELIST_DISABLE"


@probe("environment.variable")
def variable(context: Context, *, name: Annotated[str, N_("Name of the variable.")]) -> Iterable[Reading]:
    """Value of a variable of the job, or `unset`."""
    return [reading_of(context, name)]


@probe("environment.torch_npu_variable")
def torch_npu_variable(context: Context, *, name: Annotated[str, N_("Name of the variable.")]) -> Iterable[Reading]:
    """Value of a variable, or `unset`; not applicable if the job's torch_npu does not read it.

    If it has the value that training expects, the torch_npu version does not matter.
    """
    found = torch_npu_of(context)
    if found is NO_TORCH_NPU:
        raise NotApplicable(NO_TORCH_NPU, context.facts["torch_npu"].source)
    if not read_everywhere(name):
        known = reads(found, name) if isinstance(found, TorchNpu) else None
        if known is None and not _as_wanted(context, name):
            reason = _unplaced(found, name) if isinstance(found, TorchNpu) else found
            raise Undetermined(reason, context.facts["torch_npu"].source)
        if isinstance(found, TorchNpu) and known is False:
            raise NotApplicable(
                Message("{words} does not read {name} (obsolete)", words=found.words, name=name),
                found.source,
                found.words,
            )
    if training_value(context, name) is None:
        _refuse_optional(context, found, name)
    return [reading_of(context, name)]


def _refuse_optional(context: Context, found: Union[TorchNpu, Text], name: str) -> None:
    """Raise NotApplicable where the table's profile is not meant for this torch_npu, Undetermined where nobody knows.

    A value as the table wants it is right for every torch_npu.
    """
    profile = train_expectation(name)
    if profile is None or expect.matches(profile, value_of(context, name)):
        return
    if isinstance(found, TorchNpu) and is_advised(found, name) is False:
        reason = Message("{name} is optional for {words} (off by default)", name=name, words=found.words)
        raise NotApplicable(reason, found.source, found.words)
    unplaced = _unplaced(found, name) if isinstance(found, TorchNpu) else found
    raise Undetermined(unplaced, context.facts["torch_npu"].source)


def _as_wanted(context: Context, name: str) -> bool:
    wanted = training_value(context, name)
    return wanted is not None and wanted.accepts(value_of(context, name))


@probe("environment.task_queue")
def task_queue(context: Context) -> Iterable[Reading]:
    """Effective level of the operator task queue: 0, 1 or 2; -1 for an invalid value.

    Sources: porting guide 003:2714-2716; Ascend/pytorch by branch (unset is 0 on the 1.5 and 1.8 lines, 1 from
    v1.11.0-5.0.0 on; level 2 from v2.1.0-6.0.0 on).
    """
    value = value_of(context, QUEUE)
    release = torch_npu_of(context)
    if value in ("0", "1"):
        return [_queue_reading(context, value, int(value))]
    if value == "2":
        return [_second_level(context, release)]
    if value != UNSET:
        return [_queue_reading(context, value, -1)]
    if release is NO_TORCH_NPU:
        raise NotApplicable(NO_TORCH_NPU, context.facts["torch_npu"].source)
    on = behaves(release, TASK_QUEUE_ON) if isinstance(release, TorchNpu) else None
    if on is None:
        why = release if isinstance(release, Text) else Message("{words} is between two", words=release.words)
        raise Undetermined(
            Message("unset: whether the queue is on by default depends on the torch_npu release ({why})", why=why),
            context.target.environment.place(QUEUE),
        )
    assert isinstance(release, TorchNpu)
    if on:
        shown = Message("unset (on by default in {words})", words=release.words)
        return [_queue_reading(context, value, 1, shown)]
    shown = Message("unset (off by default in {words})", words=release.words)
    return [_queue_reading(context, value, 0, shown)]


def _second_level(context: Context, release: Any) -> Reading:
    known = behaves(release, TASK_QUEUE_2) if isinstance(release, TorchNpu) else None
    if known:
        shown = Message("2 ({words} supports this level)", words=release.words)
        return _queue_reading(context, "2", 2, shown, _levels(1, 2))
    if known is None:
        why = Message("unknown whether this torch_npu supports level 2 (supported from v2.1.0-6.0.0 on)")
        return Reading(QUEUE, 2, _evidence(context, QUEUE, "2"), Literal("2"), reason=why)
    return _queue_reading(context, "2", -1, None, _levels(1, unknown=release))


def _levels(*levels: int, unknown: Optional[TorchNpu] = None) -> Wording:
    """Express an expectation of the level if it accepts just these: `1 or 2`; `unknown` does not know level 2."""

    def words(expectation: Expectation) -> Optional[Text]:
        accepted = [level for level in levels if expect.matches(expect.matchers(expectation), level)]
        if len(accepted) < len(levels):
            return None
        if unknown is not None:
            return Message("1 ({words} does not support level 2)", words=unknown.words)
        return Message("1 or 2") if len(levels) == 2 else Literal(str(levels[0]))

    return words


def _queue_reading(
    context: Context, value: str, level: int, shown: Optional[Text] = None, expected: Optional[Wording] = None
) -> Reading:
    return Reading(QUEUE, level, _evidence(context, QUEUE, value), shown or value_text(value), expected or _levels(1))


@probe("environment.whitelist")
def whitelist(context: Context) -> Iterable[Reading]:
    """HCCL whitelist check: `off`, `listed` (on, with a whitelist), `unlisted` (on, without one), or an invalid value.

    Sources: porting guide 003:2748-2750; hicann/hccl (0 needs HCCL_WHITELIST_FILE, a JSON file with host_ip).
    """
    value = value_of(context, WHITELIST)
    if value != "0":
        state = "off" if value in ("1", UNSET) else value
        return [Reading(WHITELIST, state, _evidence(context, WHITELIST, value), value_text(value), _whitelist_words)]
    path = value_of(context, "HCCL_WHITELIST_FILE")
    if path == UNSET or not path:
        shown = Message("0, and HCCL_WHITELIST_FILE is not set")
        return [Reading(WHITELIST, "unlisted", _evidence(context, WHITELIST, value), shown, _whitelist_words)]
    return [_listed(context, path)]


def _whitelist_words(expectation: Expectation) -> Optional[Text]:
    """Express an expectation of the whitelist: the values of the variable that lead to the listed states."""
    states = {
        "off": Message("1 or unset"),
        "listed": Message("0 with a whitelist file"),
        "unlisted": Message("0 without a whitelist file"),
    }
    listed = expect.only(expectation, "in") or [expect.only(expectation, "eq")]
    if listed == ["off", "listed"]:
        return Message("1 or unset, or 0 with a whitelist file")
    return enumerated(states[state] for state in listed) if {*listed} <= {*states} else None


def _listed(context: Context, path: str) -> Reading:
    from envtune.errors import Missing, Unreadable

    def reading(state: Optional[str], shown: Text, reason: Optional[Text] = None) -> Reading:
        return Reading(WHITELIST, state, Evidence(path), shown, _whitelist_words, reason)

    try:
        loaded = parse_json(context.host.read(path))
        listed = loaded.get("host_ip") if isinstance(loaded, Mapping) else None
        hosts = listed if isinstance(listed, list) else None
    except (Missing, Unreadable) as error:
        return reading("unlisted", Message("0, and {why}", why=host_error_text(error)))
    except HostError as error:
        return reading(None, Literal("0"), host_error_text(error))
    except ValueError:
        hosts = None
    if not hosts:
        return reading("unlisted", Message("0, and {path} lists no host_ip", path=path))
    return reading("listed", Message("0, on purpose: number of hosts in {path}: {count}", path=path, count=len(hosts)))


@probe("environment.debug_settings")
def debug_settings(context: Context) -> Iterable[Reading]:
    """Whether each variable with a debugging value has that value.

    Source: porting guide 003:1304-1305, 2716-2734.
    """
    for name in names():
        debugging = about(name).get("debug")
        if not debugging:
            continue
        try:
            value = value_of(context, name)
        except Undetermined as verdict:
            yield _unknown(name, verdict)
            continue
        wanted = training_value(context, name)
        debugs = value in debugging or ("*" in debugging and value != UNSET)
        left_on = debugs and not (wanted is not None and wanted.accepts(value))
        expected = None if wanted is None else wanted.text
        preferred = UNSET if wanted is None else wanted.preferred
        line = f"unset {name}" if preferred == UNSET else f"export {name}={preferred}"
        repair = () if preferred is None else (Command("fix", line),)
        yield Reading(name, left_on, _evidence(context, name, value), value_text(value), expected, commands=repair)


@probe("environment.launch_blocking")
def launch_blocking(context: Context) -> Iterable[Reading]:
    """Whether ASCEND_LAUNCH_BLOCKING disables the operator task queue.

    Source: Ascend/pytorch docs/zh/environment_variable_reference/TASK_QUEUE_ENABLE.md.
    """
    blocking = value_of(context, "ASCEND_LAUNCH_BLOCKING")
    queue = value_of(context, "TASK_QUEUE_ENABLE")
    wanted = Message("ASCEND_LAUNCH_BLOCKING 0 or unset")
    shown = Message("{queue}, with ASCEND_LAUNCH_BLOCKING {blocking}", queue=queue, blocking=blocking)
    evidence = _evidence(context, "ASCEND_LAUNCH_BLOCKING", blocking)
    if blocking in (UNSET, "0") or queue == "0":
        return [Reading("TASK_QUEUE_ENABLE", False, evidence, shown, wanted)]
    found = torch_npu_of(context)
    if found is NO_TORCH_NPU:
        raise NotApplicable(NO_TORCH_NPU, context.facts["torch_npu"].source)
    if isinstance(found, Text):
        raise Undetermined(found, context.facts["torch_npu"].source)
    known = reads(found, "ASCEND_LAUNCH_BLOCKING")
    if known is None:
        raise Undetermined(_unplaced(found, "ASCEND_LAUNCH_BLOCKING"), found.source)
    return [Reading("TASK_QUEUE_ENABLE", known, evidence, shown, wanted)]


@probe("environment.obsolete")
def obsolete(context: Context) -> Iterable[Reading]:
    """Whether torch_npu still reads each variable that is set for it: `read` or `obsolete`."""
    chosen = [name for name in names() if only_torch_npu(name)]
    present, gaps = set_variables(context, chosen)
    if not present and not gaps:
        raise NotApplicable(
            Message("no variable that only torch_npu reads is set"),
            context.target.environment.description,
        )
    found = torch_npu_of(context)
    if found is NO_TORCH_NPU:
        raise NotApplicable(NO_TORCH_NPU, context.facts["torch_npu"].source)
    if isinstance(found, Text):
        raise Undetermined(found, context.facts["torch_npu"].source)
    wanted = Message("a variable that {words} reads", words=found.words)
    for name, value in present.items():
        known, evidence = reads(found, name), _evidence(context, name, value)
        shown = Message("{name}={value}", name=name, value=printable(value))
        if known is None:
            yield Reading(name, None, evidence, shown, wanted, _unplaced(found, name))
        else:
            yield Reading(name, "read" if known else "obsolete", evidence, shown, wanted)
    yield from gaps


@probe("environment.ranges")
def ranges(context: Context) -> Iterable[Reading]:
    """Whether the value of each variable of the job is within its documented range."""
    chosen = [name for name in names() if about(name).get("form")]
    present, gaps = set_variables(context, chosen)
    if not present and not gaps:
        raise NotApplicable(
            Message("no variable with a documented range is set"),
            context.target.environment.description,
        )
    npu = context.facts.value("npu") if any("by" in about(name)["form"] for name in present) else None
    npu = None if runs_elsewhere(context) else npu
    for name, value in present.items():
        found = judge(about(name)["form"], value, npu, present)
        yield Reading(name, found.good, _evidence(context, name, value), value_text(value), found.wanted, found.why)
    yield from gaps


def set_variables(context: Context, chosen: Iterable[str]) -> tuple[dict[str, str], list[Reading]]:
    """Return the chosen variables that are set, and a reading for each unknown one (one for all without a name)."""
    known, environment = context.target.variables(), context.target.environment
    present: dict[str, str] = {}
    gaps: list[Reading] = []
    for name in chosen:
        try:
            if name in known:
                present[name] = known[name]
        except Undetermined as verdict:
            if name in environment.unknown:
                gaps.append(_unknown(name, verdict))
    if environment.unknown_by_default is not None:
        evidence = Evidence(environment.description)
        gaps.append(Reading("other variables", None, evidence, reason=environment.unknown_by_default))
    return present, gaps


def reading_of(context: Context, name: str) -> Reading:
    """Return the variable as a reading."""
    value = value_of(context, name)
    return Reading(name, value, _evidence(context, name, value), value_text(value), partial(value_words, name))


def value_of(context: Context, name: str) -> str:
    """Return the value, `unset` if not set; raises Undetermined if unknown."""
    return context.target.variables().get(name, UNSET)


def value_text(value: str) -> Text:
    """Return a value for display."""
    if value == UNSET:
        return Message("unset")
    return Literal(printable(value)) if value else Message("empty")


def printable(value: str) -> str:
    """Return the value with control characters spelled out, such as a carriage return, which is invisible otherwise."""
    text = value if value.isprintable() else repr(value)
    return text if len(text) <= 200 else text[:200] + " [...]"


def _evidence(context: Context, name: str, value: str) -> Evidence:
    text = f"{name} is not set" if value == UNSET else f"{name}={value}"
    return Evidence(context.target.environment.place(name), text)


def _unknown(name: str, verdict: Undetermined) -> Reading:
    return Reading(name, None, Evidence(verdict.source), reason=verdict.reason, needs_privilege=verdict.needs_privilege)


def _unplaced(found: TorchNpu, name: str) -> Text:
    return Message(
        "unknown whether {words} reads {name}: the branches scanned before and after it differ",
        words=found.words,
        name=name,
    )
