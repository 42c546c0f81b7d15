"""The simple values of a snapshot: each function gives back a value of its type, or raises SnapshotError.

`where` names the place: `processes[3].pid`.
"""

from __future__ import annotations

import math
import posixpath
from typing import Any, Mapping

from envtune.errors import SnapshotError
from envtune.messages import Bilingual, Message

LARGEST = 1 << 63


_WANTED_ZH = {
    "a mapping": "映射",
    "text": "文本",
    "a list": "列表",
    "a whole number": "整数",
    "a number": "数值",
    "a finite number": "有限的数值",
    "an absolute path": "绝对路径",
    "the name of a file": "文件名",
    'an octal mode in quotes ("0644")': '带引号的八进制权限（"0644"）',
    "hexadecimal digits": "十六进制数字",
    "a mapping or a list": "映射或列表",
    "missing, denied or timeout": "missing、denied 或 timeout",
    'a list, or {"error": "EACCES"}': '列表，或 {"error": "EACCES"}',
    "a port": "端口号",
}


def refused(where: str, wanted: str, value: Any) -> SnapshotError:
    """For a value of another kind than `wanted`, one of the words of _WANTED_ZH."""
    shown = repr(value)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    zh = _WANTED_ZH.get(wanted, wanted)
    return SnapshotError(where, Bilingual(f"{wanted} is expected, not {shown}", f"应为{zh}，而不是 {shown}"))


def mapping(where: str, value: Any) -> Mapping[str, Any]:
    """A mapping with text keys."""
    if not isinstance(value, Mapping):
        raise refused(where, "a mapping", value)
    for key in value:
        text(f"{where}: key", key)
    return value


def optional_mapping(name: str, data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The mapping under `name`, an empty one when there is none."""
    value = data.get(name)
    return {} if value is None else mapping(name, value)


def text(where: str, value: Any) -> str:
    """Text without half surrogate pairs."""
    if not isinstance(value, str):
        raise refused(where, "text", value)
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise SnapshotError(where, Message("half a surrogate pair is not text")) from None
    return value


def word(where: str, value: Any) -> str:
    """Text; a number written without quotes is meant as text."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(number(where, value)) if isinstance(value, float) else str(whole(where, value))
    return text(where, value)


def texts(where: str, value: Any) -> list[str]:
    """A list of texts."""
    if not isinstance(value, (list, tuple)):
        raise refused(where, "a list", value)
    return [text(f"{where}[{place}]", one) for place, one in enumerate(value)]


def whole(where: str, value: Any) -> int:
    """A whole number of at most 63 bits."""
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= LARGEST:
        raise refused(where, "a whole number", value if not isinstance(value, int) else "...")
    return value


def number(where: str, value: Any) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise refused(where, "a number", value)
    if isinstance(value, int):
        return float(whole(where, value))
    if not math.isfinite(value):
        raise refused(where, "a finite number", value)
    return value


def path(where: str, value: Any) -> str:
    """An absolute path."""
    if not text(where, value).startswith("/") or "\0" in value:
        raise refused(where, "an absolute path", value)
    return str(value)


def entry_path(value: Any) -> str:
    """A path of the recorded tree."""
    if value != "/" and (posixpath.normpath(path("files", value)) != value or value.startswith("//")):
        raise SnapshotError(
            f"files: {value}",
            Message("a recorded path is absolute and has no `..`, `//` or final `/`"),
        )
    return str(value)
