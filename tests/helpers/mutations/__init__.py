"""Rows of (host, what changes, what is laid over the host first, the change, the ids of the checks that flip)."""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple

from helpers.mutations import hosts, software, stack


class Row(NamedTuple):
    """One change of a recorded host, and the ids of exactly the checks that say something else then."""

    host: str
    what: str
    base: Mapping[str, Any]
    change: Mapping[str, Any]
    ids: tuple[str, ...]


def rows() -> tuple[Row, ...]:
    """Every change, in the order of the tables."""
    found = [Row(host, what, {}, change, tuple(ids.split())) for host, what, change, ids in hosts.ROWS]
    for host, what, base, change, ids in (*stack.ROWS, *software.ROWS):
        found.append(Row(host, what, base, change, tuple(ids.split())))
    return tuple(found)


def mutate(data: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Return the host with the change laid over it; a variable of None is unset."""
    changed = dict(data)
    for key, value in change.items():
        if key == "npu-smi":
            old, new = value
            assert old in changed["commands"]["npu-smi info"]
            text = changed["commands"]["npu-smi info"].replace(old, new)
            changed["commands"] = {**changed["commands"], "npu-smi info": text}
        elif isinstance(value, Mapping):
            merged = {**(changed.get(key) or {}), **value}
            changed[key] = {k: v for k, v in merged.items() if key != "environ" or v is not None}
        else:
            changed[key] = value
    return changed
