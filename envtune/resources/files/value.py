"""A value from a file or a command: a text that compares according to its content.

An expectation may use a number or a boolean for the text in a file: `eq: 1`, `eq: "1"` and `in: [1, 2]` all hold for
the text `1`, `ge: 65536` for `131072` and for `unlimited`. A text that is not a number meets no bound.
"""

from __future__ import annotations

import math
from typing import Optional

from envtune import expect
from envtune.errors import HostError, host_error_text
from envtune.messages import Message, Text
from envtune.model import Evidence, Reading

MISSING = "missing"  # the value of what does not exist
UNLIMITED = "unlimited"


class Value(str):
    """A text that equals the number or boolean with the same spelling, and is ordered like the number."""

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
    """Return a reading that says the subject does not exist."""
    return Reading(subject, Value(MISSING), Evidence(source), Message("missing"))


def unreadable(subject: str, error: HostError) -> Reading:
    """Return a reading that says why the subject could not be read."""
    return Reading(subject, None, Evidence(error.path, str(error)), reason=host_error_text(error))
