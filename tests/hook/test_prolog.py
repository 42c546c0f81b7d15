"""slurm-prolog's table: each row of tests/cases/hook/before_job.yaml is a run of the program, with a node of Slurm."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from helpers.examples import ROOT
from helpers.rows import sampled
from helpers.scontrol import FakeNode, stamped, verdict_outcomes
from helpers.yaml_text import load_yaml

from envtune.hook.records import Drain, Verdict, drain_data, verdict_data
from envtune.hook.state import boot_id

ROWS = load_yaml((ROOT / "tests/cases/hook/before_job.yaml").read_text("utf-8"))


def write_state(folder: Path, row: dict[str, Any]) -> None:
    folder.mkdir(parents=True, mode=0o700)
    path = folder / "verdict.json"
    if "verdict" in row:
        written = time.time() - row.get("age", 5)
        verdict = Verdict(verdict_outcomes(row["verdict"]), True, written, row.get("boot", boot_id()))
        path.write_text(json.dumps(verdict_data(verdict)))
    elif "content" in row:
        path.write_text(row["content"])
    if path.exists():
        path.chmod(row.get("mode", 0o600))
    if "ours" in row:
        reason, stamp = stamped(row["ours"])
        (folder / "drain.json").write_text(json.dumps(drain_data(Drain("node1", reason, ("NET003",), stamp))))


@pytest.mark.parametrize("row", sampled(ROWS, 2), ids=lambda row: row["case"])
def test_before_a_job(row: dict[str, Any], tmp_path: Path, site: Path, hook: Any) -> None:
    write_state(tmp_path / "state" / "scheduler", row)
    states = row.get("state", "IDLE"), row.get("node", "")
    node = FakeNode(tmp_path / "slurm", *states, row.get("scontrol", ""), row.get("update", ""))
    if row.get("now", {}).get("SITE101") == "fail":
        (tmp_path / "sick").touch()
    words = [*row.get("options", ())]
    if "now" in row:
        words += ["--catalog", str(site), "--select", "SITE101", "--timeout", "40"]
    done = hook("slurm-prolog", "--scontrol", str(node.scontrol), *words)
    assert "Traceback" not in done.stderr and row.get("says", "") in done.stderr
    assert done.returncode == {"start": 0, "refuse": 20}[row["answer"]], done
    assert bool(node.calls) is row.get("asked", True), node.calls
    if "update" not in row:
        drain = [f"update NodeName=node1 State=DRAIN Reason={row['drained']}"] if "drained" in row else []
        assert node.changes == drain
