"""What the members of a plan may contain: predicates on plain data."""

import base64
import json
import os
import re
from typing import Any, Callable, Dict, Optional

from .common import Record
from .problems import Problem

Validator = Callable[[Any], bool]


def is_path(value: Any) -> bool:
    """Return whether the value is an absolute path in its normal form, and not the root."""
    return (
        isinstance(value, str)
        and value.startswith("/")
        and not value.startswith("//")
        and "\0" not in value
        and value == os.path.normpath(value)
        and value != "/"
    )


def is_relative_path(value: Any) -> bool:
    """Return whether the value is a plain relative path that stays below its directory."""
    return isinstance(value, str) and not value.startswith("/") and is_path("/" + value) and value != "."


def is_text(value: Any) -> bool:
    """Return whether the value is text that can be an argument of a command."""
    return isinstance(value, str) and "\0" not in value


def is_argv(value: Any) -> bool:
    """Return whether the value is a command with its arguments."""
    return isinstance(value, list) and bool(value) and all(is_text(word) for word in value) and bool(value[0])


def is_seconds(value: Any) -> bool:
    """Return whether the value is a duration."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e6


def is_count(value: Any) -> bool:
    """Return whether the value is a whole number that is not negative."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def is_mode(value: Any) -> bool:
    """Return whether the value is the permissions of a file."""
    return is_count(value) and value <= 0o7777


def is_pid(value: Any) -> bool:
    """Return whether the value is a process id other than 1."""
    return is_count(value) and value > 1


def is_flag(value: Any) -> bool:
    """Return whether the value is true or false."""
    return isinstance(value, bool)


def is_content(value: Any) -> bool:
    """Return whether the value is base64, or None."""
    if value is None:
        return True
    try:
        return isinstance(value, str) and base64.b64decode(value, validate=True) is not None
    except ValueError:
        return False


def is_environment(value: Any) -> bool:
    """Return whether the value is a mapping of names to texts."""
    return isinstance(value, dict) and all(is_text(k) and k and "=" not in k and is_text(v) for k, v in value.items())


def is_pattern(value: Any) -> bool:
    """Return whether the value is a regular expression."""
    try:
        return is_text(value) and re.compile(value) is not None
    except re.error:
        return False


def is_list_of(item: Validator) -> Validator:
    """Return a validator for lists of such items."""
    return lambda value: isinstance(value, list) and all(item(element) for element in value)


class Members:
    """The members that a mapping must have and those that it may have; itself a validator."""

    def __init__(self, required: Dict[str, Validator], optional: Optional[Dict[str, Validator]] = None) -> None:
        self.required = required
        self.optional = optional or {}

    def __call__(self, value: Any) -> bool:
        """Return whether the value is a mapping with these members."""
        return isinstance(value, dict) and self.fault(value) is None

    def fault(self, mapping: Record) -> Optional[Problem]:
        """Return which member is wrong and why; None if all are right."""
        for name in self.required:
            if name not in mapping:
                return Problem("at-member", member=name, fault=Problem("missing"))
        for name, value in mapping.items():
            validator = self.required.get(name) or self.optional.get(name)
            if validator is None:
                return Problem("at-member", member=name, fault=Problem("unknown-member"))
            if not validator(value):
                shown = json.dumps(value, default=repr)[:120]
                return Problem("at-member", member=name, fault=Problem("value-not-allowed", value=shown))
        return None
