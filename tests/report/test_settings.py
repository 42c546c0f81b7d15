"""The variable that a message asks for is shown with the number that the log names."""

from __future__ import annotations

from pathlib import Path

import pytest

from envtune.catalog import load
from envtune.diagnose import diagnose
from envtune.errors import UsageError
from envtune.fix.selection import choose_checks
from envtune.model import Severity
from envtune.report.diagnosis.content import todo

TOO_SMALL = "EZ9999: HCCL_BUFFSIZE is too SMALL, maxBs = 64, k = 10, NEEDED_HCCL_BUFFSIZE((maxBs * k) * 2) = {}MB, "


@pytest.mark.parametrize(
    ("log", "command"),
    [
        (TOO_SMALL.format(294) + "HCCL_BUFFSIZE=200MB.", "export HCCL_BUFFSIZE=294"),
        (TOO_SMALL.format(294) + "HCCL_BUFFSIZE=200MB.[FUNC:Tiling][LINE:941]", "export HCCL_BUFFSIZE=294"),
        ("HCCL_BUFFSIZE is too SMALL, should larger than 301MB", "export HCCL_BUFFSIZE=302"),
        (
            "HCCL_BUFFSIZE is too SMALL, A = 4, NEEDED_HCCL_BUFFSIZE is (A)= 914MB, HCCL_BUFFSIZE=20MB.",
            "export HCCL_BUFFSIZE=914",
        ),
    ],
)
def test_the_number_that_the_line_names_is_the_value(log: str, command: str, tmp_path: Path) -> None:
    assert shown(tmp_path, {"train.log": log}) == command


def test_the_rank_that_needs_most_decides(tmp_path: Path) -> None:
    needs = {f"rank{n}.log": TOO_SMALL.format(mb) + "HCCL_BUFFSIZE=200MB." for n, mb in enumerate((294, 310, 280))}
    assert shown(tmp_path, needs) == "export HCCL_BUFFSIZE=310"


def test_fix_says_where_the_value_is() -> None:
    with pytest.raises(UsageError, match="HCCL_BUFFSIZE"):
        choose_checks(load(), (), ("H123",), (), (), Severity.INFO)


def shown(folder: Path, logs: dict[str, str]) -> str:
    for name, text in logs.items():
        (folder / name).write_text(text + "\n")
    report = diagnose([str(folder)], check=False)
    first = report.diagnoses[0]
    assert first.candidate.entry.name == "hccl-buffsize-too-small"
    return todo(first, report).command
