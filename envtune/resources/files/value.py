"""A value as a file or a command shows it: a text that compares as what it looks like.

An expectation may give a number or true and false where a file has text: `eq: 1`, `eq: "1"` and `in: [1, 2]` all hold
for the text `1`, `ge: 65536` for `131072` and for `unlimited`. A text that is no number meets no bound.
"""

from __future__ import annotations

import math
from typing import Optional

from envtune import expect
from envtune.errors import HostError, host_error_text
from envtune.messages import Message, Text
from envtune.model import Evidence, Reading

MISSING = "missing"  # the value of what is not there
UNLIMITED = "unlimited"


class Value(str):
    """A text that equals a number or truth value that reads the same, and compares as the number it is."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, expect.value_text(other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    def __float__(self) -> float:
        if str.__eq__(self, UNLIMITED):
            return math.inf
        try:
            return float(str(self))
        except ValueError:
            return math.nan


def reading(subject: str, value: str, source: str, text: str = "", shown: Optional[Text] = None) -> Reading:
    """Return what was read about one subject."""
    return Reading(subject, Value(value), Evidence(source, text or value), shown)


def missing(subject: str, source: str) -> Reading:
    """Return that the subject is not there."""
    return Reading(subject, Value(MISSING), Evidence(source), Message("missing"))


def unreadable(subject: str, error: HostError) -> Reading:
    """Return that the subject could not be read, and why."""
    return Reading(subject, None, Evidence(error.path, str(error)), reason=host_error_text(error))
