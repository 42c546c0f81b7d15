"""Whether a check applies to this host, by its facts."""

from __future__ import annotations

from typing import Any, Mapping, Optional

from envtune.context import Facts
from envtune.messages import Literal, Message, Text, in_context
from envtune.model import Fact


def excluded(applies: Mapping[str, Any], facts: Facts) -> tuple[Optional[Fact], Optional[Text], bool]:
    """Return the first fact that keeps a check from applying: (fact, reason, known).

    (None, None, True) when the check applies; `known` is False when a fact it needs is unknown.
    """
    for name, required in applies.items():
        fact = facts[name]
        if fact.value is None:
            reason = fact.reason or Literal("-")
            return fact, Message("cannot tell {name}: {reason}", name=fact.name, reason=reason), False
        if not _meets(required, fact.value):
            reason = Message(
                "{name} is {value}; this check is for {required}",
                name=fact.name,
                value=fact.value,
                required=_required_text(required),
            )
            return fact, reason, True
    return None, None, True


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
        return in_context("applies", "anything but {value}", value=_required_text(required["not"]))
    if isinstance(required, (list, tuple)):
        return Literal(" | ".join(_scalar(option) for option in required))
    return Literal(_scalar(required))
