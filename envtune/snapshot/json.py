"""JSON from strangers: bounded numbers and depth, no NaN, no key twice."""

from __future__ import annotations

import codecs
import json
import math
from typing import Any

from envtune.errors import SnapshotError

DIGITS = 20  # of a whole number; the largest 63-bit one has 19


class _Refused(Exception):
    """Legal JSON that no snapshot needs; the reason in both languages."""


def read_json(member: str, content: bytes) -> Any:
    """The value in `content`; raises SnapshotError naming `member`."""
    try:
        return json.loads(
            content[3 if content.startswith(codecs.BOM_UTF8) else 0 :].decode("utf-8"),
            parse_int=_whole,
            parse_float=_finite,
            parse_constant=_no_constant,
            object_pairs_hook=_pairs,
        )
    except UnicodeDecodeError as error:
        raise SnapshotError(member, f"not UTF-8 at byte {error.start}", f"第 {error.start} 字节处不是 UTF-8") from None
    except RecursionError:
        raise SnapshotError(member, "too deeply nested", "嵌套过深") from None
    except json.JSONDecodeError as error:
        raise SnapshotError(
            member,
            f"line {error.lineno}, column {error.colno}: {error.msg}",
            f"第 {error.lineno} 行第 {error.colno} 列不是合法的 JSON（{error.msg}）",
        ) from None
    except _Refused as error:
        raise SnapshotError(member, *error.args) from None
    except ValueError as error:
        raise SnapshotError(member, f"not JSON: {error}", f"不是合法的 JSON（{error}）") from None


def _whole(digits: str) -> int:
    if len(digits) > DIGITS:
        raise _Refused("a number with more than 20 digits", "数字超过 20 位")
    return int(digits)


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise _Refused("a number beyond any measure", "数值过大")
    return value


def _no_constant(word: str) -> Any:
    raise _Refused(f"{word} is not a number", f"{word} 不是数字")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _Refused(f"the key {twice[:100]!a} stands twice", f"键 {twice[:100]!a} 重复")
    return found
