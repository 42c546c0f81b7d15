"""The script that compares answers with labels (benchmarks/profile_accuracy.py) looks for words that envtune says."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from envtune.profile.rules import RULES
from envtune.profile.verdict import Bound

ROOT = Path(__file__).parents[2]


def loaded() -> Any:
    spec = importlib.util.spec_from_file_location("profile_accuracy", ROOT / "benchmarks" / "profile_accuracy.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


EXPECTED = loaded().EXPECTED


@pytest.mark.parametrize("pattern", EXPECTED)
def test_what_a_label_expects_can_be_said(pattern: str) -> None:
    wanted = EXPECTED[pattern]
    said = "".join(path.read_text("utf-8") for path in (ROOT / "envtune" / "profile").glob("*.py"))
    said = said.replace('"\n                "', "").replace('"\n            "', "")
    kernels = ("NonZero", "All queues before Batch are full")  # with names of the profile in them
    assert [words for words in wanted.notes if words not in said and words not in kernels] == []
    assert {*wanted.advised, *wanted.named, *wanted.may} <= {*RULES}
    assert wanted.verdict in {bound.value for bound in Bound}
