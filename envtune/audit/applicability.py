"""Whether a check applies to this host, by its facts."""

from __future__ import annotations

from typing import Any, Mapping, Optional

from envtune.context import Facts
from envtune.messages import Literal, Message, Text
from envtune.model import Fact


def excluded(applies: Mapping[str, Any], facts: Facts) -> tuple[Optional[Fact], Optional[Text], bool]:
    """The first fact that keeps a check from applying: (fact, reason, told).

    (None, None, True) when the check applies; `told` is False when a fact it needs could not be told.
    """
    for name, wanted in applies.items():
        fact = facts[name]
        if fact.value is None:
            why = fact.reason or Literal("-")
            return fact, Message("cannot tell {name}: {why}", name=name, why=why), False
        if not _meets(wanted, fact.value):
            words = _wanted_text(wanted)
            return (
                fact,
                Message("{name} is {value}; this check is for {words}", name=name, value=fact.value, words=words),
                True,
            )
    return None, None, True


def _meets(wanted: Any, value: str) -> bool:
    if isinstance(wanted, Mapping):
        return not _meets(wanted["not"], value)
    if isinstance(wanted, (list, tuple)):
        return any(_meets(one, value) for one in wanted)
    return _scalar(wanted) == value


def _scalar(wanted: Any) -> str:
    return str(wanted).lower() if isinstance(wanted, bool) else str(wanted)


def _wanted_text(wanted: Any) -> Text:
    if isinstance(wanted, Mapping):
        inner = _wanted_text(wanted["not"])
        return Message("anything but {inner}", inner=inner)
    if isinstance(wanted, (list, tuple)):
        return Literal(" | ".join(_scalar(one) for one in wanted))
    return Literal(_scalar(wanted))
