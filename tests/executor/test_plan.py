"""Malformed plans are refused before anything is written."""

from __future__ import annotations

import os
from typing import Any

import pytest
from helpers.executor_runs import apply
from helpers.killed_runs import (
    change,
)

from envtune.executor.plan import operation_fault, plan_fault
from envtune.executor.problems import RefusedError
from envtune.executor.run import apply_plan

HOSTILE: list[tuple[Any, str]] = [
    ({"op": "shell", "argv": ["rm"]}, "op: unknown kind"),
    ({"path": "/etc/x"}, "op: missing"),
    ({"op": "file", "path": "/etc/../x", "content": None}, "path"),
    ({"op": "file", "path": "etc/x", "content": None}, "path"),
    ({"op": "file", "path": "//etc/x", "content": None}, "path"),
    ({"op": "file", "path": "/etc/x\0", "content": None}, "path"),
    ({"op": "file", "path": "/", "content": None}, "path"),
    ({"op": "file", "path": "/etc/x"}, "content: missing"),
    ({"op": "file", "path": "/etc/x", "content": "not base64!"}, "content"),
    ({"op": "file", "path": "/etc/x", "content": None, "mode": "0644"}, "mode"),
    ({"op": "file", "path": "/etc/x", "content": None, "mode": 0o100644}, "mode"),
    ({"op": "file", "path": "/etc/x", "content": None, "uid": -1}, "uid"),
    ({"op": "file", "path": "/etc/x", "content": None, "owner": 0}, "owner: unknown"),
    ({"op": "run", "argv": "rm -rf /", "check": {"argv": ["true"]}}, "argv"),
    ({"op": "run", "argv": ["x"], "check": {}}, "check"),
    (
        {
            "op": "run",
            "argv": ["x"],
            "check": {"argv": ["x"]},
            "undo": {"argv": ["x"], "find": {"argv": ["x"], "pattern": "("}},
        },
        "undo",
    ),
    ({"op": "run", "argv": ["x"], "check": {"argv": ["x"]}, "env": {"A=B": "c"}}, "env"),
    ({"op": "swap", "root": "/x", "touches": ["../y"], "steps": [], "verify": []}, "touches"),
    ({"op": "swap", "root": "/x", "touches": [""], "steps": [], "verify": []}, "touches"),
    ({"op": "swap", "root": "/x", "touches": ["."], "steps": [], "verify": []}, "touches"),
    ({"op": "swap", "root": "/x", "touches": ["/etc"], "steps": [], "verify": []}, "touches"),
    ({"op": "signal", "pid": 1, "started": 1, "uid": 0, "grace": 1}, "pid"),
    ({"op": "signal", "pid": -1, "started": 1, "uid": 0, "grace": 1}, "pid"),
    ({"op": "signal", "pid": True, "started": 1, "uid": 0, "grace": 1}, "pid"),
]


@pytest.mark.parametrize(("operation", "member"), HOSTILE, ids=[why + str(n) for n, (_, why) in enumerate(HOSTILE)])
def test_a_malformed_operation_is_refused_before_anything_is_written(state: str, operation: Any, member: str) -> None:
    assert str(operation_fault(operation)).startswith(member)
    with pytest.raises(RefusedError, match=r"changes\[0\]\.operations\[0\]"):
        apply(state, operation)
    assert not os.path.exists(state)


@pytest.mark.parametrize(
    "plan",
    [
        None,
        [],
        {},
        {"changes": {}},
        {"changes": [1]},
        {"changes": [{"id": "../x", "operations": []}]},
        {"changes": [{"id": "C01"}]},
    ],
)
def test_a_malformed_plan_is_refused(state: str, plan: Any) -> None:
    with pytest.raises(RefusedError, match="malformed plan"):
        apply_plan(plan, state)


def test_a_change_occurs_once(state: str) -> None:
    assert "duplicate" in str(plan_fault({"changes": [change("C01"), change("C01")]}))
