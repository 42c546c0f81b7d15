"""JSON from untrusted sources: bounded numbers and depth, no NaN, no duplicate keys."""

from __future__ import annotations

import codecs
import json
import math
from typing import Any

from envtune.errors import SnapshotError
from envtune.messages import Message, in_context

DIGITS = 20  # of a whole number; the largest 63-bit one has 19


class _Refused(Exception):
    """Valid JSON that no snapshot needs; the reason in both languages."""


def read_json(member: str, content: bytes) -> Any:
    """Return the value in `content`; raises SnapshotError naming `member`."""
    try:
        return json.loads(
            content[3 if content.startswith(codecs.BOM_UTF8) else 0 :].decode("utf-8"),
            parse_int=_whole,
            parse_float=_finite,
            parse_constant=_no_constant,
            object_pairs_hook=_pairs,
        )
    except UnicodeDecodeError as error:
        raise SnapshotError(member, Message("not UTF-8 at byte {start}", start=error.start)) from None
    except RecursionError:
        raise SnapshotError(member, Message("too deeply nested")) from None
    except json.JSONDecodeError as error:
        raise SnapshotError(
            member,
            Message("line {lineno}, column {colno}: {msg}", lineno=error.lineno, colno=error.colno, msg=error.msg),
        ) from None
    except _Refused as error:
        raise SnapshotError(member, *error.args) from None
    except ValueError as error:
        raise SnapshotError(member, in_context("json", "not JSON: {error}", error=error)) from None


def _whole(digits: str) -> int:
    if len(digits) > DIGITS:
        raise _Refused(Message("a number with more than 20 digits"))
    return int(digits)


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise _Refused(Message("a number that is too large"))
    return value


def _no_constant(word: str) -> Any:
    raise _Refused(Message("{word} is not a number", word=word))


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _Refused(Message("duplicate key {twice!a}", twice=twice[:100]))
    return found
