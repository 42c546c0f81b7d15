"""Show what the named groups of a signature captured: as labeled values, and in the sentences of an entry."""

from __future__ import annotations

import re
from typing import Mapping, Optional

from envtune.messages import Literal, Message, Text, in_context
from envtune.report.layout import printable

MAX_VALUE = 160  # characters of a value that are shown
_BYTES = "_bytes"  # ends the name of a group that captures a number of bytes

# The labels of named groups of signatures; a group that is not here is shown under its own name, `None` not at all.
GROUPS: Mapping[str, Optional[Text]] = {
    "above": None,
    "address": Message("address"),
    "api": Literal("API"),
    "argument": Message("argument"),
    "buffsize": Literal("HCCL_BUFFSIZE"),
    "capacity": Message("capacity"),
    "code": in_context("placeholders", "code"),
    "connected": Message("connected"),
    "device": Message("device"),
    "end": None,
    "first": None,
    "found": in_context("placeholders", "found"),
    "given": Message("given"),
    "health": Message("health"),
    "interface": Message("interface"),
    "kernel": Literal("kernel"),
    "library": Message("library"),
    "local": Message("local"),
    "local_host": None,
    "local_ip": None,
    "loopback": None,
    "lost_host": None,
    "lost_rank": None,
    "memory": Message("memory"),
    "missing": in_context("placeholders", "missing"),
    "model": Message("model"),
    "module": Message("module"),
    "needed": Message("needed"),
    "node": Message("node"),
    "op": Message("operator"),
    "package": Message("package"),
    "path": Message("path"),
    "peer_device": None,
    "peer_host": None,
    "peer_ip": Message("peer"),
    "pid": Message("process"),
    "port": Message("port"),
    "process": Message("process"),
    "program": Message("program"),
    "reason": Message("reason"),
    "remote": Message("remote"),
    "seconds": Message("seconds"),
    "signal": Message("signal"),
    "submodule": Message("submodule"),
    "symbol": Message("symbol"),
    "value": Message("value"),
    "variable": Message("variable"),
    "version": Message("version"),
    "visible": Message("visible devices"),
    "wanted": Message("requested"),
    "wheel": Message("wheel"),
}


def readable(groups: Mapping[str, str]) -> dict[str, str]:
    """Return the groups, a number of bytes (`wanted_bytes`) as a size (`wanted`: 256 GiB)."""
    found: dict[str, str] = {}
    for name, value in groups.items():
        stem = name.removesuffix(_BYTES)
        found.setdefault(stem, value if stem == name else _size(value))
    return found


def _size(number: str) -> str:
    size, units = float(number), ["B", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size, units = size / 1024, units[1:]
    return f"{size:.1f}".removesuffix(".0") + f" {units[0]}"


def labelled_values(groups: Mapping[str, str]) -> tuple[tuple[Text, str], ...]:
    """Return what the named groups captured, as (label, value)."""
    values = []
    for name, value in readable(groups).items():
        label = GROUPS.get(name, Literal(name))
        if label is not None and value.strip():
            values.append((label, _shortened(value)))
    return tuple(values)


def _shortened(value: str) -> str:
    text = printable(" ".join(value.split()))
    return text if len(text) <= MAX_VALUE else f"{text[: MAX_VALUE // 2]} … {text[-MAX_VALUE // 2 :]}"


class _Filled(Text):
    """A text of the catalog with its placeholders replaced."""

    __slots__ = ("groups", "text")

    def __init__(self, text: Text, groups: Mapping[str, str]) -> None:
        self.text, self.groups = text, groups

    def to(self, lang: str) -> str:
        """Return the text in `lang`, filled in."""
        return _fill(self.text.to(lang), readable(self.groups), lang)


def fill(text: Text, groups: Mapping[str, str]) -> Text:
    """Return an entry's text with `{op}` replaced by what the log says.

    Where the log does not say it, a remark in parentheses that needs it is left out; elsewhere its label is shown.
    """
    return _Filled(text, groups)


_FIELD = re.compile(r"\{([a-z_]+)\}")
_REMARK = re.compile(
    r"\s?([(\uff08])([^()\uff08\uff09]*\{[a-z_]+\}[^()\uff08\uff09]*)([)\uff09])"
)  # with full-width parentheses, too


def _fill(text: str, groups: Mapping[str, str], lang: str) -> str:
    def is_unknown(piece: str) -> bool:
        return any(name not in groups for name in _FIELD.findall(piece))

    def remark(match: re.Match[str]) -> str:
        if not is_unknown(match[2]):
            return match[0]
        kept = [piece for piece in re.split("[;\uff1b]", match[2]) if not is_unknown(piece)]
        blank = " " if match[0][0].isspace() else ""
        return f"{blank}{match[1]}{';'.join(kept).strip()}{match[3]}" if kept else ""

    def field(match: re.Match[str]) -> str:
        if match[1] in groups:
            return _shortened(groups[match[1]])
        label = GROUPS.get(match[1]) or Literal(match[1])
        return f"<{label.to(lang)}>"

    return _FIELD.sub(field, _REMARK.sub(remark, text))
