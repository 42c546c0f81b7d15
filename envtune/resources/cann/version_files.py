"""Parse version files of Ascend packages: pure functions, tolerant of the variations in real files.

Keys differ in case between releases (`Version=` and `version=`), lines end in CR LF on some hosts, values may be
quoted, and both `Name : value` and `name=value` occur. Sources of the formats: public samples of driver, firmware and
CANN version files (driver 22.0.3 to 26.0, CANN 6.0 to 9.1); ranges as the driver's own DCMI code reads them.
"""

from __future__ import annotations

import re
from typing import Mapping, Optional

from envtune.collector.sources.cann import key_values
from envtune.ranges import checked_int
from envtune.records import expression

Version = tuple[tuple[int, int, str], ...]

_BRACKETS = expression(r"\[([^\[\]]*)\]")
_PRODUCT = expression(r"V(\d{1,4})R(\d{1,4})C(\d{1,4})(?!\d)", re.IGNORECASE)
_TAGS = expression(r"[._-]?(rc|post|dev|alpha|beta)[._-]?(?=\d)")
_CFG_LINE = expression(r"(\w+?)_(running|upgrade|installed)_version$")


def version_cfg(text: str) -> dict[str, tuple[str, str]]:
    """Return {package: (internal number, CANN version)} of the running versions; either may be empty.

    A value is `[7.6.0.1.220:8.0.0]`, or `[8.5.2]` if only the CANN version is given.
    """
    running: dict[str, tuple[str, str]] = {}
    for key, value in key_values(text).items():
        name, groups = _CFG_LINE.match(key), _BRACKETS.findall(value)
        if name is None or name[2] != "running" or not groups:
            continue
        internal, mark, cann = groups[0].partition(":")
        if not mark:
            internal, cann = "", internal
        running[name[1]] = (internal.strip(), re.sub(r"(?i)^CANN-", "", cann.strip()))
    return running


def bracket_groups(text: str) -> tuple[tuple[str, ...], ...]:
    """Return `[7.0.0,7.1.99],[8.0,8.0.]` as groups of names; raises ValueError if a bracket is not closed.

    Without brackets everything is one group.
    """
    if text.count("[") != text.count("]") or _BRACKETS.sub("", text).strip(" ,"):
        if "[" in text or "]" in text:
            raise ValueError(f"brackets do not close: {text}")
        contents = [text]
    else:
        contents = _BRACKETS.findall(text)
    groups = (tuple(part.strip() for part in content.split(",") if part.strip()) for content in contents)
    return tuple(group for group in groups if group)


def version_parts(text: str) -> Version:
    """Return `24.1.rc2` as comparable parts, a release candidate before the release; ValueError for anything else."""
    parts = []
    for part in text.strip().lower().rstrip(".").split("."):
        match = re.fullmatch(r"([a-z]*)(\d*)", part)
        if match is None or not part:
            raise ValueError(f"not a version: {text}")
        parts.append((0 if match[1] else 1, checked_int(match[2] or "0"), match[1]))
    return tuple(parts)


def in_ranges(version: str, ranges: str) -> bool:
    """Return whether `version` is in one of the ranges `[low,high],...`; raises ValueError if either is invalid.

    The bound is compared over its own length, so `[7.0.0,7.1.99]` contains 7.1.0.11.220 and `[24.1,24.1.]` every
    24.1.x.
    """
    parts = version_parts(version)
    groups = bracket_groups(ranges)
    if not groups:
        raise ValueError("the list is empty")
    for group in groups:
        low, high = version_parts(group[0]), version_parts(group[-1])
        if low <= parts[: max(len(low), len(high))] and parts[: len(high)] <= high:
            return True
    return False


def product_number(text: str) -> Optional[tuple[int, int, int]]:
    """Return `V100R001C22SPC001B231` as (100, 1, 22); None if the text does not begin with such a number."""
    match = _PRODUCT.match(text.strip())
    return None if match is None else (checked_int(match[1]), checked_int(match[2]), checked_int(match[3]))


