"""The closed list of matchers an expectation may use. No expressions, no shell.

An expectation is a mapping with one matcher per key; all of them must hold (`{ge: 1, le: 7}`). For several readings
`all:` (the default) requires every one to match, `any:` at least one, `same: true` that they do not differ.

A threshold or expected value is in the expectation and nowhere else, so that a site changes it in one place: a probe
may decide how such a value is worded (with its unit, for example), never the value itself (docs/adr/0013).
"""

from __future__ import annotations

import re
from typing import Any, Callable, Mapping, Optional, Sequence

from envtune.messages import N_, Literal, Message, Text, alternatives, clauses
from envtune.model import Expectation, Reading

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

_TEMPLATES: Mapping[str, str] = {
    "ne": N_("anything except {value}"),
    "not_in": N_("none of {value}"),
    "lt": N_("less than {value}"),
    "le": N_("at most {value}"),
    "gt": N_("more than {value}"),
    "ge": N_("at least {value}"),
    "contains": N_("{value} among them"),
}


def value_text(value: Any) -> str:
    """Return a value as shown to people."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple, set, frozenset)):
        return ", ".join(value_text(v) for v in value)
    return str(value)


def describe(expect: Expectation, show: Callable[[Any], str] = value_text) -> Text:
    """Return the expectation in words; `show` formats its values, with their unit for example."""
    return clauses(_describe_one(key, operand, show) for key, operand in expect.items())


def _describe_one(key: str, operand: Any, show: Callable[[Any], str]) -> Text:
    if key == "all":
        return describe(operand, show)
    if key == "any":
        return Message("at least one: {inner}", inner=describe(operand, show))
    if key == "same":
        return Message("the same everywhere")
    if key == "in":
        return alternatives(show(value) for value in operand)
    if key == "matches":
        return _pattern_text(str(operand))
    if key == "empty":
        return Message("none") if operand else Message("at least one")
    return Message(_TEMPLATES[key], value=show(operand)) if key in _TEMPLATES else Literal(show(operand))


def _pattern_text(pattern: str) -> Text:
    """Return a regular expression in words: one for a version and what follows it is that version."""
    version = re.sub(r"\(\\\.\.\*\)\?$", "", pattern).replace("\\.", ".")
    return Literal(version) if re.fullmatch(r"[\w.-]+", version) else Message("a value like {value}", value=pattern)


def in_unit(unit: str) -> Callable[[Any], str]:
    """Return the function that formats a value of an expectation with its unit; without a unit, unchanged."""
    return (lambda value: value_text(value) + (unit if unit == "%" else f" {unit}")) if unit else value_text


def matchers(expect: Expectation) -> Expectation:
    """Return the matchers applied to one value: those inside `all` or `any`, none for `same`."""
    return {} if "same" in expect else expect.get("all", expect.get("any", expect))


def only(expect: Expectation, matcher: str) -> Any:
    """Return the argument of `matcher` if that is the expectation's only matcher, else None."""
    inner = matchers(expect)
    return inner.get(matcher) if len(inner) == 1 else None


def matches(expect: Expectation, value: Any) -> bool:
    """Return whether one value meets every matcher; raises TypeError or ValueError if it cannot be compared at all."""
    return all(MATCHERS[key](value, operand) for key, operand in expect.items())


def misses(expect: Expectation, readings: Sequence[Reading]) -> tuple[Reading, ...]:
    """Return the readings that do not meet the expectation; empty if it holds."""
    if "same" in expect:
        return () if len({value_text(r.value) for r in readings}) <= 1 else tuple(readings)
    if "any" in expect:
        return () if any(matches(expect["any"], r.value) for r in readings) else tuple(readings)
    inner = expect.get("all", expect)
    return tuple(r for r in readings if not matches(inner, r.value))


def expected_value(reading: Reading, expect: Expectation, stated: Optional[Text] = None) -> Text:
    """Return what to show as expected for one reading; `stated` is the check's own wording, if any."""
    words = reading.expected(expect) if callable(reading.expected) else reading.expected
    return words or stated or describe(expect)


def actual_value(reading: Reading) -> Text:
    """Return what to show as found for one reading."""
    return reading.shown or Literal(value_text(reading.value))
