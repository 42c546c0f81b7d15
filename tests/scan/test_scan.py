"""`scan` over written files: every expected finding, and no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping

import pytest
from helpers.launch_files import CASES, problem_row, row, scanned, write
from helpers.rows import sampled

from envtune.catalog import Catalogue


@pytest.mark.parametrize("case", sampled(CASES, 2))
def test_expected_findings_and_no_other(
    case: Mapping[str, Any], tmp_path: Path, catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, case)
    report = scanned(tmp_path, catalogue, monkeypatch, *case.get("scan", ()))
    assert sorted({row(one) for one in report.found if not one.covered_by}) == sorted(case["expect"])
    problems = sorted(problem_row(one) for one in report.all_problems)
    expected = sorted(case.get("problems", ()))
    assert len(problems) == len(expected) and all(map(str.startswith, problems, expected)), problems
    unused = [f"{one.path}:{one.line} {', '.join(one.ids)}" for file in report.files for one in file.unused]
    assert unused == case.get("unused", [])
    assert bool(report.files) is not case.get("nothing", False)
