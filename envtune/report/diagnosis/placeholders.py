"""What the named groups of a signature tell: as labelled values, and put into the sentences of an entry."""

from __future__ import annotations

import re
from typing import Mapping, Optional

from envtune.model import Text, same
from envtune.report.layout import printable

VALUE = 160  # characters of a value that are shown

# What the named groups of signatures are about; what is not here is shown under its own name, `None` not at all.
GROUPS: Mapping[str, Optional[Text]] = {
    "address": Text("address", "地址"),
    "argument": Text("argument", "参数"),
    "capacity": Text("capacity", "容量"),
    "code": Text("code", "错误码"),
    "connected": Text("connected", "已连接"),
    "device": Text("device", "设备"),
    "end": None,
    "first": None,
    "found": Text("found", "实际"),
    "given": Text("given", "给定"),
    "kernel": Text("kernel", "kernel"),
    "library": Text("library", "库"),
    "local": Text("local", "本端"),
    "lost_host": None,
    "lost_rank": None,
    "memory": Text("memory", "显存"),
    "missing": Text("missing", "缺少"),
    "model": Text("model", "模型"),
    "module": Text("module", "模块"),
    "needed": Text("needed", "需要"),
    "node": Text("node", "节点"),
    "op": Text("operator", "算子"),
    "path": Text("path", "路径"),
    "pid": Text("process", "进程"),
    "port": Text("port", "端口"),
    "process": Text("process", "进程"),
    "reason": Text("reason", "原因"),
    "remote": Text("remote", "对端"),
    "seconds": Text("seconds", "秒"),
    "signal": Text("signal", "信号"),
    "submodule": Text("submodule", "子模块"),
    "symbol": Text("symbol", "符号"),
    "value": Text("value", "值"),
    "variable": Text("variable", "变量"),
    "version": Text("version", "版本"),
    "visible": Text("visible devices", "可见设备"),
    "wanted": Text("wanted", "申请"),
    "wheel": Text("wheel", "wheel 包"),
}


def says(groups: Mapping[str, str]) -> tuple[tuple[Text, str], ...]:
    """What the named groups tell, as (what, value)."""
    found = []
    for name, value in groups.items():
        label = GROUPS.get(name, same(name))
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
    return Text(_fill(text.en, groups, "en"), _fill(text.zh, groups, "zh"))


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
        label = GROUPS.get(found[1]) or same(found[1])
        return f"<{label.to(lang)}>"

    return _FIELD.sub(field, _REMARK.sub(remark, text))
