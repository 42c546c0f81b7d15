"""What a log names and what a finding is about: whether they are the same port, device, process, variable or path.

A finding about a different one than the log names says nothing about the cause. If the log or the finding names none,
or both could be meant, they count as the same.
"""

from __future__ import annotations

import re
from typing import Callable, Iterator, Mapping, NamedTuple

from envtune.model import Finding
from envtune.ranges import decimal, single_subjects

_PORTS = re.compile(r"\b(?:port|MASTER_PORT|HCCL) (\d{1,5})(?:-(\d{1,5}))?(?![\w.])")
_MASTER_PORT = re.compile(r"(\d{1,5})(?!\w)")
_PROCESS = re.compile(r"\b(?:pid|process) (\d+)")
_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b")
_ADDRESS = re.compile(r"(\S+):(?: |$)")
_PATH = re.compile(r"(?<![\w./-])/[^\s,;:()'\"]*")


class _Kind(NamedTuple):
    """A capture group of signatures, what names such a thing in a finding, and when two names mean the same."""

    group: str
    of: Callable[[Finding], Iterator[str]]
    same: Callable[[str, str], bool]


def is_about_another(finding: Finding, named: Mapping[str, str], numbers_devices: bool) -> bool:
    """Return whether a finding is about something else than the log names. `named` is what the signatures captured."""
    for kind in _KINDS:
        wanted = named.get(kind.group, "").strip()
        if not wanted or (kind.group == "device" and not numbers_devices):
            continue
        found = tuple(kind.of(finding))
        if found and not any(kind.same(wanted, one) for one in found):
            return True
    return False


def _actual(finding: Finding) -> str:
    return "" if finding.actual is None else finding.actual.en


def _devices(finding: Finding) -> Iterator[str]:
    return (name[3:] for name in single_subjects(finding.subject) if re.fullmatch(r"npu\d+", name))


def _ports(finding: Finding) -> Iterator[str]:
    """Yield ports and ranges: those of the subject, else that of a finding about MASTER_PORT."""
    found = _PORTS.findall(finding.subject)
    yield from (f"{first}-{last or first}" for first, last in found)
    leading = _MASTER_PORT.match(_actual(finding)) if finding.subject == "MASTER_PORT" else None
    if leading is not None:
        yield f"{leading[1]}-{leading[1]}"


def _in_range(wanted: str, span: str) -> bool:
    first, _, last = span.partition("-")
    number = decimal(wanted)
    return number is None or int(first) <= number <= int(last)


def _processes(finding: Finding) -> Iterator[str]:
    yield from _PROCESS.findall(f"{finding.subject}, {_actual(finding)}")


def _variables(finding: Finding) -> Iterator[str]:
    yield from _VARIABLE.findall(finding.subject)


def _addresses(finding: Finding) -> Iterator[str]:
    found = _ADDRESS.match(_actual(finding)) if finding.subject == "MASTER_ADDR" else None
    if found is not None:
        yield found[1]


def _paths(finding: Finding) -> Iterator[str]:
    yield from _PATH.findall(finding.subject)


def _on_one_path(wanted: str, path: str) -> bool:
    """Return whether one path is the other or below it."""
    if not wanted.startswith("/"):
        return True
    one, other = (text.rstrip("/") + "/" for text in (wanted, path))
    return one.startswith(other) or other.startswith(one)


def _value(finding: Finding) -> Iterator[str]:
    """Yield the value that one variable has there."""
    name, mark, value = finding.evidence.text.partition("=")
    if mark and name == finding.subject and _VARIABLE.fullmatch(name):
        yield value


def _is_part(wanted: str, value: str) -> bool:
    """Return whether it is the value, or one of its parts: `bond9` of `=bond9`."""
    return re.search(rf"(?<![\w.-]){re.escape(wanted)}(?![\w.-])", value) is not None


_KINDS = (
    _Kind("device", _devices, str.__eq__),
    _Kind("port", _ports, _in_range),
    _Kind("pid", _processes, str.__eq__),
    _Kind("variable", _variables, str.__eq__),
    _Kind("value", _value, _is_part),
    _Kind("address", _addresses, str.__eq__),
    _Kind("path", _paths, _on_one_path),
)
