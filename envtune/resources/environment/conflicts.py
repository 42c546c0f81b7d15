"""Variables of the job that contradict each other. One rule per pair, applied only when one of the two is set."""

from __future__ import annotations

from typing import Callable, Iterable, Mapping, NamedTuple, Optional

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import NotApplicable, Undetermined
from envtune.messages import Message, Text, in_context
from envtune.model import Evidence, Reading
from envtune.ranges import checked_int
from envtune.resources.environment.reference import TASK_QUEUE_ON, TorchNpu, behaves, release_at_least, torch_npu_of
from envtune.resources.environment.value_formats import alloc_options

HCCL_DEFAULT_EXEC = 1836  # s; AIV 1091


class Conflict(NamedTuple):
    """The result of a rule for its pair. `found` is None if unknown; then `words` say why."""

    found: Optional[bool]
    words: Text


Rule = Callable[[Context, Mapping[str, str]], Optional[Conflict]]


@probe("environment.conflicts", formerly="variable_conflicts.pairs")
def pairs(context: Context) -> Iterable[Reading]:
    """Whether two related variables of the job contradict each other, for each pair of which one is set."""
    variables, environment = context.target.variables(), context.target.environment
    readings: list[Reading] = []
    for names, rule, wanted in RULES:
        subject = " / ".join(names)
        try:
            if not any(name in variables for name in names):
                continue
            conflict = rule(context, variables)
        except Undetermined as verdict:
            readings.append(Reading(subject, None, Evidence(verdict.source), expected=wanted, reason=verdict.reason))
            continue
        if conflict is None:
            continue
        first = next(name for name in names if name in variables)
        text = ", ".join(f"{name}={variables[name]}" for name in names if name in variables)
        evidence = Evidence(environment.place(first), text)
        if conflict.found is None:
            readings.append(Reading(subject, None, evidence, expected=wanted, reason=conflict.words))
        else:
            readings.append(Reading(subject, conflict.found, evidence, conflict.words, wanted))
    if not readings:
        raise NotApplicable(
            Message("none of the variables that can contradict each other is set"),
            environment.description,
        )
    return readings


def _pcie_and_roce(context: Context, variables: Mapping[str, str]) -> Optional[Conflict]:
    """Find illegal pairs: both 1, PCIE 0 alone, ROCE 0 alone. Source: hicann/hccl docs/zh/user_guide/hccl_env."""
    pcie, roce = variables.get("HCCL_INTRA_PCIE_ENABLE"), variables.get("HCCL_INTRA_ROCE_ENABLE")
    illegal = (pcie, roce) in (("1", "1"), ("0", None), (None, "0"))
    unset = Message("unset")
    shown = Message("PCIE {pcie}, ROCE {roce}", pcie=pcie or unset, roce=roce or unset)
    return Conflict(illegal, shown)


def _whitelist(context: Context, variables: Mapping[str, str]) -> Optional[Conflict]:
    """Find a whitelist that is enabled without its file. Source: hicann/hccl docs/zh/user_guide/hccl_env."""
    if variables.get("HCCL_WHITELIST_DISABLE") != "0":
        return None
    path = variables.get("HCCL_WHITELIST_FILE", "")
    if path:
        return Conflict(False, Message("HCCL_WHITELIST_DISABLE 0 with {path}", path=path))
    shown = Message("HCCL_WHITELIST_DISABLE 0, HCCL_WHITELIST_FILE unset")
    return Conflict(True, shown)


def _stream_queue(context: Context, variables: Mapping[str, str]) -> Optional[Conflict]:
    """Find PER_STREAM_QUEUE=1 without a task queue. Source: Ascend/pytorch docs/zh/api/environment_variable."""
    if variables.get("PER_STREAM_QUEUE") != "1":
        return None
    queue = variables.get("TASK_QUEUE_ENABLE")
    if queue is None:
        found = torch_npu_of(context)
        on = behaves(found, TASK_QUEUE_ON) if isinstance(found, TorchNpu) else None
        if on is None:
            why = Message(
                "TASK_QUEUE_ENABLE is unset, and its default depends on the torch_npu release, which is unknown"
            )
            return Conflict(None, why)
        queue = "1" if on else "0"
    shown = Message("PER_STREAM_QUEUE 1, TASK_QUEUE_ENABLE {queue}", queue=queue)
    return Conflict(queue == "0", shown)


