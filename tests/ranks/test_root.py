"""Which process of a job failed first? Each case is the logs of all ranks, as a user has them (tests/cases/ranks)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping, Optional

import pytest
from helpers.rank_cases import NAMES, case, ranks, write
from helpers.rows import sampled

from envtune.diagnose import diagnose
from envtune.report.diagnosis.json import diagnosis_data
from envtune.report.diagnosis.markdown import render_markdown
from envtune.report.diagnosis.text import render_text


def expected_ranks(value: Any) -> set[int]:
    return set(ranks(value)) if value not in (None, "") else set()


@pytest.mark.parametrize("name", sampled(NAMES, 6))
def test_a_case(tmp_path: Path, name: str) -> None:
    wanted = case(name)
    report = diagnose(write(name, tmp_path), check=False)
    data = diagnosis_data(report, "en")
    assert_root(wanted, data["root"], tmp_path)
    if "candidates" in wanted:
        assert {root["rank"] for root in data["candidates"]} == expected_ranks(wanted["candidates"])
    if "waiters" in wanted:
        assert {process["rank"] for process in data["waiters"]} == expected_ranks(wanted["waiters"])
    if "missing" in wanted:
        assert set(data["missing"]) == expected_ranks(wanted["missing"])
    if "first" in wanted:
        assert wanted["first"] in data["first_error"]["text"]
    if "answer" in wanted:
        assert [diagnosis["id"] for diagnosis in data["diagnoses"]] == wanted["answer"]
    waiters = {process["rank"] for process in data["waiters"]} - {None}
    assert data["root"] is None or data["root"]["rank"] not in waiters
    for diagnosis in data["diagnoses"]:
        assert diagnosis["where"]["rank"] not in waiters
    for lang in ("en", "zh"):
        assert "{" not in render_text(report, lang).replace("localInfo{", "").replace("remoteIP{", "")
        assert render_markdown(report, lang)


def assert_root(wanted: Mapping[str, Any], root: Optional[Mapping[str, Any]], folder: Path) -> None:
    if wanted["root"] is None:
        assert root is None
        return
    assert root is not None
    found = {**root, "file": root["file"] and str(Path(root["file"]).relative_to(folder))}
    assert {key: found[key] for key in wanted["root"]} == wanted["root"]


@pytest.mark.parametrize(
    "line", ["WORLD_SIZE={size}", "Entry-HcclCommInitRootInfo:ranks[{size}], rank[{rank}], rootinfo: host ip[10.0.0.1]"]
)
def test_a_number_of_ranks_that_no_job_has_is_none(tmp_path: Path, line: str) -> None:
    for rank in (0, 1):
        first = line.format(size=1 << 22, rank=rank)
        (tmp_path / f"rank_{rank}.log").write_text(f"{first}\nRANK={rank}\nValueError: bad\n")
    assert diagnose([str(tmp_path)], check=False).job.missing == ()
