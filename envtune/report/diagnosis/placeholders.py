"""What the named groups of a signature tell: as labelled values, and put into the sentences of an entry."""

from __future__ import annotations

import re
from typing import Mapping, Optional

from envtune.messages import Bilingual, Literal, Message, Text, in_context
from envtune.report.layout import printable

VALUE = 160  # characters of a value that are shown

# What the named groups of signatures are about; what is not here is shown under its own name, `None` not at all.
GROUPS: Mapping[str, Optional[Text]] = {
    "address": Message("address"),
    "argument": Message("argument"),
    "capacity": Message("capacity"),
    "code": in_context("placeholders", "code"),
    "connected": Message("connected"),
    "device": Message("device"),
    "end": None,
    "first": None,
    "found": in_context("placeholders", "found"),
    "given": Message("given"),
    "kernel": Literal("kernel"),
    "library": Message("library"),
    "local": Message("local"),
    "lost_host": None,
    "lost_rank": None,
    "memory": Message("memory"),
    "missing": in_context("placeholders", "missing"),
    "model": Message("model"),
    "module": Message("module"),
    "needed": Message("needed"),
    "node": Message("node"),
    "op": Message("operator"),
    "path": Message("path"),
    "pid": Message("process"),
    "port": Message("port"),
    "process": Message("process"),
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
    "wanted": Message("wanted"),
    "wheel": Message("wheel"),
}


def says(groups: Mapping[str, str]) -> tuple[tuple[Text, str], ...]:
    """What the named groups tell, as (what, value)."""
    found = []
    for name, value in groups.items():
        label = GROUPS.get(name, Literal(name))
        if label is not None and value.strip():
            found.append((label, _value(value)))
    return tuple(found)


def _value(value: str) -> str:
    text = printable(" ".join(value.split()))
    return text if len(text) <= VALUE else f"{text[: VALUE // 2]} … {text[-VALUE // 2 :]}"


def fill(text: Text, groups: Mapping[str, str]) -> Text:
    """`{op}` in an entry's text replaced by what the log says.

    What the log does not tell: a remark in parentheses that needs it is left out; elsewhere its name stands there.
    """
    return Bilingual(_fill(text.en, groups, "en"), _fill(text.zh, groups, "zh"))


_FIELD = re.compile(r"\{([a-z_]+)\}")
_REMARK = re.compile(r"\s?([(（])([^()（）]*\{[a-z_]+\}[^()（）]*)([)）])")


def _fill(text: str, groups: Mapping[str, str], lang: str) -> str:
    def untold(piece: str) -> bool:
        return any(name not in groups for name in _FIELD.findall(piece))

    def remark(found: re.Match[str]) -> str:
        if not untold(found[2]):
            return found[0]
        kept = [piece for piece in re.split("[;；]", found[2]) if not untold(piece)]
        blank = " " if found[0][0].isspace() else ""
        return f"{blank}{found[1]}{';'.join(kept).strip()}{found[3]}" if kept else ""

    def field(found: re.Match[str]) -> str:
        if found[1] in groups:
            return _value(groups[found[1]])
        label = GROUPS.get(found[1]) or Literal(found[1])
        return f"<{label.to(lang)}>"

    return _FIELD.sub(field, _REMARK.sub(remark, text))
