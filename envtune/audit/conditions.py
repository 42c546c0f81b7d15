"""What a check requires of a host, and what a host is, in words: `container: false` is "this is not a container".

The names and values of facts are those of the catalog; people read them in reports and in `envtune explain`.
"""

from __future__ import annotations

from typing import Any, Iterator, Mapping, Sequence

from envtune.audit.subjects import fact_text
from envtune.messages import Literal, Message, Text, alternatives, in_context

# How a host with this value of a fact is described.
_STATES: Mapping[tuple[str, str], Text] = {
    ("ascend", "false"): Message("this host has no Ascend NPU, driver or CANN"),
    ("ascend", "true"): Message("this host has an Ascend NPU, driver or CANN"),
    ("ascend", "unread"): Message("about the job's host, which was not read"),
    ("ascend_job", "false"): Message("no job for NPUs, and no Ascend component on this host"),
    ("ascend_job", "true"): Message("a job for NPUs, or an Ascend component on this host"),
    ("cann", "none"): Message("CANN is not installed"),
    ("cann_generation", "none"): Message("CANN is not installed"),
    ("container", "false"): Message("this is not a container"),
    ("container", "true"): Message("this is a container"),
    ("driver", "none"): Message("the NPU driver is not installed"),
    ("firmware", "none"): Message("the NPU firmware is not installed"),
    ("npu", "none"): Message("this host has no Ascend NPU"),
    ("python", "none"): Message("no Python was found"),
    ("torch", "none"): Message("torch is not installed"),
    ("torch_npu", "none"): Message("torch_npu is not installed"),
    ("user", "root"): Message("run as root"),
    ("user", "user"): Message("not run as root"),
    ("vm", "false"): Message("this is not a virtual machine"),
    ("vm", "true"): Message("this is a virtual machine"),
}
# How a host is described if the value is not `none`.
_PRESENT: Mapping[str, Text] = {
    "cann": Message("CANN is installed"),
    "cann_generation": Message("CANN is installed"),
    "driver": Message("the NPU driver is installed"),
    "firmware": Message("the NPU firmware is installed"),
    "npu": Message("this host has an Ascend NPU"),
    "python": Message("a Python was found"),
    "torch": Message("torch is installed"),
    "torch_npu": Message("torch_npu is installed"),
}
# Values that are envtune's own names; the layouts are those of resources/cann/installs.py.
_VALUES: Mapping[tuple[str, str], Text] = {
    ("cann_generation", "fwkacllib"): Message("20.x to 5.0.2"),
    ("cann_generation", "arch-linux"): Message("5.0.4 to 8.3"),
    ("cann_generation", "cann"): Message("8.5 or newer"),
}


def condition_texts(conditions: Mapping[str, Any]) -> Iterator[Text]:
    """Yield what a host must be for all the conditions to hold, each once."""
    yield from dict.fromkeys(condition_text(name, required) for name, required in conditions.items())


def condition_text(name: str, required: Any) -> Text:
    """Return what a host must be for one condition to hold."""
    if not isinstance(required, Mapping):
        values = _several(required)
        state = _STATES.get((name, scalar(values[0]))) if len(values) == 1 else None
        return state or Message("{fact}: {values}", fact=fact_text(name), values=_values(name, values))
    excluded = [value for value in _several(required["not"]) if scalar(value) != "none"]
    present = _PRESENT.get(name) if len(excluded) < len(_several(required["not"])) else None
    if not excluded and present is not None:
        return present
    without = in_context("applies", "anything except {value}", value=_values(name, excluded or ["none"]))
    if present is None:
        return Message("{fact}: {values}", fact=fact_text(name), values=without)
    return Message("{fact}: {values}", fact=present, values=without)


def excluded_text(name: str, value: str, required: Any) -> Text:
    """Return why a host with this value of a fact is not one that a condition is about."""
    state = _STATES.get((name, value))
    if state is not None:
        return state
    wanted = required["not"] if isinstance(required, Mapping) else required
    words = _values(name, _several(wanted))
    if isinstance(required, Mapping):
        words = in_context("applies", "anything except {value}", value=words)
    return Message(
        "{fact}: {value}; the check is for {required}",
        fact=fact_text(name),
        value=_VALUES.get((name, value), Literal(value)),
        required=words,
    )


def scalar(required: Any) -> str:
    """Return a value from the catalog in the form facts use."""
    return str(required).lower() if isinstance(required, bool) else str(required)


def _several(values: Any) -> Sequence[Any]:
    return values if isinstance(values, (list, tuple)) else (values,)


def _values(name: str, values: Sequence[Any]) -> Text:
    return alternatives(_VALUES.get((name, scalar(value)), Literal(scalar(value))) for value in values)
