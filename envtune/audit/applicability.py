"""Whether a check applies to this host, by its facts."""

from __future__ import annotations

from typing import Any, Mapping, Optional

from envtune.context import Facts
from envtune.model import Fact, Text, same


def excluded(applies: Mapping[str, Any], facts: Facts) -> tuple[Optional[Fact], Optional[Text], bool]:
    """The first fact that keeps a check from applying: (fact, reason, told).

    (None, None, True) when the check applies; `told` is False when a fact it needs could not be told.
    """
    for name, wanted in applies.items():
        fact = facts[name]
        if fact.value is None:
            why = fact.reason or same("-")
            return fact, Text(f"cannot tell {name}: {why.en}", f"无法判断 {name}：{why.zh}"), False
        if not _meets(wanted, fact.value):
            words = _wanted_text(wanted)
            return (
                fact,
                Text(
                    f"{name} is {fact.value}; this check is for {words.en}",
                    f"{name} 为 {fact.value}；本检查适用于 {words.zh}",
                ),
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
        return Text(f"anything but {inner.en}", f"{inner.zh} 以外的值")
    if isinstance(wanted, (list, tuple)):
        return same(" | ".join(_scalar(one) for one in wanted))
    return same(_scalar(wanted))
