"""The closed list of matchers an expectation may use. No expressions, no shell.

An expectation is a mapping with one matcher per key; all of them must hold (`{ge: 1, le: 7}`). Over several readings
`all:` (the default) wants every one to match, `any:` at least one, `same: true` that they do not differ.
"""

from __future__ import annotations

import re
from typing import Any, Callable, Mapping, Sequence

from envtune.messages import Bilingual, Literal, Message, Text
from envtune.model import Reading

Matcher = Callable[[Any, Any], bool]


def _number(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError(f"{value!r} is not a number")
    return float(value)


MATCHERS: Mapping[str, Matcher] = {
    "eq": lambda value, want: bool(value == want),
    "ne": lambda value, want: bool(value != want),
    "in": lambda value, want: value in want,
    "not_in": lambda value, want: value not in want,
    "lt": lambda value, want: _number(value) < _number(want),
    "le": lambda value, want: _number(value) <= _number(want),
    "gt": lambda value, want: _number(value) > _number(want),
    "ge": lambda value, want: _number(value) >= _number(want),
    "contains": lambda value, want: want in value,
    "matches": lambda value, want: re.fullmatch(want, str(value)) is not None,
    "empty": lambda value, want: (not value) is want,
}
QUANTIFIERS = ("all", "any", "same")

_WORDS: Mapping[str, tuple[str, str]] = {
    "eq": ("{}", "{}"),
    "ne": ("anything but {}", "不是 {}"),
    "in": ("one of {}", "{} 之一"),
    "not_in": ("none of {}", "不是 {} 中的任何一个"),
    "lt": ("less than {}", "小于 {}"),
    "le": ("at most {}", "不大于 {}"),
    "gt": ("more than {}", "大于 {}"),
    "ge": ("at least {}", "不小于 {}"),
    "contains": ("contains {}", "包含 {}"),
    "matches": ("matches {}", "匹配 {}"),
}


def value_text(value: Any) -> str:
    """How a value is shown to a person."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple, set, frozenset)):
        return ", ".join(value_text(v) for v in value)
    return str(value)


def describe(expect: Mapping[str, Any]) -> Text:
    """The expectation in words."""
    parts = [_describe_one(key, want) for key, want in expect.items()]
    return Bilingual("; ".join(p.en for p in parts), "；".join(p.zh for p in parts))


def _describe_one(key: str, want: Any) -> Text:
    if key == "all":
        return describe(want)
    if key == "any":
        inner = describe(want)
        return Message("at least one: {inner}", inner=inner)
    if key == "same":
        return Message("the same everywhere")
    if key == "empty":
        return Message("none") if want else Message("at least one")
    en, zh = _WORDS[key]
    return Bilingual(en.format(value_text(want)), zh.format(value_text(want)))


def matches(expect: Mapping[str, Any], value: Any) -> bool:
    """Whether one value meets every matcher; raises TypeError or ValueError when it cannot be compared at all."""
    return all(MATCHERS[key](value, want) for key, want in expect.items())


def misses(expect: Mapping[str, Any], readings: Sequence[Reading]) -> tuple[Reading, ...]:
    """The readings that do not meet the expectation; empty when it holds."""
    if "same" in expect:
        return () if len({value_text(r.value) for r in readings}) <= 1 else tuple(readings)
    if "any" in expect:
        return () if any(matches(expect["any"], r.value) for r in readings) else tuple(readings)
    inner = expect.get("all", expect)
    return tuple(r for r in readings if not matches(inner, r.value))


def expected_value(reading: Reading, expect: Mapping[str, Any]) -> Text:
    """What to show as expected for one reading."""
    return reading.expected or describe(expect)


def actual_value(reading: Reading) -> Text:
    """What to show as found for one reading."""
    return reading.shown or Literal(value_text(reading.value))
