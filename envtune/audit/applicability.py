"""Whether a check applies to this host, by its facts."""

from __future__ import annotations

from typing import Any, Mapping, Optional

from envtune.audit.subjects import fact_text
from envtune.context import Facts
from envtune.messages import Literal, Message, Text, alternatives, in_context
from envtune.model import Fact

# A fact with a value that most checks exclude, in words.
_EXCLUDED: Mapping[tuple[str, str], Text] = {
    ("ascend", "false"): Message("this host has no Ascend NPU, driver or CANN"),
    ("ascend", "unread"): Message("about the job's host, which was not read"),
    ("ascend_job", "false"): Message("no job for NPUs, and no Ascend component on this host"),
    ("cann_generation", "none"): Message("CANN is not installed"),
    ("container", "true"): Message("this is a container"),
    ("driver", "none"): Message("the NPU driver is not installed"),
    ("npu", "none"): Message("this host has no Ascend NPU"),
    ("python", "none"): Message("no Python was found"),
    ("torch", "none"): Message("torch is not installed"),
    ("vm", "true"): Message("this is a virtual machine"),
}


def excluded(applies: Mapping[str, Any], facts: Facts) -> tuple[Optional[Fact], Optional[Text], bool]:
    """Return the first fact that keeps a check from applying: (fact, reason, known).

    (None, None, True) when the check applies; `known` is False when a fact it needs is unknown.
    """
    for name, required in applies.items():
        fact = facts[name]
        if fact.value is None:
            reason = fact.reason or Literal("-")
            return fact, Message("{name} unknown: {reason}", name=fact_text(fact.name), reason=reason), False
        if not _meets(required, fact.value):
            reason = _EXCLUDED.get((name, fact.value)) or Message(
                "{name} is {value}; this check applies to {required}",
                name=fact.name,
                value=fact.value,
                required=_required_text(required),
            )
            return fact, reason, True
    return None, None, True


def surely_excluded(applies: Mapping[str, Any], facts: Facts) -> bool:
    """Return whether a fact that was read before keeps a check from applying, so that nothing has to be read."""
    for name, required in applies.items():
        fact = facts.known(name)
        if fact is None or fact.value is None:
            return False
        if not _meets(required, fact.value):
            return True
    return False


def _meets(required: Any, value: str) -> bool:
    if isinstance(required, Mapping):
        return not _meets(required["not"], value)
    if isinstance(required, (list, tuple)):
        return any(_meets(option, value) for option in required)
    return _scalar(required) == value


def _scalar(required: Any) -> str:
    return str(required).lower() if isinstance(required, bool) else str(required)


def _required_text(required: Any) -> Text:
    if isinstance(required, Mapping):
        return in_context("applies", "anything except {value}", value=_required_text(required["not"]))
    if isinstance(required, (list, tuple)):
        return alternatives(_scalar(option) for option in required)
    return Literal(_scalar(required))