def lists_product(inner: tuple[int, int, int], listed: str) -> bool:
    """Return whether a `compatible_version` list names the product number; raises ValueError if it names none.

    C numbers do not grow with time (26.0.rc1 is C10), so only membership counts; a bracket with two numbers is a range
    that the vendor states (`[V100R001C77,V100R001C79]`).
    """
    known = False
    for group in bracket_groups(listed):
        numbers = [n for n in map(product_number, group) if n is not None]
        known = known or bool(numbers)
        if inner in numbers or (len(numbers) == 2 and "[" in listed and numbers[0] <= inner <= numbers[1]):
            return True
    if not known:
        raise ValueError(f"no product number in the list: {listed}")
    return False


def canonical(version: str) -> str:
    """Return a version for comparison: lower case, without local part, `1.8.1.rc1` and `1.8.1rc1` the same."""
    plain = version.strip().lower().partition("+")[0]
    return _TAGS.sub(r"\1", re.sub(r"^(cann-|v(?=\d))", "", plain))


def same_version(first: str, second: str) -> bool:
    """Return whether two spellings name one version."""
    return canonical(first) == canonical(second)


def same_release(version: str, row: str) -> bool:
    """Return whether a version matches a table entry: one spelling of it, or any patch level of `9.1.X`."""
    line, mark, rest = canonical(row).partition(".x")
    if not mark or rest or same_version(version, row):
        return same_version(version, row)
    return re.fullmatch(re.escape(line) + r"(\.\d+)+", canonical(version)) is not None


def version_key(version: str) -> Optional[tuple[tuple[int, ...], int, int]]:
    """Return a version in order of release (dev, alpha, beta, rc, release, post); None for what is no version.

    `X` sorts after every patch level.
    """
    match = re.match(r"(\d+(?:\.(?:\d+|x))*)(?:(dev|alpha|a|beta|b|rc|post)(\d+))?", canonical(version))
    if match is None:
        return None
    numbers = [_LAST if part == "x" else checked_int(part) for part in match[1].split(".")]
    stage = _STAGES.index(match[2] or "")
    return tuple((numbers + [0] * 4)[: max(4, len(numbers))]), stage, checked_int(match[3] or "0")


_STAGES = ("dev", "a", "alpha", "b", "beta", "rc", "", "post")
_LAST = 10**6


def requirement_met(version: str, requirement: str) -> bool:
    """Return whether an internal number meets `>=7.6, <=8.2` or `8.2`; raises ValueError if either is invalid.

    A bound is compared over its own length, so 8.2.0.0.201 is an 8.2 and meets `<=8.2`.
    """
    parts = version_parts(version)
    for clause in filter(None, (text.strip() for text in requirement.split(","))):
        match = re.fullmatch(r"(>=|<=|==|=|>|<)?\s*([\w.]+)", clause)
        if match is None:
            raise ValueError(f"not a requirement: {requirement}")
        bound = version_parts(match[2])
        own = parts[: len(bound)]
        holds = {">=": own >= bound, "<=": own <= bound, ">": own > bound, "<": own < bound}.get(match[1], own == bound)
        if not holds:
            return False
    if not requirement.strip():
        raise ValueError("the requirement is empty")
    return True


def matches_row(version: str, row: str) -> bool:
    """Return whether a driver matches a matrix row: `25.0.rc1.1` is a `25.0.RC1`, any 25.5.* a `25.5.X`."""
    parts, pattern = version.strip().lower().split("."), row.strip().lower().split(".")
    return len(parts) >= len(pattern) and all(expected in ("x", part) for part, expected in zip(parts, pattern))


def selected_fields(values: Mapping[str, str], *keys: str) -> str:
    """Return the named fields as `key=value` lines, for evidence."""
    return "\n".join(f"{key}={values[key]}" for key in keys if key in values)
