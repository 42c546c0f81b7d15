"""Whether a check applies to this host, by its facts."""

from __future__ import annotations

from typing import Any, Mapping, Optional

from envtune.audit.conditions import excluded_text, scalar
from envtune.audit.subjects import fact_text
from envtune.context import Facts
from envtune.messages import Literal, Message, Text
from envtune.model import Fact


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
            return fact, excluded_text(name, fact.value, required), True
    return None, None, True


def surely_excluded(applies: Mapping[str, Any], facts: Facts) -> bool:
    """Return whether a fact that has already been read keeps a check from applying, so that nothing has to be read."""
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
    return scalar(required) == value