def _event_and_exec(context: Context, variables: Mapping[str, str]) -> Optional[Conflict]:
    """Find a set HCCL_EVENT_TIMEOUT that does not exceed HCCL_EXEC_TIMEOUT; 0 waits forever.

    Source: Ascend/pytorch docs/zh/environment_variable_reference/HCCL_EVENT_TIMEOUT.md.
    """
    event, execution = variables.get("HCCL_EVENT_TIMEOUT"), variables.get("HCCL_EXEC_TIMEOUT")
    if event is None or not event.isdecimal() or not (execution or "0").isdecimal():
        return None
    default = 1091 if variables.get("HCCL_OP_EXPANSION_MODE") == "AIV" else HCCL_DEFAULT_EXEC
    waits, runs = checked_int(event), default if execution is None else checked_int(execution)
    conflict = waits != 0 and (runs == 0 or waits <= runs)
    shown = Message("HCCL_EVENT_TIMEOUT {event} s, HCCL_EXEC_TIMEOUT {execution} s", event=waits, execution=runs)
    return Conflict(conflict, shown if execution is not None else Message("{value} (the default)", value=shown))


def _two_allocators(context: Context, variables: Mapping[str, str]) -> Optional[Conflict]:
    """Find both set if both are read, which is an error (from 26.2.0 with torch 2.10 on).

    Source: Ascend/pytorch docs/zh/environment_variable_reference/PYTORCH_ALLOC_CONF.md.
    """
    if "PYTORCH_ALLOC_CONF" not in variables or "PYTORCH_NPU_ALLOC_CONF" not in variables:
        return None
    shown = Message("both set")
    found = torch_npu_of(context)
    both_read = release_at_least(found, "26.2.0", "2.10.0") if isinstance(found, TorchNpu) else None
    if both_read is None:
        why = Message("both are set; it is unknown whether this torch_npu reads both (from 26.2.0 on)")
        return Conflict(None, why)
    return Conflict(both_read, shown)


def _allocator_options(context: Context, variables: Mapping[str, str]) -> Optional[Conflict]:
    """Find options that exclude each other.

    Source: Ascend/pytorch docs/zh/environment_variable_reference/PYTORCH_NPU_ALLOC_CONF.md.
    """
    options = alloc_options(variables["PYTORCH_NPU_ALLOC_CONF"]) or {}
    on = {key for key, value in options.items() if value != "False"}
    clashes = [
        (one, other)
        for one, other in (
            ("expandable_segments", "max_split_size_mb"),
            ("expandable_segments", "garbage_collection_threshold"),
            ("pinned_mem_register", "pin_memory_expandable_segments"),
        )
        if {one, other} <= on
    ]
    if not clashes:
        return Conflict(False, in_context("conflicts", "compatible options"))
    one, other = clashes[0]
    return Conflict(True, Message("{one} together with {other}", one=one, other=other))


RULES: tuple[tuple[tuple[str, ...], Rule, Text], ...] = (
    (
        ("HCCL_INTRA_PCIE_ENABLE", "HCCL_INTRA_ROCE_ENABLE"),
        _pcie_and_roce,
        Message("one of them 1 and the other 0 or unset, or both 0"),
    ),
    (
        ("HCCL_WHITELIST_DISABLE", "HCCL_WHITELIST_FILE"),
        _whitelist,
        Message("HCCL_WHITELIST_FILE with HCCL_WHITELIST_DISABLE 0"),
    ),
    (
        ("PER_STREAM_QUEUE", "TASK_QUEUE_ENABLE"),
        _stream_queue,
        Message("TASK_QUEUE_ENABLE 1 or 2 with PER_STREAM_QUEUE 1"),
    ),
    (
        ("HCCL_EVENT_TIMEOUT", "HCCL_EXEC_TIMEOUT"),
        _event_and_exec,
        Message("HCCL_EVENT_TIMEOUT above HCCL_EXEC_TIMEOUT, or 0"),
    ),
    (("PYTORCH_ALLOC_CONF", "PYTORCH_NPU_ALLOC_CONF"), _two_allocators, Message("only one of them")),
    (("PYTORCH_NPU_ALLOC_CONF",), _allocator_options, Message("compatible options")),
)
