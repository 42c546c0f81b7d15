"""A short log in the wording of public threads leads to its family (tests/cases/families)."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.examples import ROOT
from helpers.rows import sampled
from helpers.yaml_text import load_yaml

from envtune.diagnose import diagnose

CASES = ROOT / "tests" / "cases" / "families"
LOGS = load_yaml((CASES / "logs.yaml").read_text("utf-8"))
ROWS = [(name, text) for name, texts in LOGS.items() for text in texts]
ROWS += [(row["expected"], row["text"]) for row in load_yaml((CASES / "public.yaml").read_text("utf-8"))]


@pytest.mark.parametrize(("name", "text"), sampled(ROWS, 12))
def test_the_first_answer(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(text, "utf-8")
    found = diagnose([str(tmp_path / "train.log")], check=False)
    assert [d.candidate.entry.name for d in found.diagnoses][:1] == ([] if name == "nothing" else [name])
