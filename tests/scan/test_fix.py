"""`scan --fix`: the diff can be applied, fixes what it says, and breaks nothing else."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, Mapping

import pytest
from helpers.launch_files import CASES, row, rules, scanned, write
from helpers.rows import sampled

from envtune.catalog import Catalogue
from envtune.host import LocalHost
from envtune.model import Outcome
from envtune.scan.edit import diff
from envtune.scan.scan import fixes


@pytest.mark.parametrize("case", sampled(CASES, 4))
def test_the_diff_fixes_what_it_says_and_nothing_new_is_wrong(
    case: Mapping[str, Any], tmp_path: Path, catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, case)
    before = scanned(tmp_path, catalogue, monkeypatch, *case.get("scan", ()))
    fixed = fixes(LocalHost(), before, rules(catalogue))
    for one in fixed:
        (tmp_path / one.path).write_bytes(one.after.encode("utf-8", "surrogateescape"))
    after = scanned(tmp_path, catalogue, monkeypatch, *case.get("scan", ()))
    gone = sum(len(one.found) for one in fixed)
    assert failed(after) <= failed(before) - gone
    assert len(after.all_problems) == len(before.all_problems)
    assert not fixes(LocalHost(), after, rules(catalogue)), "what can be fixed is fixed at once"


def failed(report: Any) -> int:
    return sum(one.finding.outcome is Outcome.FAIL and one.counts for one in report.found)


TRAIN = """\
#!/bin/bash
export ASCEND_GLOBAL_LOG_LEVEL=0  # envtune: ignore ENV003 -- on purpose
export TASK_QUEUE_ENABLE=0 COMBINED_ENABLE=1
export DUMP_GE_GRAPH=2
export DUMP_GRAPH_LEVEL=2 && echo on
LEVEL=0
export ASCEND_GLOBAL_EVENT_ENABLE="1"
srun --export=ALL,ACL_DUMP_DATA=1,X=2 python train.py
"""
FIXED = """\
#!/bin/bash
export ASCEND_GLOBAL_LOG_LEVEL=0  # envtune: ignore ENV003 -- on purpose
export TASK_QUEUE_ENABLE=1 COMBINED_ENABLE=1
unset DUMP_GRAPH_LEVEL && echo on
LEVEL=0
export ASCEND_GLOBAL_EVENT_ENABLE=0
srun --export=ALL,ACL_DUMP_DATA=0,X=2 python train.py
"""


def test_patch_takes_the_diff(tmp_path: Path, catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"files": {"a b/train.sh": TRAIN, "Dockerfile": "FROM x\nENV TASK_QUEUE_ENABLE 0"}})
    report = scanned(tmp_path, catalogue, monkeypatch)
    text = diff(fixes(LocalHost(), report, rules(catalogue)))
    assert (tmp_path / "a b/train.sh").read_text() == TRAIN, "nothing is written"
    done = subprocess.run(["patch", "-p1"], input=text, text=True, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "a b/train.sh").read_text() == FIXED
    assert (tmp_path / "Dockerfile").read_text() == "FROM x\nENV TASK_QUEUE_ENABLE 1"
    left = {row(one) for one in scanned(tmp_path, catalogue, monkeypatch).found}
    assert left == {"a b/train.sh:2 ENV003 ignored", "a b/train.sh:2 ENV015 ignored"}
