"""The executor where envtune is not installed, on the oldest Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.assembled import assembled
from helpers.killed_runs import (
    NEW,
    OLD,
    build,
    tree,
)

OLDEST = [
    p for v in ("3.6.15", "3.7.16") for p in [Path(f"~/.pyenv/versions/{v}/bin/python").expanduser()] if p.exists()
]


PYTHONS = [*map(str, OLDEST), sys.executable]


@pytest.mark.parametrize("python", [PYTHONS[0], *(pytest.param(one, marks=pytest.mark.slow) for one in PYTHONS[1:])])
def test_it_runs_alone_where_envtune_is_not_installed(tmp_path: Path, python: str) -> None:
    program = tmp_path / "executor.py"
    program.write_text(assembled("executor"), "utf-8")
    plan = build(tmp_path / "tree")
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    env = {"PATH": os.environ["PATH"], "ENVTUNE_STATE": str(tmp_path / "tree/state")}
    env["ENVTUNE_HOST_LOCK"] = str(tmp_path / "lock")

    def call(*words: str) -> Any:
        done = subprocess.run([python, "-I", str(program), *words], env=env, stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout)

    told = call("apply", str(tmp_path / "plan.json"))
    assert {result["status"] for result in told["results"]} == {"done"} and tree(tmp_path / "tree") == NEW
    assert call("pending") == []
    assert {result["status"] for result in call("undo", told["run"])["results"]} == {"undone"}
    assert tree(tmp_path / "tree") == OLD
